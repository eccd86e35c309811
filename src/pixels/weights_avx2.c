/* SPDX-License-Identifier: Apache-2.0 */
/* weights_avx2: computes the weights of an axis, four outputs at a time, in the same steps as in
 * weights_c.c. */
#if defined(__x86_64__)

#include "pixels/resize_avx2.h"

INLINE __m256d magnitude(__m256d x)
{
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
}

INLINE __m256d plus(__m256d a, double b)
{
    return _mm256_add_pd(a, _mm256_set1_pd(b));
}

INLINE __m256d times(__m256d a, double b)
{
    return _mm256_mul_pd(a, _mm256_set1_pd(b));
}

/* Mask lanes below b. */
INLINE __m256d below(__m256d a, double b)
{
    return _mm256_cmp_pd(a, _mm256_set1_pd(b), _CMP_LT_OQ);
}

INLINE __m256d sin_pi(__m256d x)
{
    const __m256d shifted = plus(x, PSTK__ROUNDER);
    const __m256d rest = _mm256_sub_pd(x, plus(shifted, -PSTK__ROUNDER));
    const __m256d square = _mm256_mul_pd(rest, rest);
    __m256d sum = _mm256_set1_pd(pstk__sin_terms[PSTK__N_SIN_TERMS - 1]);
    for (uint32_t k = PSTK__N_SIN_TERMS - 1; k-- > 0;)
        sum = plus(_mm256_mul_pd(sum, square), pstk__sin_terms[k]);
    const __m256i sign = _mm256_slli_epi64(_mm256_castpd_si256(shifted), 63);
    return _mm256_xor_pd(_mm256_mul_pd(sum, rest), _mm256_castsi256_pd(sign));
}

INLINE __m256d sinc(__m256d x)
{
    const __m256d zero = _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_EQ_OQ);
    const __m256d quotient = _mm256_div_pd(sin_pi(x), times(x, PSTK__PI));
    return _mm256_blendv_pd(quotient, _mm256_set1_pd(1.0), zero);
}

/* ---- the filters, at a distance from the centre ---------------------------------------------- */

INLINE __m256d box(__m256d x)
{
    const __m256d half = _mm256_set1_pd(0.5);
    const __m256d in = _mm256_and_pd(_mm256_cmp_pd(x, _mm256_set1_pd(-0.5), _CMP_GT_OQ),
                                     _mm256_cmp_pd(x, half, _CMP_LE_OQ));
    return _mm256_and_pd(in, _mm256_set1_pd(1.0));
}

INLINE __m256d triangle(__m256d x)
{
    x = magnitude(x);
    return _mm256_and_pd(below(x, 1.0), _mm256_sub_pd(_mm256_set1_pd(1.0), x));
}

INLINE __m256d hamming(__m256d x)
{
    x = magnitude(x);
    const __m256d cosine = sin_pi(_mm256_sub_pd(_mm256_set1_pd(0.5), x));
    const __m256d window = plus(times(cosine, (double)0.46f), (double)0.54f);
    return _mm256_and_pd(below(x, 1.0), _mm256_mul_pd(sinc(x), window));
}

INLINE __m256d cubic(__m256d x)
{
    x = magnitude(x);
    const __m256d near = plus(_mm256_mul_pd(_mm256_mul_pd(plus(times(x, 1.5), -2.5), x), x), 1.0);
    __m256d far = plus(_mm256_mul_pd(plus(x, -5.0), x), 8.0);
    far = times(plus(_mm256_mul_pd(far, x), -4.0), -0.5);
    return _mm256_blendv_pd(_mm256_and_pd(below(x, 2.0), far), near, below(x, 1.0));
}

INLINE __m256d lanczos(__m256d x)
{
    const __m256d in = _mm256_andnot_pd(below(x, -3.0), below(x, 3.0));
    const __m256d third = _mm256_div_pd(x, _mm256_set1_pd(3.0));
    return _mm256_and_pd(in, _mm256_mul_pd(sinc(x), sinc(third)));
}

INLINE __m256d value(uint32_t kind, __m256d x)
{
    return kind == PSTK_FILTER_BOX       ? box(x)
           : kind == PSTK_FILTER_HAMMING ? hamming(x)
           : kind == PSTK_FILTER_BICUBIC ? cubic(x)
           : kind == PSTK_FILTER_LANCZOS ? lanczos(x)
                                         : triangle(x);
}

/* Mask lanes whose x lies within the filter's reach, so that it is not yet 0 there. */
INLINE __m256d is_reached(uint32_t kind, __m256d x)
{
    if (kind == PSTK_FILTER_BOX)
        return _mm256_cmp_pd(x, _mm256_set1_pd(0.5), _CMP_LE_OQ);
    return below(x, kind == PSTK_FILTER_BICUBIC ? 2.0 : kind == PSTK_FILTER_LANCZOS ? 3.0 : 1.0);
}

/* ---- the weights ----------------------------------------------------------------------------- */

#define N_KEPT                                                                                     \
    16u /* values of the first taps that are kept, so that the weights need not compute them again \
         */

/* Mask the first n of four dwords. */
INLINE __m128i mask4(uint32_t n)
{
    return _mm_cmpgt_epi32(_mm_set1_epi32((int)min_u32(n, 4)), _mm_setr_epi32(0, 1, 2, 3));
}

