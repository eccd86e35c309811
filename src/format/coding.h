/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coding: how the files of other formats code a value, and the view of one. Formats whose values
 * are whole files (tar, folders) know the coding by the end of the name. Pure.
 */
#ifndef PSTK_FORMAT_CODING_H
#define PSTK_FORMAT_CODING_H

#include "record/record.h"
#include "store/index/index.h"

enum pstk__coding {
    /* As the field's kind has it. */
    PSTK__CODING_PLAIN = 0,
    /* A decimal integer as text. */
    PSTK__CODING_TEXT_INTEGER = 1,
    /* A .npy file; of a field of other kinds than scalar and ndarray as it is. */
    PSTK__CODING_NPY = 2,
};

/* An array in a value: what stands before its elements says. */
struct pstk__coding_array {
    uint32_t dtype, n_dims;
    uint64_t n_bytes; /* of its elements, as the value has them */
    uint64_t dims[PSTK_MAX_DIMS];
};

/* Compare an array with its field, and its shape with its elements. Returns NULL, or what is wrong,
 * as a phrase in `text`. */
const char *pstk__coding_check_array(const struct pstk__coding_array *array,
                                     const struct pstk_field *field, char text[160]);

/* Set kind, dtype and coding of a field by the suffix of its files, or the first of a list
 * "jpg;png": what WebDataset decodes them to by the part after their last dot. A .npy file is an
 * array once settle says so. */
void pstk__coding_by_suffix(struct pstk__index_field *field, const char *suffix);
/* 1: all suffixes of a list have one type, or may be read as one that is given. */
int pstk__coding_are_alike(const char *list, int has_type);

/* Bytes at the begin of a .npy file that have its head: most files, and all. */
#define PSTK__CODING_HEAD 256
#define PSTK__CODING_HEAD_MAX 65536
/* Bytes of the head of a .npy file, by its first n; 0: it is none. */
uint64_t pstk__coding_head_size(const uint8_t *bytes, uint64_t n);
/* Let the first n bytes of a .npy file say what the field has: the dtype of the first file, and
 * those of its dimensions that all have. Damaged files say nothing. */
void pstk__coding_observe(struct pstk__index_field *field, const uint8_t *bytes, uint64_t n);
/* End it: a field is bytes if no file was read, if some file is not for reading in place, or if
 * more than one dimension differs. */
void pstk__coding_settle(struct pstk__index_field *field);
/* Set kind, dtype, shape and coding for values in files of their own, to be of this kind. */
int pstk__coding_retype(struct pstk__index_field *field, const struct pstk_field *wanted,
                        struct pstk_error *err);
/* Bytes of a value of `size` bytes in the plain coding of its kind: the most. */
uint64_t pstk__coding_plain_size(const struct pstk__index_field *field, uint64_t size);
/* View a value: `data` is borrowed, and offset is set by the caller. Returns NULL, or what is wrong
 * with the value, as a phrase in `text`. */
const char *pstk__coding_view(struct pstk__field_view *view, const struct pstk__index_field *field,
                              const uint8_t *data, uint64_t size, char text[160]);

#endif
