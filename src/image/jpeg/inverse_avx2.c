/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/inverse_avx2: the inverse DCT with AVX2, two blocks at a time, one in each lane.
 * Coefficients are expanded to memory a few groups before they are used. So no load waits for the
 * smaller stores that it covers.
 */
#include "image/jpeg/expand_table.h"
#include "image/jpeg/inverse.h"

#if defined(__x86_64__) || defined(PSTK_NEON)

#include "base/avx2.h"
#if defined(__x86_64__)
#include "image/jpeg/inverse_x86.h"
#define ODD_SHIFT 8 /* factors of odd columns are upper bytes */
#else
#include "image/jpeg/inverse_neon.h"
#define ODD_SHIFT 0
#endif
#include <string.h>

#define TARGET AVX2_TARGET("avx2,bmi,bmi2,fma,f16c,popcnt")
#define INLINE static inline __attribute__((always_inline))
#define ALIGNED _Alignas(32)

#define GROUP 2u  /* blocks transformed together */
#define CHUNK 16u /* blocks expanded together */

static const uint8_t natural_places[64] = PSTK__IDCT_NATURAL_PLACES;
static const uint8_t corner_natural_places[16] = PSTK__IDCT_CORNER_NATURAL_PLACES;
static const uint8_t layout_places[64] = PSTK__IDCT_LAYOUT_PLACES;

/* PSTK__IDCT_CORNER_ZIGZAG_PLACES, laid out in the same way, in the first two quarters. */
static const int8_t corner_places[2][16] = {
    {0, 2, 3, 9, 5, 7, 12, -1, 1, 4, 8, 11, 6, 13, -1, -1},
    {-1, -1, -1, -1, -1, -1, -1, 2, -1, -1, -1, -1, -1, -1, 1, 8},
};

/* Quantisation factors for a lane, of the even and of the odd columns, by pair of rows: bytes with
 * zeros between them, or words. */
struct table {
    uint16_t even[4][8], odd[4][8];
    uint16_t corner_even[8], corner_odd[8]; /* bytes only */
};

/* Coefficients of a group: [2 * pair of rows + (odd columns)]; block b is in lane b. */
struct group {
    __m256i pair[8];
};

/* Groups being expanded. */
struct chunk {
    int8_t ALIGNED values[CHUNK / GROUP][4][GROUP][16]; /* by quarter of the zigzag order */
    uint64_t dc[CHUNK][2]; /* dequantised DCs, in the low 16 bits of the first */
    uint64_t maps[CHUNK];  /* 0 after the last block */
};

/* ---- expansion ------------------------------------------------------------------------------ */

INLINE TARGET __m256i load_256(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

INLINE TARGET void store_256(void *p, __m256i x)
{
    _mm256_storeu_si256((__m256i *)p, x);
}

INLINE TARGET __m256i load_twice(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}

INLINE TARGET __m128i load_half(const void *p)
{
    return _mm_loadl_epi64((const __m128i *)p);
}

INLINE TARGET void store_half(void *p, __m128i x)
{
    _mm_storel_epi64((__m128i *)p, x);
}

static void table_of(struct table *table, const uint16_t *quant, int has_words)
{
    const int shift = has_words ? 0 : ODD_SHIFT;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 8; k++) {
            const uint8_t *places = natural_places + 16 * i + 2 * k;
            table->even[i][k] = quant[places[0]];
            table->odd[i][k] = (uint16_t)(quant[places[1]] << shift);
        }
    for (int k = 0; k < 8; k++) {
        table->corner_even[k] = quant[corner_natural_places[2 * k]];
        table->corner_odd[k] = (uint16_t)(quant[corner_natural_places[2 * k + 1]] << ODD_SHIFT);
    }
}

/* Move eight values to their places, by bits [8 i, 8 i + 8) of the map. The index of the values
 * follows from the earlier bits, so no call waits for another. */
INLINE TARGET void expand_eight(int8_t values[4][GROUP][16], uint32_t block, uint64_t map,
                                const int8_t *from, uint32_t i)
{
    const int8_t *first = from + (i ? __builtin_popcountll(map << (64 - 8 * i) % 64) : 0);
    const __m128i shuffle = load_half(pstk__expand_table[map >> 8 * i & 0xFF]);
    store_half(values[i / 2][block] + 8 * (i % 2), _mm_shuffle_epi8(load_half(first), shuffle));
}

