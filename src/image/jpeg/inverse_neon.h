/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/inverse_neon: the steps of inverse_avx2.c for which NEON has shorter ways: look-ups in four
 * registers, products of 16 bits that widen, and shifts that narrow. Only for inverse_avx2.c.
 */
#ifndef PSTK_JPEG_INVERSE_NEON_H
#define PSTK_JPEG_INVERSE_NEON_H

#include "base/avx2.h"
#include "image/jpeg/inverse.h"

#define INLINE_NEON static inline __attribute__((always_inline))

INLINE_NEON uint8x16_t bytes_of(__m256i v, int block)
{
    return vreinterpretq_u8_s64(pstk__neon_half(v, block));
}

INLINE_NEON int16x8_t words_of(__m256i v, int block)
{
    return vreinterpretq_s16_s64(pstk__neon_half(v, block));
}

INLINE_NEON int32x4_t dwords_of(__m256i v, int block)
{
    return vreinterpretq_s32_s64(pstk__neon_half(v, block));
}

INLINE_NEON __m256i two_of_words(int16x8_t first, int16x8_t second)
{
    return pstk__neon_joined(vreinterpretq_s64_s16(first), vreinterpretq_s64_s16(second));
}

/* Gather one pair of rows of each block from the quarters of the zigzag order. */
INLINE_NEON __m256i gather(const __m256i quarter[4], int pair)
{
    static const uint8_t places[64] = PSTK__IDCT_ZIGZAG_PLACES;
    const uint8x16_t index = vld1q_u8(places + 16 * pair);
    int64x2_t out[2];
    for (int b = 0; b < 2; b++) {
        const uint8x16x4_t all = {{bytes_of(quarter[0], b), bytes_of(quarter[1], b),
                                   bytes_of(quarter[2], b), bytes_of(quarter[3], b)}};
        out[b] = vreinterpretq_s64_u8(vqtbl4q_u8(all, index));
    }
    return pstk__neon_joined(out[0], out[1]);
}

/* Return 1 when a byte is -128. */
INLINE_NEON int has_escape(__m256i bytes)
{
    return vminvq_s8(vminq_s8(vreinterpretq_s8_u8(bytes_of(bytes, 0)),
                              vreinterpretq_s8_u8(bytes_of(bytes, 1)))) == -128;
}

/* Multiply the even (odd) bytes, which are signed, by words. */
INLINE_NEON __m256i even_products(__m256i factors, __m256i bytes)
{
    return _mm256_mullo_epi16(_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8), factors);
}

INLINE_NEON __m256i odd_products(__m256i factors, __m256i bytes)
{
    return _mm256_mullo_epi16(_mm256_srai_epi16(bytes, 8), factors);
}

/* The words of a pair: of both blocks, those of the first in the lower half. */
struct pair {
    int16x8_t first, second;
};

INLINE_NEON struct pair apart(__m256i pairs)
{
    return (struct pair){vuzp1q_s16(words_of(pairs, 0), words_of(pairs, 1)),
                         vuzp2q_s16(words_of(pairs, 0), words_of(pairs, 1))};
}

/* Multiply both words by their factors, and add the products. */
INLINE_NEON __m256i dot_of(struct pair p, int first, int second)
{
    const int16_t f = (int16_t)first, s = (int16_t)second;
    const int32x4_t low =
        vmlal_n_s16(vmull_n_s16(vget_low_s16(p.first), f), vget_low_s16(p.second), s);
    const int32x4_t high = vmlal_high_n_s16(vmull_high_n_s16(p.first, f), p.second, s);
    return pstk__neon_joined(vreinterpretq_s64_s32(low), vreinterpretq_s64_s32(high));
}

/* The same, added to other sums. */
INLINE_NEON __m256i dot_added(__m256i sums, struct pair p, int first, int second)
{
    const int16_t f = (int16_t)first, s = (int16_t)second;
    const int32x4_t low = vmlal_n_s16(dwords_of(sums, 0), vget_low_s16(p.first), f);
    const int32x4_t high = vmlal_high_n_s16(dwords_of(sums, 1), p.first, f);
    return pstk__neon_joined(vreinterpretq_s64_s32(vmlal_n_s16(low, vget_low_s16(p.second), s)),
                             vreinterpretq_s64_s32(vmlal_high_n_s16(high, p.second, s)));
}

/* Multiply words by 2^13, and add a number. */
INLINE_NEON __m256i times_one(int16x8_t words, int32_t half)
{
    const int32x4_t round = vdupq_n_s32(half);
    return pstk__neon_joined(
        vreinterpretq_s64_s32(vaddq_s32(vshll_n_s16(vget_low_s16(words), 13), round)),
        vreinterpretq_s64_s32(vaddq_s32(vshll_high_n_s16(words, 13), round)));
}

