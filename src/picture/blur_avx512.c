/* SPDX-License-Identifier: Apache-2.0 */
/* blur_avx512: the loops, for vectors of 512 bits, and one by hand. The build forbids compilers to
 * contract products and sums, which would round less often. */
#if defined(__x86_64__)

#include "picture/avx512.h"
#include "picture/blur_loops.h"

TARGET static void box_row_avx512(uint8_t *out, uint32_t *sums, const struct pstk__blur_box *box,
                                  uint32_t n)
{
    box_loop(out, sums, box, n);
}

/* Two words of a dword: the same bits of both weights. */
INLINE __m512i weight_pair(uint32_t weight, uint32_t edge_weight)
{
    return _mm512_set1_epi32((int32_t)(weight | edge_weight << 16));
}

INLINE __m512i words_at(const uint8_t *row)
{
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)row));
}

/* sum * weight + edges * edge_weight, rounded to units of 2^24, which are byte 3: weights are
 * high * 2^12 + low. */
INLINE __m512i rounded_pairs(__m512i pairs, __m512i high, __m512i low)
{
    const __m512i upper = _mm512_slli_epi32(_mm512_madd_epi16(pairs, high), 12);
    return _mm512_add_epi32(upper, _mm512_dpwssd_epi32(_mm512_set1_epi32(1 << 23), pairs, low));
}

/* 32 bytes at a time. */
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

TARGET static void column_avx512(float *out, const uint8_t *const *rows,
                                 const struct pstk__blur_weights *y, uint32_t n)
{
    column_loop(out, rows, y, n);
}

TARGET static void row_avx512(uint8_t *out, const float *in, const struct pstk__blur_weights *x,
                              uint32_t n, uint32_t channels)
{
    row_loop(out, in, x, n, channels);
}

const struct pstk__blur_kernels pstk__blur_avx512 = {
    .variant = PSTK_KERNELS_AVX512,
    .box_row = box_row_avx512,
    .low_box_row = low_box_row_avx512,
    .column = column_avx512,
    .row = row_avx512,
};

#endif