INLINE TARGET const int8_t *expand(int8_t values[4][GROUP][16], uint32_t block, uint64_t map,
                                   const int8_t *from)
{
    expand_eight(values, block, map, from, 0);
    expand_eight(values, block, map, from, 1);
    expand_eight(values, block, map, from, 2);
    expand_eight(values, block, map, from, 3);
    if (map >> 32) {
        expand_eight(values, block, map, from, 4);
        expand_eight(values, block, map, from, 5);
        expand_eight(values, block, map, from, 6);
        expand_eight(values, block, map, from, 7);
    } else {
        memset(values[2][block], 0, 16);
        memset(values[3][block], 0, 16);
    }
    return from + __builtin_popcountll(map);
}

/* Expand blocks [first, first + CHUNK) of a row. Returns 1 when a dequantised DC is too large for a
 * shift by 2. */
INLINE TARGET int fill_chunk(struct chunk *chunk, const struct pstk__block_row *row, uint32_t first,
                             uint16_t quant_dc, const int8_t **values)
{
    const uint32_t left = row->n_blocks - first, n = left < CHUNK ? left : CHUNK;
    uint32_t far = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int16_t dc = (int16_t)(uint16_t)((uint32_t)row->dc[first + i] * quant_dc);
        far |= (uint32_t)(dc + 8192) >> 14;
        chunk->dc[i][0] = (uint16_t)dc;
        chunk->maps[i] = row->maps[first + i];
    }
    if (n % GROUP) { /* a block past the end of the row */
        chunk->maps[n] = 0;
        chunk->dc[n][0] = 0;
    }
    for (uint32_t i = 0; i < n; i += GROUP) {
        if ((chunk->maps[i] | chunk->maps[i + 1]) == 0)
            continue;
        *values = expand(chunk->values[i / GROUP], 0, chunk->maps[i], *values);
        *values = expand(chunk->values[i / GROUP], 1, chunk->maps[i + 1], *values);
    }
    return far != 0;
}

/* Multiply signed bytes by their factors. */
INLINE TARGET void dequantise(struct group *group, __m256i bytes, const struct table *table,
                              int pair, int has_words)
{
    const __m256i even = load_twice(table->even[pair]), odd = load_twice(table->odd[pair]);
    if (has_words) {
        const __m256i low = _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8);
        group->pair[2 * pair] = _mm256_mullo_epi16(low, even);
        group->pair[2 * pair + 1] = _mm256_mullo_epi16(_mm256_srai_epi16(bytes, 8), odd);
    } else {
        group->pair[2 * pair] = even_products(even, bytes);
        group->pair[2 * pair + 1] = odd_products(odd, bytes);
    }
}

/* Put wide coefficients in their places. at[b] holds the places of block b, in zigzag order. */
static __attribute__((noinline)) const int16_t *patch(int16_t coefficients[8][8 * GROUP],
                                                      const uint64_t at[GROUP], const int16_t *wide,
                                                      const uint16_t *quant)
{
    for (uint32_t b = 0; b < GROUP; b++)
        for (uint64_t left = at[b]; left != 0; left &= left - 1, wide++) {
            const uint32_t place = layout_places[__builtin_ctzll(left)];
            const uint32_t product = (uint32_t)*wide * quant[natural_places[place]];
            coefficients[2 * (place / 16) + place % 2][8 * b + place % 16 / 2] =
                (int16_t)(uint16_t)product;
        }
    return wide;
}

