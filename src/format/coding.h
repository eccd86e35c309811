/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coding: the coding of values in the files of other formats, and the view of one value. Formats
 * whose values are whole files (tar, folders) derive the coding from the end of the name. Pure.
 */
#ifndef PSTK_FORMAT_CODING_H
#define PSTK_FORMAT_CODING_H

#include "record/record.h"
#include "store/index/index.h"

enum pstk__coding {
    /* The plain coding of the field's kind. */
    PSTK__CODING_PLAIN = 0,
    /* A decimal integer as text. */
    PSTK__CODING_TEXT_INTEGER = 1,
    /* The bytes of a .npy file; the whole file if the field is neither scalar nor ndarray. */
    PSTK__CODING_NPY = 2,
};

/* An array in a value, as described before its elements. */
struct pstk__coding_array {
    uint32_t dtype, n_dims;
    uint64_t n_bytes; /* bytes of its elements in the value */
    uint64_t dims[PSTK_MAX_DIMS];
};

/* Compare an array with its field, and its shape with its elements. Returns NULL, or the reason of
 * a failure, as a phrase in `text`. */
const char *pstk__coding_check_array(const struct pstk__coding_array *array,
                                     const struct pstk_field *field, char text[160]);

/* Set kind, dtype and coding of a field by the suffix of its files, or by the first of a list
 * "jpg;png", as WebDataset decodes the part after the last dot. A .npy file becomes an array only
 * in settle. */
void pstk__coding_by_suffix(struct pstk__index_field *field, const char *suffix);
/* 1: all suffixes of a list have one type, or has_type and each may be read as the given type. */
int pstk__coding_are_alike(const char *list, int has_type);

/* Bytes of a .npy file that contain its head: for most files, and for all. */
#define PSTK__CODING_HEAD 256
#define PSTK__CODING_HEAD_MAX 65536
/* Return the bytes of a .npy file's head, from its first n bytes; 0: it has none. */
uint64_t pstk__coding_head_size(const uint8_t *bytes, uint64_t n);
/* Note the type in the first n bytes of a .npy file: the field gets the dtype of the first file,
 * and the dimensions that all files share. Damaged files are ignored. */
void pstk__coding_observe(struct pstk__index_field *field, const uint8_t *bytes, uint64_t n);
/* End the observation. The field stays bytes if no file was read, if some file cannot be read in
 * place, or if more than one dimension differs. */
void pstk__coding_settle(struct pstk__index_field *field);
/* Set kind, dtype, shape and coding of a field whose values are files, for the kind that the caller
 * wants. */
int pstk__coding_retype(struct pstk__index_field *field, const struct pstk_field *wanted,
                        struct pstk_error *err);
/* Return the largest size in bytes that a value of `size` bytes has in the plain coding of its
 * kind. */
uint64_t pstk__coding_plain_size(const struct pstk__index_field *field, uint64_t size);
/* View a value: `data` is borrowed, and the caller sets offset. Returns NULL, or the reason of a
 * failure, as a phrase in `text`. */
const char *pstk__coding_view(struct pstk__field_view *view, const struct pstk__index_field *field,
                              const uint8_t *data, uint64_t size, char text[160]);

#endif
