/* SPDX-License-Identifier: Apache-2.0 */
/* cast: one element from one dtype to another, by value, by integer arithmetic. Pure. */
#ifndef PSTK_CAST_H
#define PSTK_CAST_H

#include <penstock/types.h>

/* Round to nearest, ties to even; overflow gives infinity, NaN stays NaN. */
uint16_t pstk__f16_from_f32(float value);
uint16_t pstk__bf16_from_f32(float value);
/* Exact. */
float pstk__f32_from_f16(uint16_t bits);

/* 1 when every value of `from` is one of `to`. */
int pstk__cast_fits(uint32_t from, uint32_t to);
/* Cast one element; pstk__cast_fits(from, to) holds. Neither pointer needs to be aligned. */
void pstk__cast(void *out, uint32_t to, const void *in, uint32_t from);
/* Cast n elements in the same way; `out` is aligned to its dtype, `in` need not be. No overlap. */
void pstk__cast_row(void *out, uint32_t to, const void *in, uint32_t from, uint64_t n);
/* The same where the types do not say that the values fit: of whole numbers each is compared. 0;
 * -1: one does not fit. */
int pstk__cast_values(void *out, uint32_t to, const void *in, uint32_t from, uint64_t n);
/* Add a number to n elements of whole numbers; pstk__cast_fits(dtype, PSTK_I64) holds, unless
 * number is 0. 0; -1: a sum does not fit. */
int pstk__cast_add(void *row, uint32_t dtype, uint64_t n, int64_t number);

#endif
