/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warp_avx2: the kernels with 256-bit registers, four places at a time in doubles, in the order of
 * operations of warp_c.c.
 */
#if defined(__x86_64__)

#include "pixels/warp_avx2.h"

#define TARGET __attribute__((target("avx2")))
#define INLINE FOUR

/* ---- places -------------------------------------------------------------------------------- */

/* Return the x of four columns. Half a pixel and `column` are exact, as is every sum of them. */
INLINE __m256d across_of(uint32_t column)
{
    return _mm256_add_pd(_mm256_set1_pd(column + 0.5), _mm256_setr_pd(0, 1, 2, 3));
}

/* Return a across + down + rest. */
INLINE __m256d line(double a, __m256d across, double down, double rest)
{
    const __m256d product = _mm256_mul_pd(_mm256_set1_pd(a), across);
    return _mm256_add_pd(_mm256_add_pd(product, _mm256_set1_pd(down)), _mm256_set1_pd(rest));
}

TARGET static void affine_avx2(double *x, double *y, const double m[6], uint32_t column,
                               uint32_t row)
{
    const double down = row + 0.5, x_down = m[1] * down, y_down = m[4] * down;
    __m256d across = across_of(column);
    for (uint32_t i = 0; i < PSTK__WARP_LANES; i += 4) {
        _mm256_storeu_pd(x + i, line(m[0], across, x_down, m[2]));
        _mm256_storeu_pd(y + i, line(m[3], across, y_down, m[5]));
        across = _mm256_add_pd(across, _mm256_set1_pd(4));
    }
}

TARGET static void perspective_avx2(double *x, double *y, const double m[8], uint32_t column,
                                    uint32_t row)
{
    const double down = row + 0.5;
    const double x_down = m[1] * down, y_down = m[4] * down, depth_down = m[7] * down;
    __m256d across = across_of(column);
    for (uint32_t i = 0; i < PSTK__WARP_LANES; i += 4) {
        const __m256d depth = line(m[6], across, depth_down, 1);
        _mm256_storeu_pd(x + i, _mm256_div_pd(line(m[0], across, x_down, m[2]), depth));
        _mm256_storeu_pd(y + i, _mm256_div_pd(line(m[3], across, y_down, m[5]), depth));
        across = _mm256_add_pd(across, _mm256_set1_pd(4));
    }
}

/* ---- bilinear ------------------------------------------------------------------------------ */

/* The two taps of a row for four places, a dword for each pixel. */
struct pair {
    __m128i left, right;
};

/* Load two taps. Reads 8 bytes at each place. */
INLINE struct pair pair_at(const uint8_t *row, const int64_t offsets[4], uint32_t channels)
{
    __m128i v[4];
    for (uint32_t i = 0; i < 4; i++)
        v[i] = _mm_loadl_epi64((const __m128i *)(const void *)(row + offsets[i]));
    __m128i a = _mm_unpacklo_epi64(v[0], v[1]), b = _mm_unpacklo_epi64(v[2], v[3]);
    const __m128i of_3 = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 8, 9, 10, -1, 11, 12, 13, -1);
    const __m128i of_1 = _mm_setr_epi8(0, -1, -1, -1, 1, -1, -1, -1, 8, -1, -1, -1, 9, -1, -1, -1);
    if (channels != 4) {
        a = _mm_shuffle_epi8(a, channels == 3 ? of_3 : of_1);
        b = _mm_shuffle_epi8(b, channels == 3 ? of_3 : of_1);
    }
    return (struct pair){
        _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), 0x88)),
        _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), 0xdd)),
    };
}

INLINE __m256d mixed_pair(const struct pair *pair, uint32_t channel, __m256d d)
{
    const __m128i a = channel_of(pair->left, channel), b = channel_of(pair->right, channel);
    const __m256d difference = _mm256_cvtepi32_pd(_mm_sub_epi32(b, a));
    return _mm256_add_pd(_mm256_cvtepi32_pd(a), _mm256_mul_pd(difference, d));
}

