/* SPDX-License-Identifier: Apache-2.0 */
/* warp_avx512: the kernels with 512-bit registers. */
#if defined(__x86_64__)

#include "pixels/avx512.h"
#include "pixels/gather.h"
#include "pixels/warp_avx2.h"

/* ---- positions ----------------------------------------------------------------------------- */

/* Return the x of the columns. Half a pixel and `column` are exact, as is every sum of them. */
INLINE __m512d across_of(uint32_t column)
{
    return _mm512_add_pd(_mm512_set1_pd(column + 0.5), _mm512_setr_pd(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Return a across + down + rest. */
INLINE __m512d line(double a, __m512d across, double down, double rest)
{
    const __m512d product = _mm512_mul_pd(_mm512_set1_pd(a), across);
    return _mm512_add_pd(_mm512_add_pd(product, _mm512_set1_pd(down)), _mm512_set1_pd(rest));
}

TARGET static void affine_avx512(double *x, double *y, const double m[6], uint32_t column,
                                 uint32_t row)
{
    const double down = row + 0.5, x_down = m[1] * down, y_down = m[4] * down;
    __m512d across = across_of(column);
    for (uint32_t i = 0; i < PSTK__WARP_LANES; i += 8) {
        _mm512_storeu_pd(x + i, line(m[0], across, x_down, m[2]));
        _mm512_storeu_pd(y + i, line(m[3], across, y_down, m[5]));
        across = _mm512_add_pd(across, _mm512_set1_pd(8));
    }
}

TARGET static void perspective_avx512(double *x, double *y, const double m[8], uint32_t column,
                                      uint32_t row)
{
    const double down = row + 0.5;
    const double x_down = m[1] * down, y_down = m[4] * down, depth_down = m[7] * down;
    __m512d across = across_of(column);
    for (uint32_t i = 0; i < PSTK__WARP_LANES; i += 8) {
        const __m512d depth = line(m[6], across, depth_down, 1);
        _mm512_storeu_pd(x + i, _mm512_div_pd(line(m[0], across, x_down, m[2]), depth));
        _mm512_storeu_pd(y + i, _mm512_div_pd(line(m[3], across, y_down, m[5]), depth));
        across = _mm512_add_pd(across, _mm512_set1_pd(8));
    }
}

/* ---- bicubic --------------------------------------------------------------------------------- */

/*
 * Four positions are the quarters of a register, whose dwords are channels, 3 or 4. A dword has the
 * bytes of the taps of its channel, so that one instruction multiplies them by weights and adds the
 * products.
 */
struct taps {
    __m512i of;
};

/* Doubles of the first two positions, and of the others. */
struct wide {
    __m512d low, high;
};

INLINE struct wide wide_of(__m512i v)
{
    return (struct wide){_mm512_cvtepi32_pd(_mm512_castsi512_si256(v)),
                         _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(v, 1))};
}

/* Spread a number of each position to all its channels. */
INLINE struct wide spread(__m256d v)
{
    const __m512d of = _mm512_castpd256_pd512(v);
    return (struct wide){_mm512_permutexvar_pd(_mm512_setr_epi64(0, 0, 0, 0, 1, 1, 1, 1), of),
                         _mm512_permutexvar_pd(_mm512_setr_epi64(2, 2, 2, 2, 3, 3, 3, 3), of)};
}

/* Return the sums of taps by weights, which are the signed bytes of a dword. */
INLINE struct wide weighed(struct taps taps, uint32_t weights)
{
    return wide_of(
        _mm512_dpbusd_epi32(_mm512_setzero_si512(), taps.of, _mm512_set1_epi32((int)weights)));
}

/* Return the tap of a byte. */
INLINE struct wide tap_of(struct taps taps, uint32_t byte)
{
    return wide_of(_mm512_and_si512(_mm512_srli_epi32(taps.of, 8 * byte), _mm512_set1_epi32(255)));
}

INLINE __m512i quarters_of(__m128i a, __m128i b, __m128i c, __m128i d)
{
    const __m256i ab = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    const __m256i cd = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(ab), cd, 1);
}

/* Write numbers of 0 to 255, truncated. */
INLINE void store_wide(uint8_t *out, struct wide v, uint32_t channels)
{
    const __m512i dwords = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvttpd_epi32(v.low)),
                                              _mm512_cvttpd_epi32(v.high), 1);
    store_pixels(out, _mm512_cvtepi32_epi8(dwords), channels);
}

