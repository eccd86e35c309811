/* SPDX-License-Identifier: Apache-2.0 */
/* alpha_avx2: multiplies colours by alpha and divides by it, 8 pixels at a time. */
#if defined(__x86_64__) || defined(PSTK_NEON)

#include "pixels/resize_avx2.h"

#define N_PIXELS 8u /* pixels in a register */

/* Return a * b / 255 of words, rounded to nearest. No overflow: neither the product plus 128 nor
 * 1/256 more reaches 2^16. */
INLINE __m256i product(__m256i a, __m256i b)
{
    const __m256i v = _mm256_add_epi16(_mm256_mullo_epi16(a, b), _mm256_set1_epi16(128));
    return _mm256_srli_epi16(_mm256_add_epi16(v, _mm256_srli_epi16(v, 8)), 8);
}

INLINE __m256i premultiplied(__m256i v)
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i alphas = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15));
    /* times 255: alpha itself does not change */
    const __m256i by =
        _mm256_or_si256(_mm256_shuffle_epi8(v, alphas), _mm256_set1_epi32((int)0xff000000));
    const __m256i low = product(_mm256_unpacklo_epi8(v, zero), _mm256_unpacklo_epi8(by, zero));
    const __m256i high = product(_mm256_unpackhi_epi8(v, zero), _mm256_unpackhi_epi8(by, zero));
    return _mm256_packus_epi16(low, high);
}

/*
 * Return floor(255 c / alpha), computed as floor(c * (255 / alpha) + 2^-10) in float32. Below 256
 * the two roundings add at most 2^-15 of error, and a quotient that is not an integer is at least 1
 * / 255 below the next one.
 */
INLINE __m256i unpremultiplied(__m256i v)
{
    const __m256i byte = _mm256_set1_epi32(255), alpha = _mm256_srli_epi32(v, 24);
    const __m256i stays = _mm256_or_si256(_mm256_cmpeq_epi32(alpha, byte),
                                          _mm256_cmpeq_epi32(alpha, _mm256_setzero_si256()));
    if (_mm256_movemask_epi8(stays) == -1)
        return v;
    const __m256 by = _mm256_div_ps(_mm256_set1_ps(255.0f), _mm256_cvtepi32_ps(alpha));
    __m256i out = _mm256_slli_epi32(alpha, 24);
    for (uint32_t c = 0; c < 3; c++) {
        const __m256i colour = _mm256_and_si256(_mm256_srli_epi32(v, (int)(8 * c)), byte);
        const __m256 quotient =
            _mm256_fmadd_ps(_mm256_cvtepi32_ps(colour), by, _mm256_set1_ps(0x1p-10f));
        const __m256i whole = _mm256_min_epi32(_mm256_cvttps_epi32(quotient), byte);
        out = _mm256_or_si256(out, _mm256_slli_epi32(whole, (int)(8 * c)));
    }
    return _mm256_blendv_epi8(out, v, stays);
}

INLINE __m256i load_pixels(const uint8_t *rgba, uint32_t n)
{
    uint8_t own[4 * N_PIXELS] = {0};
    if (n >= N_PIXELS)
        return _mm256_loadu_si256((const __m256i *)rgba);
    memcpy(own, rgba, 4 * (size_t)n);
    return _mm256_loadu_si256((const __m256i *)own);
}

TARGET void pstk__premultiply_avx2(uint8_t *out, const uint8_t *rgba, uint32_t n_pixels)
{
    for (uint32_t i = 0; i < n_pixels; i += N_PIXELS) {
        const uint32_t n = min_u32(n_pixels - i, N_PIXELS);
        store_32(out + 4 * (size_t)i, premultiplied(load_pixels(rgba + 4 * (size_t)i, n)), 4 * n);
    }
}

TARGET void pstk__unpremultiply_avx2(uint8_t *rgba, uint32_t n_pixels)
{
    for (uint32_t i = 0; i < n_pixels; i += N_PIXELS) {
        const uint32_t n = min_u32(n_pixels - i, N_PIXELS);
        uint8_t *at = rgba + 4 * (size_t)i;
        store_32(at, unpremultiplied(load_pixels(at, n)), 4 * n);
    }
}

#endif
