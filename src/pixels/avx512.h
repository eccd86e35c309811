/* SPDX-License-Identifier: Apache-2.0 */
/* avx512: helpers for files with 512-bit kernels. */
#ifndef PSTK_PIXELS_AVX512_H
#define PSTK_PIXELS_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define FEATURES                                                                                   \
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512vnni,bmi,bmi2,popcnt"
#define TARGET __attribute__((target(FEATURES)))
#define INLINE static inline __attribute__((always_inline, target(FEATURES)))

/* Mask the first n bytes; n may exceed their number. */
INLINE __mmask64 mask64(uint64_t n)
{
    return _bzhi_u64(~0ull, n < 64 ? (uint32_t)n : 64);
}

/* Return 64 bytes: 0, n, 2 n, ..., modulo 256. */
INLINE __m512i iota_times(uint32_t n)
{
    const __m512i dwords =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60);
    const __m512i iota = _mm512_add_epi8(
        _mm512_shuffle_epi8(dwords, _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0)),
        _mm512_set1_epi32(0x03020100));
    __m512i out = _mm512_setzero_si512();
    for (uint32_t i = 0; i < n; i++)
        out = _mm512_add_epi8(out, iota);
    return out;
}

/* Pick bytes of three registers by their indices, 0 to 191. */
INLINE __m512i picked(const __m512i of[3], __m512i places)
{
    const __m512i two = _mm512_permutex2var_epi8(of[0], places, of[1]);
    return _mm512_mask_permutexvar_epi8(two, _mm512_movepi8_mask(places), places, of[2]);
}

/* Return the indices, in three registers with a channel each, of the i-th 64 bytes of packed pixels
 * of three channels. Modulo 64 they are the pixels' indices. */
INLINE __m512i interleaved(uint32_t i)
{
#define ONE(n) n, 64 + (n), 128 + (n)
#define FOUR(n) ONE(n), ONE((n) + 1), ONE((n) + 2), ONE((n) + 3)
#define SIXTEEN(n) FOUR(n), FOUR((n) + 4), FOUR((n) + 8), FOUR((n) + 12)
    static const uint8_t places[192] = {SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)};
#undef ONE
#undef FOUR
#undef SIXTEEN
    return _mm512_loadu_si512(places + (size_t)64 * i);
}

#endif
