/* SPDX-License-Identifier: Apache-2.0 */
/* alpha_avx512: multiplies colours by alpha and divides by it, 16 pixels at a time. */
#if defined(__x86_64__)

#include "pixels/resize_avx512.h"

#define N_PIXELS 16u /* pixels in a register */

/* Return a * b / 255 of words, rounded to nearest. No overflow: neither the product plus 128 nor
 * 1/256 more reaches 2^16. */
INLINE __m512i product(__m512i a, __m512i b)
{
    const __m512i v = _mm512_add_epi16(_mm512_mullo_epi16(a, b), _mm512_set1_epi16(128));
    return _mm512_srli_epi16(_mm512_add_epi16(v, _mm512_srli_epi16(v, 8)), 8);
}

TARGET void pstk__premultiply_avx512(uint8_t *out, const uint8_t *rgba, uint32_t n_pixels)
{
    const __m512i zero = _mm512_setzero_si512();
    const __m512i alphas = _mm512_broadcast_i32x4(
        _mm_setr_epi8(3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15));
    for (uint32_t i = 0; i < n_pixels; i += N_PIXELS) {
        const __mmask16 in = mask16(n_pixels - i);
        const __m512i v = _mm512_maskz_loadu_epi32(in, rgba + 4 * (size_t)i);
        /* times 255: alpha itself does not change */
        const __m512i by =
            _mm512_or_si512(_mm512_shuffle_epi8(v, alphas), _mm512_set1_epi32((int)0xff000000));
        const __m512i low = product(_mm512_unpacklo_epi8(v, zero), _mm512_unpacklo_epi8(by, zero));
        const __m512i high = product(_mm512_unpackhi_epi8(v, zero), _mm512_unpackhi_epi8(by, zero));
        _mm512_mask_storeu_epi32(out + 4 * (size_t)i, in, _mm512_packus_epi16(low, high));
    }
}

/*
 * Compute floor(255 c / alpha) as floor(c * (255 / alpha) + 2^-10) in float32. Below 256 the two
 * roundings add at most 2^-15 of error, and a quotient that is not an integer is at least 1 / 255
 * below the next one.
 */
TARGET void pstk__unpremultiply_avx512(uint8_t *rgba, uint32_t n_pixels)
{
    const __m512i byte = _mm512_set1_epi32(255);
    for (uint32_t i = 0; i < n_pixels; i += N_PIXELS) {
        const __mmask16 in = mask16(n_pixels - i);
        const __m512i v = _mm512_maskz_loadu_epi32(in, rgba + 4 * (size_t)i);
        const __m512i alpha = _mm512_srli_epi32(v, 24);
        __mmask16 changes = _mm512_test_epi32_mask(alpha, alpha);
        changes = _mm512_mask_cmpneq_epi32_mask(changes, alpha, byte);
        if (changes == 0)
            continue;
        const __m512 by =
            _mm512_maskz_div_ps(changes, _mm512_set1_ps(255.0f), _mm512_cvtepi32_ps(alpha));
        __m512i out = _mm512_slli_epi32(alpha, 24);
        for (uint32_t c = 0; c < 3; c++) {
            const __m512i colour = _mm512_and_si512(_mm512_srli_epi32(v, 8 * c), byte);
            const __m512 quotient =
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(colour), by, _mm512_set1_ps(0x1p-10f));
            const __m512i whole = _mm512_min_epi32(_mm512_cvttps_epi32(quotient), byte);
            out = _mm512_or_si512(out, _mm512_slli_epi32(whole, 8 * c));
        }
        _mm512_mask_storeu_epi32(rgba + 4 * (size_t)i, changes, out);
    }
}

#endif
