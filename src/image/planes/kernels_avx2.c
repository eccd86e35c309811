/* SPDX-License-Identifier: Apache-2.0 */
/* planes/kernels_avx2: the kernels with AVX2: 64 lanes are eight vectors, 16 are two. */
#include "image/planes/kernels.h"

#include "image/jpeg/zigzag.h"

#include <penstock/penstock.h>

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define PASS_TARGET TARGET
#include "image/planes/passes.h"

#define INLINE static inline __attribute__((always_inline)) TARGET

/* Shuffles, one for each set of lanes that take a word. A shuffle moves to each of these lanes its
 * word, in the low half of 32 bits: the word's number is that of the bits set below the lane's bit.
 * Other lanes get 0. */
#define W1(m, i)                                                                                   \
    ((m) >> (i)&1 ? 0x80800100u + 0x0202u * __builtin_popcount((m) & ((1u << (i)) - 1))            \
                  : 0x80808080u)
#define W8(m)                                                                                      \
    {                                                                                              \
        W1(m, 0), W1(m, 1), W1(m, 2), W1(m, 3), W1(m, 4), W1(m, 5), W1(m, 6), W1(m, 7)             \
    }
#define W32(m) W8(m), W8((m) + 1), W8((m) + 2), W8((m) + 3)
#define W128(m) W32(m), W32((m) + 4), W32((m) + 8), W32((m) + 12)
#define W512(m) W128(m), W128((m) + 16), W128((m) + 32), W128((m) + 48)
static const uint32_t _Alignas(32) words_of[256][8] = {W512(0u), W512(64u), W512(128u), W512(192u)};

/* The positions of a byte's set bits, lowest first, for each byte of a map. */
#define P1(m)                                                                                      \
    (B2(m, 0) | B2(m, 1) | B2(m, 2) | B2(m, 3) | B2(m, 4) | B2(m, 5) | B2(m, 6) | B2(m, 7))
#define B2(m, i)                                                                                   \
    ((m) >> (i)&1 ? (uint64_t)(i) << (8 * __builtin_popcount((m) & ((1u << (i)) - 1))) : 0)
#define P4(m) P1(m), P1((m) + 1), P1((m) + 2), P1((m) + 3)
#define P16(m) P4(m), P4((m) + 4), P4((m) + 8), P4((m) + 12)
#define P64(m) P16(m), P16((m) + 16), P16((m) + 32), P16((m) + 48)
static const uint64_t places_of[256] = {P64(0u), P64(64u), P64(128u), P64(192u)};

/* Return the indices of the slots of 8 lanes. Bits 8 v to 8 v + 7 of `numbers` hold each lane's
 * table number. */
INLINE __m256i slots_of(__m256i x, __m256i numbers, int v)
{
    const __m256i number = v < 2 ? _mm256_slli_epi32(numbers, PSTK__RANS_BITS - 8 * v)
                                 : _mm256_srli_epi32(numbers, 8 * v - PSTK__RANS_BITS);
    return _mm256_or_si256(_mm256_and_si256(number, _mm256_set1_epi32(0xff << PSTK__RANS_BITS)),
                           _mm256_and_si256(x, _mm256_set1_epi32(PSTK__RANS_ONE - 1)));
}

INLINE __m256i entry(const uint32_t *slots, uint32_t index)
{
    return _mm256_castps_si256(_mm256_broadcast_ss((const float *)(const void *)(slots + index)));
}

/* Look up the entries of 8 lanes. Loads that fill a vector and blends take half the time of a
 * gather, and a third where the CPU's gathers were slowed against data sampling. */
INLINE __m256i look_up(const uint32_t index[8], const uint32_t *slots)
{
    const __m256i ab = _mm256_blend_epi32(entry(slots, index[0]), entry(slots, index[1]), 0x02);
    const __m256i cd = _mm256_blend_epi32(entry(slots, index[2]), entry(slots, index[3]), 0x08);
    const __m256i ef = _mm256_blend_epi32(entry(slots, index[4]), entry(slots, index[5]), 0x20);
    const __m256i gh = _mm256_blend_epi32(entry(slots, index[6]), entry(slots, index[7]), 0x80);
    return _mm256_blend_epi32(_mm256_blend_epi32(ab, cd, 0x0c), _mm256_blend_epi32(ef, gh, 0xc0),
                              0xf0);
}