/* Put wide coefficients in a group in registers, in which escape bytes mark the places. */
INLINE TARGET void patch_group(struct group *group, const __m256i quarter[4], const int16_t **wide,
                               const uint16_t *quant)
{
    int16_t ALIGNED coefficients[8][8 * GROUP];
    uint64_t at[GROUP] = {0, 0};
#pragma GCC unroll 4
    for (int i = 3; i >= 0; i--) {
        const __m256i escapes = _mm256_cmpeq_epi8(quarter[i], _mm256_set1_epi8(-128));
        const uint32_t both = (uint32_t)_mm256_movemask_epi8(escapes);
        at[0] = at[0] << 16 | (both & 0xFFFF);
        at[1] = at[1] << 16 | both >> 16;
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        store_256(coefficients[i], group->pair[i]);
    *wide = patch(coefficients, at, *wide, quant);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        group->pair[i] = load_256(coefficients[i]);
}

/* Load a group's coefficients, dequantised. Returns 1 when some are wide. */
INLINE TARGET int load_group(struct group *group, struct chunk *chunk, uint32_t at,
                             const struct table *table, const int16_t **wide, const uint16_t *quant,
                             int has_words)
{
    const __m256i quarter[4] = {load_256(chunk->values[at][0]), load_256(chunk->values[at][1]),
                                load_256(chunk->values[at][2]), load_256(chunk->values[at][3])};
    const __m256i least = _mm256_min_epi8(_mm256_min_epi8(quarter[0], quarter[1]),
                                          _mm256_min_epi8(quarter[2], quarter[3]));
    const int is_wide = has_escape(least);
    dequantise(group, gather(quarter, 0), table, 0, has_words);
    dequantise(group, gather(quarter, 1), table, 1, has_words);
    dequantise(group, gather(quarter, 2), table, 2, has_words);
    dequantise(group, gather(quarter, 3), table, 3, has_words);
    if (__builtin_expect(is_wide, 0)) {
        patch_group(group, quarter, wide, quant);
    }
    /* The DC is the first word of its lane. */
    group->pair[0] = _mm256_or_si256(group->pair[0], load_256(chunk->dc[GROUP * at]));
    return is_wide;
}

/* Load a group of corners: pairs[0] holds rows 0 and 2, [1] rows 1 and 3. Returns 1 when some
 * coefficients are wide; then nothing was done. */
INLINE TARGET int load_corners(__m256i pairs[2], const struct chunk *chunk, uint32_t at,
                               const struct table *table)
{
    const __m256i a =
        _mm256_shuffle_epi8(load_256(chunk->values[at][0]), load_twice(corner_places[0]));
    const __m256i b =
        _mm256_shuffle_epi8(load_256(chunk->values[at][1]), load_twice(corner_places[1]));
    const __m256i bytes = _mm256_or_si256(a, b);
    if (__builtin_expect(has_escape(bytes), 0))
        return 1;
    pairs[0] = _mm256_or_si256(even_products(load_twice(table->corner_even), bytes),
                               load_256(chunk->dc[GROUP * at]));
    pairs[1] = odd_products(load_twice(table->corner_odd), bytes);
    return 0;
}

/* ---- transform ------------------------------------------------------------------------------ */

/* Return the even (odd) elements of each lane of a and b. */
INLINE TARGET __m256i even_elements(__m256i a, __m256i b)
{
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
}

INLINE TARGET __m256i odd_elements(__m256i a, __m256i b)
{
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0xDD));
}

/* Run the first pass: from columns in pairs of rows to rows, 0..3 and then 4..7, in pairs of
 * columns: [4 * (lower rows) + pair]. */
INLINE TARGET void columns(struct group *rows, const struct group *group)
{
    __m256i v[8];
    pass(v, group->pair[0], group->pair[2], group->pair[4], group->pair[6], PSTK__IDCT_ROUND_1);
    const __m256i even01 = pack_rows(v[0], v[1]), even23 = pack_rows(v[2], v[3]);
    const __m256i even45 = pack_rows(v[4], v[5]), even67 = pack_rows(v[6], v[7]);
    rows->pair[0] = even_elements(even01, even23);
    rows->pair[1] = odd_elements(even01, even23);
    rows->pair[4] = even_elements(even45, even67);
    rows->pair[5] = odd_elements(even45, even67);
    pass(v, group->pair[1], group->pair[3], group->pair[5], group->pair[7], PSTK__IDCT_ROUND_1);
    const __m256i odd01 = pack_rows(v[0], v[1]), odd23 = pack_rows(v[2], v[3]);
    const __m256i odd45 = pack_rows(v[4], v[5]), odd67 = pack_rows(v[6], v[7]);
    rows->pair[2] = even_elements(odd01, odd23);
    rows->pair[3] = odd_elements(odd01, odd23);
    rows->pair[6] = even_elements(odd45, odd67);
    rows->pair[7] = odd_elements(odd45, odd67);
}

/* Shift instead of transforming in the first pass of blocks that have only their first row, as
 * libjpeg-turbo does. The shift wraps where the pass saturates. */
