/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feature: tf.train.Example as protobuf codes it: the features of its map, and the values of one.
 * Pure; reads in place. Fields may be in any order, and unknown ones are skipped, groups too, but
 * those of a list. Several Features of an Example are one, with the entries of all; of entries with
 * one key the last counts, which is left to the caller. Any other message that states one of these
 * fields twice is refused, as is field 2 of an Example: it makes the record a
 * tf.train.SequenceExample.
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

/* What the values of a feature are read as. */
enum pstk__feature_reading {
    PSTK__FEATURE_READ_ONE = 0,   /* the only value of a list of bytes */
    PSTK__FEATURE_READ_LIST = 1,  /* a list of bytes or texts */
    PSTK__FEATURE_READ_FLOAT = 2, /* f32 */
    PSTK__FEATURE_READ_INT64 = 3, /* an integer dtype */
};

/* Bytes that are read in order. */
struct pstk__wire {
    const uint8_t *at, *end; /* borrowed */
};

/* An Example: entries of Features that are still to be read, and the fields after these. */
struct pstk__example {
    struct pstk__wire entries, rest;
};

/* A feature of an Example: its key, and the message with its values. Borrowed. */
struct pstk__feature {
    const uint8_t *key, *data;
    uint64_t key_size, size;
};

/* The list of a feature. */
struct pstk__feature_list {
    uint32_t type; /* enum pstk__feature_type */
    struct pstk__wire wire;
};

/* Tags of fields 1 and 2 that are size and bytes. */
#define PSTK__WIRE_FIRST 0x0a
#define PSTK__WIRE_SECOND 0x12
/* 1: a tag begins a group. */
#define PSTK__WIRE_IS_GROUP(tag) (((tag)&7) == 3)

/* Read the size of a message in a message after its tag, and step to its begin; wire->end may lie
 * before its end. 0: there is none. */
int pstk__wire_open(struct pstk__wire *wire, uint8_t tag, uint64_t *size);
/* Read the tag of any field. Of size and bytes: step to the bytes, which may end after wire->end;
 * of another coding: step over it, *size 0. 0: there is none, or a group ends after wire->end. */
int pstk__wire_field(struct pstk__wire *wire, uint64_t *tag, uint64_t *size);

/* Begin to read the features of an Example, whose entries are not empty where it has any. 0: its
 * bytes are no Example. */
int pstk__example_begin(struct pstk__example *example, const void *data, uint64_t size);
/* Read the next one. 1: *feature; 0: there are no more; -1: the bytes are no Example. */
int pstk__example_next(struct pstk__example *example, struct pstk__feature *feature);

/* Name the message of TensorFlow that bytes are, which are no Example; NULL: they are none. */
const char *pstk__example_other(const void *data, uint64_t size);

/* Find the list of a feature. 0: the bytes are no Feature. */
int pstk__feature_open(struct pstk__feature_list *list, const void *data, uint64_t size);
/* How many values a list has, and for bytes the sum of their sizes. -1: the bytes are no list. */
int64_t pstk__feature_count(const struct pstk__feature_list *list, uint64_t *n_bytes);
/* The next value of a list of bytes. 1: *value; 0: there are no more; -1: damage. */
int pstk__feature_next(struct pstk__feature_list *list, const uint8_t **value, uint64_t *size);
/* The values of a list of floats, if they lie in one piece; else NULL. */
const uint8_t *pstk__feature_floats(const struct pstk__feature_list *list, uint64_t *size);
/* 1: a field can have so many values of a list of numbers; else 0 and a phrase in `text`. */
int pstk__feature_fits(const struct pstk_field *field, uint64_t n, char text[160]);

/* Bytes of the values of a feature in the plain coding of the field's kind; -1: it is not as the
 * field says. what: enum pstk__feature_reading. */
int64_t pstk__feature_plain_size(uint32_t what, const struct pstk_field *field, const void *data,
                                 uint64_t size);
/* Write that many bytes of them. Returns NULL, or what is wrong, as a phrase in `text`. Size 0: the
 * record has no such feature. */
const char *pstk__feature_translate(uint32_t what, const struct pstk_field *field, const void *data,
                                    uint64_t size, void *plain, uint64_t plain_size,
                                    char text[160]);

#endif