/* Advance the states past these symbols; states below 2^16 take the next words. Reads 16 bytes. */
INLINE __m256i advance(__m256i x, __m256i e, __m256i active, const uint8_t **at)
{
    const __m256i frequency = _mm256_and_si256(_mm256_srli_epi32(e, 8), _mm256_set1_epi32(0xfff));
    const __m256i next =
        _mm256_add_epi32(_mm256_mullo_epi32(frequency, _mm256_srli_epi32(x, PSTK__RANS_BITS)),
                         _mm256_srli_epi32(e, 20));
    x = _mm256_blendv_epi8(x, next, active);
    const __m256i low = _mm256_cmpeq_epi32(_mm256_srli_epi32(x, 16), _mm256_setzero_si256());
    const unsigned set = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(low));
    const __m256i next_words = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)*at));
    const __m256i words =
        _mm256_shuffle_epi8(next_words, _mm256_load_si256((const __m256i *)words_of[set]));
    *at += 2 * (unsigned)__builtin_popcount(set);
    const __m256i shift = _mm256_and_si256(low, _mm256_set1_epi32(16));
    return _mm256_or_si256(_mm256_sllv_epi32(x, shift), words);
}

/* Interleave the low bytes of four vectors. */
INLINE __m256i low_bytes_of(const __m256i e[4])
{
    const __m256i low = _mm256_set1_epi32(0xff);
    const __m256i ab = _mm256_or_si256(_mm256_and_si256(e[0], low),
                                       _mm256_slli_epi32(_mm256_and_si256(e[1], low), 8));
    const __m256i cd = _mm256_or_si256(_mm256_slli_epi32(_mm256_and_si256(e[2], low), 16),
                                       _mm256_slli_epi32(e[3], 24));
    return _mm256_or_si256(ab, cd);
}

/* Decode a group of symbols, of which only the first n exist. Lanes 16 v + 8 h .. + 7 are x[h][v];
 * lane 16 v + l has symbol 4 l + v. Reads at most 128 bytes of words. */
INLINE void group(__m256i x[2][4], uint8_t *out, const uint8_t *table, uint32_t n,
                  const uint32_t *slots, const uint8_t **at)
{
    const __m256i symbols = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    uint32_t _Alignas(32) index[2][4][8];
    __m256i e[2][4];
    for (int h = 0; h < 2; h++) {
        const __m256i numbers = _mm256_loadu_si256((const __m256i *)(table + 32 * h));
        for (int v = 0; v < 4; v++)
            _mm256_store_si256((__m256i *)index[h][v], slots_of(x[h][v], numbers, v));
    }
    __asm__(""
            : "+m"(index)); /* keeps the compiler from taking the indices out of their registers */
    for (int v = 0; v < 4; v++)
        for (int h = 0; h < 2; h++)
            e[h][v] = look_up(index[h][v], slots);
#pragma GCC unroll 4
    for (int v = 0; v < 4; v++)
        for (int h = 0; h < 2; h++) {
            const __m256i left = _mm256_set1_epi32((int)n - v - 32 * h);
            const __m256i active =
                n == 64 ? _mm256_set1_epi32(-1) : _mm256_cmpgt_epi32(left, symbols);
            x[h][v] = advance(x[h][v], e[h][v], active, at);
        }
    for (int h = 0; h < 2; h++)
        _mm256_storeu_si256((__m256i *)(out + 32 * h), low_bytes_of(e[h]));
}

/* Decode a run with 64 lanes. A group takes at most 128 bytes. As long as these are readable, it is
 * enough to check afterwards whether they were the strip's. */
TARGET static int run_64(struct pstk__rans_reader *reader, uint8_t *out, const uint8_t *table,
                         uint32_t n)
{
    const uint32_t *slots = reader->tables->slot;
    const uint8_t *at = reader->at;
    uint32_t i = 0;
    __m256i x[2][4];
    for (int k = 0; k < 8; k++)
        x[k % 2][k / 2] = _mm256_loadu_si256((const __m256i *)(reader->state + 8 * k));
    for (; n - i >= 64 && reader->limit - at >= 128; i += 64)
        group(x, out + i, table + i, 64, slots, &at);
    if (n - i > 0 && n - i < 64 && reader->limit - at >= 128) {
        uint8_t last[64] = {0};
        memcpy(last, table + i, n - i);
        group(x, out + i, last, n - i, slots, &at);
        i = n;
    }
    for (int k = 0; k < 8; k++)
        _mm256_storeu_si256((__m256i *)(reader->state + 8 * k), x[k % 2][k / 2]);
    reader->at = at;
    if (at > reader->end)
        return -1;
    return pstk__rans_run(reader, out + i, table + i, n - i);
}

/* Return the low bytes of 16 lanes in the order of their symbols. */
INLINE __m128i symbols_of(const __m256i e[2])
{
    const __m256i low = _mm256_set1_epi32(0xff);
    const __m256i pairs =
        _mm256_packus_epi32(_mm256_and_si256(e[0], low), _mm256_and_si256(e[1], low));
    /* lanes 0..3, 8..11, 4..7, 12..15 */
    const __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    return _mm_shuffle_epi8(bytes,
                            _mm_setr_epi8(0, 8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15));
}

