/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/inverse_x86: the steps of inverse_avx2.c for which NEON has ways of its own, in
 * inverse_neon.h. Only for inverse_avx2.c. */
#ifndef PSTK_JPEG_INVERSE_X86_H
#define PSTK_JPEG_INVERSE_X86_H

#include "base/avx2.h"
#include "image/jpeg/inverse.h"

#define INLINE_X86                                                                                 \
    static inline __attribute__((always_inline)) AVX2_TARGET("avx2,bmi,bmi2,fma,f16c,popcnt")

/* PSTK__IDCT_ZIGZAG_PLACES in four parts, for a shuffle of 16 bytes: [pair of rows][quarter of the
 * zigzag order], -1 where the place is in another quarter. */
static const int8_t quarter_places[4][4][16] = {
    {{0, -1, 10, -1, 14, 1, -1, -1, 5, 6, -1, -1, -1, 15, -1, -1},
     {-1, 12, -1, -1, -1, -1, -1, 3, -1, -1, 7, -1, 11, -1, -1, -1},
     {-1, -1, -1, -1, -1, -1, 7, -1, -1, -1, -1, 0, -1, -1, -1, 13},
     {-1, -1, -1, 6, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 4, -1}},
    {{3, -1, -1, -1, -1, 8, -1, -1, 12, -1, -1, -1, -1, -1, -1, -1},
     {-1, -1, 5, -1, 9, -1, -1, -1, -1, 1, -1, -1, -1, 14, -1, -1},
     {-1, 11, -1, -1, -1, -1, -1, 2, -1, -1, 5, 15, 9, -1, -1, -1},
     {-1, -1, -1, 13, -1, -1, 2, -1, -1, -1, -1, -1, -1, -1, 11, 8}},
    {{-1, -1, 2, -1, -1, -1, -1, 4, -1, -1, 7, 13, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, -1, 0, -1, -1, -1, -1, -1, -1, -1, 13, 10},
     {3, -1, -1, 10, -1, 4, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
     {-1, 15, -1, -1, 9, -1, -1, -1, 0, 1, -1, -1, 14, 10, -1, -1}},
    {{9, -1, -1, -1, -1, 11, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
     {-1, -1, 4, -1, 15, -1, -1, 6, 2, 8, -1, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, -1, 14, -1, -1, -1, 1, 6, 12, 8, -1, -1},
     {-1, 5, -1, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 7, 3}},
};

INLINE_X86 __m256i lane_twice(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}

/* Gather one pair of rows of each block from the quarters of the zigzag order. */
INLINE_X86 __m256i gather(const __m256i quarter[4], int pair)
{
    const __m256i a = _mm256_shuffle_epi8(quarter[0], lane_twice(quarter_places[pair][0]));
    const __m256i b = _mm256_shuffle_epi8(quarter[1], lane_twice(quarter_places[pair][1]));
    const __m256i chunk = _mm256_shuffle_epi8(quarter[2], lane_twice(quarter_places[pair][2]));
    const __m256i d = _mm256_shuffle_epi8(quarter[3], lane_twice(quarter_places[pair][3]));
    return _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(chunk, d));
}

/* Return 1 when a byte is -128. */
INLINE_X86 int has_escape(__m256i bytes)
{
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(-128))) != 0;
}

/* Multiply the even (odd) bytes, which are signed, by bytes. Those are at most 255 with a zero next
 * to them, so the instruction never saturates. */
INLINE_X86 __m256i even_products(__m256i factors, __m256i bytes)
{
    return _mm256_maddubs_epi16(factors, bytes);
}

INLINE_X86 __m256i odd_products(__m256i factors, __m256i bytes)
{
    return _mm256_maddubs_epi16(factors, bytes);
}

/* Multiply the two halves of every 32-bit element, and add the products. */
INLINE_X86 __m256i dot(__m256i x, int low, int high)
{
    return _mm256_madd_epi16(
        x, _mm256_set1_epi32((int)((uint32_t)(uint16_t)high << 16 | (uint16_t)low)));
}

