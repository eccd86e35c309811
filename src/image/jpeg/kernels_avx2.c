/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/kernels_avx2: upsampling and colour with AVX2. */
#include "image/jpeg/frame.h"
#include "image/jpeg/inverse.h"

#if defined(__x86_64__)

#include <penstock/penstock.h>

#include "base/avx2.h"

#define TARGET AVX2_TARGET("avx2,bmi,bmi2,fma,f16c,popcnt")
#define INLINE static inline __attribute__((always_inline))

INLINE TARGET __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

INLINE TARGET void store(void *p, __m256i x)
{
    _mm256_storeu_si256((__m256i *)p, x);
}

/* Factors for the bytes of every pair. */
INLINE TARGET __m256i pair(int8_t first, int8_t second)
{
    return _mm256_set1_epi16((int16_t)(uint16_t)((uint8_t)second << 8 | (uint8_t)first));
}

/* ---- upsampling ----------------------------------------------------------------------------- */

/* Store the results of 32 samples in order, given as those of the lower and of the upper halves of
 * the lanes. */
INLINE TARGET void store_halves(uint8_t *out, __m256i low, __m256i high)
{
    store(out, _mm256_permute2x128_si256(low, high, 0x20));
    store(out + 32, _mm256_permute2x128_si256(low, high, 0x31));
}

/* Interleave even and odd columns as bytes, from sums with `shift` bits of fraction. */
INLINE TARGET __m256i interleave(__m256i even, __m256i odd, int shift)
{
    const __m256i upper = _mm256_set1_epi16((int16_t)0xFF00);
    return _mm256_or_si256(_mm256_srli_epi16(even, shift),
                           _mm256_and_si256(_mm256_slli_epi16(odd, 8 - shift), upper));
}

TARGET static void h2v1(uint8_t *out, const uint8_t *in, uint32_t n)
{
    const __m256i one = _mm256_set1_epi16(1), two = _mm256_set1_epi16(2);
    for (uint32_t i = 0; i < n; i += 32, out += 64) {
        const __m256i before = load(in + i - 1), x = load(in + i), after = load(in + i + 1);
        const __m256i l0 = _mm256_maddubs_epi16(_mm256_unpacklo_epi8(before, x), pair(1, 3));
        const __m256i l1 = _mm256_maddubs_epi16(_mm256_unpackhi_epi8(before, x), pair(1, 3));
        const __m256i r0 = _mm256_maddubs_epi16(_mm256_unpacklo_epi8(x, after), pair(3, 1));
        const __m256i r1 = _mm256_maddubs_epi16(_mm256_unpackhi_epi8(x, after), pair(3, 1));
        store_halves(out, interleave(_mm256_add_epi16(l0, one), _mm256_add_epi16(r0, two), 2),
                     interleave(_mm256_add_epi16(l1, one), _mm256_add_epi16(r1, two), 2));
    }
}

/* Return 3 near + far, for the lower or the upper half of each lane. */
INLINE TARGET __m256i low_sums(const uint8_t *near, const uint8_t *far)
{
    return _mm256_maddubs_epi16(_mm256_unpacklo_epi8(load(near), load(far)), pair(3, 1));
}

INLINE TARGET __m256i high_sums(const uint8_t *near, const uint8_t *far)
{
    return _mm256_maddubs_epi16(_mm256_unpackhi_epi8(load(near), load(far)), pair(3, 1));
}

/* Compute two columns from their sum and those of the columns before and after. */
INLINE TARGET __m256i two_columns(__m256i before, __m256i here, __m256i after)
{
    const __m256i seven = _mm256_set1_epi16(7), eight = _mm256_set1_epi16(8);
    const __m256i nearer = _mm256_add_epi16(here, _mm256_add_epi16(here, here));
    return interleave(_mm256_add_epi16(_mm256_add_epi16(nearer, before), eight),
                      _mm256_add_epi16(_mm256_add_epi16(nearer, after), seven), 4);
}

TARGET static void h2v2(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 32, out += 64, near += 32, far += 32) {
        const __m256i low = two_columns(low_sums(near - 1, far - 1), low_sums(near, far),
                                        low_sums(near + 1, far + 1));
        const __m256i high = two_columns(high_sums(near - 1, far - 1), high_sums(near, far),
                                         high_sums(near + 1, far + 1));
        store_halves(out, low, high);
    }
}

TARGET static void h1v2(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n,
                        uint32_t bias)
{
    const __m256i round = _mm256_set1_epi16((int16_t)bias);
    for (uint32_t i = 0; i < n; i += 32) {
        const __m256i low = _mm256_add_epi16(low_sums(near + i, far + i), round);
        const __m256i high = _mm256_add_epi16(high_sums(near + i, far + i), round);
        store(out + i, _mm256_packus_epi16(_mm256_srli_epi16(low, 2), _mm256_srli_epi16(high, 2)));
    }
}

/* ---- colour --------------------------------------------------------------------------------- */

/* Place of each of the 48 bytes of 16 pixels in its component's lane: [part][component][byte]; -1:
 * the byte is in another component's lane. */
static const int8_t plain_places[3][3][16] = {
    {
        {0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5},
        {-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1},
        {-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1},
    },
    {
        {-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1},
        {5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10},
        {-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1},
    },
    {
        {-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1},
        {-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1},
        {10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15},
    },
};

/*
 * The order of 16 pixels in a lane: red and blue 0, 2, .. 14, 1, 3, .. 15, as their even and odd
 * words are packed; green 0, 8, 2, 10, 4, 12, 6, 14, then the odd ones in the same way.
 */
