/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colour_avx512: helpers for the colour kernels with 512-bit registers. They work on *blocks* of 64
 * pixels of 3 or 4 channels, which are as many registers. A picture's last block, when it is not
 * whole, is changed in a copy.
 */
#ifndef PSTK_PIXELS_COLOUR_AVX512_H
#define PSTK_PIXELS_COLOUR_AVX512_H

#include "pixels/avx512.h"
#include "pixels/colour_kernels.h"

#include <string.h>

#define BLOCK 64u /* pixels */

/* Bytes of a copy of a block: reading a block may read some bytes after it. */
#define BLOCK_ROOM (4 * BLOCK + 64)

/* Change a block of 3 or 4 channels in memory. Each function has its own type of settings. */
typedef void block_function(uint8_t *at, uint32_t channels, const void *settings);

INLINE uint64_t n_blocks_of(const struct pstk__picture *picture)
{
    return (uint64_t)picture->width * picture->height / BLOCK;
}

/* Return the pixels after the last whole block: less than BLOCK, or none. */
INLINE struct pstk__picture rest_of(const struct pstk__picture *picture)
{
    const uint64_t n = (uint64_t)picture->width * picture->height;
    return (struct pstk__picture){.pixels = picture->pixels +
                                            n_blocks_of(picture) * BLOCK * picture->channels,
                                  .width = (uint32_t)(n % BLOCK),
                                  .height = 1,
                                  .channels = picture->channels};
}

/* Change every pixel. `channels`, 3 or 4, and `function` are constants for the compiler. */
INLINE void each_block(const struct pstk__picture *picture, uint32_t channels,
                       block_function *function, const void *settings)
{
    const struct pstk__picture rest = rest_of(picture);
    const size_t size = (size_t)rest.width * channels;
    uint8_t *at = picture->pixels;
    for (uint64_t n = n_blocks_of(picture); n > 0; n--, at += (size_t)BLOCK * channels)
        function(at, channels, settings);
    if (size > 0) {
        uint8_t copy[BLOCK_ROOM] = {0};
        memcpy(copy, at, size);
        function(copy, channels, settings);
        memcpy(at, copy, size);
    }
}

/* Return the luma of 64 pixels, in order. Reads up to 16 bytes after them. */
INLINE __m512i luma_of(const uint8_t *at, uint32_t channels)
{
    /* Move bytes 0 and 2 of each pixel's four to the words of its dword: red and green, and blue
     * and green. */
    const __m512i pixels = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i first = _mm512_mullo_epi32(pixels, _mm512_set1_epi32((int)channels * 0x010101));
    const __m512i red_green = _mm512_add_epi8(first, _mm512_set1_epi32(0x00010000));
    const __m512i blue_green = _mm512_add_epi8(first, _mm512_set1_epi32(0x00010002));
    /* Half of green's weight, 38470, is added twice. */
    const __m512i weights = _mm512_set1_epi32(19235 << 16 | 19595);
    const __m512i other_weights = _mm512_set1_epi32(19235 << 16 | 7471);
    const __mmask64 even = 0x5555555555555555;
    __m512i sums[4];
    for (uint32_t i = 0; i < 4; i++) {
        const __m512i v = _mm512_loadu_si512(at + (size_t)16 * i * channels);
        const __m512i half = _mm512_set1_epi32(0x8000);
        const __m512i sum =
            _mm512_dpwssd_epi32(half, _mm512_maskz_permutexvar_epi8(even, red_green, v), weights);
        sums[i] = _mm512_dpwssd_epi32(sum, _mm512_maskz_permutexvar_epi8(even, blue_green, v),
                                      other_weights);
    }
    /* Byte 2 of each sum. */
    const __m512i of_two = _mm512_add_epi8(iota_times(4), _mm512_set1_epi8(2));
    return _mm512_mask_blend_epi64(0xf0, _mm512_permutex2var_epi8(sums[0], of_two, sums[1]),
                                   _mm512_permutex2var_epi8(sums[2], of_two, sums[3]));
}

/* Return 16 times pstk__blend of integers; clipped to at most 255. */
INLINE __m512i blended(__m512i from, __m512i to, __m512 factor)
{
    const __m512 change = _mm512_mul_ps(factor, _mm512_cvtepi32_ps(_mm512_sub_epi32(to, from)));
    const __m512 v = _mm512_add_ps(_mm512_cvtepi32_ps(from), change);
    return _mm512_cvttps_epi32(_mm512_min_ps(v, _mm512_set1_ps(255.0f)));
}

/* Blend words as blended does; the results are clipped to at least -2^15. */
INLINE __m512i blended_words(__m512i from, __m512i to, __m512 factor)
{
    const __m512i zero = _mm512_setzero_si512();
    return _mm512_packs_epi32(
        blended(_mm512_unpacklo_epi16(from, zero), _mm512_unpacklo_epi16(to, zero), factor),
        blended(_mm512_unpackhi_epi16(from, zero), _mm512_unpackhi_epi16(to, zero), factor));
}

/* Blend 64 bytes as pstk__blend does. */
INLINE __m512i blended_bytes(__m512i from, __m512i to, __m512 factor)
{
    const __m512i zero = _mm512_setzero_si512();
    return _mm512_packus_epi16(
        blended_words(_mm512_unpacklo_epi8(from, zero), _mm512_unpacklo_epi8(to, zero), factor),
        blended_words(_mm512_unpackhi_epi8(from, zero), _mm512_unpackhi_epi8(to, zero), factor));
}

void pstk__shift_hue_avx512(const struct pstk__picture *picture, uint8_t shift);
void pstk__sharpen_row_avx512(const struct pstk__picture *out, const struct pstk__picture *in,
                              uint32_t y, float factor);

#endif
