/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feature: reads a tf.train.Example in protobuf's coding: the features of its map, and the values
 * of a feature. Pure; reads in place.
 *
 * Fields may be in any order. Unknown fields, also groups, are skipped, except in a list. Several
 * Features of an Example count as one with all entries. If several entries have the same key, the
 * last one counts; the caller ensures this. Any other message that has one of these fields
 * twice is refused. So is field 2 of an Example, which makes the record a tf.train.SequenceExample.
 *
 *   Example   (0a size Features)*
 *   Features  (0a size Entry)*
 *   Entry     0a size key, 12 size Feature
 *   Feature   0a size BytesList | 12 size FloatList | 1a size Int64List | nothing
 *   BytesList (0a size bytes)*
 *   FloatList (0a size (4 bytes)* | 0d 4 bytes)*
 *   Int64List (0a size varint* | 08 varint)*
 */
#ifndef PSTK_FEATURE_H
#define PSTK_FEATURE_H

#include <penstock/format.h>

enum pstk__feature_type {
    PSTK__FEATURE_EMPTY = 0, /* it has no list */
    PSTK__FEATURE_BYTES = 1,
    PSTK__FEATURE_FLOAT = 2,
    PSTK__FEATURE_INT64 = 3,
};

/* The kind of value that a feature is read as. */
enum pstk__feature_reading {
    PSTK__FEATURE_READ_ONE = 0,   /* the only value of a bytes list */
    PSTK__FEATURE_READ_LIST = 1,  /* a list of bytes or texts */
    PSTK__FEATURE_READ_FLOAT = 2, /* f32 */
    PSTK__FEATURE_READ_INT64 = 3, /* an integer dtype */
};

/* A range of bytes that is read in order. */
struct pstk__wire {
    const uint8_t *at, *end; /* borrowed */
};

/* The read position in an Example: the entries left in the current Features, and the fields after
 * it. */
struct pstk__example {
    struct pstk__wire entries, rest;
};

/* A feature of an Example: its key, and the message that contains its values. Borrowed. */
struct pstk__feature {
    const uint8_t *key, *data;
    uint64_t key_size, size;
};

/* The list of a feature. */
struct pstk__feature_list {
    uint32_t type; /* enum pstk__feature_type */
    struct pstk__wire wire;
};

/* Tags of fields 1 and 2 in the coding "size and bytes". */
#define PSTK__WIRE_FIRST 0x0a
#define PSTK__WIRE_SECOND 0x12
/* Return 1 if the tag begins a group. */
#define PSTK__WIRE_IS_GROUP(tag) (((tag)&7) == 3)

/* Read the tag and size of a submessage, and step to its first byte; the submessage may end after
 * wire->end. Returns 0 if there is none. */
int pstk__wire_open(struct pstk__wire *wire, uint8_t tag, uint64_t *size);
/* Read the tag of any field. Coded as size and bytes: step to the bytes, which may end after
 * wire->end. Coded otherwise: step over the field, and set *size to 0. Returns 0 if there is no
 * field, or if a group ends after wire->end. */
int pstk__wire_field(struct pstk__wire *wire, uint64_t *tag, uint64_t *size);

/* Begin to read the features of an Example. Afterwards `entries` is empty only if the Example has
 * none. Returns 0 if the bytes are no Example. */
int pstk__example_begin(struct pstk__example *example, const void *data, uint64_t size);
/* Read the next feature. Returns 1 and sets *feature; 0: no more; -1: the bytes are no Example. */
int pstk__example_next(struct pstk__example *example, struct pstk__feature *feature);

/* Name the TensorFlow message that these bytes, which are no Example, hold; NULL if it is unknown.
 */
const char *pstk__example_other(const void *data, uint64_t size);

/* Find the list of a feature. Returns 0 if the bytes are no Feature. */
int pstk__feature_open(struct pstk__feature_list *list, const void *data, uint64_t size);
/* Return the number of values in a list, and set *n_bytes to the sum of their sizes (0 for
 * numbers). Returns -1 if the bytes are no list. */
int64_t pstk__feature_count(const struct pstk__feature_list *list, uint64_t *n_bytes);
/* Read the next value of a bytes list. Returns 1 and sets *value; 0: no more; -1: damage. */
int pstk__feature_next(struct pstk__feature_list *list, const uint8_t **value, uint64_t *size);
/* Return the values of a float list if they lie in one piece, else NULL. */
const uint8_t *pstk__feature_floats(const struct pstk__feature_list *list, uint64_t *size);
/* Return 1 if the field can hold n numbers, else 0 and a phrase in `text`. */
int pstk__feature_fits(const struct pstk_field *field, uint64_t n, char text[160]);

/* Return the size of a feature's values in the plain coding of the field's kind, in bytes; -1 if
 * the feature does not fit the field. what: enum pstk__feature_reading. */
int64_t pstk__feature_plain_size(uint32_t what, const struct pstk_field *field, const void *data,
                                 uint64_t size);
/* Write the values in the plain coding, plain_size bytes as pstk__feature_plain_size returned.
 * Returns NULL, or a phrase in `text` with the reason of a failure. Size 0: the record has no such
 * feature. */
const char *pstk__feature_translate(uint32_t what, const struct pstk_field *field, const void *data,
                                    uint64_t size, void *plain, uint64_t plain_size,
                                    char text[160]);

#endif
