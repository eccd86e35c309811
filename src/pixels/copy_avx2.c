/* SPDX-License-Identifier: Apache-2.0 */
/* copy_avx2: mirrors and transpositions with 256-bit registers. */
#if defined(__x86_64__)

#include "pixels/gather.h"
#include "pixels/warp_avx2.h"

#define TARGET __attribute__((target("avx2")))
#define INLINE FOUR

/* ---- mirrors ------------------------------------------------------------------------------- */

/* Store `size` bytes, 15 or 16, and no more. */
INLINE void store_bytes(uint8_t *out, __m128i v, uint32_t size)
{
    _mm_storel_epi64((__m128i *)(void *)out, v);
    const __m128i rest = size == 15 ? _mm_srli_si128(v, 7) : _mm_srli_si128(v, 8);
    _mm_storel_epi64((__m128i *)(void *)(out + size - 8), rest);
}

/* Reverse pixels, as many at a time as fit 16 bytes; the next store overwrites what a store writes
 * past them. The last ones may repeat some. Reads 16 bytes from any pixel. */
INLINE void reverse_of(uint8_t *out, const uint8_t *in, uint32_t n, uint32_t size, __m128i order)
{
    const uint32_t step = 16 / size;
    uint8_t *end = out + (size_t)n * size;
    if (n < step) {
        pstk__warp_c.reverse(out, in, n, size);
        return;
    }
    for (uint32_t left = n; left > step; left -= step, out += (size_t)step * size) {
        const uint8_t *from = in + (size_t)(left - step) * size;
        const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)from);
        _mm_storeu_si128((__m128i *)(void *)out, _mm_shuffle_epi8(v, order));
    }
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)in);
    store_bytes(end - (size_t)step * size, _mm_shuffle_epi8(v, order), step * size);
}

/* Places for 32 pixels of 3 bytes, three registers, in reverse order: for each register, the source
 * of its bytes in the registers that reverse_3 shuffles. */
#define NO (-1)
static const int8_t places_3[8][32] = {
    {13, 14, 15, 10, 11, 12, 7, 8,  9, 4, 5, 6, 1, 2, 3,  NO,
     15, NO, 11, 12, 13, 8,  9, 10, 5, 6, 7, 2, 3, 4, NO, 0},
    {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, 14,
     NO, 0,  NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO},
    {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
     NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, 15, NO},
    {NO, 12, 13, 14, 9,  10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2,
     13, 14, 15, 10, 11, 12, 7,  8, 9, 4, 5, 6, 1, 2, 3, NO},
    {1,  NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
     NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, 14},
    {15, NO, 11, 12, 13, 8,  9,  10, 5, 6, 7, 2, 3, 4, NO, 0,
     NO, 12, 13, 14, 9,  10, 11, 6,  7, 8, 3, 4, 5, 0, 1,  2},
    {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, 15, NO,
     1,  NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO},
    {NO, 0,  NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
     NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO},
};
#undef NO

INLINE __m256i two_of(const void *low, const void *high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                   _mm_loadu_si128(high), 1);
}

INLINE __m256i halves_swapped(__m256i v)
{
    return _mm256_permute4x64_epi64(v, 0x4e);
}

/* Return the bytes of v that the i-th row of places_3 names, 0 elsewhere. */
INLINE __m256i placed(__m256i v, uint32_t i)
{
    return _mm256_shuffle_epi8(v, _mm256_loadu_si256((const __m256i *)(const void *)places_3[i]));
}

/* Reverse pixels of 3 bytes, 32 at a time, from the end. It loads and stores whole registers, so
 * that few of them cross cache lines. Returns how many are left. */
