/* SPDX-License-Identifier: Apache-2.0 */
/* resize_avx512: helpers for files with 512-bit kernels. */
#ifndef PSTK_PIXELS_RESIZE_AVX512_H
#define PSTK_PIXELS_RESIZE_AVX512_H

#include "pixels/resize_kernels_avx512.h"

#include <immintrin.h>
#include <string.h>

#define FEATURES                                                                                   \
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512vnni,bmi,bmi2,popcnt"
#define TARGET __attribute__((target(FEATURES)))
#define INLINE static inline __attribute__((always_inline, target(FEATURES)))

/* Mask the first n lanes; n may exceed their number. */
INLINE __mmask16 mask16(uint32_t n)
{
    return (__mmask16)_bzhi_u32(0xffff, n < 16 ? n : 16);
}

INLINE __mmask64 mask64(uint32_t n)
{
    return _bzhi_u64(~0ull, n < 64 ? n : 64);
}

#endif