/* Sample four places bilinearly. x and y are less half a pixel. */
INLINE void bilinear_4(uint8_t *out, const struct source *s, __m256d x, __m256d y,
                       uint32_t channels)
{
    int64_t offsets[4];
    const __m128i left = _mm256_cvttpd_epi32(x), top = _mm256_cvttpd_epi32(y);
    const __m256d dx = _mm256_sub_pd(x, _mm256_cvtepi32_pd(left));
    const __m256d dy = _mm256_sub_pd(y, _mm256_cvtepi32_pd(top));
    _mm256_storeu_si256((__m256i *)(void *)offsets, offsets_of(s, left, top));
    const struct pair above = pair_at(s->in->pixels, offsets, channels);
    const struct pair below =
        pair_at(s->in->pixels + (size_t)s->in->width * channels, offsets, channels);
    __m128i pixels = _mm_setzero_si128();
    for (uint32_t c = 0; c < channels; c++) {
        const __m256d a = mixed_pair(&above, c, dx), b = mixed_pair(&below, c, dx);
        const __m256d v = _mm256_add_pd(a, _mm256_mul_pd(_mm256_sub_pd(b, a), dy));
        pixels = _mm_or_si128(pixels, _mm_slli_epi32(_mm256_cvttpd_epi32(v), (int)(8 * c)));
    }
    store_pixels(out, pixels, channels);
}

/* ---- bicubic ------------------------------------------------------------------------------- */

/* Load four taps: taps[k] gets the k-th pixel of each place, a dword each. Reads 16 bytes at each
 * place. */
INLINE void taps_at(__m128i taps[4], const uint8_t *row, const int64_t offsets[4],
                    uint32_t channels)
{
    const __m128i of_3 = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
    __m128i v[4];
    for (uint32_t i = 0; i < 4; i++) {
        v[i] = _mm_loadu_si128((const __m128i *)(const void *)(row + offsets[i]));
        if (channels == 3)
            v[i] = _mm_shuffle_epi8(v[i], of_3);
        else if (channels == 1)
            v[i] = _mm_cvtepu8_epi32(v[i]);
    }
    const __m128i a = _mm_unpacklo_epi32(v[0], v[1]), b = _mm_unpacklo_epi32(v[2], v[3]);
    const __m128i c = _mm_unpackhi_epi32(v[0], v[1]), d = _mm_unpackhi_epi32(v[2], v[3]);
    taps[0] = _mm_unpacklo_epi64(a, b);
    taps[1] = _mm_unpackhi_epi64(a, b);
    taps[2] = _mm_unpacklo_epi64(c, d);
    taps[3] = _mm_unpackhi_epi64(c, d);
}

/* Return p1 + d (p2 + d (p3 + d p4)). */
INLINE __m256d polynomial(__m256d p1, __m256d p2, __m256d p3, __m256d p4, __m256d d)
{
    const __m256d quadratic = _mm256_add_pd(p3, _mm256_mul_pd(d, p4));
    const __m256d linear = _mm256_add_pd(p2, _mm256_mul_pd(d, quadratic));
    return _mm256_add_pd(p1, _mm256_mul_pd(d, linear));
}

/* Interpolate a row. Whole taps give whole coefficients, which are exact. */
INLINE __m256d cubic_row(const __m128i taps[4], uint32_t channel, __m256d d)
{
    const __m128i a = channel_of(taps[0], channel), b = channel_of(taps[1], channel);
    const __m128i c = channel_of(taps[2], channel), e = channel_of(taps[3], channel);
    const __m128i left = _mm_sub_epi32(a, b), right = _mm_sub_epi32(c, e);
    const __m128i p3 = _mm_add_epi32(_mm_add_epi32(left, left), right);
    const __m128i p4 = _mm_sub_epi32(_mm_setzero_si128(), _mm_add_epi32(left, right));
    return polynomial(_mm256_cvtepi32_pd(b), _mm256_cvtepi32_pd(_mm_sub_epi32(c, a)),
                      _mm256_cvtepi32_pd(p3), _mm256_cvtepi32_pd(p4), d);
}

INLINE __m256d cubic_column(const __m256d v[4], __m256d d)
{
    const __m256d left = _mm256_sub_pd(v[0], v[1]);
    const __m256d p2 = _mm256_sub_pd(v[2], v[0]);
    const __m256d p3 = _mm256_sub_pd(_mm256_add_pd(_mm256_add_pd(left, left), v[2]), v[3]);
    const __m256d p4 = _mm256_add_pd(_mm256_sub_pd(_mm256_sub_pd(v[1], v[0]), v[2]), v[3]);
    return polynomial(v[1], p2, p3, p4, d);
}

