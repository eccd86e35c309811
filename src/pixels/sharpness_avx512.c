/* SPDX-License-Identifier: Apache-2.0 */
/* sharpness_avx512: sharpens a row, 64 bytes at a time. */
#if defined(__x86_64__)

#include "pixels/colour_avx512.h"

#define STEP 64u /* bytes */

/* 64 bytes as integers of 16 bits, in the order of unpack. */
struct words {
    __m512i low, high;
};

INLINE struct words words_of(__m512i v)
{
    const __m512i zero = _mm512_setzero_si512();
    return (struct words){_mm512_unpacklo_epi8(v, zero), _mm512_unpackhi_epi8(v, zero)};
}

INLINE struct words sum_of(struct words a, struct words b)
{
    return (struct words){_mm512_add_epi16(a.low, b.low), _mm512_add_epi16(a.high, b.high)};
}

INLINE struct words words_at(const uint8_t *at)
{
    return words_of(_mm512_loadu_si512(at));
}

INLINE struct words sum_of_column(const uint8_t *at, uint64_t stride)
{
    return sum_of(sum_of(words_at(at - stride), words_at(at)), words_at(at + stride));
}

/* Divide by 13: the quotient of numbers up to 13 * 255 + 6 is the one by 2^16 / 5042, truncated. */
INLINE __m512i thirteenth(__m512i sum)
{
    return _mm512_mulhi_epu16(_mm512_add_epi16(sum, _mm512_set1_epi16(6)), _mm512_set1_epi16(5042));
}

/* Smooth as colour_c.c does, and blend. */
INLINE __m512i sharpened(const uint8_t *at, uint64_t stride, uint32_t channels, __m512 factor)
{
    const struct words sides =
        sum_of(sum_of_column(at - channels, stride), sum_of_column(at + channels, stride));
    const struct words sum = sum_of(sides, sum_of_column(at, stride));
    const struct words to = words_at(at);
    const __m512i low = _mm512_add_epi16(sum.low, _mm512_slli_epi16(to.low, 2));
    const __m512i high = _mm512_add_epi16(sum.high, _mm512_slli_epi16(to.high, 2));
    return _mm512_packus_epi16(blended_words(thirteenth(low), to.low, factor),
                               blended_words(thirteenth(high), to.high, factor));
}

/* Sharpen a row. colour_avx2.c sharpens rows of fewer bytes than a step. In other rows the last
 * step ends with the row, and may write some bytes again. */
TARGET void pstk__sharpen_row_avx512(const struct pstk__picture *out,
                                     const struct pstk__picture *in, uint32_t y, float factor)
{
    const uint32_t channels = in->channels;
    const uint64_t stride = (uint64_t)in->width * channels;
    const uint64_t begin = y * stride + channels, end = (y + 1) * stride - channels;
    const __m512 by = _mm512_set1_ps(factor);
    /* Steps begin at multiples of 4 from a pixel's first byte where there is alpha. */
    const __mmask64 is_alpha = channels == 4 ? 0x8888888888888888 : 0;
    if (end - begin < STEP) {
        pstk__colour_avx2.sharpen_row(out, in, y, factor);
        return;
    }
    for (uint64_t i = begin;; i = i + STEP < end - STEP ? i + STEP : end - STEP) {
        const __m512i v = sharpened(in->pixels + i, stride, channels, by);
        _mm512_storeu_si512(out->pixels + i, _mm512_mask_loadu_epi8(v, is_alpha, in->pixels + i));
        if (i == end - STEP)
            return;
    }
}

#endif