INLINE uint32_t reverse_3(uint8_t *out, const uint8_t *in, uint32_t n)
{
    for (; n >= 32; n -= 32, out += 96) {
        const __m256i *from = (const __m256i *)(const void *)(in + (size_t)(n - 32) * 3);
        __m256i *to = (__m256i *)(void *)out;
        const __m256i a = _mm256_loadu_si256(from), b = _mm256_loadu_si256(from + 1);
        const __m256i c = _mm256_loadu_si256(from + 2);
        const __m256i v0 = _mm256_or_si256(placed(halves_swapped(c), 0), placed(c, 1));
        const __m256i v2 = _mm256_or_si256(placed(halves_swapped(a), 5), placed(a, 6));
        _mm256_storeu_si256(to, _mm256_or_si256(v0, placed(b, 2)));
        _mm256_storeu_si256(to + 1, _mm256_or_si256(placed(halves_swapped(b), 3),
                                                    placed(_mm256_blend_epi32(c, a, 0xf0), 4)));
        _mm256_storeu_si256(to + 2, _mm256_or_si256(v2, placed(b, 7)));
    }
    return n;
}

TARGET void pstk__reverse_avx2(uint8_t *out, const uint8_t *in, uint32_t n, uint32_t size)
{
    const __m128i by_1 = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m128i by_2 = _mm_setr_epi8(14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1);
    const __m128i by_3 = _mm_setr_epi8(12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2, -1);
    const __m128i by_4 = _mm_setr_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    const uint32_t rest = size == 3 ? reverse_3(out, in, n) : n;
    if (size == 1)
        reverse_of(out, in, n, 1, by_1);
    else if (size == 2)
        reverse_of(out, in, n, 2, by_2);
    else if (size == 3 && rest > 0)
        reverse_of(out + (size_t)(n - rest) * 3, in, rest, 3, by_3);
    else if (size == 4)
        reverse_of(out, in, n, 4, by_4);
}

/* ---- columns ------------------------------------------------------------------------------- */

#define AT_ONCE 5u /* pixels of 3 bytes in a register */

/* Return five pixels of inputs, the least of them input[at], that lie within 16 bytes. Reads eight
 * inputs. */
INLINE __m128i gathered_3(const uint8_t *in, const uint32_t *input, uint32_t at)
{
    const uint32_t least = input[at];
    const __m256i inputs = _mm256_loadu_si256((const __m256i *)(const void *)input);
    const __m256i d = _mm256_sub_epi32(inputs, _mm256_set1_epi32((int32_t)least));
    const __m256i firsts = _mm256_add_epi32(d, _mm256_slli_epi32(d, 1));
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(firsts), _mm256_extracti128_si256(firsts, 1));
    const __m128i thrice = _mm_setr_epi8(0, 0, 0, 2, 2, 2, 4, 4, 4, 6, 6, 6, 8, 8, 8, -1);
    const __m128i bytes = _mm_setr_epi8(0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0);
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(in + (size_t)least * 3));
    return _mm_shuffle_epi8(v, _mm_add_epi8(_mm_shuffle_epi8(words, thrice), bytes));
}

/* Gather pixels. The next store overwrites what a store writes past its pixels. Inputs that lie far
 * apart are copied one by one. */
TARGET void pstk__gather_avx2(uint8_t *out, const uint8_t *in, const uint32_t *input, uint32_t n,
                              uint32_t size)
{
    const uint32_t at = input[0] <= input[n - 1] ? 0 : AT_ONCE - 1;
    uint32_t i = 0;
    for (; size == 3 && n - i >= 8; i += AT_ONCE) {
        if (input[i + AT_ONCE - 1 - at] - input[i + at] < AT_ONCE)
            _mm_storeu_si128((__m128i *)(void *)(out + (size_t)i * 3),
                             gathered_3(in, input + i, at));
        else
            pstk__gather_pixels(out + (size_t)i * 3, in, input + i, AT_ONCE, 3);
    }
    if (i < n)
        pstk__gather_pixels(out + (size_t)i * size, in, input + i, n - i, size);
}

/* ---- transposition ------------------------------------------------------------------------- */

#define SIDE 8u /* pixels of a block's side */