/* Load four taps of a row. Reads 16 bytes at each position. */
INLINE struct taps taps_at(const uint8_t *row, const int64_t offsets[4], uint32_t channels)
{
    const __m128i of_3 = _mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1);
    const __m128i of_4 = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m128i v[4];
    for (uint32_t i = 0; i < 4; i++)
        v[i] = _mm_loadu_si128((const __m128i *)(const void *)(row + offsets[i]));
    return (struct taps){_mm512_shuffle_epi8(quarters_of(v[0], v[1], v[2], v[3]),
                                             _mm512_broadcast_i32x4(channels == 3 ? of_3 : of_4))};
}

/* Return p1 + d (p2 + d (p3 + d p4)). */
INLINE __m512d polynomial(__m512d p1, __m512d p2, __m512d p3, __m512d p4, __m512d d)
{
    const __m512d quadratic = _mm512_add_pd(p3, _mm512_mul_pd(d, p4));
    const __m512d linear = _mm512_add_pd(p2, _mm512_mul_pd(d, quadratic));
    return _mm512_add_pd(p1, _mm512_mul_pd(d, linear));
}

/* Interpolate a row. Whole taps give whole coefficients, which are exact. */
INLINE struct wide cubic_row(struct taps taps, struct wide d)
{
    const struct wide p1 = tap_of(taps, 1), p2 = weighed(taps, 0x000100ff);
    const struct wide p3 = weighed(taps, 0xff01fe02), p4 = weighed(taps, 0x01ff01ff);
    return (struct wide){polynomial(p1.low, p2.low, p3.low, p4.low, d.low),
                         polynomial(p1.high, p2.high, p3.high, p4.high, d.high)};
}

INLINE __m512d cubic_column(__m512d a, __m512d b, __m512d c, __m512d e, __m512d d)
{
    const __m512d left = _mm512_sub_pd(a, b), p2 = _mm512_sub_pd(c, a);
    const __m512d p3 = _mm512_sub_pd(_mm512_add_pd(_mm512_add_pd(left, left), c), e);
    const __m512d p4 = _mm512_add_pd(_mm512_sub_pd(_mm512_sub_pd(b, a), c), e);
    const __m512d v = _mm512_max_pd(polynomial(b, p2, p3, p4, d), _mm512_setzero_pd());
    return _mm512_min_pd(v, _mm512_set1_pd(255));
}

INLINE void bicubic_of(uint8_t *out, const struct source *s, __m256d x, __m256d y,
                       uint32_t channels)
{
    int64_t offsets[4];
    const __m128i left = _mm256_cvttpd_epi32(x), top = _mm256_cvttpd_epi32(y);
    const __m128i one = _mm_set1_epi32(1);
    const struct wide dx = spread(_mm256_sub_pd(x, _mm256_cvtepi32_pd(left)));
    const struct wide dy = spread(_mm256_sub_pd(y, _mm256_cvtepi32_pd(top)));
    const size_t stride = (size_t)s->in->width * channels;
    struct wide v[4];
    _mm256_storeu_si256((__m256i *)(void *)offsets,
                        offsets_of(s, _mm_sub_epi32(left, one), _mm_sub_epi32(top, one)));
    for (uint32_t k = 0; k < 4; k++)
        v[k] = cubic_row(taps_at(s->in->pixels + k * stride, offsets, channels), dx);
    store_wide(out,
               (struct wide){cubic_column(v[0].low, v[1].low, v[2].low, v[3].low, dy.low),
                             cubic_column(v[0].high, v[1].high, v[2].high, v[3].high, dy.high)},
               channels);
}

