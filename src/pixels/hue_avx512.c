/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hue_avx512: shifts hues, 16 pixels at a time, in float. colour_c.c computes in double and in
 * integers; the results are the same for all colours, which tests/pixels/test_colour.c compares.
 */
#if defined(__x86_64__)

#include "pixels/colour_avx512.h"

/* 16 pixels: three colours, or hue, saturation and value; integers of 0 to 255. */
struct sixteen {
    __m512i of[3];
};

INLINE __m512 float_of(__m512i v)
{
    return _mm512_cvtepi32_ps(v);
}

/*
 * Return the hue in sixths of a turn, from -1 to 5: an odd number, plus or minus the part of
 * `reach` by which the middle colour is below the greatest. Of the three parts that colour_c.c
 * adds, one is 0 and one is 1. With a reach of 0 this is not a number.
 */
INLINE __m512 sixths_of(const struct sixteen *rgb, __m512i least, __m512i most)
{
    const __m512i red = rgb->of[0], green = rgb->of[1], blue = rgb->of[2];
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(red, green), blue);
    const __m512i middle = _mm512_sub_epi32(sum, _mm512_add_epi32(least, most));
    const __m512 part = _mm512_div_ps(float_of(_mm512_sub_epi32(most, middle)),
                                      float_of(_mm512_sub_epi32(most, least)));
    const __mmask16 red_max = _mm512_cmpeq_epi32_mask(red, most),
                    green_max = _mm512_mask_cmpeq_epi32_mask(~red_max, green, most);
    const __mmask16 red_min = _mm512_cmpeq_epi32_mask(red, least),
                    blue_min = _mm512_cmpeq_epi32_mask(blue, least);
    const __mmask16 blue_max = ~(red_max | green_max);
    const __mmask16 is_three = (green_max & ~blue_min) | (blue_max & red_min);
    const __mmask16 takes = (red_max & blue_min) | (green_max & ~blue_min) | (blue_max & ~red_min);
    __m512 odd = _mm512_set1_ps(1.0f);
    odd = _mm512_mask_mov_ps(odd, red_max & ~blue_min, _mm512_set1_ps(-1.0f));
    odd = _mm512_mask_mov_ps(odd, is_three, _mm512_set1_ps(3.0f));
    odd = _mm512_mask_mov_ps(odd, blue_max & ~red_min, _mm512_set1_ps(5.0f));
    return _mm512_mask_sub_ps(_mm512_add_ps(odd, part), takes, odd, part);
}

INLINE struct sixteen hsv_from_rgb(const struct sixteen *rgb)
{
    const __m512i least = _mm512_min_epi32(rgb->of[0], _mm512_min_epi32(rgb->of[1], rgb->of[2]));
    const __m512i most = _mm512_max_epi32(rgb->of[0], _mm512_max_epi32(rgb->of[1], rgb->of[2]));
    const __m512i reach = _mm512_sub_epi32(most, least);
    const __m512 full = _mm512_set1_ps(255.0f);
    const __m512 turn = _mm512_div_ps(sixths_of(rgb, least, most), _mm512_set1_ps(6.0f));
    const __mmask16 is_negative = _mm512_movepi32_mask(_mm512_castps_si512(turn));
    const __m512 hue = _mm512_mask_add_ps(turn, is_negative, _mm512_set1_ps(1.0f), turn);
    const __m512 saturation = _mm512_div_ps(float_of(reach), float_of(most));
    return (struct sixteen){{_mm512_cvttps_epi32(_mm512_mul_ps(hue, full)),
                             _mm512_cvttps_epi32(_mm512_mul_ps(saturation, full)), most}};
}

/* Return value * (1 - part / whole), rounded to nearest. */
INLINE __m512i lessened(__m512i value, __m512i part, float whole)
{
    const __m512 of = float_of(value);
    const __m512 less = _mm512_mul_ps(float_of(part), _mm512_set1_ps(1.0f / whole));
    return _mm512_cvttps_epi32(_mm512_fnmadd_ps(of, less, _mm512_add_ps(of, _mm512_set1_ps(0.5f))));
}

/* Return `between`, replaced by v and p on the sides of these bits. */
INLINE __m512i by_side(__m512i between, const __m512i v_p[2], __m512i side_bit, const int bits[2])
{
    const __mmask16 is_v = _mm512_test_epi32_mask(side_bit, _mm512_set1_epi32(bits[0]));
    const __mmask16 is_p = _mm512_test_epi32_mask(side_bit, _mm512_set1_epi32(bits[1]));
    return _mm512_mask_mov_epi32(_mm512_mask_mov_epi32(between, is_v, v_p[0]), is_p, v_p[1]);
}

