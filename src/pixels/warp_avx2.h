/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warp_avx2: samples places four at a time, in doubles, with 256-bit registers. A function samples
 * four places whose taps all lie within the input; plain C samples the others.
 */
#ifndef PSTK_PIXELS_WARP_AVX2_H
#define PSTK_PIXELS_WARP_AVX2_H

#include "pixels/warp_kernels.h"

#include <immintrin.h>
#include <string.h>

#define FOUR static inline __attribute__((always_inline, target("avx2")))

/* The constants of one input, for every four positions. */
struct source {
    const struct pstk__picture *in;
    __m256d width, height;
    __m256d least, x_limit, y_limit; /* limits of places whose taps all lie within the input; places
                                        less half a pixel */
    __m256i stride, size;            /* bytes of a row, and of a pixel */
};

FOUR struct source source_of(const struct pstk__picture *in, uint32_t n_taps)
{
    const double margin = n_taps / 2 - 1;
    return (struct source){
        .in = in,
        .width = _mm256_set1_pd(in->width),
        .height = _mm256_set1_pd(in->height),
        .least = _mm256_set1_pd(margin),
        .x_limit = _mm256_set1_pd(in->width - 1.0 - margin),
        .y_limit = _mm256_set1_pd(in->height - 1.0 - margin),
        .stride = _mm256_set1_epi64x((int64_t)in->width * in->channels),
        .size = _mm256_set1_epi64x(in->channels),
    };
}

FOUR int all_outside(const struct source *s, __m256d x, __m256d y)
{
    const __m256d zero = _mm256_setzero_pd();
    const __m256d x_out =
        _mm256_or_pd(_mm256_cmp_pd(x, zero, _CMP_LT_OQ), _mm256_cmp_pd(x, s->width, _CMP_GE_OQ));
    const __m256d y_out =
        _mm256_or_pd(_mm256_cmp_pd(y, zero, _CMP_LT_OQ), _mm256_cmp_pd(y, s->height, _CMP_GE_OQ));
    return _mm256_movemask_pd(_mm256_or_pd(x_out, y_out)) == 15;
}

FOUR int all_in(const struct source *s, __m256d x, __m256d y)
{
    const __m256d zero = _mm256_setzero_pd();
    const __m256d x_in =
        _mm256_and_pd(_mm256_cmp_pd(x, zero, _CMP_GE_OQ), _mm256_cmp_pd(x, s->width, _CMP_LT_OQ));
    const __m256d y_in =
        _mm256_and_pd(_mm256_cmp_pd(y, zero, _CMP_GE_OQ), _mm256_cmp_pd(y, s->height, _CMP_LT_OQ));
    return _mm256_movemask_pd(_mm256_and_pd(x_in, y_in)) == 15;
}

/* Return 1 when all taps of four places lie within the input; x and y are less half a pixel. */
FOUR int all_within(const struct source *s, __m256d x, __m256d y)
{
    const __m256d x_in = _mm256_and_pd(_mm256_cmp_pd(x, s->least, _CMP_GE_OQ),
                                       _mm256_cmp_pd(x, s->x_limit, _CMP_LT_OQ));
    const __m256d y_in = _mm256_and_pd(_mm256_cmp_pd(y, s->least, _CMP_GE_OQ),
                                       _mm256_cmp_pd(y, s->y_limit, _CMP_LT_OQ));
    return _mm256_movemask_pd(_mm256_and_pd(x_in, y_in)) == 15;
}

/* Return the bytes from the first pixel to those at (left, top). */
FOUR __m256i offsets_of(const struct source *s, __m128i left, __m128i top)
{
    return _mm256_add_epi64(_mm256_mul_epu32(_mm256_cvtepu32_epi64(top), s->stride),
                            _mm256_mul_epu32(_mm256_cvtepu32_epi64(left), s->size));
}

/* Return a channel of four pixels, a dword each. */
FOUR __m128i channel_of(__m128i pixels, uint32_t channel)
{
    return _mm_and_si128(_mm_srli_epi32(pixels, (int)(8 * channel)), _mm_set1_epi32(255));
}

/* Store four pixels of `channels` bytes from the low bytes of dwords. */
FOUR void store_pixels(uint8_t *out, __m128i pixels, uint32_t channels)
{
    if (channels == 4) {
        _mm_storeu_si128((__m128i *)(void *)out, pixels);
    } else if (channels == 3) {
        const __m128i packed = _mm_shuffle_epi8(
            pixels, _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
        _mm_storel_epi64((__m128i *)(void *)out, packed);
        const int32_t last = _mm_extract_epi32(packed, 2);
        memcpy(out + 8, &last, 4);
    } else {
        const int32_t packed = _mm_cvtsi128_si32(_mm_shuffle_epi8(
            pixels, _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1)));
        memcpy(out, &packed, 4);
    }
}

/* Write four pixels. x and y are less half a pixel. */
typedef void four_function(uint8_t *out, const struct source *s, __m256d x, __m256d y,
                           uint32_t channels);

/* Sample n places. `filter`, not nearest, `channels` and `function` are constants for the compiler.
 */
FOUR void sample_of(uint8_t *out, const struct pstk__picture *in, const double *x, const double *y,
                    uint32_t n, uint32_t filter, uint32_t channels, four_function *function)
{
    const struct source s = source_of(in, filter == PSTK__WARP_BILINEAR ? 2 : 4);
    const __m256d half = _mm256_set1_pd(0.5);
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4, out += 4 * channels) {
        const __m256d px = _mm256_loadu_pd(x + i), py = _mm256_loadu_pd(y + i);
        const __m256d left = _mm256_sub_pd(px, half), top = _mm256_sub_pd(py, half);
        if (all_within(&s, left, top))
            function(out, &s, left, top, channels);
        else if (!all_outside(&s, px, py))
            pstk__warp_c.sample[filter](out, in, x + i, y + i, 4);
    }
    pstk__warp_c.sample[filter](out, in, x + i, y + i, n - i);
}

/* Kernels that AVX-512's table has, too. */
void pstk__sample_nearest_avx2(uint8_t *out, const struct pstk__picture *in, const double *x,
                               const double *y, uint32_t n);
void pstk__sample_bilinear_avx2(uint8_t *out, const struct pstk__picture *in, const double *x,
                                const double *y, uint32_t n);
void pstk__sample_bicubic_avx2(uint8_t *out, const struct pstk__picture *in, const double *x,
                               const double *y, uint32_t n);
void pstk__walk_avx2(uint8_t *out, const struct pstk__picture *in,
                     const struct pstk__warp_walk *walk, uint32_t n);

/* These are in copy_avx2.c. */
void pstk__reverse_avx2(uint8_t *out, const uint8_t *in, uint32_t n, uint32_t size);
void pstk__gather_avx2(uint8_t *out, const uint8_t *in, const uint32_t *input, uint32_t n,
                       uint32_t size);
void pstk__transpose_avx2(const struct pstk__warp_transpose *t);

#endif