INLINE __m128i clipped(__m256d v)
{
    const __m256d positive = _mm256_max_pd(v, _mm256_setzero_pd());
    return _mm256_cvttpd_epi32(_mm256_min_pd(positive, _mm256_set1_pd(255)));
}

INLINE void bicubic_4(uint8_t *out, const struct source *s, __m256d x, __m256d y, uint32_t channels)
{
    int64_t offsets[4];
    __m128i taps[4][4];
    const __m128i left = _mm256_cvttpd_epi32(x), top = _mm256_cvttpd_epi32(y);
    const __m256d dx = _mm256_sub_pd(x, _mm256_cvtepi32_pd(left));
    const __m256d dy = _mm256_sub_pd(y, _mm256_cvtepi32_pd(top));
    const size_t stride = (size_t)s->in->width * channels;
    const __m128i one = _mm_set1_epi32(1);
    _mm256_storeu_si256((__m256i *)(void *)offsets,
                        offsets_of(s, _mm_sub_epi32(left, one), _mm_sub_epi32(top, one)));
    for (uint32_t k = 0; k < 4; k++)
        taps_at(taps[k], s->in->pixels + k * stride, offsets, channels);
    __m128i pixels = _mm_setzero_si128();
    for (uint32_t c = 0; c < channels; c++) {
        __m256d v[4];
        for (uint32_t k = 0; k < 4; k++)
            v[k] = cubic_row(taps[k], c, dx);
        pixels = _mm_or_si128(pixels, _mm_slli_epi32(clipped(cubic_column(v, dy)), (int)(8 * c)));
    }
    store_pixels(out, pixels, channels);
}

/* ---- samples ------------------------------------------------------------------------------- */

/* Copy four pixels; those of three bytes with a fourth, which the next pixel overwrites. */
INLINE void nearest_4(uint8_t *out, const struct source *s, __m256d x, __m256d y, uint32_t size)
{
    int64_t offsets[4];
    _mm256_storeu_si256((__m256i *)(void *)offsets,
                        offsets_of(s, _mm256_cvttpd_epi32(x), _mm256_cvttpd_epi32(y)));
    const uint32_t copied = size == 3 ? 4 : size;
    for (uint32_t i = 0; i < 3; i++)
        memcpy(out + (size_t)i * size, s->in->pixels + offsets[i], copied);
    memcpy(out + (size_t)3 * size, s->in->pixels + offsets[3], size);
}

INLINE void nearest_of(uint8_t *out, const struct pstk__picture *in, const double *x,
                       const double *y, uint32_t n, uint32_t size)
{
    const struct source s = source_of(in, 2);
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4, out += (size_t)4 * size) {
        const __m256d px = _mm256_loadu_pd(x + i), py = _mm256_loadu_pd(y + i);
        if (all_in(&s, px, py))
            nearest_4(out, &s, px, py, size);
        else if (!all_outside(&s, px, py))
            pstk__warp_c.sample[PSTK__WARP_NEAREST](out, in, x + i, y + i, 4);
    }
    pstk__warp_c.sample[PSTK__WARP_NEAREST](out, in, x + i, y + i, n - i);
}

TARGET void pstk__sample_nearest_avx2(uint8_t *out, const struct pstk__picture *in, const double *x,
                                      const double *y, uint32_t n)
{
    if (in->channels == 1)
        nearest_of(out, in, x, y, n, 1);
    else if (in->channels == 2)
        nearest_of(out, in, x, y, n, 2);
    else if (in->channels == 3)
        nearest_of(out, in, x, y, n, 3);
    else
        nearest_of(out, in, x, y, n, 4);
}

TARGET void pstk__sample_bilinear_avx2(uint8_t *out, const struct pstk__picture *in,
                                       const double *x, const double *y, uint32_t n)
{
    if (in->channels == 1)
        sample_of(out, in, x, y, n, PSTK__WARP_BILINEAR, 1, bilinear_4);
    else if (in->channels == 3)
        sample_of(out, in, x, y, n, PSTK__WARP_BILINEAR, 3, bilinear_4);
    else
        sample_of(out, in, x, y, n, PSTK__WARP_BILINEAR, 4, bilinear_4);
}

