/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colour_avx2: helpers for the colour kernels with 256-bit registers. They work on *blocks* of 32
 * pixels of 3 or 4 channels, split into a register of bytes for each channel. These registers all
 * have the pixels in the same order, which may be any. colour_c.c does the pixels after the last
 * whole block.
 */
#ifndef PSTK_PIXELS_COLOUR_AVX2_H
#define PSTK_PIXELS_COLOUR_AVX2_H

#include "pixels/colour_kernels.h"

#include "base/avx2.h"

#include <stddef.h>

#define FEATURES "avx2,bmi,bmi2,fma,f16c,popcnt"
#define TARGET AVX2_TARGET(FEATURES)
#define INLINE static inline __attribute__((always_inline)) AVX2_TARGET(FEATURES)

#define BLOCK 32u /* pixels */

/* A block of 32 pixels. Without alpha, of[3] is 0. */
struct block {
    __m256i of[4];
};

/* 32 bytes as integers of 32 bits. */
struct wide {
    __m256i of[4];
};

/* Transform a block in place. Each kernel has its own type of settings. */
typedef void block_function(struct block *block, const void *settings);

INLINE struct wide widened(__m256i v)
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i low = _mm256_unpacklo_epi8(v, zero), high = _mm256_unpackhi_epi8(v, zero);
    return (struct wide){{_mm256_unpacklo_epi16(low, zero), _mm256_unpackhi_epi16(low, zero),
                          _mm256_unpacklo_epi16(high, zero), _mm256_unpackhi_epi16(high, zero)}};
}

/* Narrow integers to bytes, the reverse of widened; clips. */
INLINE __m256i narrowed(struct wide v)
{
    return _mm256_packus_epi16(_mm256_packs_epi32(v.of[0], v.of[1]),
                               _mm256_packs_epi32(v.of[2], v.of[3]));
}

/* Blend integers as pstk__blend does; clipped to at most 255, and by narrowed to at least 0. */
INLINE __m256i blended(__m256i from, __m256i to, __m256 factor)
{
    const __m256 change = _mm256_mul_ps(factor, _mm256_cvtepi32_ps(_mm256_sub_epi32(to, from)));
    const __m256 v = _mm256_add_ps(_mm256_cvtepi32_ps(from), change);
    return _mm256_cvttps_epi32(_mm256_min_ps(v, _mm256_set1_ps(255.0f)));
}

#if defined(PSTK_NEON)

#include "pixels/colour_neon.h"

#else

/* ---- three channels: in each half of a register 16 pixels, as 48 bytes of three registers ---- */

/* Load 16 bytes from each of two addresses. */
INLINE __m256i load_halves(const uint8_t *low, const uint8_t *high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)),
                                   _mm_loadu_si128((const __m128i *)high), 1);
}

INLINE void store_halves(uint8_t *low, uint8_t *high, __m256i v)
{
    _mm_storeu_si128((__m128i *)low, _mm256_castsi256_si128(v));
    _mm_storeu_si128((__m128i *)high, _mm256_extracti128_si256(v, 1));
}

/* Set every third byte, from byte `first` on. */
INLINE __m256i every_third(uint32_t first)
{
    const __m128i masks[3] = {
        _mm_setr_epi8(-1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1),
        _mm_setr_epi8(0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0),
        _mm_setr_epi8(0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0),
    };
    return _mm256_broadcastsi128_si256(masks[first]);
}

/* Pick the bytes of a channel. Byte i of a half is byte 3 i + channel of the 48: byte 3 i +
 * channel, modulo 16, of one of the three registers. These places differ, so that the registers can
 * be merged before the one shuffle. */
INLINE __m256i picked(__m256i a, __m256i b, __m256i c, uint32_t channel)
{
    const __m128i places = _mm_setr_epi8(0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14, 1, 4, 7, 10, 13);
    const __m128i from =
        _mm_and_si128(_mm_add_epi8(places, _mm_set1_epi8((char)channel)), _mm_set1_epi8(15));
    const __m256i ab = _mm256_blendv_epi8(a, b, every_third((channel + 2) % 3));
    const __m256i abc = _mm256_blendv_epi8(ab, c, every_third((channel + 1) % 3));
    return _mm256_shuffle_epi8(abc, _mm256_broadcastsi128_si256(from));
}