TARGET static __attribute__((noinline)) void
shift_first_rows(struct group *rows, const struct group *group, const uint64_t maps[GROUP])
{
    const int64_t upper = maps[0] & ~PSTK__IDCT_FIRST_ROW ? 0 : -1;
    const int64_t lower = maps[1] & ~PSTK__IDCT_FIRST_ROW ? 0 : -1;
    const __m256i lanes = _mm256_set_epi64x(lower, lower, upper, upper);
    const __m256i first = _mm256_set1_epi32(0x05040100), second = _mm256_set1_epi32(0x0D0C0908);
    const __m256i even = _mm256_slli_epi16(group->pair[0], 2),
                  odd = _mm256_slli_epi16(group->pair[1], 2);
    const __m256i shifted[4] = {_mm256_shuffle_epi8(even, first), _mm256_shuffle_epi8(even, second),
                                _mm256_shuffle_epi8(odd, first), _mm256_shuffle_epi8(odd, second)};
    for (int i = 0; i < 8; i++)
        rows->pair[i] = _mm256_blendv_epi8(rows->pair[i], shifted[i % 4], lanes);
}

/* Pack four columns of four rows in each lane, row by row. */
INLINE TARGET __m256i pack_four(__m256i a, __m256i b, __m256i chunk, __m256i d)
{
    const __m256i rows = _mm256_set_epi64x(0x0F0E07060D0C0504, 0x0B0A030209080100,
                                           0x0F0E07060D0C0504, 0x0B0A030209080100);
    const __m256i bytes = _mm256_packs_epi16(pack_columns(a, b), pack_columns(chunk, d));
    return _mm256_shuffle_epi8(_mm256_xor_si256(bytes, _mm256_set1_epi8(-128)), rows);
}

/* Store the second pass's results of four rows. */
INLINE TARGET void store_rows(uint8_t *out, size_t stride, const __m256i v[8])
{
    const __m256i left = pack_four(v[0], v[1], v[2], v[3]);
    const __m256i right = pack_four(v[4], v[5], v[6], v[7]);
    /* Two rows of a lane's block become one row of both blocks. */
    const __m256i rows01 = _mm256_permute4x64_epi64(_mm256_unpacklo_epi32(left, right), 0xD8);
    const __m256i rows23 = _mm256_permute4x64_epi64(_mm256_unpackhi_epi32(left, right), 0xD8);
    _mm_storeu_si128((__m128i *)(void *)out, _mm256_castsi256_si128(rows01));
    _mm_storeu_si128((__m128i *)(void *)(out + stride), _mm256_extracti128_si256(rows01, 1));
    _mm_storeu_si128((__m128i *)(void *)(out + 2 * stride), _mm256_castsi256_si128(rows23));
    _mm_storeu_si128((__m128i *)(void *)(out + 3 * stride), _mm256_extracti128_si256(rows23, 1));
}

/* Run the second pass of a group and store it. */
INLINE TARGET void transform(uint8_t *out, size_t stride, const struct group *rows)
{
    const __m256i *p = rows->pair;
    __m256i v[8];
    pass(v, p[0], p[1], p[2], p[3], PSTK__IDCT_ROUND_2);
    store_rows(out, stride, v);
    pass(v, p[4], p[5], p[6], p[7], PSTK__IDCT_ROUND_2);
    store_rows(out + 4 * stride, stride, v);
}

/* Transform a group of corners from coefficients to samples. */
INLINE TARGET void transform_corners(uint8_t *out, size_t stride, const __m256i pairs[2])
{
    __m256i v[8];
    corner_pass(v, pairs[0], pairs[1], PSTK__IDCT_ROUND_1);
    const __m256i rows01 = pack_rows(v[0], v[1]), rows23 = pack_rows(v[2], v[3]);
    const __m256i rows45 = pack_rows(v[4], v[5]), rows67 = pack_rows(v[6], v[7]);
    corner_pass(v, even_elements(rows01, rows23), odd_elements(rows01, rows23), PSTK__IDCT_ROUND_2);
    store_rows(out, stride, v);
    corner_pass(v, even_elements(rows45, rows67), odd_elements(rows45, rows67), PSTK__IDCT_ROUND_2);
    store_rows(out + 4 * stride, stride, v);
}

