/* SPDX-License-Identifier: Apache-2.0 */
/* sharpness_avx2: sharpens a row, 16 bytes at a time. */
#if defined(__x86_64__) || defined(PSTK_NEON)

#include "pixels/colour_avx2.h"

#define STEP 16u /* bytes */

/* Load 16 bytes as integers of 16 bits. */
INLINE __m256i load_16(const uint8_t *at)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)at));
}

INLINE __m256i sum_of_column(const uint8_t *at, uint64_t stride)
{
    return _mm256_add_epi16(_mm256_add_epi16(load_16(at - stride), load_16(at)),
                            load_16(at + stride));
}

/* Smooth as colour_c.c does. The quotient of numbers up to 13 * 255 + 6 by 13 is the one by 2^16 /
 * 5042, truncated. */
INLINE __m256i smooth(const uint8_t *at, uint64_t stride, uint32_t channels)
{
    const __m256i sides = _mm256_add_epi16(sum_of_column(at - channels, stride),
                                           sum_of_column(at + channels, stride));
    const __m256i sum = _mm256_add_epi16(_mm256_add_epi16(sides, sum_of_column(at, stride)),
                                         _mm256_slli_epi16(load_16(at), 2));
    return _mm256_mulhi_epu16(_mm256_add_epi16(sum, _mm256_set1_epi16(6)), _mm256_set1_epi16(5042));
}

INLINE __m128i sharpened(const uint8_t *at, uint64_t stride, uint32_t channels, __m256 factor)
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i from = smooth(at, stride, channels), to = load_16(at);
    const __m256i low =
        blended(_mm256_unpacklo_epi16(from, zero), _mm256_unpacklo_epi16(to, zero), factor);
    const __m256i high =
        blended(_mm256_unpackhi_epi16(from, zero), _mm256_unpackhi_epi16(to, zero), factor);
    const __m256i words = _mm256_packs_epi32(low, high);
    return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

/* Sharpen a row. colour_c.c sharpens rows of fewer bytes than a step. In other rows the last step
 * ends with the row, and may write some bytes again. */
TARGET void pstk__sharpen_row_avx2(const struct pstk__picture *out, const struct pstk__picture *in,
                                   uint32_t y, float factor)
{
    const uint32_t channels = in->channels;
    const uint64_t stride = (uint64_t)in->width * channels;
    const uint64_t begin = y * stride + channels, end = (y + 1) * stride - channels;
    const __m256 by = _mm256_set1_ps(factor);
    /* Steps begin at multiples of 4 from a pixel's first byte where there is alpha. */
    const __m128i alpha = _mm_set1_epi32(channels == 4 ? (int)0xff000000 : 0);
    if (end - begin < STEP) {
        pstk__colour_c.sharpen_row(out, in, y, factor);
        return;
    }
    for (uint64_t i = begin;; i = i + STEP < end - STEP ? i + STEP : end - STEP) {
        const __m128i to = _mm_loadu_si128((const __m128i *)(in->pixels + i));
        const __m128i v = sharpened(in->pixels + i, stride, channels, by);
        _mm_storeu_si128((__m128i *)(out->pixels + i), _mm_blendv_epi8(v, to, alpha));
        if (i == end - STEP)
            return;
    }
}

#endif
