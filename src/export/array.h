/* SPDX-License-Identifier: Apache-2.0 */
/* array: takes apart the plain bytes of a scalar or an array into shape and elements, and writes
 * the head of a .npy file. Pure, except for the memory that it appends to. */
#ifndef PSTK_EXPORT_ARRAY_H
#define PSTK_EXPORT_ARRAY_H

#include "base/bytes.h"

#include <penstock/format.h>

/* A checked value. A scalar has no dimensions. */
struct pstk__array {
    uint32_t dtype; /* enum pstk_dtype, except BF16 */
    uint32_t n_dims;
    uint64_t shape[PSTK_MAX_DIMS];
    uint64_t n;          /* elements */
    const uint8_t *data; /* n elements, little-endian, of any alignment; borrowed */
};

/* Return 1 if the field's values are scalars or arrays. */
int pstk__array_is(const struct pstk_field *field);
/* Return the bytes of a value before its elements: its shape, if several dimensions are variable,
 * else 0. */
uint64_t pstk__array_head(const struct pstk_field *field);
/* Take apart a value that pstk__value_check accepts. */
void pstk__array_of(struct pstk__array *array, const struct pstk_field *field, const void *data,
                    uint64_t size);
/* Return NumPy's name of a dtype, "int64"; NULL for BF16, which NumPy lacks. */
const char *pstk__array_dtype_name(uint32_t dtype);
/* Return 1 if the elements are whole numbers. */
int pstk__array_is_whole(uint32_t dtype);
/* Append the head of a .npy file, format version 1.0, of this shape. */
void pstk__array_npy_head(struct pstk__bytes *to, uint32_t dtype, const uint64_t *shape,
                          uint32_t n_dims);

#endif