INLINE struct block load_3(const uint8_t *at)
{
    const __m256i a = load_halves(at, at + 48), b = load_halves(at + 16, at + 64),
                  c = load_halves(at + 32, at + 80);
    return (struct block){
        {picked(a, b, c, 0), picked(a, b, c, 1), picked(a, b, c, 2), _mm256_setzero_si256()}};
}

/* Place the bytes of a channel, the reverse of picked before the channels are merged: byte p of
 * each register is, in its channel, byte 11 (p - channel) modulo 16, since 3 * 11 is 1 modulo 16.
 */
INLINE __m256i placed(__m256i v, uint32_t channel)
{
    const __m128i places = _mm_setr_epi8(0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5);
    const __m128i from =
        _mm_and_si128(_mm_sub_epi8(places, _mm_set1_epi8((char)(11 * channel))), _mm_set1_epi8(15));
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(from));
}

INLINE void store_3(uint8_t *at, const struct block *block)
{
    const __m256i red = placed(block->of[0], 0), green = placed(block->of[1], 1),
                  blue = placed(block->of[2], 2);
    for (uint32_t i = 0; i < 3; i++) {
        const __m256i two = _mm256_blendv_epi8(red, green, every_third((4 - i) % 3));
        store_halves(at + (size_t)16 * i, at + 48 + (size_t)16 * i,
                     _mm256_blendv_epi8(two, blue, every_third((5 - i) % 3)));
    }
}

/* ---- four channels ---- */

/* Transpose four registers as a 4 x 4 matrix of 32-bit integers, in each half. */
INLINE struct block transposed(__m256i a, __m256i b, __m256i c, __m256i d)
{
    const __m256i ab_low = _mm256_unpacklo_epi32(a, b), ab_high = _mm256_unpackhi_epi32(a, b),
                  cd_low = _mm256_unpacklo_epi32(c, d), cd_high = _mm256_unpackhi_epi32(c, d);
    return (struct block){
        {_mm256_unpacklo_epi64(ab_low, cd_low), _mm256_unpackhi_epi64(ab_low, cd_low),
         _mm256_unpacklo_epi64(ab_high, cd_high), _mm256_unpackhi_epi64(ab_high, cd_high)}};
}

/* In each half, regroup four pixels of four bytes to four bytes of each channel, or the reverse. */
INLINE __m256i gathered(__m256i v)
{
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                      0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)));
}

INLINE struct block load_4(const uint8_t *at)
{
    const __m256i *from = (const __m256i *)at;
    return transposed(gathered(_mm256_loadu_si256(from)), gathered(_mm256_loadu_si256(from + 1)),
                      gathered(_mm256_loadu_si256(from + 2)),
                      gathered(_mm256_loadu_si256(from + 3)));
}

INLINE void store_4(uint8_t *at, const struct block *block)
{
    const struct block out = transposed(block->of[0], block->of[1], block->of[2], block->of[3]);
    for (uint32_t i = 0; i < 4; i++)
        _mm256_storeu_si256((__m256i *)at + i, gathered(out.of[i]));
}

#endif

/* ---- pictures ---- */

INLINE uint64_t n_blocks_of(const struct pstk__picture *picture)
{
    return (uint64_t)picture->width * picture->height / BLOCK;
}

/* Return the pixels after the last whole block: less than BLOCK, or none. */
INLINE struct pstk__picture rest_of(const struct pstk__picture *picture)
{
    const uint64_t done = n_blocks_of(picture) * BLOCK;
    return (struct pstk__picture){.pixels = picture->pixels + done * picture->channels,
                                  .width =
                                      (uint32_t)((uint64_t)picture->width * picture->height - done),
                                  .height = 1,
                                  .channels = picture->channels};
}

INLINE struct block load_block(const uint8_t *at, uint32_t channels)
{
    return channels == 3 ? load_3(at) : load_4(at);
}

/* Change every whole block. `channels`, 3 or 4, and `function` are constants for the compiler. */
INLINE void each_block(const struct pstk__picture *picture, uint32_t channels,
                       block_function *function, const void *settings)
{
    uint8_t *at = picture->pixels;
    for (uint64_t n = n_blocks_of(picture); n > 0; n--, at += (size_t)BLOCK * channels) {
        struct block block = load_block(at, channels);
        function(&block, settings);
        if (channels == 3)
            store_3(at, &block);
        else
            store_4(at, &block);
    }
}

void pstk__shift_hue_avx2(const struct pstk__picture *picture, uint8_t shift);
void pstk__sharpen_row_avx2(const struct pstk__picture *out, const struct pstk__picture *in,
                            uint32_t y, float factor);

#endif
