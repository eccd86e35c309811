/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_fma: a product and a sum, rounded once, without libm and on any CPU. Pure. */
#ifndef PSTK_PIXELS_TENSOR_FMA_H
#define PSTK_PIXELS_TENSOR_FMA_H

#include <stdint.h>
#include <string.h>

/*
 * Return a * b + c of finite floats, if no result is near the smallest or largest double. A double
 * holds the product. Its sum with c is rounded to odd: towards 0, and the last bit is 1 unless the
 * sum is exact. Rounding this to float then gives the same as rounding the exact sum.
 */
static inline __attribute__((always_inline)) float pstk__fma(float a, float b, float c)
{
    const double product = (double)a * (double)b, sum = product + (double)c;
    const double rest = sum - product;
    const double lost = (product - (sum - rest)) + ((double)c - rest);
    uint64_t bits;
    double odd;
    memcpy(&bits, &sum, sizeof bits);
    bits -= lost * sum < 0; /* the sum was rounded away from 0 */
    bits |= lost != 0;
    memcpy(&odd, &bits, sizeof odd);
    return (float)odd;
}

#endif