/* Store the eight results of a pass. */
INLINE_NEON void add_and_subtract(__m256i out[8], const __m256i even[4], const __m256i odd[4])
{
    for (int k = 0; k < 4; k++) {
        out[k] = _mm256_add_epi32(even[k], odd[k]);
        out[7 - k] = _mm256_sub_epi32(even[k], odd[k]);
    }
}

/* Transform one dimension, for 8 places: eight results each, not yet shifted. */
INLINE_NEON void pass(__m256i out[8], __m256i p04, __m256i p26, __m256i p71, __m256i p35,
                      int32_t half)
{
    const struct pair x04 = apart(p04), x26 = apart(p26), x71 = apart(p71), x35 = apart(p35);
    const __m256i sum = times_one(vaddq_s16(x04.first, x04.second), half);
    const __m256i difference = times_one(vsubq_s16(x04.first, x04.second), half);
    const __m256i a = dot_of(x26, PSTK__IDCT_1_307, PSTK__IDCT_0_541);
    const __m256i b = dot_of(x26, PSTK__IDCT_0_541, PSTK__IDCT_M1_307);
    const __m256i even[4] = {_mm256_add_epi32(sum, a), _mm256_add_epi32(difference, b),
                             _mm256_sub_epi32(difference, b), _mm256_sub_epi32(sum, a)};

    const struct pair z = {vaddq_s16(x71.first, x35.first), vaddq_s16(x71.second, x35.second)};
    const __m256i z3 = dot_of(z, PSTK__IDCT_M0_786, PSTK__IDCT_1_176);
    const __m256i z4 = dot_of(z, PSTK__IDCT_1_176, PSTK__IDCT_0_786);
    const __m256i odd[4] = {dot_added(z4, x71, PSTK__IDCT_M0_900, PSTK__IDCT_0_601),
                            dot_added(z3, x35, PSTK__IDCT_0_510, PSTK__IDCT_M2_563),
                            dot_added(z4, x35, PSTK__IDCT_M2_563, PSTK__IDCT_M0_510),
                            dot_added(z3, x71, PSTK__IDCT_M0_601, PSTK__IDCT_M0_900)};
    add_and_subtract(out, even, odd);
}

/* Transform when inputs 4..7 are 0. */
INLINE_NEON void corner_pass(__m256i out[8], __m256i p02, __m256i p13, int32_t half)
{
    const struct pair x02 = apart(p02), x13 = apart(p13);
    const __m256i ones = times_one(x02.first, half);
    const struct pair second = {vdupq_n_s16(0), x02.second};
    const __m256i a = dot_of(second, 0, PSTK__IDCT_1_307);
    const __m256i b = dot_of(second, 0, PSTK__IDCT_0_541);
    const __m256i even[4] = {_mm256_add_epi32(ones, a), _mm256_add_epi32(ones, b),
                             _mm256_sub_epi32(ones, b), _mm256_sub_epi32(ones, a)};
    const __m256i odd[4] = {dot_of(x13, PSTK__IDCT_ODD0_1, PSTK__IDCT_ODD0_3),
                            dot_of(x13, PSTK__IDCT_ODD1_1, PSTK__IDCT_ODD1_3),
                            dot_of(x13, PSTK__IDCT_ODD2_1, PSTK__IDCT_ODD2_3),
                            dot_of(x13, PSTK__IDCT_ODD3_1, PSTK__IDCT_ODD3_3)};
    add_and_subtract(out, even, odd);
}

/* Shift the first pass's results, and narrow them; they saturate. */
INLINE_NEON __m256i pack_rows(__m256i a, __m256i b)
{
    int16x8_t out[2];
    for (int k = 0; k < 2; k++)
        out[k] = vqshrn_high_n_s32(vqshrn_n_s32(dwords_of(a, k), PSTK__IDCT_SHIFT_1),
                                   dwords_of(b, k), PSTK__IDCT_SHIFT_1);
    return two_of_words(out[0], out[1]);
}

/* Join the upper halves of the second pass's results of two columns, and shift out 2 more bits. */
INLINE_NEON __m256i pack_columns(__m256i a, __m256i b)
{
    int16x8_t out[2];
    for (int k = 0; k < 2; k++)
        out[k] = vshrq_n_s16(vtrn2q_s16(words_of(a, k), words_of(b, k)), PSTK__IDCT_SHIFT_2 - 16);
    return two_of_words(out[0], out[1]);
}

#endif
