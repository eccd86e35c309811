/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column: the columns of a data set of MosaicML streaming, their encodings, and the positions of a
 * sample's values. Pure.
 */
#ifndef PSTK_MDS_COLUMN_H
#define PSTK_MDS_COLUMN_H

#include "format/coding.h"

/* The codings of values, in addition to those of coding.h. */
enum pstk__mds_coding {
    PSTK__MDS_ARRAY = 16,       /* an array: its dtype, its shape, its elements */
    PSTK__MDS_ARRAY_TYPED = 17, /* an array without its dtype, which the encoding names */
    PSTK__MDS_PIXELS = 18,      /* a decoded image: width, height, mode, rows */
    PSTK__MDS_IMAGES = 19,      /* a list of images: n, sizes, files */
    PSTK__MDS_IMAGE_LIST = 20,  /* a list of images after a u32 of 0 */
};

struct pstk__mds_column {
    struct pstk_field field; /* kind 0: a pickle or an unknown encoding; the column is a field only
                                if the caller names it, as bytes */
    uint32_t coding;         /* enum pstk__coding or pstk__mds_coding */
    uint32_t is_variable;    /* 1: each sample stores the size of its value */
    uint32_t size;           /* bytes of a value, >= 1; 0: they vary */
};

/* The columns in the order of their values. Invariants: n is at most PSTK_MAX_FIELDS; fields have
 * different names; fixed_size is below 2^32. */
struct pstk__mds_columns {
    uint32_t n;
    uint32_t n_variable;
    uint64_t fixed_size; /* bytes of the head and of all values of fixed size, >= 1 */
    struct pstk__mds_column at[PSTK_MAX_FIELDS];
};

/* The begins of a sample's values, from the sample's own begin; begin[n] is its size. */
struct pstk__mds_offsets {
    uint64_t begin[PSTK_MAX_FIELDS + 1];
};

/* Return the bytes of the sizes that begin a sample. */
static inline uint32_t pstk__mds_head(const struct pstk__mds_columns *columns)
{
    return 4 * columns->n_variable;
}
/* Append a column. size: bytes of each value, or 0: they vary. Returns NULL, or the reason of a
 * failure, as a phrase in `text`; *code: EBADMSG, or ENOTSUP. */
const char *pstk__mds_add(struct pstk__mds_columns *columns, const char *name, const char *encoding,
                          uint64_t size, int *code, char text[160]);
/* Return the column that is field `name`, or -1. */
int pstk__mds_find(const struct pstk__mds_columns *columns, const char *name);
/* Find the begins of the values. head: the pstk__mds_head bytes that begin a sample. */
void pstk__mds_find_offsets(struct pstk__mds_offsets *offsets,
                            const struct pstk__mds_columns *columns, const uint8_t *head);

/* Describe a column as a field. The first bytes of its value in the first sample give the dtype and
 * the dimensions of an array that its encoding leaves open. size: bytes of the value; n: bytes at
 * `data`. Returns NULL, or the reason of a failure, as a phrase in `text`. */
const char *pstk__mds_describe(struct pstk__index_field *field,
                               const struct pstk__mds_column *column, const uint8_t *data,
                               uint64_t n, uint64_t size, char text[160]);
/* Max bytes of the head of an array: a dtype, a number of dimensions, 63 of them. */
#define PSTK__MDS_ARRAY_HEAD 506

/* Return the max bytes of a value in the plain coding of its field's kind. n_items: items of a
 * list, otherwise 0. */
uint64_t pstk__mds_plain_size(const struct pstk__index_field *field, uint64_t size,
                              uint64_t n_items);
/* View a value: `data` is borrowed, and the caller sets offset. Returns NULL, or the reason of a
 * failure, as a phrase in `text`. */
const char *pstk__mds_view(struct pstk__field_view *view, const struct pstk__index_field *field,
                           const uint8_t *data, uint64_t size, char text[160]);
/* Set the kind that the caller wants for a field. ENOTSUP: its values cannot be read so. */
int pstk__mds_retype(struct pstk__index_field *field, const struct pstk_field *wanted,
                     struct pstk_error *err);

#endif