/* Decode a group of 16 symbols, of which only the first n exist. Lanes 8 h .. + 7 are x[h]. Reads
 * at most 32 bytes of words. */
INLINE void group_16(__m256i x[2], uint8_t *out, const uint8_t *table, uint32_t n,
                     const uint32_t *slots, const uint8_t **at)
{
    const __m128i to_lanes = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m256i symbols[2] = {_mm256_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13),
                                _mm256_setr_epi32(2, 6, 10, 14, 3, 7, 11, 15)};
    const __m128i numbers = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)table), to_lanes);
    __m256i e[2];
    uint32_t _Alignas(32) index[2][8];
    const __m256i lower = _mm256_cvtepu8_epi32(numbers);
    const __m256i upper = _mm256_cvtepu8_epi32(_mm_srli_si128(numbers, 8));
    _mm256_store_si256((__m256i *)index[0], slots_of(x[0], lower, 0));
    _mm256_store_si256((__m256i *)index[1], slots_of(x[1], upper, 0));
    __asm__(""
            : "+m"(index)); /* keeps the compiler from taking the indices out of their registers */
    e[0] = look_up(index[0], slots);
    e[1] = look_up(index[1], slots);
    _mm_storeu_si128((__m128i *)out, symbols_of(e));
    for (int h = 0; h < 2; h++) {
        const __m256i active = n == 16 ? _mm256_set1_epi32(-1)
                                       : _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), symbols[h]);
        x[h] = advance(x[h], e[h], active, at);
    }
}

/* Decode a run with 16 lanes, as run_64; a group takes at most 32 bytes. */
TARGET static int run_16(struct pstk__rans_reader *reader, uint8_t *out, const uint8_t *table,
                         uint32_t n)
{
    const uint32_t *slots = reader->tables->slot;
    const uint8_t *at = reader->at;
    uint32_t i = 0;
    __m256i x[2];
    for (int h = 0; h < 2; h++)
        x[h] = _mm256_loadu_si256((const __m256i *)(reader->state + 8 * h));
    for (; n - i >= 16 && reader->limit - at >= 32; i += 16)
        group_16(x, out + i, table + i, 16, slots, &at);
    if (n - i > 0 && n - i < 16 && reader->limit - at >= 32) {
        uint8_t last[16] = {0};
        memcpy(last, table + i, n - i);
        group_16(x, out + i, last, n - i, slots, &at);
        i = n;
    }
    for (int h = 0; h < 2; h++)
        _mm256_storeu_si256((__m256i *)(reader->state + 8 * h), x[h]);
    reader->at = at;
    if (at > reader->end)
        return -1;
    return pstk__rans_run(reader, out + i, table + i, n - i);
}

TARGET static int run_avx2(struct pstk__rans_reader *reader, uint8_t *out, const uint8_t *table,
                           uint32_t n)
{
    switch (reader->n_lanes) {
    case PSTK__RANS_LANES:
        return run_64(reader, out, table, n);
    case PSTK__RANS_SOME_LANES:
        return run_16(reader, out, table, n);
    default:
        return pstk__rans_run(reader, out, table, n);
    }
}

/* Append the bytes of eight places of a map. */
INLINE uint8_t *compress_eight(uint8_t *out, const uint8_t *row, uint64_t map)
{
    const __m128i places = _mm_loadl_epi64((const __m128i *)&places_of[map & 255]);
    const __m128i eight = _mm_loadl_epi64((const __m128i *)row);
    _mm_storel_epi64((__m128i *)out, _mm_shuffle_epi8(eight, places));
    return out + __builtin_popcountll(map & 255);
}

/* Handle half of a map without a branch, the other half with one: the number of a map's bytes is
 * hard to predict. */
TARGET static void value_tables_avx2(uint8_t *out, const uint64_t *maps, const uint8_t *counts,
                                     uint32_t n, const uint8_t tables[9][64])
{
    for (uint32_t b = 0; b < n; b++) {
        const uint8_t *row = tables[counts[b]];
        const uint64_t map = maps[b];
        for (int i = 0; i < 4; i++)
            out = compress_eight(out, row + 8 * i, map >> 8 * i);
        for (int i = 4; i < 8 && map >> 32 != 0; i++)
            out = compress_eight(out, row + 8 * i, map >> 8 * i);
    }
}

TARGET static uint32_t count_wide_avx2(const int8_t *values, uint32_t n)
{
    const __m256i wide = _mm256_set1_epi8(PSTK__PLANES_WIDE), zero = _mm256_setzero_si256();
    __m256i sums = zero; /* four partial sums */
    uint32_t i = 0;
    for (; n - i >= 64; i += 64) {
        const __m256i a =
            _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(values + i)), wide);
        const __m256i b =
            _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(values + i + 32)), wide);
        const __m256i counts = _mm256_sub_epi8(zero, _mm256_add_epi8(a, b));
        sums = _mm256_add_epi64(sums, _mm256_sad_epu8(counts, zero));
    }
    const __m128i two =
        _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    uint32_t sum = (uint32_t)(_mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1));
    for (; i < n; i += 32) {
        const __m256i is_wide =
            _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(values + i)), wide);
        const uint32_t there = n - i < 32 ? (1u << (n - i)) - 1 : UINT32_MAX;
        sum += (uint32_t)__builtin_popcount((uint32_t)_mm256_movemask_epi8(is_wide) & there);
    }
    return sum;
}

