/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/zigzag: the zigzag order of a block's coefficients, and the map of those that are not 0.
 * Pure.
 */
#ifndef PSTK_JPEG_ZIGZAG_H
#define PSTK_JPEG_ZIGZAG_H

#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* The natural position of each position of the zigzag order. */
static const uint8_t pstk__zigzag[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* For each row of a block and each set of its columns, the set of their positions in zigzag order.
 */
struct pstk__zigzag_positions {
    uint64_t of_row[8][256];
};

static inline void pstk__zigzag_init(struct pstk__zigzag_positions *positions)
{
    uint8_t position[64];
    for (uint32_t z = 0; z < 64; z++)
        position[pstk__zigzag[z]] = (uint8_t)z;
    for (uint32_t row = 0; row < 8; row++) {
        positions->of_row[row][0] = 0;
        for (uint32_t set = 1; set < 256; set++)
            positions->of_row[row][set] = positions->of_row[row][set & (set - 1)] |
                                          (uint64_t)1
                                              << position[8 * row + (uint32_t)__builtin_ctz(set)];
    }
}

/* Return the map in natural order. Bit k: the coefficient at position k is not 0. */
static inline uint64_t pstk__zigzag_natural(const int16_t *block)
{
    uint64_t map = 0;
#if defined(__SSE2__)
    const __m128i *rows = (const __m128i *)(const void *)block;
    for (uint32_t i = 0; i < 4; i++) {
        __m128i two =
            _mm_packs_epi16(_mm_loadu_si128(rows + 2 * i), _mm_loadu_si128(rows + 2 * i + 1));
        two = _mm_cmpeq_epi8(two, _mm_setzero_si128());
        map |= (uint64_t)((uint32_t)_mm_movemask_epi8(two) ^ 0xffffu) << (16 * i);
    }
#else
    for (uint32_t k = 0; k < 64; k++)
        map |= (uint64_t)(block[k] != 0) << k;
#endif
    return map;
}

/* Return the map in zigzag order. Bit z: the coefficient at position z is not 0. */
static inline uint64_t pstk__zigzag_map(const struct pstk__zigzag_positions *positions,
                                        const int16_t *block)
{
    uint64_t natural = pstk__zigzag_natural(block), map = 0;
    for (uint32_t row = 0; row < 8; row++)
        map |= positions->of_row[row][natural >> (8 * row) & 255];
    return map;
}

#endif
