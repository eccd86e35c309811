/* SPDX-License-Identifier: Apache-2.0 */
/* colour_avx512: the colour kernels with 512-bit registers. */
#if defined(__x86_64__)

#include "pixels/colour_avx512.h"

#include <penstock/penstock.h>

/* ---- tables ---------------------------------------------------------------------------------- */

/* A table of 256 bytes. */
struct lookup {
    __m512i of[4];
};

INLINE struct lookup lookup_of(const uint8_t to[256])
{
    struct lookup lookup;
    for (uint32_t i = 0; i < 4; i++)
        lookup.of[i] = _mm512_loadu_si512(to + (size_t)64 * i);
    return lookup;
}

INLINE __m512i look_up(const struct lookup *lookup, __m512i v)
{
    const __m512i low = _mm512_permutex2var_epi8(lookup->of[0], v, lookup->of[1]);
    const __m512i high = _mm512_permutex2var_epi8(lookup->of[2], v, lookup->of[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high);
}

/* Map all channels by one table. */
TARGET static void look_up_bytes(const struct pstk__picture *picture, const uint8_t to[256])
{
    const struct lookup lookup = lookup_of(to);
    const uint64_t size = pstk__picture_size(picture);
    uint8_t *at = picture->pixels;
    uint64_t i = 0;
    for (; i + 64 <= size; i += 64)
        _mm512_storeu_si512(at + i, look_up(&lookup, _mm512_loadu_si512(at + i)));
    const __mmask64 rest = mask64(size - i);
    const __m512i v = _mm512_maskz_loadu_epi8(rest, at + i);
    _mm512_mask_storeu_epi8(at + i, rest, look_up(&lookup, v));
}

/* Set each byte that belongs to a channel of four. */
INLINE __mmask64 mask_of(uint32_t channel)
{
    return (__mmask64)(0x1111111111111111u << channel);
}

INLINE void look_up_4(uint8_t *at, const struct lookup of[4])
{
    for (uint32_t i = 0; i < 4; i++) {
        const __m512i v = _mm512_loadu_si512(at + (size_t)64 * i);
        __m512i out = look_up(&of[0], v);
        for (uint32_t c = 1; c < 4; c++)
            out = _mm512_mask_mov_epi8(out, mask_of(c), look_up(&of[c], v));
        _mm512_storeu_si512(at + (size_t)64 * i, out);
    }
}

/* Map a block by three tables: split the channels, and join them again. */
INLINE void look_up_3(uint8_t *at, const struct lookup of[3])
{
    __m512i in[3], out[3];
    for (uint32_t i = 0; i < 3; i++)
        in[i] = _mm512_loadu_si512(at + (size_t)64 * i);
    for (uint32_t c = 0; c < 3; c++) {
        const __m512i indices = _mm512_add_epi8(iota_times(3), _mm512_set1_epi8((char)c));
        out[c] = look_up(&of[c], picked(in, indices));
    }
    for (uint32_t i = 0; i < 3; i++)
        _mm512_storeu_si512(at + (size_t)64 * i, picked(out, interleaved(i)));
}

INLINE void look_up_block(uint8_t *at, uint32_t channels, const void *lookups)
{
    if (channels == 3)
        look_up_3(at, lookups);
    else
        look_up_4(at, lookups);
}

TARGET static void apply(const struct pstk__picture *picture,
                         const struct pstk__colour_table *table)
{
    struct lookup lookups[4];
    int is_one = 1;
    for (uint32_t c = 0; c < picture->channels; c++) {
        lookups[c] = lookup_of(table->to[c]);
        is_one = is_one && memcmp(table->to[c], table->to[0], 256) == 0;
    }
    if (is_one)
        look_up_bytes(picture, table->to[0]);
    else if (picture->channels == 3)
        each_block(picture, 3, look_up_block, lookups);
    else
        each_block(picture, 4, look_up_block, lookups);
}

/* ---- range ----------------------------------------------------------------------------------- */

static void join_ranges(struct pstk__colour_range *range, const struct pstk__colour_range *other)
{
    for (uint32_t c = 0; c < 4; c++) {
        range->least[c] = other->least[c] < range->least[c] ? other->least[c] : range->least[c];
        range->most[c] = other->most[c] > range->most[c] ? other->most[c] : range->most[c];
    }
}

/* Find the range of the whole blocks, at least one. `channels`, also 1, is a constant for the
 * compiler. Byte i of 64 * channels bytes is always of the same channel. */
INLINE void range_of(struct pstk__colour_range *range, const struct pstk__picture *picture,
                     uint32_t channels)
{
    const uint8_t *at = picture->pixels;
    __m512i least[4], most[4];
    for (uint32_t c = 0; c < channels; c++)
        least[c] = most[c] = _mm512_loadu_si512(at + (size_t)64 * c);
    for (uint64_t n = n_blocks_of(picture); n > 0; n--, at += (size_t)64 * channels)
        for (uint32_t c = 0; c < channels; c++) {
            const __m512i v = _mm512_loadu_si512(at + (size_t)64 * c);
            least[c] = _mm512_min_epu8(least[c], v);
            most[c] = _mm512_max_epu8(most[c], v);
        }
    const struct pstk__picture all_min = {(uint8_t *)least, BLOCK, 1, channels},
                               all_max = {(uint8_t *)most, BLOCK, 1, channels};
    struct pstk__colour_range of_max;
    pstk__colour_c.range(range, &all_min);
    pstk__colour_c.range(&of_max, &all_max);
    join_ranges(range, &of_max);
}

TARGET static void range(struct pstk__colour_range *range, const struct pstk__picture *picture)
{
    const struct pstk__picture rest = rest_of(picture);
    struct pstk__colour_range blocks;
    pstk__colour_c.range(range, &rest);
    if (n_blocks_of(picture) == 0)
        return;
    if (picture->channels == 1)
        range_of(&blocks, picture, 1);
    else if (picture->channels == 3)
        range_of(&blocks, picture, 3);
    else
        range_of(&blocks, picture, 4);
    join_ranges(range, &blocks);
}

/* ---- luma ------------------------------------------------------------------------------------ */

/* Sum the luma. `channels`, also 1, is a constant for the compiler. */
INLINE uint64_t sum_of(const struct pstk__picture *picture, uint32_t channels)
{
    const uint8_t *at = picture->pixels;
    __m512i sum = _mm512_setzero_si512();
    for (uint64_t n = n_blocks_of(picture); n > 0; n--, at += (size_t)BLOCK * channels) {
        const __m512i gray = channels > 1 ? luma_of(at, channels) : _mm512_loadu_si512(at);
        sum = _mm512_add_epi64(sum, _mm512_sad_epu8(gray, _mm512_setzero_si512()));
    }
    return (uint64_t)_mm512_reduce_add_epi64(sum);
}

TARGET static uint64_t luma_sum(const struct pstk__picture *picture)
{
    const struct pstk__picture rest = rest_of(picture);
    const uint64_t sum = pstk__colour_c.luma_sum(&rest);
    if (picture->channels == 1)
        return sum + sum_of(picture, 1);
    return sum + (picture->channels == 3 ? sum_of(picture, 3) : sum_of(picture, 4));
}

/* Spread one byte of each pixel to all its bytes in the i-th of the `channels` registers of a
 * block. */
INLINE __m512i spread(__m512i v, uint32_t i, uint32_t channels)
{
    if (channels == 3)
        return _mm512_permutexvar_epi8(interleaved(i), v);
    const __m512i by_four = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i pixels = _mm512_add_epi32(by_four, _mm512_set1_epi32((int)(16 * i)));
    return _mm512_permutexvar_epi8(_mm512_mullo_epi32(pixels, _mm512_set1_epi32(0x01010101)), v);
}

/* Write the luma of the whole blocks. `channels`, 3 or 4, is a constant for the compiler. */
INLINE void luma_blocks(uint8_t *out, uint32_t out_channels, const struct pstk__picture *picture,
                        uint32_t channels)
{
    const uint8_t *at = picture->pixels;
    for (uint64_t n = n_blocks_of(picture); n > 0; n--, at += (size_t)BLOCK * channels) {
        const __m512i gray = luma_of(at, channels);
        for (uint32_t i = 0; i < out_channels; i++)
            _mm512_storeu_si512(out + (size_t)64 * i,
                                out_channels == 1 ? gray : spread(gray, i, 3));
        out += (size_t)BLOCK * out_channels;
    }
}

INLINE void luma_of_picture(uint8_t *out, uint32_t out_channels,
                            const struct pstk__picture *picture, uint32_t channels)
{
    if (out_channels == 1)
        luma_blocks(out, 1, picture, channels);
    else
        luma_blocks(out, 3, picture, channels);
}

TARGET static void luma(uint8_t *out, uint32_t out_channels, const struct pstk__picture *picture)
{
    const struct pstk__picture rest = rest_of(picture);
    if (picture->channels == 3)
        luma_of_picture(out, out_channels, picture, 3);
    else
        luma_of_picture(out, out_channels, picture, 4);
    pstk__colour_c.luma(out + n_blocks_of(picture) * BLOCK * out_channels, out_channels, &rest);
}

INLINE void saturate_block(uint8_t *at, uint32_t channels, const void *factor)
{
    const __m512 by = _mm512_set1_ps(*(const float *)factor);
    const __m512i gray = luma_of(at, channels);
    for (uint32_t i = 0; i < channels; i++) {
        const __m512i v = _mm512_loadu_si512(at + (size_t)64 * i);
        const __m512i out = blended_bytes(spread(gray, i, channels), v, by);
        const __mmask64 is_alpha = channels == 4 ? 0x8888888888888888 : 0;
        _mm512_storeu_si512(at + (size_t)64 * i, _mm512_mask_mov_epi8(out, is_alpha, v));
    }
}

TARGET static void saturate(const struct pstk__picture *picture, float factor)
{
    if (picture->channels == 3)
        each_block(picture, 3, saturate_block, &factor);
    else
        each_block(picture, 4, saturate_block, &factor);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* The indices of the bytes of a block of three channels, in the new order. */
struct indices {
    __m512i of[3];
};

INLINE void permute_block(uint8_t *at, uint32_t channels, const void *settings)
{
    const struct indices *indices = settings;
    __m512i in[3];
    for (uint32_t i = 0; i < 3; i++)
        in[i] = _mm512_loadu_si512(at + (size_t)64 * i);
    for (uint32_t i = 0; i < 3; i++)
        _mm512_storeu_si512(at + (size_t)64 * i, picked(in, indices->of[i]));
    (void)channels;
}

/* Permute a block of 4 channels by places within a pixel of four bytes. */
INLINE void permute_block_4(uint8_t *at, uint32_t channels, const void *settings)
{
    const __m512i *indices = settings;
    for (uint32_t i = 0; i < channels; i++) {
        const __m512i v = _mm512_loadu_si512(at + (size_t)64 * i);
        _mm512_storeu_si512(at + (size_t)64 * i, _mm512_shuffle_epi8(v, *indices));
    }
}

TARGET static void permute(const struct pstk__picture *picture, const uint32_t order[3])
{
    uint8_t bytes[192];
    struct indices indices;
    const uint32_t channels = picture->channels;
    for (uint32_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i % channels == 3 ? i : i - i % channels + order[i % channels]);
    for (uint32_t i = 0; i < 3; i++)
        indices.of[i] = _mm512_loadu_si512(bytes + (size_t)64 * i);
    if (channels == 3)
        each_block(picture, 3, permute_block, &indices);
    else
        each_block(picture, 4, permute_block_4, &indices.of[0]);
}

const struct pstk__colour_kernels pstk__colour_avx512 = {
    .isa = PSTK_KERNELS_AVX512,
    .apply = apply,
    .range = range,
    .luma_sum = luma_sum,
    .luma = luma,
    .saturate = saturate,
    .shift_hue = pstk__shift_hue_avx512,
    .permute = permute,
    .sharpen_row = pstk__sharpen_row_avx512,
};

#endif