TARGET static void bicubic_avx512(uint8_t *out, const struct pstk__picture *in, const double *x,
                                  const double *y, uint32_t n)
{
    if (in->channels == 1)
        pstk__sample_bicubic_avx2(out, in, x, y, n);
    else if (in->channels == 3)
        sample_of(out, in, x, y, n, PSTK__WARP_BICUBIC, 3, bicubic_of);
    else
        sample_of(out, in, x, y, n, PSTK__WARP_BICUBIC, 4, bicubic_of);
}

/* ---- bytes of pixels ----------------------------------------------------------------------- */

/* Return the pixel to which each of 64 bytes belongs. */
INLINE __m512i pixels_of(uint32_t size)
{
    const __m512i iota = iota_times(1);
    if (size == 1)
        return iota;
    if (size == 3)
        return _mm512_and_si512(interleaved(0), _mm512_set1_epi8(63));
    const __m512i pixels = _mm512_srli_epi16(iota, size == 2 ? 1 : 2);
    return _mm512_and_si512(pixels, _mm512_set1_epi8(size == 2 ? 31 : 15));
}

/* Return the first bytes of these pixels. */
INLINE __m512i firsts_of(__m512i pixels, uint32_t size)
{
    __m512i firsts = pixels;
    for (uint32_t i = 1; i < size; i++)
        firsts = _mm512_add_epi8(firsts, pixels);
    return firsts;
}

/* ---- columns ------------------------------------------------------------------------------- */

/* Return the distance of each of n inputs, at most `most`, from the first, as bytes. */
INLINE __m512i distances_of(const uint32_t *input, uint32_t n, uint32_t most)
{
    const __m512i first = _mm512_set1_epi32((int32_t)input[0]);
    __m128i of[4] = {_mm_setzero_si128()};
    for (uint32_t i = 0; 16 * i < most; i++) {
        const __mmask16 mask = (__mmask16)(mask64(n) >> 16 * i);
        const __m512i v = _mm512_maskz_loadu_epi32(mask, input + (size_t)16 * i);
        of[i] = _mm512_cvtepi32_epi8(_mm512_sub_epi32(v, first));
    }
    return quarters_of(of[0], of[1], of[2], of[3]);
}

/* Return n pixels, at most as many as 64 bytes hold, whose inputs lie within 128 bytes. */
INLINE __m512i gathered(const uint8_t *in, const uint32_t *input, uint32_t n, uint32_t size)
{
    const __m512i pixels = pixels_of(size);
    const __m512i bytes = _mm512_sub_epi8(iota_times(1), firsts_of(pixels, size));
    const __m512i inputs = _mm512_permutexvar_epi8(pixels, distances_of(input, n, 64 / size));
    const __m512i places = _mm512_add_epi8(firsts_of(inputs, size), bytes);
    const uint8_t *from = in + (size_t)input[0] * size;
    const __m512i low = _mm512_loadu_si512(from);
    const int is_one = (input[n - 1] - input[0] + 1) * size <= 64;
    const __m512i high = is_one ? low : _mm512_loadu_si512(from + 64);
    return _mm512_permutex2var_epi8(low, places, high);
}

/* Gather pixels. The next store overwrites what a store writes past its pixels. Inputs that go
 * back, or lie far apart, are copied one by one. */
INLINE void gather_of(uint8_t *out, const uint8_t *in, const uint32_t *input, uint32_t n,
                      uint32_t size)
{
    const uint32_t step = 64 / size;
    for (uint32_t i = 0; i < n; i += step, out += (size_t)step * size) {
        const uint32_t some = n - i < step ? n - i : step;
        if (input[i + some - 1] - input[i] >= 128 / size)
            pstk__gather_pixels(out, in, input + i, some, size);
        else if (n - i > step)
            _mm512_storeu_si512(out, gathered(in, input + i, some, size));
        else
            _mm512_mask_storeu_epi8(out, mask64((uint64_t)some * size),
                                    gathered(in, input + i, some, size));
    }
}

