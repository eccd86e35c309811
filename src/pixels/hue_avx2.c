/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hue_avx2: shifts hues, 8 pixels at a time, in float. colour_c.c computes in double and in
 * integers; the results are the same for all colours, which tests/pixels/test_colour.c compares.
 */
#if defined(__x86_64__) || defined(PSTK_NEON)

#include "pixels/colour_avx2.h"

/* 8 pixels: three colours, or hue, saturation and value; integers of 0 to 255. */
struct eight {
    __m256i of[3];
};

INLINE __m256i choose(__m256i no, __m256i yes, __m256i mask)
{
    return _mm256_blendv_epi8(no, yes, mask);
}

INLINE __m256 choose_float(__m256 no, __m256 yes, __m256i mask)
{
    return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(mask));
}

/*
 * Return the hue in sixths of a turn, from -1 to 5: an odd number, plus or minus the part of
 * `reach` by which the middle colour is below the greatest. Of the three parts that colour_c.c
 * adds, one is 0 and one is 1. With a reach of 0 this is not a number.
 */
INLINE __m256 sixths_of(const struct eight *rgb, __m256i least, __m256i most)
{
    const __m256i red = rgb->of[0], green = rgb->of[1], blue = rgb->of[2];
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(red, green), blue);
    const __m256i middle = _mm256_sub_epi32(sum, _mm256_add_epi32(least, most));
    const __m256 part = _mm256_div_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(most, middle)),
                                      _mm256_cvtepi32_ps(_mm256_sub_epi32(most, least)));
    const __m256i red_max = _mm256_cmpeq_epi32(red, most),
                  green_max = _mm256_andnot_si256(red_max, _mm256_cmpeq_epi32(green, most));
    const __m256i red_min = _mm256_cmpeq_epi32(red, least),
                  blue_min = _mm256_cmpeq_epi32(blue, least);
    const __m256 one = _mm256_set1_ps(1.0f), three = _mm256_set1_ps(3.0f);
    const __m256 from_red =
        choose_float(_mm256_sub_ps(part, one), _mm256_sub_ps(one, part), blue_min);
    const __m256 from_green =
        choose_float(_mm256_sub_ps(three, part), _mm256_add_ps(one, part), blue_min);
    const __m256 from_blue = choose_float(_mm256_sub_ps(_mm256_set1_ps(5.0f), part),
                                          _mm256_add_ps(three, part), red_min);
    return choose_float(choose_float(from_blue, from_green, green_max), from_red, red_max);
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

/* Return value * (1 - part / whole), rounded to nearest. */
INLINE __m256i lessened(__m256i value, __m256i part, float whole)
{
    const __m256 of = _mm256_cvtepi32_ps(value);
    const __m256 less = _mm256_mul_ps(_mm256_cvtepi32_ps(part), _mm256_set1_ps(1.0f / whole));
    return _mm256_cvttps_epi32(_mm256_fnmadd_ps(of, less, _mm256_add_ps(of, _mm256_set1_ps(0.5f))));
}

/* Set all bits of lanes whose side, 0 to 6, is one of three. */
INLINE __m256i is_side(__m256i side, uint32_t a, uint32_t b, uint32_t c)
{
    int32_t masks[8] = {0};
    masks[a] = masks[b] = masks[c] = -1;
    return _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)masks), side);
}

/* Convert as rgb_from_hsv of colour_c.c does: one colour is v, one p, and the one between them q on
 * odd sides, t on even ones. Side 6 is side 0. */
INLINE struct eight rgb_from_hsv(const struct eight *hsv)
{
    const __m256i full = _mm256_set1_epi32(255), v = hsv->of[2];
    const __m256i six = _mm256_mullo_epi16(hsv->of[0], _mm256_set1_epi32(6));
    const __m256i next = _mm256_add_epi32(six, _mm256_set1_epi32(1));
    const __m256i side = _mm256_srli_epi32(_mm256_add_epi32(next, _mm256_srli_epi32(six, 8)), 8);
    const __m256i rest = _mm256_sub_epi32(six, _mm256_mullo_epi16(side, full));
    const __m256i is_odd = _mm256_cmpgt_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(side, 31));
    const __m256i way = choose(_mm256_sub_epi32(full, rest), rest, is_odd);
    const __m256i p = lessened(v, hsv->of[1], 255.0f);
    const __m256i between = lessened(v, _mm256_mullo_epi16(hsv->of[1], way), 255.0f * 255.0f);
    return (struct eight){{
        choose(choose(between, v, is_side(side, 0, 5, 6)), p, is_side(side, 2, 3, 3)),
        choose(choose(between, v, is_side(side, 1, 2, 2)), p, is_side(side, 4, 5, 5)),
        choose(choose(between, v, is_side(side, 3, 4, 4)), p, is_side(side, 0, 1, 6)),
    }};
}

/* Shift the hue. Grays do not change: their saturation is 0. */
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
