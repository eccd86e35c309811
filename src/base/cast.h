/* SPDX-License-Identifier: Apache-2.0 */
/* cast: converts elements between dtypes by value, with integer arithmetic. Pure. */
#ifndef PSTK_CAST_H
#define PSTK_CAST_H

#include <penstock/types.h>

/* Round to nearest, ties to even; overflow gives infinity, NaN stays NaN. */
uint16_t pstk__f16_from_f32(float value);
uint16_t pstk__bf16_from_f32(float value);
/* Convert without loss. */
float pstk__f32_from_f16(uint16_t bits);

/* Return 1 when `to` can represent every value of `from`. */
int pstk__cast_fits(uint32_t from, uint32_t to);
/* Cast one element; pstk__cast_fits(from, to) holds. Neither pointer needs to be aligned. */
void pstk__cast(void *out, uint32_t to, const void *in, uint32_t from);
/* Cast n elements in the same way; `out` is aligned to its dtype, `in` need not be. No overlap. */
void pstk__cast_row(void *out, uint32_t to, const void *in, uint32_t from, uint64_t n);
/* Cast n elements whose values may not fit `to`: whole numbers are compared one by one. 0; -1: a
 * value does not fit. */
int pstk__cast_values(void *out, uint32_t to, const void *in, uint32_t from, uint64_t n);
/* Add a number to n elements of whole numbers; pstk__cast_fits(dtype, PSTK_I64) holds, unless
 * number is 0. 0; -1: a sum does not fit. */
int pstk__cast_add(void *row, uint32_t dtype, uint64_t n, int64_t number);

#endif
