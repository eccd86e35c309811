/* SPDX-License-Identifier: Apache-2.0 */
/* blur_avx512: the loops compiled for vectors of 512 bits, and kernels by hand. The build forbids
 * compilers to contract products and sums, which would round less often. */
#if defined(__x86_64__)

#include "pixels/avx512.h"
#include "pixels/blur_loops.h"

TARGET static void box_row_avx512(uint8_t *out, uint32_t *sums, const struct pstk__blur_box *box,
                                  uint32_t n)
{
    box_loop(out, sums, box, n);
}

/* Return a dword with two words: the same bits of both weights. */
INLINE __m512i weight_pair(uint32_t weight, uint32_t edge_weight)
{
    return _mm512_set1_epi32((int32_t)(weight | edge_weight << 16));
}

INLINE __m512i words_at(const uint8_t *row)
{
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)row));
}

/* Return sum * weight + edges * edge_weight, rounded to units of 2^24, which are byte 3; weights
 * are high * 2^12 + low. */
INLINE __m512i rounded_pairs(__m512i pairs, __m512i high, __m512i low)
{
    const __m512i upper = _mm512_slli_epi32(_mm512_madd_epi16(pairs, high), 12);
    return _mm512_add_epi32(upper, _mm512_dpwssd_epi32(_mm512_set1_epi32(1 << 23), pairs, low));
}

/* Write a row of a low box, 32 bytes at a time. */
TARGET static void low_box_row_avx512(uint8_t *out, uint16_t *sums,
                                      const struct pstk__blur_box *box, uint32_t n)
{
    const __m512i high = weight_pair(box->weight >> 12, box->edge_weight >> 12);
    const __m512i low = weight_pair(box->weight & 0xfff, box->edge_weight & 0xfff);
    uint32_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m512i leaving = words_at(box->leaving + i);
        const __m512i more = _mm512_sub_epi16(words_at(box->entering + i), leaving);
        const __m512i edges = _mm512_add_epi16(words_at(box->next + i), leaving);
        const __m512i sum = _mm512_add_epi16(_mm512_loadu_si512(sums + i), more);
        _mm512_storeu_si512(sums + i, sum);
        const __m512i a = rounded_pairs(_mm512_unpacklo_epi16(sum, edges), high, low);
        const __m512i b = rounded_pairs(_mm512_unpackhi_epi16(sum, edges), high, low);
        const __m512i words =
            _mm512_packus_epi32(_mm512_srli_epi32(a, 24), _mm512_srli_epi32(b, 24));
        _mm256_storeu_si256((__m256i *)(void *)(out + i), _mm512_cvtepi16_epi8(words));
    }
    const struct pstk__blur_box rest = {box->leaving + i, box->entering + i, box->next + i,
                                        box->weight, box->edge_weight};
    pstk__blur_c.low_box_row(out + i, sums + i, &rest, n - i);
}

/* ---- weights ------------------------------------------------------------------------------- */

/* Columns at a time, whose sums stay in registers while all weights are added, in the same order as
 * in the loops. The last columns may repeat some. */
#define LANES 16u
#define COLUMNS (2 * LANES)

INLINE __m512i dwords_at(const uint8_t *row)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)row));
}

TARGET static void column_avx512(float *out, const uint8_t *const *rows,
                                 const struct pstk__blur_weights *y, uint32_t n)
{
    if (n < COLUMNS)
        column_loop(out, rows, y, n);
    for (uint32_t i = 0; i < n && n >= COLUMNS; i += COLUMNS) {
        const uint32_t at = i + COLUMNS <= n ? i : n - COLUMNS;
        const __m512 middle = _mm512_set1_ps(y->weights[0]);
        __m512 sums[2];
        for (uint32_t h = 0; h < 2; h++)
            sums[h] = _mm512_mul_ps(middle,
                                    _mm512_cvtepi32_ps(dwords_at(rows[y->reach] + at + h * LANES)));
        for (uint32_t k = 1; k <= y->reach; k++) {
            const uint8_t *above = rows[y->reach - k] + at, *below = rows[y->reach + k] + at;
            const __m512 weight = _mm512_set1_ps(y->weights[k]);
            for (uint32_t h = 0; h < 2; h++) {
                const __m512i both =
                    _mm512_add_epi32(dwords_at(above + h * LANES), dwords_at(below + h * LANES));
                sums[h] = _mm512_add_ps(sums[h], _mm512_mul_ps(weight, _mm512_cvtepi32_ps(both)));
            }
        }
        for (uint32_t h = 0; h < 2; h++)
            _mm512_storeu_ps(out + at + h * LANES, sums[h]);
    }
}

/* Round to bytes as `rounded` does. */
INLINE __m128i rounded_lanes(__m512 v)
{
    const __m512 large = _mm512_set1_ps(0x1.8p23f);
    return _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(_mm512_sub_ps(_mm512_add_ps(v, large), large)));
}

TARGET static void row_avx512(uint8_t *out, const float *in, const struct pstk__blur_weights *x,
                              uint32_t n, uint32_t channels)
{
    if (n < COLUMNS)
        row_loop(out, in, x, n, channels);
    for (uint32_t i = 0; i < n && n >= COLUMNS; i += COLUMNS) {
        const float *from = in + (i + COLUMNS <= n ? i : n - COLUMNS);
        uint8_t *to = out + (from - in);
        const __m512 middle = _mm512_set1_ps(x->weights[0]);
        __m512 sums[2];
        for (uint32_t h = 0; h < 2; h++)
            sums[h] = _mm512_mul_ps(middle, _mm512_loadu_ps(from + h * LANES));
        for (size_t k = 1; k <= x->reach; k++) {
            const float *left = from - k * channels, *right = from + k * channels;
            const __m512 weight = _mm512_set1_ps(x->weights[k]);
            for (uint32_t h = 0; h < 2; h++) {
                const __m512 both = _mm512_add_ps(_mm512_loadu_ps(left + h * LANES),
                                                  _mm512_loadu_ps(right + h * LANES));
                sums[h] = _mm512_add_ps(sums[h], _mm512_mul_ps(weight, both));
            }
        }
        for (uint32_t h = 0; h < 2; h++)
            _mm_storeu_si128((__m128i *)(void *)(to + h * LANES), rounded_lanes(sums[h]));
    }
}

const struct pstk__blur_kernels pstk__blur_avx512 = {
    .isa = PSTK_KERNELS_AVX512,
    .box_row = box_row_avx512,
    .low_box_row = low_box_row_avx512,
    .column = column_avx512,
    .row = row_avx512,
};

#endif
