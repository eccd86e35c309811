/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defaults: the values of fields in records that lack them, and the number of these records. Made
 * when a data set is opened; read-only afterwards.
 */
#ifndef PSTK_TFRECORD_DEFAULTS_H
#define PSTK_TFRECORD_DEFAULTS_H

#include "format/format.h"
#include "store/index/index.h"

/* The defaults, in one block of memory, which free() releases. */
struct pstk__tfrecord_defaults {
    struct {
        uint32_t is_given; /* 1: the field has a default */
        uint32_t size;     /* bytes of the default */
        const uint8_t *at; /* bytes of the default in this block, at a multiple of 8 */
    } of[PSTK_MAX_FIELDS];
};

/* Check and copy the caller's defaults of the fields found. Returns owned; *out NULL: there are
 * none. EINVAL, ENOTSUP: a default that its field cannot have; ENOMEM. */
int pstk__tfrecord_defaults_make(struct pstk__tfrecord_defaults **out,
                                 const struct pstk__inferred_schema *found,
                                 const struct pstk__opening *opening, struct pstk_error *err);
/* Set the members of a source that depend on absent values: the number of records that lack each
 * field, and for defaults the limits and the identity. defaults: or NULL. */
void pstk__tfrecord_defaults_describe(const struct pstk__tfrecord_defaults *defaults,
                                      const struct pstk__inferred_schema *found,
                                      struct pstk__source *source);
/* View the value of field i in a record without it: its default, or an absent feature, which is
 * empty or an error. `data` of the record is borrowed; defaults: or NULL. */
void pstk__tfrecord_defaults_view(const struct pstk__tfrecord_defaults *defaults,
                                  const struct pstk__inferred_schema *found, uint32_t i,
                                  const uint8_t *data, struct pstk__field_view *view);

#endif
