/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example: the features of tf.train.Example as fields. The key of a feature is the name of its
 * field; bytes that a name cannot have, as the '/' of "image/encoded", become '.'. Pure.
 */
#ifndef PSTK_TFRECORD_EXAMPLE_H
#define PSTK_TFRECORD_EXAMPLE_H

#include "record/feature.h"
#include "record/record.h"
#include "store/index/index.h"

/* The coding of a field: how its values are written. */
enum pstk__tfrecord_coding {
    PSTK__TFRECORD_WHOLE = 0, /* all data of a record */
    PSTK__TFRECORD_BYTES = 16 + PSTK__FEATURE_BYTES,
    PSTK__TFRECORD_FLOAT = 16 + PSTK__FEATURE_FLOAT,
    PSTK__TFRECORD_INT64 = 16 + PSTK__FEATURE_INT64,
};

/* Name of the field if a record is one value. */
#define PSTK__TFRECORD_DATA "data"

/* 1: `name` is the name of this key. */
int pstk__tfrecord_is_name(const char *name, const uint8_t *key, uint64_t size);
/* Write the name of a key of 1 to PSTK_MAX_NAME - 1 bytes. */
void pstk__tfrecord_name(char name[PSTK_MAX_NAME], const uint8_t *key, uint64_t size);

/* Return the number of a key's field, or -1; `guess`: the most likely number. */
int pstk__tfrecord_find(const struct pstk__inferred_schema *found, const uint8_t *key,
                        uint64_t size, uint32_t guess);

/* Set the kind that a caller wants; ENOTSUP if the coding has no such kind. */
int pstk__tfrecord_retype(struct pstk__index_field *field, const struct pstk_field *wanted,
                          struct pstk_error *err);
/* Set kind, dtype and coding of a field that no record has. */
int pstk__tfrecord_want(struct pstk__index_field *field, const struct pstk_field *wanted,
                        struct pstk_error *err);
/* Add a feature to the sizes of its field. A feature of another coding has no size. 0: it has no
 * list, so the record lacks the feature. */
int pstk__tfrecord_measure(struct pstk__index_field *field, const void *data, uint64_t size);
/* Add one value of this many bytes: an element of a list of bytes, or all data of a record. */
void pstk__tfrecord_measure_one(struct pstk__index_field *field, uint64_t size);
/* Return the max bytes of a value in the plain coding of the field's kind, after all were measured.
 */
uint64_t pstk__tfrecord_max_plain(const struct pstk__index_field *field);

/* View a feature; `data` is borrowed, and the caller sets offset. Size 0: the record lacks the
 * feature. If a feature does not fit its field, translating its view reports that, so that the
 * other fields of the record can be read. */
void pstk__tfrecord_view(struct pstk__field_view *view, const struct pstk__index_field *field,
                         const uint8_t *data, uint64_t size);

#endif
