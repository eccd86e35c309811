/* SPDX-License-Identifier: Apache-2.0 */
/* blur_avx2: the loops compiled for vectors of 256 bits, and one kernel by hand. FMA stays off,
 * because it would round less often. */
#if defined(__x86_64__)

#include "pixels/blur_loops.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))

TARGET static void box_row_avx2(uint8_t *out, uint32_t *sums, const struct pstk__blur_box *box,
                                uint32_t n)
{
    box_loop(out, sums, box, n);
}

/* Return a dword with two words: the same bits of both weights. */
TARGET static __m256i weight_pair(uint32_t weight, uint32_t edge_weight)
{
    return _mm256_set1_epi32((int32_t)(weight | edge_weight << 16));
}

TARGET static __m256i bytes_at(const uint8_t *row)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)row));
}

/* Return sum * weight + edges * edge_weight, rounded to units of 2^24; weights are high * 2^12 +
 * low. */
TARGET static __m256i rounded_pairs(__m256i pairs, __m256i high, __m256i low)
{
    const __m256i upper = _mm256_slli_epi32(_mm256_madd_epi16(pairs, high), 12);
    const __m256i sum = _mm256_add_epi32(upper, _mm256_madd_epi16(pairs, low));
    return _mm256_srli_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << 23)), 24);
}

TARGET static void low_box_row_avx2(uint8_t *out, uint16_t *sums, const struct pstk__blur_box *box,
                                    uint32_t n)
{
    const __m256i high = weight_pair(box->weight >> 12, box->edge_weight >> 12);
    const __m256i low = weight_pair(box->weight & 0xfff, box->edge_weight & 0xfff);
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i *at = (__m256i *)(void *)(sums + i);
        const __m256i leaving = bytes_at(box->leaving + i);
        const __m256i more = _mm256_sub_epi16(bytes_at(box->entering + i), leaving);
        const __m256i edges = _mm256_add_epi16(bytes_at(box->next + i), leaving);
        const __m256i sum = _mm256_add_epi16(_mm256_loadu_si256(at), more);
        _mm256_storeu_si256(at, sum);
        const __m256i words =
            _mm256_packus_epi32(rounded_pairs(_mm256_unpacklo_epi16(sum, edges), high, low),
                                rounded_pairs(_mm256_unpackhi_epi16(sum, edges), high, low));
        const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0x08);
        _mm_storeu_si128((__m128i *)(void *)(out + i), _mm256_castsi256_si128(bytes));
    }
    const struct pstk__blur_box rest = {box->leaving + i, box->entering + i, box->next + i,
                                        box->weight, box->edge_weight};
    pstk__blur_c.low_box_row(out + i, sums + i, &rest, n - i);
}

TARGET static void column_avx2(float *out, const uint8_t *const *rows,
                               const struct pstk__blur_weights *y, uint32_t n)
{
    column_loop(out, rows, y, n);
}

TARGET static void row_avx2(uint8_t *out, const float *in, const struct pstk__blur_weights *x,
                            uint32_t n, uint32_t channels)
{
    row_loop(out, in, x, n, channels);
}

const struct pstk__blur_kernels pstk__blur_avx2 = {
    .isa = PSTK_KERNELS_AVX2,
    .box_row = box_row_avx2,
    .low_box_row = low_box_row_avx2,
    .column = column_avx2,
    .row = row_avx2,
};

#endif