/* Spread pixels of 3 bytes to 4 bytes each, in both halves, or the reverse. */
INLINE __m256i spread(__m256i v)
{
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                      0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1)));
}

INLINE __m256i close_up(__m256i v)
{
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                      0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1)));
}

/* Store 8 pixels, four in each half; unless exact, also 4 bytes past those of size 3. */
INLINE void store_row(uint8_t *out, __m256i v, uint32_t size, int is_exact)
{
    const __m128i high = _mm256_extracti128_si256(v, 1);
    _mm_storeu_si128((__m128i *)(void *)out, _mm256_castsi256_si128(v));
    if (size == 3 && is_exact) {
        const int32_t end = _mm_extract_epi32(high, 2);
        _mm_storel_epi64((__m128i *)(void *)(out + 12), high);
        memcpy(out + 20, &end, 4);
    } else {
        _mm_storeu_si128((__m128i *)(void *)(out + (size_t)4 * size), high);
    }
}

/* Transpose four columns of a block: rows i and i + 4 of the input are the halves of a register, so
 * that each half is a transposition of four by four. Reads 16 bytes of each row. */
INLINE void transpose_half(uint8_t *out, const uint8_t *in, const struct pstk__warp_transpose *t,
                           uint32_t size, int is_exact)
{
    __m256i r[4];
    for (uint32_t i = 0; i < 4; i++) {
        r[i] = two_of(in + (ptrdiff_t)i * t->in_step, in + (ptrdiff_t)(i + 4) * t->in_step);
        r[i] = size == 3 ? spread(r[i]) : r[i];
    }
    const __m256i low_01 = _mm256_unpacklo_epi32(r[0], r[1]);
    const __m256i low_23 = _mm256_unpacklo_epi32(r[2], r[3]);
    const __m256i high_01 = _mm256_unpackhi_epi32(r[0], r[1]);
    const __m256i high_23 = _mm256_unpackhi_epi32(r[2], r[3]);
    const __m256i columns[4] = {
        _mm256_unpacklo_epi64(low_01, low_23), _mm256_unpackhi_epi64(low_01, low_23),
        _mm256_unpacklo_epi64(high_01, high_23), _mm256_unpackhi_epi64(high_01, high_23)};
    for (uint32_t i = 0; i < 4; i++)
        store_row(out + (ptrdiff_t)i * t->out_step, size == 3 ? close_up(columns[i]) : columns[i],
                  size, is_exact);
}

/* Transpose a block of the output. The next block overwrites bytes past it, if the row has so many.
 */
INLINE void transpose_block(const struct pstk__warp_transpose *t, uint32_t left, uint32_t top,
                            uint32_t size)
{
    uint8_t *out = t->out + (ptrdiff_t)top * t->out_step + (size_t)left * size;
    const uint8_t *in = t->in + (ptrdiff_t)left * t->in_step + (size_t)top * size;
    const int is_exact = t->width - left < SIDE + 2;
    for (uint32_t k = 0; k < SIDE; k += 4)
        transpose_half(out + (ptrdiff_t)k * t->out_step, in + (size_t)k * size, t, size, is_exact);
}

/* Transpose a picture in blocks. The last block of a row or a column may repeat pixels of the one
 * before it. */
INLINE void transpose_of(const struct pstk__warp_transpose *t, uint32_t size)
{
    for (uint32_t y = 0; y < t->height; y += SIDE) {
        const uint32_t top = y + SIDE <= t->height ? y : t->height - SIDE;
        for (uint32_t x = 0; x < t->width; x += SIDE)
            transpose_block(t, x + SIDE <= t->width ? x : t->width - SIDE, top, size);
    }
}

TARGET void pstk__transpose_avx2(const struct pstk__warp_transpose *t)
{
    if (t->size < 3 || t->width < SIDE || t->height < SIDE)
        pstk__warp_c.transpose(t);
    else if (t->size == 3)
        transpose_of(t, 3);
    else
        transpose_of(t, 4);
}

#endif