TARGET void pstk__sample_bicubic_avx2(uint8_t *out, const struct pstk__picture *in, const double *x,
                                      const double *y, uint32_t n)
{
    if (in->channels == 1)
        sample_of(out, in, x, y, n, PSTK__WARP_BICUBIC, 1, bicubic_4);
    else if (in->channels == 3)
        sample_of(out, in, x, y, n, PSTK__WARP_BICUBIC, 3, bicubic_4);
    else
        sample_of(out, in, x, y, n, PSTK__WARP_BICUBIC, 4, bicubic_4);
}

/* ---- walks and mirrors --------------------------------------------------------------------- */

/* Return the bytes from the first pixel to eight places; the input is smaller than 2^32 bytes. */
INLINE __m256i walk_offsets(__m256i x, __m256i y, __m256i stride, __m256i size)
{
    const __m256i left = _mm256_srli_epi32(x, 16), top = _mm256_srli_epi32(y, 16);
    return _mm256_add_epi32(_mm256_mullo_epi32(top, stride), _mm256_mullo_epi32(left, size));
}

/* Return the place of each lane: eight steps from the first. */
INLINE __m256i lanes_of(uint32_t first, uint32_t step)
{
    const __m256i iota = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_add_epi32(_mm256_set1_epi32((int32_t)first),
                            _mm256_mullo_epi32(_mm256_set1_epi32((int32_t)step), iota));
}

/* Copy eight pixels at a time while another follows, which overwrites the extra bytes of the last
 * copy. Returns how many. */
INLINE uint32_t walk_of(uint8_t *out, const struct pstk__picture *in,
                        const struct pstk__warp_walk *walk, uint32_t n, uint32_t size)
{
    const __m256i stride = _mm256_set1_epi32((int32_t)(in->width * size));
    const __m256i x_step = _mm256_set1_epi32((int32_t)(8 * walk->x_step));
    const __m256i y_step = _mm256_set1_epi32((int32_t)(8 * walk->y_step));
    __m256i x = lanes_of(walk->x, walk->x_step), y = lanes_of(walk->y, walk->y_step);
    uint32_t i = 0;
    for (; n - i > 8; i += 8) {
        uint32_t offsets[8];
        _mm256_storeu_si256((__m256i *)(void *)offsets,
                            walk_offsets(x, y, stride, _mm256_set1_epi32((int32_t)size)));
        for (uint32_t k = 0; k < 8; k++, out += size)
            memcpy(out, in->pixels + offsets[k], size == 3 ? 4 : size);
        x = _mm256_add_epi32(x, x_step);
        y = _mm256_add_epi32(y, y_step);
    }
    return i;
}

TARGET void pstk__walk_avx2(uint8_t *out, const struct pstk__picture *in,
                            const struct pstk__warp_walk *walk, uint32_t n)
{
    const uint32_t size = in->channels;
    uint32_t done = 0;
    if (pstk__picture_size(in) > UINT32_MAX)
        done = 0;
    else if (size == 1)
        done = walk_of(out, in, walk, n, 1);
    else if (size == 2)
        done = walk_of(out, in, walk, n, 2);
    else if (size == 3)
        done = walk_of(out, in, walk, n, 3);
    else
        done = walk_of(out, in, walk, n, 4);
    const struct pstk__warp_walk rest = {walk->x + done * walk->x_step,
                                         walk->y + done * walk->y_step, walk->x_step, walk->y_step};
    pstk__warp_c.walk(out + (size_t)done * size, in, &rest, n - done);
}

const struct pstk__warp_kernels pstk__warp_avx2 = {
    .isa = PSTK_KERNELS_AVX2,
    .affine = affine_avx2,
    .perspective = perspective_avx2,
    .sample = {pstk__sample_nearest_avx2, pstk__sample_bilinear_avx2, pstk__sample_bicubic_avx2},
    .walk = pstk__walk_avx2,
    .gather = pstk__gather_avx2,
    .reverse = pstk__reverse_avx2,
    .transpose = pstk__transpose_avx2,
};

#endif