/* Store blocks without AC: one value each. Both passes shift, and the second one saturates. */
INLINE TARGET void flat_group(uint8_t *out, size_t stride, const uint64_t dc[GROUP][2])
{
    const __m128i words = _mm_set_epi64x((int64_t)dc[1][0], (int64_t)dc[0][0]);
    const __m128i scaled = _mm_srai_epi16(_mm_slli_epi16(words, 2), 4);
    const __m128i rounded = _mm_srai_epi16(_mm_add_epi16(scaled, _mm_set1_epi16(1)), 1);
    const __m128i bytes = _mm_xor_si128(_mm_packs_epi16(rounded, rounded), _mm_set1_epi8(-128));
    const __m128i row =
        _mm_shuffle_epi8(bytes, _mm_set_epi64x(0x0404040404040404, 0x0000000000000000));
    for (int y = 0; y < 8; y++, out += stride)
        _mm_storeu_si128((__m128i *)(void *)out, row);
}

/* ---- rows of blocks ------------------------------------------------------------------------- */

/* The data of a row except its chunks. */
struct row {
    struct table table;
    const uint16_t *quant;
    size_t stride;
    int is_far; /* 1: a first row may be too large for a shift by 2 */
};

INLINE TARGET void inverse_group(uint8_t *out, const struct row *r, struct chunk *chunk,
                                 uint32_t at, const int16_t **wide, int has_words)
{
    const uint64_t *maps = chunk->maps + GROUP * at, any = maps[0] | maps[1];
    struct group group, rows;
    if (any == 0) {
        flat_group(out, r->stride, chunk->dc + GROUP * at);
        return;
    }
    if ((any & ~PSTK__IDCT_CORNER) == 0 && !r->is_far && !has_words) {
        __m256i pairs[2];
        if (load_corners(pairs, chunk, at, &r->table) == 0) {
            transform_corners(out, r->stride, pairs);
            return;
        }
    }
    const int is_wide = load_group(&group, chunk, at, &r->table, wide, r->quant, has_words);
    columns(&rows, &group);
    const int is_first_row =
        (maps[0] & ~PSTK__IDCT_FIRST_ROW) == 0 || (maps[1] & ~PSTK__IDCT_FIRST_ROW) == 0;
    if (__builtin_expect((r->is_far | is_wide) && is_first_row, 0)) {
        struct group shifted = rows, from = group;
        shift_first_rows(&shifted, &from, maps);
        rows = shifted;
    }
    transform(out, r->stride, &rows);
}

INLINE TARGET void inverse(uint8_t *out, size_t stride, const struct pstk__block_row *blocks,
                           const uint16_t *quant, int has_words)
{
    struct row r = {.quant = quant, .stride = stride};
    struct chunk chunk;
    const int8_t *values = blocks->values;
    const int16_t *wide = blocks->wide;
    int is_first_row_far = 0;
    memset(chunk.dc, 0, sizeof chunk.dc);
    table_of(&r.table, quant, has_words);
    for (int i = 1; i < 8; i++)
        is_first_row_far |= quant[i] > 8191 / 127;
    for (uint32_t i = 0; i < blocks->n_blocks; i += CHUNK) {
        const uint32_t left = blocks->n_blocks - i, n = left < CHUNK ? left : CHUNK;
        r.is_far = is_first_row_far | fill_chunk(&chunk, blocks, i, quant[0], &values);
        for (uint32_t k = 0; k < n; k += GROUP, out += 8 * GROUP)
            inverse_group(out, &r, &chunk, k / GROUP, &wide, has_words);
    }
}

TARGET static void inverse_bytes(uint8_t *out, size_t stride, const struct pstk__block_row *blocks,
                                 const uint16_t *quant)
{
    inverse(out, stride, blocks, quant, 0);
}

TARGET static void inverse_words(uint8_t *out, size_t stride, const struct pstk__block_row *blocks,
                                 const uint16_t *quant)
{
    inverse(out, stride, blocks, quant, 1);
}

void pstk__jpeg_inverse_avx2(uint8_t *out, size_t stride, const struct pstk__block_row *blocks,
                             const uint16_t *quant)
{
    uint32_t all = 0;
    for (int i = 0; i < 64; i++)
        all |= quant[i];
    if (all > 0xFF)
        inverse_words(out, stride, blocks, quant);
    else
        inverse_bytes(out, stride, blocks, quant);
}

#endif