#define SIDES(a, b, c) (1 << (a) | 1 << (b) | 1 << (c))

/* Convert as rgb_from_hsv of colour_c.c does: one colour is v, one p, and the one between them q on
 * odd sides, t on even ones. Side 6 is side 0. */
INLINE struct sixteen rgb_from_hsv(const struct sixteen *hsv)
{
    const __m512i full = _mm512_set1_epi32(255), one = _mm512_set1_epi32(1), v = hsv->of[2];
    const __m512i six = _mm512_mullo_epi16(hsv->of[0], _mm512_set1_epi32(6));
    const __m512i next = _mm512_add_epi32(six, one);
    const __m512i side = _mm512_srli_epi32(_mm512_add_epi32(next, _mm512_srli_epi32(six, 8)), 8);
    const __m512i rest = _mm512_sub_epi32(six, _mm512_mullo_epi16(side, full));
    const __m512i way = _mm512_mask_sub_epi32(rest, _mm512_testn_epi32_mask(side, one), full, rest);
    const __m512i v_p[2] = {v, lessened(v, hsv->of[1], 255.0f)};
    const __m512i between = lessened(v, _mm512_mullo_epi16(hsv->of[1], way), 255.0f * 255.0f);
    const __m512i bit = _mm512_sllv_epi32(one, side);
    static const int bits[3][2] = {{SIDES(0, 5, 6), SIDES(2, 3, 3)},
                                   {SIDES(1, 2, 2), SIDES(4, 5, 5)},
                                   {SIDES(3, 4, 4), SIDES(0, 1, 6)}};
    return (struct sixteen){{by_side(between, v_p, bit, bits[0]),
                             by_side(between, v_p, bit, bits[1]),
                             by_side(between, v_p, bit, bits[2])}};
}

/* Shift the hue of pixels that are a dword each, whose upper byte is 0. Grays do not change: their
 * saturation is 0. */
INLINE __m512i shifted(__m512i pixels, __m512i shift)
{
    const __m512i byte = _mm512_set1_epi32(255);
    const struct sixteen rgb = {{_mm512_and_si512(pixels, byte),
                                 _mm512_and_si512(_mm512_srli_epi32(pixels, 8), byte),
                                 _mm512_srli_epi32(pixels, 16)}};
    struct sixteen hsv = hsv_from_rgb(&rgb);
    hsv.of[0] = _mm512_and_si512(_mm512_add_epi32(hsv.of[0], shift), byte);
    const struct sixteen out = rgb_from_hsv(&hsv);
    const __m512i green_blue =
        _mm512_or_si512(_mm512_slli_epi32(out.of[1], 8), _mm512_slli_epi32(out.of[2], 16));
    return _mm512_or_si512(out.of[0], green_blue);
}

INLINE void shift_4(uint8_t *at, __m512i shift)
{
    const __m512i v = _mm512_and_si512(_mm512_loadu_si512(at), _mm512_set1_epi32(0xffffff));
    const __m512i alpha = _mm512_set1_epi32((int)0xff000000);
    _mm512_storeu_si512(at, _mm512_or_si512(shifted(v, shift), alpha));
}

INLINE void shift_3(uint8_t *at, __m512i shift)
{
    const __m512i dwords = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i thrice = _mm512_mullo_epi32(dwords, _mm512_set1_epi32(0x030303));
    const __m512i places = _mm512_add_epi32(thrice, _mm512_set1_epi32(0x020100));
    const __m512i v =
        _mm512_maskz_permutexvar_epi8(0x7777777777777777, places, _mm512_loadu_si512(at));
    const __m512i out = _mm512_maskz_compress_epi8(0x7777777777777777, shifted(v, shift));
    _mm256_storeu_si256((__m256i *)(void *)at, _mm512_castsi512_si256(out));
    _mm_storeu_si128((__m128i *)(void *)(at + 32), _mm512_extracti32x4_epi32(out, 2));
}

INLINE void shift_block(uint8_t *at, uint32_t channels, const void *shift)
{
    const __m512i by = _mm512_set1_epi32(*(const uint8_t *)shift);
    for (uint32_t i = 0; i < BLOCK; i += 16, at += (size_t)16 * channels)
        if (channels == 3)
            shift_3(at, by);
        else
            shift_4(at, by);
}

TARGET void pstk__shift_hue_avx512(const struct pstk__picture *picture, uint8_t shift)
{
    if (picture->channels == 3)
        each_block(picture, 3, shift_block, &shift);
    else
        each_block(picture, 4, shift_block, &shift);
}

#endif