/* Shuffles of rows 2 r and 2 r + 1 of a block, a byte each coefficient. They bring the coefficients
 * whose zigzag places are in the first or second half to these places. Other bytes get 0. */
#define Z(r, place) ((place) / 16 == (r) ? (place) % 16 : 0x80)
#define FIRST(r)                                                                                   \
    {                                                                                              \
        Z(r, 0), Z(r, 1), Z(r, 8), Z(r, 16), Z(r, 9), Z(r, 2), Z(r, 3), Z(r, 10), Z(r, 17),        \
            Z(r, 24), Z(r, 32), Z(r, 25), Z(r, 18), Z(r, 11), Z(r, 4), Z(r, 5), Z(r, 12),          \
            Z(r, 19), Z(r, 26), Z(r, 33), Z(r, 40), Z(r, 48), Z(r, 41), Z(r, 34), Z(r, 27),        \
            Z(r, 20), Z(r, 13), Z(r, 6), Z(r, 7), Z(r, 14), Z(r, 21), Z(r, 28)                     \
    }
#define SECOND(r)                                                                                  \
    {                                                                                              \
        Z(r, 35), Z(r, 42), Z(r, 49), Z(r, 56), Z(r, 57), Z(r, 50), Z(r, 43), Z(r, 36), Z(r, 29),  \
            Z(r, 22), Z(r, 15), Z(r, 23), Z(r, 30), Z(r, 37), Z(r, 44), Z(r, 51), Z(r, 58),        \
            Z(r, 59), Z(r, 52), Z(r, 45), Z(r, 38), Z(r, 31), Z(r, 39), Z(r, 46), Z(r, 53),        \
            Z(r, 60), Z(r, 61), Z(r, 54), Z(r, 47), Z(r, 55), Z(r, 62), Z(r, 63)                   \
    }
static const uint8_t _Alignas(32) zigzag_shuffle[2][4][32] = {
    {FIRST(0), FIRST(1), FIRST(2), FIRST(3)}, {SECOND(0), SECOND(1), SECOND(2), SECOND(3)}};

/* Return a block's map, without its DC. */
INLINE uint64_t map_of(const int16_t *block)
{
    const __m128i *rows = (const __m128i *)(const void *)block;
    __m256i first = _mm256_setzero_si256(), second = first;
    for (uint32_t r = 0; r < 4; r++) { /* saturated, so a coefficient that is not 0 stays so */
        const __m256i two = _mm256_broadcastsi128_si256(
            _mm_packs_epi16(_mm_loadu_si128(rows + 2 * r), _mm_loadu_si128(rows + 2 * r + 1)));
        const __m256i *shuffle = (const __m256i *)(const void *)zigzag_shuffle;
        first = _mm256_or_si256(first, _mm256_shuffle_epi8(two, shuffle[r]));
        second = _mm256_or_si256(second, _mm256_shuffle_epi8(two, shuffle[4 + r]));
    }
    first = _mm256_cmpeq_epi8(first, _mm256_setzero_si256());
    second = _mm256_cmpeq_epi8(second, _mm256_setzero_si256());
    const uint32_t low = ~(uint32_t)_mm256_movemask_epi8(first) & ~1u;
    return (uint64_t) ~(uint32_t)_mm256_movemask_epi8(second) << 32 | low;
}

/* Take four values at a time, up to three more than exist. */
TARGET static uint32_t take_avx2(uint64_t *maps, int16_t *values, const int16_t *blocks, uint32_t n)
{
    int16_t *out = values;
    for (uint32_t b = 0; b < n; b++, blocks += 64) {
        const uint64_t map = map_of(blocks);
        int16_t *at = out;
        for (uint64_t left = map; left != 0; at += 4)
            for (uint32_t i = 0; i < 4; i++, left = _blsr_u64(left))
                at[i] = blocks[pstk__zigzag[_tzcnt_u64(left) & 63]];
        maps[b] = map;
        out += _mm_popcnt_u64(map);
    }
    return (uint32_t)(out - values);
}

const struct pstk__planes_kernels pstk__planes_kernels_avx2 = {
    .isa = PSTK_KERNELS_AVX2,
    .run = run_avx2,
    .value_tables = value_tables_avx2,
    .take = take_avx2,
    .count_wide = count_wide_avx2,
    PASSES,
};

#endif
