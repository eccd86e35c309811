/* SPDX-License-Identifier: Apache-2.0 */
/* resize_avx2: helpers for files with 256-bit kernels. */
#ifndef PSTK_PIXELS_RESIZE_AVX2_H
#define PSTK_PIXELS_RESIZE_AVX2_H

#include "pixels/resize_kernels_avx2.h"

#include "base/avx2.h"
#include <string.h>

#define FEATURES "avx2,bmi,bmi2,fma,f16c,popcnt"
#define TARGET AVX2_TARGET(FEATURES)
#define INLINE static inline __attribute__((always_inline)) AVX2_TARGET(FEATURES)

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Store the first n bytes; all 32 if n is larger. */
INLINE void store_32(uint8_t *out, __m256i v, uint32_t n)
{
    if (n >= 32) {
        _mm256_storeu_si256((__m256i *)out, v);
    } else {
        uint8_t bytes[32];
        _mm256_storeu_si256((__m256i *)bytes, v);
        memcpy(out, bytes, n);
    }
}

#endif