TARGET static void gather_avx512(uint8_t *out, const uint8_t *in, const uint32_t *input, uint32_t n,
                                 uint32_t size)
{
    if (size == 1)
        gather_of(out, in, input, n, 1);
    else if (size == 2)
        gather_of(out, in, input, n, 2);
    else if (size == 3)
        gather_of(out, in, input, n, 3);
    else
        gather_of(out, in, input, n, 4);
}

/* ---- mirrors ------------------------------------------------------------------------------- */

/* Reverse pixels, as many at a time as fit 64 bytes; the next store overwrites what a store writes
 * past them. */
INLINE void reverse_of(uint8_t *out, const uint8_t *in, uint32_t n, uint32_t size)
{
    const uint32_t step = 64 / size;
    const __m512i firsts = firsts_of(pixels_of(size), size);
    const __m512i back = _mm512_sub_epi8(iota_times(1), _mm512_add_epi8(firsts, firsts));
    const __m512i places = _mm512_add_epi8(back, _mm512_set1_epi8((char)((step - 1) * size)));
    uint32_t left = n;
    for (; left > step; left -= step, out += (size_t)step * size) {
        const __m512i v = _mm512_loadu_si512(in + (size_t)(left - step) * size);
        _mm512_storeu_si512(out, _mm512_permutexvar_epi8(places, v));
    }
    const __mmask64 mask = mask64((uint64_t)left * size);
    const __m512i last = _mm512_add_epi8(back, _mm512_set1_epi8((char)((left - 1) * size)));
    const __m512i v = _mm512_maskz_loadu_epi8(mask, in);
    _mm512_mask_storeu_epi8(out, mask, _mm512_permutexvar_epi8(last, v));
}

TARGET static void reverse_avx512(uint8_t *out, const uint8_t *in, uint32_t n, uint32_t size)
{
    if (n == 0)
        return;
    if (size == 1)
        reverse_of(out, in, n, 1);
    else if (size == 2)
        reverse_of(out, in, n, 2);
    else if (size == 3)
        reverse_of(out, in, n, 3);
    else
        reverse_of(out, in, n, 4);
}

/* ---- transposition ------------------------------------------------------------------------- */

#define SIDE 16u /* columns of a block */
#define ROWS 4u  /* rows of a block */

/* The sources of the bytes of two registers. `first`: in each quarter, of two rows of the input,
 * pixels of one column and the next. `second`: of these pairs, four pixels of the first column of
 * each, without gaps. Both columns that come after lie `next` bytes further. */
struct exchange {
    __m512i first, second, next;
};

INLINE struct exchange exchange_of(uint32_t size)
{
    static const uint8_t firsts[4][16] = {{0, 64, 1, 65},
                                          {0, 1, 64, 65, 2, 3, 66, 67},
                                          {0, 1, 2, 64, 65, 66, 3, 4, 5, 67, 68, 69},
                                          {0, 1, 2, 3, 64, 65, 66, 67, 4, 5, 6, 7, 68, 69, 70, 71}};
    static const uint8_t seconds[4][16] = {
        {0, 1, 64, 65},
        {0, 1, 2, 3, 64, 65, 66, 67},
        {0, 1, 2, 3, 4, 5, 64, 65, 66, 67, 68, 69},
        {0, 1, 2, 3, 4, 5, 6, 7, 64, 65, 66, 67, 68, 69, 70, 71}};
    const __m512i quarters = _mm512_and_si512(iota_times(1), _mm512_set1_epi8(48));
    const __m128i first = _mm_loadu_si128((const __m128i *)(const void *)firsts[size - 1]);
    const __m128i second = _mm_loadu_si128((const __m128i *)(const void *)seconds[size - 1]);
    const uint64_t used = mask64((uint64_t)4 * size); /* used bytes of each quarter */
    return (struct exchange){
        .first = _mm512_add_epi8(quarters, _mm512_broadcast_i32x4(first)),
        .second =
            _mm512_maskz_compress_epi8(used | used << 16 | used << 32 | used << 48,
                                       _mm512_add_epi8(quarters, _mm512_broadcast_i32x4(second))),
        .next = _mm512_set1_epi8((char)(2 * size)),
    };
}

