/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/kernels_avx512: upsampling and colour with AVX-512, VBMI and VNNI. */
#include "image/jpeg/frame.h"
#include "image/jpeg/inverse.h"

#if defined(__x86_64__)

#include <penstock/penstock.h>

#include <immintrin.h>

#define TARGET                                                                                     \
    __attribute__((                                                                                \
        target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vnni,bmi,bmi2,popcnt")))
#define INLINE static inline __attribute__((always_inline))
#define ALIGNED _Alignas(64)

INLINE TARGET __m512i load(const void *p)
{
    return _mm512_loadu_si512(p);
}

/* Factors for the bytes of every pair. */
INLINE TARGET __m512i pair(int8_t first, int8_t second)
{
    return _mm512_set1_epi16((int16_t)(uint16_t)((uint8_t)second << 8 | (uint8_t)first));
}

/* ---- upsampling ----------------------------------------------------------------------------- */

/* Indices that pair every sample of a row with the sample before it: 0 1, 1 2, 2 3, ... of a load
 * that begins one sample early. Plus 1, with the sample after it: 1 2, 2 3, 3 4, ... */
static const uint8_t ALIGNED with_before[64] = {
    0,  1,  1,  2,  2,  3,  3,  4,  4,  5,  5,  6,  6,  7,  7,  8,  8,  9,  9,  10, 10, 11,
    11, 12, 12, 13, 13, 14, 14, 15, 15, 16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 21, 21, 22,
    22, 23, 23, 24, 24, 25, 25, 26, 26, 27, 27, 28, 28, 29, 29, 30, 30, 31, 31, 32};

TARGET static void h2v1(uint8_t *out, const uint8_t *in, uint32_t n)
{
    const __m512i before = load(with_before);
    const __m512i after = _mm512_add_epi8(before, _mm512_set1_epi8(1));
    const __m512i one = _mm512_set1_epi16(1), two = _mm512_set1_epi16(2);
    const __m512i upper = _mm512_set1_epi16((int16_t)0xFF00);
    for (uint32_t i = 0; i < n; i += 32) {
        const __m512i x = load(in + i - 1);
        const __m512i left = _mm512_maddubs_epi16(_mm512_permutexvar_epi8(before, x), pair(1, 3));
        const __m512i right = _mm512_maddubs_epi16(_mm512_permutexvar_epi8(after, x), pair(3, 1));
        const __m512i even = _mm512_srli_epi16(_mm512_add_epi16(left, one), 2);
        const __m512i odd = _mm512_slli_epi16(_mm512_add_epi16(right, two), 8 - 2);
        /* even | (odd & upper) */
        _mm512_storeu_si512(out + 2 * (size_t)i, _mm512_ternarylogic_epi32(even, odd, upper, 0xF8));
    }
}

/* Interpolate in both dimensions at once, with weights 9, 3, 3 and 1 of 16. */
TARGET static void h2v2(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n)
{
    const __m512i before = load(with_before);
    const __m512i after = _mm512_add_epi8(before, _mm512_set1_epi8(1));
    const __m512i seven = _mm512_set1_epi16(7), eight = _mm512_set1_epi16(8);
    const __m512i upper = _mm512_set1_epi16((int16_t)0xFF00);
    for (uint32_t i = 0; i < n; i += 32) {
        const __m512i x = load(near + i - 1), y = load(far + i - 1);
        const __m512i left =
            _mm512_add_epi16(_mm512_maddubs_epi16(_mm512_permutexvar_epi8(before, x), pair(3, 9)),
                             _mm512_maddubs_epi16(_mm512_permutexvar_epi8(before, y), pair(1, 3)));
        const __m512i right =
            _mm512_add_epi16(_mm512_maddubs_epi16(_mm512_permutexvar_epi8(after, x), pair(9, 3)),
                             _mm512_maddubs_epi16(_mm512_permutexvar_epi8(after, y), pair(3, 1)));
        const __m512i even = _mm512_srli_epi16(_mm512_add_epi16(left, eight), 4);
        const __m512i odd = _mm512_slli_epi16(_mm512_add_epi16(right, seven), 8 - 4);
        _mm512_storeu_si512(out + 2 * (size_t)i, _mm512_ternarylogic_epi32(even, odd, upper, 0xF8));
    }
}

TARGET static void h1v2(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n,
                        uint32_t bias)
{
    const __m512i round = _mm512_set1_epi16((int16_t)bias);
    for (uint32_t i = 0; i < n; i += 64) {
        const __m512i x = load(near + i), y = load(far + i);
        const __m512i low = _mm512_maddubs_epi16(_mm512_unpacklo_epi8(x, y), pair(3, 1));
        const __m512i high = _mm512_maddubs_epi16(_mm512_unpackhi_epi8(x, y), pair(3, 1));
        _mm512_storeu_si512(
            out + i, _mm512_packus_epi16(_mm512_srli_epi16(_mm512_add_epi16(low, round), 2),
                                         _mm512_srli_epi16(_mm512_add_epi16(high, round), 2)));
    }
}

/* ---- colour --------------------------------------------------------------------------------- */

/* Masks of every third byte of 64, from byte 0, 1 and 2 on. */
#define THIRD_0 0x9249249249249249ull
#define THIRD_1 0x2492492492492492ull
#define THIRD_2 0x4924924924924924ull

/* Store 64 pixels. places[i] holds the index of each byte of the i-th 64 in its component's
 * register. */
INLINE TARGET void store_rgb(uint8_t *rgb, __m512i r, __m512i g, __m512i b, const __m512i places[3])
{
    const __mmask64 green[3] = {THIRD_1, THIRD_0, THIRD_2}, blue[3] = {THIRD_2, THIRD_1, THIRD_0};
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        __m512i x = _mm512_permutexvar_epi8(places[i], r);
        x = _mm512_mask_permutexvar_epi8(x, green[i], places[i], g);
        x = _mm512_mask_permutexvar_epi8(x, blue[i], places[i], b);
        _mm512_storeu_si512(rgb + 64 * i, x);
    }
}

/* i / 3 */
static const uint8_t ALIGNED plain_places[192] = {
    0,  0,  0,  1,  1,  1,  2,  2,  2,  3,  3,  3,  4,  4,  4,  5,  5,  5,  6,  6,  6,  7,  7,  7,
    8,  8,  8,  9,  9,  9,  10, 10, 10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15,
    16, 16, 16, 17, 17, 17, 18, 18, 18, 19, 19, 19, 20, 20, 20, 21, 21, 21, 22, 22, 22, 23, 23, 23,
    24, 24, 24, 25, 25, 25, 26, 26, 26, 27, 27, 27, 28, 28, 28, 29, 29, 29, 30, 30, 30, 31, 31, 31,
    32, 32, 32, 33, 33, 33, 34, 34, 34, 35, 35, 35, 36, 36, 36, 37, 37, 37, 38, 38, 38, 39, 39, 39,
    40, 40, 40, 41, 41, 41, 42, 42, 42, 43, 43, 43, 44, 44, 44, 45, 45, 45, 46, 46, 46, 47, 47, 47,
    48, 48, 48, 49, 49, 49, 50, 50, 50, 51, 51, 51, 52, 52, 52, 53, 53, 53, 54, 54, 54, 55, 55, 55,
    56, 56, 56, 57, 57, 57, 58, 58, 58, 59, 59, 59, 60, 60, 60, 61, 61, 61, 62, 62, 62, 63, 63, 63};

TARGET static void rgb_from_gray(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    const __m512i places[3] = {load(plain_places), load(plain_places + 64),
                               load(plain_places + 128)};
    for (uint32_t i = 0; i < n; i += 64, rgb += 192) {
        const __m512i y = load(samples[0] + i);
        _mm512_storeu_si512(rgb, _mm512_permutexvar_epi8(places[0], y));
        _mm512_storeu_si512(rgb + 64, _mm512_permutexvar_epi8(places[1], y));
        _mm512_storeu_si512(rgb + 128, _mm512_permutexvar_epi8(places[2], y));
    }
}

TARGET static void rgb_from_rgb(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    const __m512i places[3] = {load(plain_places), load(plain_places + 64),
                               load(plain_places + 128)};
    for (uint32_t i = 0; i < n; i += 64, rgb += 192)
        store_rgb(rgb, load(samples[0] + i), load(samples[1] + i), load(samples[2] + i), places);
}

/*
 * The order of 16 pixels in a lane: red and blue 0, 2, .. 14, 1, 3, .. 15, as their even and odd
 * words are packed; green 0, 8, 2, 10, 4, 12, 6, 14, then the odd ones in the same way.
 */
static const uint8_t ALIGNED ycc_places[192] = {
    0,  0,  0,  8,  8,  8,  1,  2,  1,  9,  10, 9,  2,  4,  2,  10, 12, 10, 3,  6,  3,  11, 14, 11,
    4,  1,  4,  12, 9,  12, 5,  3,  5,  13, 11, 13, 6,  5,  6,  14, 13, 14, 7,  7,  7,  15, 15, 15,
    16, 16, 16, 24, 24, 24, 17, 18, 17, 25, 26, 25, 18, 20, 18, 26, 28, 26, 19, 22, 19, 27, 30, 27,
    20, 17, 20, 28, 25, 28, 21, 19, 21, 29, 27, 29, 22, 21, 22, 30, 29, 30, 23, 23, 23, 31, 31, 31,
    32, 32, 32, 40, 40, 40, 33, 34, 33, 41, 42, 41, 34, 36, 34, 42, 44, 42, 35, 38, 35, 43, 46, 43,
    36, 33, 36, 44, 41, 44, 37, 35, 37, 45, 43, 45, 38, 37, 38, 46, 45, 46, 39, 39, 39, 47, 47, 47,
    48, 48, 48, 56, 56, 56, 49, 50, 49, 57, 58, 57, 50, 52, 50, 58, 60, 58, 51, 54, 51, 59, 62, 59,
    52, 49, 52, 60, 57, 60, 53, 51, 53, 61, 59, 61, 54, 53, 54, 62, 61, 62, 55, 55, 55, 63, 63, 63};

/*
 * jdcolor.c's sums with twice the chroma, x = 2 (c - 128), in 16 bits:
 *   red   y + (x * 22971 + 2^14 >> 15)    22971 / 2^15 represents 1.40200 / 2
 *   blue  y + (x * 29033 + 2^14 >> 15)    29033 / 2^15 represents 1.77200 / 2
 *   green y + (-xb * 11277 - xr * 23401 + 2^15 >> 16)
 * Green's factors are jdcolor.c's, halved. Those of red and blue give its sums for each of the 256
 * values (a test tries them all).
 */
#define RED 22971
#define BLUE 29033
#define GREEN_BLUE (-11277)
#define GREEN_RED (-23401)

/* Interleave the upper halves of the elements of a and b. */
INLINE TARGET __m512i upper_halves(__m512i a, __m512i b)
{
    const __m512i high = _mm512_broadcast_i32x4(
        _mm_setr_epi8(2, 3, 2, 3, 6, 7, 6, 7, 10, 11, 10, 11, 14, 15, 14, 15));
    return _mm512_mask_shuffle_epi8(b, 0x3333333333333333ull, a, high);
}

/* Return green minus y for the lanes' even or odd pixels: words in the order 0 4 1 5 2 6 3 7. */
INLINE TARGET __m512i green_of(__m512i blue, __m512i red)
{
    const __m512i factors =
        _mm512_set1_epi32((int)((uint32_t)(uint16_t)GREEN_RED << 16 | (uint16_t)GREEN_BLUE));
    const __m512i half = _mm512_set1_epi32(1 << 15);
    const __m512i low = _mm512_dpwssd_epi32(half, _mm512_unpacklo_epi16(blue, red), factors);
    const __m512i high = _mm512_dpwssd_epi32(half, _mm512_unpackhi_epi16(blue, red), factors);
    return upper_halves(low, high);
}

TARGET static void rgb_from_ycc(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    const __m512i places[3] = {load(ycc_places), load(ycc_places + 64), load(ycc_places + 128)};
    const __m512i center = _mm512_set1_epi8(-128), low_byte = _mm512_set1_epi16(0xFF);
    const __m512i red = _mm512_set1_epi16(RED), blue = _mm512_set1_epi16(BLUE);
    /* y in green's order; an index below 0 gives 0 */
    const __m512i even = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, -1, 8, -1, 2, -1, 10, -1, 4, -1, 12, -1, 6, -1, 14, -1));
    const __m512i odd = _mm512_broadcast_i32x4(
        _mm_setr_epi8(1, -1, 9, -1, 3, -1, 11, -1, 5, -1, 13, -1, 7, -1, 15, -1));
    for (uint32_t i = 0; i < n; i += 64, rgb += 192) {
        const __m512i y = load(samples[0] + i);
        const __m512i cb = _mm512_xor_si512(load(samples[1] + i), center);
        const __m512i cr = _mm512_xor_si512(load(samples[2] + i), center);
        const __m512i cb0 = _mm512_maddubs_epi16(pair(2, 0), cb);
        const __m512i cb1 = _mm512_maddubs_epi16(pair(0, 2), cb);
        const __m512i cr0 = _mm512_maddubs_epi16(pair(2, 0), cr);
        const __m512i cr1 = _mm512_maddubs_epi16(pair(0, 2), cr);
        const __m512i y0 = _mm512_and_si512(y, low_byte), y1 = _mm512_srli_epi16(y, 8);
        const __m512i r = _mm512_packus_epi16(_mm512_add_epi16(y0, _mm512_mulhrs_epi16(cr0, red)),
                                              _mm512_add_epi16(y1, _mm512_mulhrs_epi16(cr1, red)));
        const __m512i b = _mm512_packus_epi16(_mm512_add_epi16(y0, _mm512_mulhrs_epi16(cb0, blue)),
                                              _mm512_add_epi16(y1, _mm512_mulhrs_epi16(cb1, blue)));
        const __m512i g =
            _mm512_packus_epi16(_mm512_add_epi16(_mm512_shuffle_epi8(y, even), green_of(cb0, cr0)),
                                _mm512_add_epi16(_mm512_shuffle_epi8(y, odd), green_of(cb1, cr1)));
        store_rgb(rgb, r, g, b, places);
    }
}

const struct pstk__jpeg_kernels pstk__jpeg_kernels_avx512 = {
    .isa = PSTK_KERNELS_AVX512,
    .inverse = pstk__jpeg_inverse_avx512,
    .h2v1 = h2v1,
    .h2v2 = h2v2,
    .h1v2 = h1v2,
    .rgb = {[PSTK__JPEG_GRAY] = rgb_from_gray,
            [PSTK__JPEG_YCC] = rgb_from_ycc,
            [PSTK__JPEG_RGB] = rgb_from_rgb,
            [PSTK__JPEG_CMYK] = pstk__jpeg_rgb_from_cmyk,
            [PSTK__JPEG_YCCK] = pstk__jpeg_rgb_from_ycck},
};

#endif