/* Transform one dimension, for 8 places: eight results each, not yet shifted. */
INLINE_X86 void pass(__m256i out[8], __m256i p04, __m256i p26, __m256i p71, __m256i p35,
                     int32_t half)
{
    const __m256i swap = _mm256_set_epi64x(0x0D0C0F0E09080B0A, 0x0504070601000302,
                                           0x0D0C0F0E09080B0A, 0x0504070601000302);
    const __m256i p40 = _mm256_shuffle_epi8(p04, swap), round = _mm256_set1_epi32(half);
    const __m256i sum = _mm256_add_epi32(dot(_mm256_add_epi16(p04, p40), PSTK__IDCT_ONE, 0), round);
    const __m256i difference =
        _mm256_add_epi32(dot(_mm256_sub_epi16(p04, p40), PSTK__IDCT_ONE, 0), round);
    const __m256i a = dot(p26, PSTK__IDCT_1_307, PSTK__IDCT_0_541);
    const __m256i b = dot(p26, PSTK__IDCT_0_541, PSTK__IDCT_M1_307);
    const __m256i even0 = _mm256_add_epi32(sum, a), even3 = _mm256_sub_epi32(sum, a);
    const __m256i even1 = _mm256_add_epi32(difference, b), even2 = _mm256_sub_epi32(difference, b);

    const __m256i z = _mm256_add_epi16(p71, p35);
    const __m256i z3 = dot(z, PSTK__IDCT_M0_786, PSTK__IDCT_1_176);
    const __m256i z4 = dot(z, PSTK__IDCT_1_176, PSTK__IDCT_0_786);
    const __m256i odd0 = _mm256_add_epi32(z4, dot(p71, PSTK__IDCT_M0_900, PSTK__IDCT_0_601));
    const __m256i odd1 = _mm256_add_epi32(z3, dot(p35, PSTK__IDCT_0_510, PSTK__IDCT_M2_563));
    const __m256i odd2 = _mm256_add_epi32(z4, dot(p35, PSTK__IDCT_M2_563, PSTK__IDCT_M0_510));
    const __m256i odd3 = _mm256_add_epi32(z3, dot(p71, PSTK__IDCT_M0_601, PSTK__IDCT_M0_900));

    out[0] = _mm256_add_epi32(even0, odd0);
    out[1] = _mm256_add_epi32(even1, odd1);
    out[2] = _mm256_add_epi32(even2, odd2);
    out[3] = _mm256_add_epi32(even3, odd3);
    out[4] = _mm256_sub_epi32(even3, odd3);
    out[5] = _mm256_sub_epi32(even2, odd2);
    out[6] = _mm256_sub_epi32(even1, odd1);
    out[7] = _mm256_sub_epi32(even0, odd0);
}

/* Transform when inputs 4..7 are 0. No sum of 16 bits can wrap then, so each product has one input.
 */
INLINE_X86 void corner_pass(__m256i out[8], __m256i p02, __m256i p13, int32_t half)
{
    const __m256i round = _mm256_set1_epi32(half);
    const __m256i even0 = _mm256_add_epi32(dot(p02, PSTK__IDCT_ONE, PSTK__IDCT_1_307), round);
    const __m256i even1 = _mm256_add_epi32(dot(p02, PSTK__IDCT_ONE, PSTK__IDCT_0_541), round);
    const __m256i even2 = _mm256_add_epi32(dot(p02, PSTK__IDCT_ONE, -PSTK__IDCT_0_541), round);
    const __m256i even3 = _mm256_add_epi32(dot(p02, PSTK__IDCT_ONE, -PSTK__IDCT_1_307), round);
    const __m256i odd0 = dot(p13, PSTK__IDCT_ODD0_1, PSTK__IDCT_ODD0_3);
    const __m256i odd1 = dot(p13, PSTK__IDCT_ODD1_1, PSTK__IDCT_ODD1_3);
    const __m256i odd2 = dot(p13, PSTK__IDCT_ODD2_1, PSTK__IDCT_ODD2_3);
    const __m256i odd3 = dot(p13, PSTK__IDCT_ODD3_1, PSTK__IDCT_ODD3_3);
    out[0] = _mm256_add_epi32(even0, odd0);
    out[1] = _mm256_add_epi32(even1, odd1);
    out[2] = _mm256_add_epi32(even2, odd2);
    out[3] = _mm256_add_epi32(even3, odd3);
    out[4] = _mm256_sub_epi32(even3, odd3);
    out[5] = _mm256_sub_epi32(even2, odd2);
    out[6] = _mm256_sub_epi32(even1, odd1);
    out[7] = _mm256_sub_epi32(even0, odd0);
}

INLINE_X86 __m256i pack_rows(__m256i a, __m256i b)
{
    return _mm256_packs_epi32(_mm256_srai_epi32(a, PSTK__IDCT_SHIFT_1),
                              _mm256_srai_epi32(b, PSTK__IDCT_SHIFT_1));
}

/* Join the second pass's results of two columns. 18 bits are shifted out, 16 of them by taking the
 * upper halves. The results have 14 bits, so nothing saturates. */
INLINE_X86 __m256i pack_columns(__m256i a, __m256i b)
{
    const __m256i both = _mm256_blend_epi16(_mm256_srli_epi32(a, 16), b, 0xAA);
    return _mm256_srai_epi16(both, PSTK__IDCT_SHIFT_2 - 16);
}

#endif