/* Load four pixels each of rows 0, 4, 8 and 12 from `in` on. */
INLINE __m512i four_rows(const uint8_t *in, ptrdiff_t step)
{
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)in));
    for (uint32_t i = 1; i < 4; i++) {
        const uint8_t *row = in + (ptrdiff_t)(4 * i) * step;
        v = _mm512_mask_broadcast_i32x4(v, (__mmask16)(15u << 4 * i),
                                        _mm_loadu_si128((const __m128i *)(const void *)row));
    }
    return v;
}

/* Transpose a block: four columns of 16 rows of the input. Reads 16 bytes of each row. stored:
 * bytes of each row of the output. */
INLINE void transpose_block(uint8_t *out, const uint8_t *in, const struct pstk__warp_transpose *t,
                            const struct exchange *e, __mmask64 stored)
{
    const __m512i first_next = _mm512_add_epi8(e->first, e->next);
    const __m512i second_next = _mm512_add_epi8(e->second, e->next);
    __m512i r[4];
    for (uint32_t i = 0; i < 4; i++)
        r[i] = four_rows(in + (ptrdiff_t)i * t->in_step, t->in_step);
    const __m512i a[2] = {_mm512_permutex2var_epi8(r[0], e->first, r[1]),
                          _mm512_permutex2var_epi8(r[0], first_next, r[1])};
    const __m512i b[2] = {_mm512_permutex2var_epi8(r[2], e->first, r[3]),
                          _mm512_permutex2var_epi8(r[2], first_next, r[3])};
    for (uint32_t i = 0; i < ROWS; i++) {
        const __m512i v =
            _mm512_permutex2var_epi8(a[i / 2], i % 2 ? second_next : e->second, b[i / 2]);
        _mm512_mask_storeu_epi8(out + (ptrdiff_t)i * t->out_step, stored, v);
    }
}

/* Transpose a picture in blocks. The last block of a row or a column may repeat pixels of the one
 * before it. */
INLINE void transpose_of(const struct pstk__warp_transpose *t, uint32_t size)
{
    const struct exchange e = exchange_of(size);
    const __mmask64 stored = mask64((uint64_t)SIDE * size);
    if (t->width < SIDE || t->height < ROWS) {
        pstk__warp_c.transpose(t);
        return;
    }
    for (uint32_t y = 0; y < t->height; y += ROWS) {
        const uint32_t top = y + ROWS <= t->height ? y : t->height - ROWS;
        for (uint32_t x = 0; x < t->width; x += SIDE) {
            const uint32_t left = x + SIDE <= t->width ? x : t->width - SIDE;
            transpose_block(t->out + (ptrdiff_t)top * t->out_step + (size_t)left * size,
                            t->in + (ptrdiff_t)left * t->in_step + (size_t)top * size, t, &e,
                            stored);
        }
    }
}

TARGET static void transpose_avx512(const struct pstk__warp_transpose *t)
{
    if (t->size == 1)
        transpose_of(t, 1);
    else if (t->size == 2)
        transpose_of(t, 2);
    else if (t->size == 3)
        transpose_of(t, 3);
    else
        transpose_of(t, 4);
}

const struct pstk__warp_kernels pstk__warp_avx512 = {
    .isa = PSTK_KERNELS_AVX512,
    .affine = affine_avx512,
    .perspective = perspective_avx512,
    .sample = {pstk__sample_nearest_avx2, pstk__sample_bilinear_avx2, bicubic_avx512},
    .walk = pstk__walk_avx2,
    .gather = gather_avx512,
    .reverse = reverse_avx512,
    .transpose = transpose_avx512,
};

#endif
