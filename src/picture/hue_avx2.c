/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hue_avx2: the shift of hues, 8 pixels at a time, in float. Where colour_c.c computes in double,
 * or in integers, results are the same for each of the arguments, of which there are 2^24 at most;
 * tests/picture/test_colour.c compares all.
 */
#if defined(__x86_64__)

#include "picture/colour_avx2.h"

/* 8 pixels: three colours, or hue, saturation and value; integers of 0 to 255. */
struct eight {
    __m256i of[3];
};

INLINE __m256 choose(__m256 no, __m256 yes, __m256i mask)
{
    return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(mask));
}

INLINE __m256i choose_integer(__m256i no, __m256i yes, __m256i mask)
{
    return _mm256_blendv_epi8(no, yes, mask);
}

/*
 * The hue in sixths of a turn, from -1 to 5: an odd number, plus or minus the part of `reach` by
 * which the middle color is below the greatest. Of the three parts that colour_c.c adds, one is 0
 * and one is 1. With a reach of 0 this is not a number.
 */
INLINE __m256 sixths_of(const struct eight *rgb, __m256i least, __m256i most)
{
    const __m256i red = rgb->of[0], green = rgb->of[1], blue = rgb->of[2];
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(red, green), blue);
    const __m256i middle = _mm256_sub_epi32(sum, _mm256_add_epi32(least, most));
    const __m256 part = _mm256_div_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(most, middle)),
                                      _mm256_cvtepi32_ps(_mm256_sub_epi32(most, least)));
    const __m256i red_most = _mm256_cmpeq_epi32(red, most),
                  green_most = _mm256_andnot_si256(red_most, _mm256_cmpeq_epi32(green, most));
    const __m256i red_least = _mm256_cmpeq_epi32(red, least),
                  blue_least = _mm256_cmpeq_epi32(blue, least);
    const __m256 one = _mm256_set1_ps(1.0f), three = _mm256_set1_ps(3.0f);
    const __m256 from_red = choose(_mm256_sub_ps(part, one), _mm256_sub_ps(one, part), blue_least);
    const __m256 from_green =
        choose(_mm256_sub_ps(three, part), _mm256_add_ps(one, part), blue_least);
    const __m256 from_blue =
        choose(_mm256_sub_ps(_mm256_set1_ps(5.0f), part), _mm256_add_ps(three, part), red_least);
    return choose(choose(from_blue, from_green, green_most), from_red, red_most);
}

INLINE struct eight hsv_from_rgb(const struct eight *rgb)
{
    const __m256i least = _mm256_min_epi32(rgb->of[0], _mm256_min_epi32(rgb->of[1], rgb->of[2]));
    const __m256i most = _mm256_max_epi32(rgb->of[0], _mm256_max_epi32(rgb->of[1], rgb->of[2]));
    const __m256i reach = _mm256_sub_epi32(most, least);
    const __m256 full = _mm256_set1_ps(255.0f);
    const __m256 turn = _mm256_div_ps(sixths_of(rgb, least, most), _mm256_set1_ps(6.0f));
    const __m256 hue = _mm256_blendv_ps(turn, _mm256_add_ps(_mm256_set1_ps(1.0f), turn), turn);
    const __m256 saturation = _mm256_div_ps(_mm256_cvtepi32_ps(reach), _mm256_cvtepi32_ps(most));
    const struct eight hsv = {{_mm256_cvttps_epi32(_mm256_mul_ps(hue, full)),
                               _mm256_cvttps_epi32(_mm256_mul_ps(saturation, full)), most}};
    return hsv;
}

/* value * (1 - part), to the nearest. */
INLINE __m256i lessened(__m256 value, __m256 part)
{
    return _mm256_cvttps_epi32(
        _mm256_fnmadd_ps(value, part, _mm256_add_ps(value, _mm256_set1_ps(0.5f))));
}

/* Of 6 sides of the wheel, and the first once more: all bits set in those of a list. */
INLINE __m256i is_side(__m256i side, int a, int b, int c)
{
    int masks[8] = {0};
    masks[a] = masks[b] = masks[c] = -1;
    return _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)masks), side);
}

/* As rgb_from_hsv of colour_c.c; on even sides q, on odd ones t is not needed. */
INLINE struct eight rgb_from_hsv(const struct eight *hsv)
{
    const __m256i six = _mm256_mullo_epi16(hsv->of[0], _mm256_set1_epi32(6));
    const __m256i side = _mm256_srli_epi32(
        _mm256_add_epi32(_mm256_add_epi32(six, _mm256_set1_epi32(1)), _mm256_srli_epi32(six, 8)),
        8); /* six / 255 */
    const __m256i full = _mm256_set1_epi32(255);
    const __m256i rest = _mm256_sub_epi32(six, _mm256_mullo_epi16(side, full));
    const __m256i is_even = _mm256_cmpeq_epi32(_mm256_slli_epi32(side, 31), _mm256_setzero_si256());
    const __m256 whole = _mm256_set1_ps(255.0f);
    const __m256 value = _mm256_cvtepi32_ps(hsv->of[2]),
                 saturation = _mm256_div_ps(_mm256_cvtepi32_ps(hsv->of[1]), whole);
    const __m256 part = _mm256_div_ps(
        _mm256_cvtepi32_ps(choose_integer(rest, _mm256_sub_epi32(full, rest), is_even)), whole);
    const __m256i v = hsv->of[2], p = lessened(value, saturation),
                  between = lessened(value, _mm256_mul_ps(saturation, part));
    return (struct eight){{
        choose_integer(choose_integer(between, v, is_side(side, 0, 5, 6)), p,
                       is_side(side, 2, 3, 3)),
        choose_integer(choose_integer(between, v, is_side(side, 1, 2, 2)), p,
                       is_side(side, 4, 5, 5)),
        choose_integer(choose_integer(p, v, is_side(side, 3, 4, 4)), between,
                       is_side(side, 2, 5, 5)),
    }};
}

/* Grays do not change: their saturation is 0. */
INLINE struct eight shifted(const struct eight *rgb, __m256i shift)
{
    struct eight hsv = hsv_from_rgb(rgb);
    hsv.of[0] = _mm256_and_si256(_mm256_add_epi32(hsv.of[0], shift), _mm256_set1_epi32(255));
    return rgb_from_hsv(&hsv);
}

INLINE void shift_block(struct block *block, const void *shift)
{
    const __m256i by = _mm256_set1_epi32(*(const uint8_t *)shift);
    struct wide of[3];
    for (uint32_t c = 0; c < 3; c++)
        of[c] = widened(block->of[c]);
    for (uint32_t i = 0; i < 4; i++) {
        const struct eight rgb = {{of[0].of[i], of[1].of[i], of[2].of[i]}};
        const struct eight out = shifted(&rgb, by);
        for (uint32_t c = 0; c < 3; c++)
            of[c].of[i] = out.of[c];
    }
    for (uint32_t c = 0; c < 3; c++)
        block->of[c] = narrowed(of[c]);
    block->of[3] = _mm256_set1_epi8(-1);
}

TARGET void pstk__shift_hue_avx2(const struct pstk__picture *picture, uint8_t shift)
{
    const struct pstk__picture rest = rest_of(picture);
    if (picture->channels == 3)
        each_block(picture, 3, shift_block, &shift);
    else
        each_block(picture, 4, shift_block, &shift);
    pstk__colour_c.shift_hue(&rest, shift);
}

#endif