/* Return half, with the sign of the weight, plus the weight in fixed point. */
INLINE __m256d fixed(__m256d weight)
{
    const __m256d sign = _mm256_and_pd(_mm256_set1_pd(-0.0), weight);
    const __m256d half = _mm256_or_pd(_mm256_set1_pd(0.5), sign);
    return _mm256_add_pd(half, times(weight, 1 << PSTK__WEIGHT_BITS));
}

INLINE void weights(struct pstk__axis *a, const struct pstk__filter *f, uint32_t first_out,
                    uint32_t kind)
{
    const __m256d fs = _mm256_set1_pd(f->filterscale), support = _mm256_set1_pd(f->support);
    const __m256d iota = _mm256_setr_pd(0.0, 1.0, 2.0, 3.0);
    for (uint32_t i = 0; i < a->n_out; i += 4) {
        const __m128i lanes = mask4(a->n_out - i);
        const __m256d output = _mm256_add_pd(_mm256_set1_pd(first_out + i), iota);
        const __m256d center = _mm256_mul_pd(plus(output, 0.5), _mm256_set1_pd(f->scale));
        const __m256d from = plus(_mm256_sub_pd(center, support), 0.5);
        const __m256d to = plus(_mm256_add_pd(center, support), 0.5);
        const __m128i lo = _mm256_cvttpd_epi32(_mm256_max_pd(from, _mm256_setzero_pd()));
        const __m128i hi = _mm256_cvttpd_epi32(_mm256_min_pd(to, _mm256_set1_pd(f->in)));
        const __m256d first = _mm256_cvtepi32_pd(lo), end = _mm256_cvtepi32_pd(hi);
        __m256d sum = _mm256_setzero_pd(), n = _mm256_set1_pd(1.0), kept[N_KEPT];
        for (uint32_t k = 0; k < f->n_rows; k++) {
            const __m256d x = plus(first, k);
            const __m256d t = _mm256_mul_pd(plus(_mm256_sub_pd(x, center), 0.5), fs);
            const __m256d in = _mm256_cmp_pd(x, end, _CMP_LT_OQ);
            const __m256d some = _mm256_and_pd(in, is_reached(kind, t));
            n = _mm256_blendv_pd(n, _mm256_set1_pd(k + 1.0), some);
            const __m256d v = value(kind, t);
            if (k < N_KEPT)
                kept[k] = v;
            sum = _mm256_add_pd(sum, _mm256_and_pd(some, v));
        }
        for (uint32_t k = 0; k < f->n_rows; k++) {
            const __m256d x = plus(first, k);
            const __m256d t = _mm256_mul_pd(plus(_mm256_sub_pd(x, center), 0.5), fs);
            const __m256d in = _mm256_cmp_pd(_mm256_set1_pd(k), n, _CMP_LT_OQ);
            const __m256d v = k < N_KEPT ? kept[k] : value(kind, t);
            const __m256d w = fixed(_mm256_div_pd(v, sum));
            _mm_maskstore_epi32(a->weights + (size_t)k * a->n_out + i, lanes,
                                _mm256_cvttpd_epi32(_mm256_and_pd(in, w)));
        }
        _mm_maskstore_epi32((int32_t *)a->first + i, lanes, lo);
        _mm_maskstore_epi32((int32_t *)a->n + i, lanes, _mm256_cvttpd_epi32(n));
    }
}

TARGET static void weights_of_box(struct pstk__axis *axis, const struct pstk__filter *filter,
                                  uint32_t first_out)
{
    weights(axis, filter, first_out, PSTK_FILTER_BOX);
}

TARGET static void weights_of_triangle(struct pstk__axis *axis, const struct pstk__filter *filter,
                                       uint32_t first_out)
{
    weights(axis, filter, first_out, PSTK_FILTER_BILINEAR);
}

TARGET static void weights_of_hamming(struct pstk__axis *axis, const struct pstk__filter *filter,
                                      uint32_t first_out)
{
    weights(axis, filter, first_out, PSTK_FILTER_HAMMING);
}

TARGET static void weights_of_cubic(struct pstk__axis *axis, const struct pstk__filter *filter,
                                    uint32_t first_out)
{
    weights(axis, filter, first_out, PSTK_FILTER_BICUBIC);
}

TARGET static void weights_of_lanczos(struct pstk__axis *axis, const struct pstk__filter *filter,
                                      uint32_t first_out)
{
    weights(axis, filter, first_out, PSTK_FILTER_LANCZOS);
}

void pstk__axis_weights_avx2(struct pstk__axis *axis, const struct pstk__filter *filter,
                             uint32_t first_out)
{
    if (filter->kind == PSTK_FILTER_BOX)
        weights_of_box(axis, filter, first_out);
    else if (filter->kind == PSTK_FILTER_HAMMING)
        weights_of_hamming(axis, filter, first_out);
    else if (filter->kind == PSTK_FILTER_BICUBIC)
        weights_of_cubic(axis, filter, first_out);
    else if (filter->kind == PSTK_FILTER_LANCZOS)
        weights_of_lanczos(axis, filter, first_out);
    else
        weights_of_triangle(axis, filter, first_out);
}

#endif