static const int8_t ycc_places[3][3][16] = {
    {
        {0, -1, -1, 8, -1, -1, 1, -1, -1, 9, -1, -1, 2, -1, -1, 10},
        {-1, 0, -1, -1, 8, -1, -1, 2, -1, -1, 10, -1, -1, 4, -1, -1},
        {-1, -1, 0, -1, -1, 8, -1, -1, 1, -1, -1, 9, -1, -1, 2, -1},
    },
    {
        {-1, -1, 3, -1, -1, 11, -1, -1, 4, -1, -1, 12, -1, -1, 5, -1},
        {12, -1, -1, 6, -1, -1, 14, -1, -1, 1, -1, -1, 9, -1, -1, 3},
        {-1, 10, -1, -1, 3, -1, -1, 11, -1, -1, 4, -1, -1, 12, -1, -1},
    },
    {
        {-1, 13, -1, -1, 6, -1, -1, 14, -1, -1, 7, -1, -1, 15, -1, -1},
        {-1, -1, 11, -1, -1, 5, -1, -1, 13, -1, -1, 7, -1, -1, 15, -1},
        {5, -1, -1, 13, -1, -1, 6, -1, -1, 14, -1, -1, 7, -1, -1, 15},
    },
};

INLINE TARGET __m256i load_twice(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}

/* Store 16 pixels of each lane. */
INLINE TARGET void store_rgb(uint8_t *rgb, __m256i r, __m256i g, __m256i b,
                             const int8_t places[3][3][16])
{
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        const __m256i red = _mm256_shuffle_epi8(r, load_twice(places[i][0]));
        const __m256i green = _mm256_shuffle_epi8(g, load_twice(places[i][1]));
        const __m256i blue = _mm256_shuffle_epi8(b, load_twice(places[i][2]));
        const __m256i x = _mm256_or_si256(_mm256_or_si256(red, green), blue);
        _mm_storeu_si128((__m128i *)(void *)(rgb + 16 * i), _mm256_castsi256_si128(x));
        _mm_storeu_si128((__m128i *)(void *)(rgb + 48 + 16 * i), _mm256_extracti128_si256(x, 1));
    }
}

TARGET static void rgb_from_gray(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 32, rgb += 96) {
        const __m256i y = load(samples[0] + i);
        store_rgb(rgb, y, y, y, plain_places);
    }
}

TARGET static void rgb_from_rgb(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 32, rgb += 96)
        store_rgb(rgb, load(samples[0] + i), load(samples[1] + i), load(samples[2] + i),
                  plain_places);
}

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

/* Return green minus y for the lanes' even or odd pixels: words in the order 0 4 1 5 2 6 3 7. */
INLINE TARGET __m256i green_of(__m256i blue, __m256i red)
{
    const __m256i factors =
        _mm256_set1_epi32((int)((uint32_t)(uint16_t)GREEN_RED << 16 | (uint16_t)GREEN_BLUE));
    const __m256i half = _mm256_set1_epi32(1 << 15);
    const __m256i low = _mm256_madd_epi16(_mm256_unpacklo_epi16(blue, red), factors);
    const __m256i high = _mm256_madd_epi16(_mm256_unpackhi_epi16(blue, red), factors);
    return _mm256_blend_epi16(_mm256_srli_epi32(_mm256_add_epi32(low, half), 16),
                              _mm256_add_epi32(high, half), 0xAA);
}

TARGET static void rgb_from_ycc(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    const __m256i center = _mm256_set1_epi8(-128), low_byte = _mm256_set1_epi16(0xFF);
    const __m256i red = _mm256_set1_epi16(RED), blue = _mm256_set1_epi16(BLUE);
    /* y in green's order; an index below 0 gives 0 */
    const __m256i even = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -1, 8, -1, 2, -1, 10, -1, 4, -1, 12, -1, 6, -1, 14, -1));
    const __m256i odd = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(1, -1, 9, -1, 3, -1, 11, -1, 5, -1, 13, -1, 7, -1, 15, -1));
    for (uint32_t i = 0; i < n; i += 32, rgb += 96) {
        const __m256i y = load(samples[0] + i);
        const __m256i cb = _mm256_xor_si256(load(samples[1] + i), center);
        const __m256i cr = _mm256_xor_si256(load(samples[2] + i), center);
        const __m256i cb0 = _mm256_maddubs_epi16(pair(2, 0), cb);
        const __m256i cb1 = _mm256_maddubs_epi16(pair(0, 2), cb);
        const __m256i cr0 = _mm256_maddubs_epi16(pair(2, 0), cr);
        const __m256i cr1 = _mm256_maddubs_epi16(pair(0, 2), cr);
        const __m256i y0 = _mm256_and_si256(y, low_byte), y1 = _mm256_srli_epi16(y, 8);
        const __m256i r = _mm256_packus_epi16(_mm256_add_epi16(y0, _mm256_mulhrs_epi16(cr0, red)),
                                              _mm256_add_epi16(y1, _mm256_mulhrs_epi16(cr1, red)));
        const __m256i b = _mm256_packus_epi16(_mm256_add_epi16(y0, _mm256_mulhrs_epi16(cb0, blue)),
                                              _mm256_add_epi16(y1, _mm256_mulhrs_epi16(cb1, blue)));
        const __m256i g =
            _mm256_packus_epi16(_mm256_add_epi16(_mm256_shuffle_epi8(y, even), green_of(cb0, cr0)),
                                _mm256_add_epi16(_mm256_shuffle_epi8(y, odd), green_of(cb1, cr1)));
        store_rgb(rgb, r, g, b, ycc_places);
    }
}

const struct pstk__jpeg_kernels pstk__jpeg_kernels_avx2 = {
    .isa = PSTK_KERNELS_AVX2,
    .inverse = pstk__jpeg_inverse_avx2,
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
