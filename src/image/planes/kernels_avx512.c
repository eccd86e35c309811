/* SPDX-License-Identifier: Apache-2.0 */
/* planes/kernels_avx512: the kernels with AVX-512: 64 lanes are four vectors, whose chains of
 * look-up and product overlap; 16 are one. */
#include "image/jpeg/zigzag.h"
#include "image/planes/kernels.h"

#include <penstock/penstock.h>

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET                                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,"             \
                          "popcnt")))
#define PASS_TARGET TARGET
#include "image/planes/passes.h"

#define INLINE static inline __attribute__((always_inline)) TARGET

/* Look up the entries of 16 lanes. Bits 8 v to 8 v + 7 of `numbers` hold each lane's table
 * number. */
INLINE __m512i look_up(__m512i x, __m512i numbers, int v, const uint32_t *slots)
{
    const __m512i slot_mask = _mm512_set1_epi32(PSTK__RANS_ONE - 1);
    const __m512i number_mask = _mm512_set1_epi32(0xff << PSTK__RANS_BITS);
    const __m512i number = v < 2 ? _mm512_slli_epi32(numbers, PSTK__RANS_BITS - 8 * v)
                                 : _mm512_srli_epi32(numbers, 8 * v - PSTK__RANS_BITS);
    /* (number & number_mask) | (x & slot_mask): the masks are disjoint */
    const __m512i index =
        _mm512_ternarylogic_epi32(_mm512_and_si512(number, number_mask), x, slot_mask, 0xf8);
    return _mm512_i32gather_epi32(index, slots, 4);
}

/* Advance the states of active lanes past these symbols; states below 2^16 take the next words.
 * Reads 32 bytes. */
INLINE __m512i advance(__m512i x, __m512i e, __mmask16 active, const uint8_t **at)
{
    const __m512i frequency = _mm512_and_si512(_mm512_srli_epi32(e, 8), _mm512_set1_epi32(0xfff));
    const __m512i product = _mm512_mullo_epi32(frequency, _mm512_srli_epi32(x, PSTK__RANS_BITS));
    x = _mm512_mask_add_epi32(x, active, product, _mm512_srli_epi32(e, 20));
    const __mmask16 low = _mm512_cmplt_epu32_mask(x, _mm512_set1_epi32(PSTK__RANS_LOW));
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)*at));
    *at += 2 * (unsigned)__builtin_popcount(low);
    return _mm512_mask_or_epi32(x, low, _mm512_slli_epi32(x, 16),
                                _mm512_maskz_expand_epi32(low, words));
}

/* Interleave the low bytes of four vectors. */
INLINE __m512i low_bytes_of(const __m512i e[4])
{
    const __m512i low = _mm512_set1_epi32(0xff), lower = _mm512_set1_epi32(0xffff);
    /* mask ? one : other */
    const __m512i ab = _mm512_ternarylogic_epi32(low, e[0], _mm512_slli_epi32(e[1], 8), 0xca);
    const __m512i cd = _mm512_ternarylogic_epi32(low, e[2], _mm512_slli_epi32(e[3], 8), 0xca);
    return _mm512_ternarylogic_epi32(lower, ab, _mm512_slli_epi32(cd, 16), 0xca);
}

/* Decode a group of symbols, of which only the first n exist; 64 means all. Reads at most 128 bytes
 * of words. */
INLINE void group(__m512i x[4], uint8_t *out, __m512i numbers, uint32_t n, const uint32_t *slots,
                  const uint8_t **at)
{
    __m512i e[4];
    for (int v = 0; v < 4; v++)
        e[v] = look_up(x[v], numbers, v, slots);
    _mm512_storeu_si512(out, low_bytes_of(e));
    for (int v = 0; v < 4; v++) /* lane l has symbol 4 l + v */
        x[v] = advance(x[v], e[v], (__mmask16)((1u << (n + 3 - (unsigned)v) / 4) - 1), at);
}

/* Decode a run with 64 lanes. A group takes at most 128 bytes. As long as these are readable, it is
 * enough to check afterwards whether they were the strip's. */
TARGET static int run_64(struct pstk__rans_reader *reader, uint8_t *out, const uint8_t *table,
                         uint32_t n)
{
    const uint32_t *slots = reader->tables->slot;
    const uint8_t *at = reader->at;
    uint32_t i = 0;
    __m512i x[4];
    for (int v = 0; v < 4; v++)
        x[v] = _mm512_loadu_si512(reader->state + 16 * v);
    for (; n - i >= 64 && reader->limit - at >= 128; i += 64)
        group(x, out + i, _mm512_loadu_si512(table + i), 64, slots, &at);
    if (n - i > 0 && n - i < 64 && reader->limit - at >= 128) {
        const __mmask64 there = ((__mmask64)1 << (n - i)) - 1;
        group(x, out + i, _mm512_maskz_loadu_epi8(there, table + i), n - i, slots, &at);
        i = n;
    }
    for (int v = 0; v < 4; v++)
        _mm512_storeu_si512(reader->state + 16 * v, x[v]);
    reader->at = at;
    if (at > reader->end)
        return -1;
    return pstk__rans_run(reader, out + i, table + i, n - i);
}

/* Reorder bytes from the symbols' order to the lanes', or back. */
INLINE __m128i transpose(__m128i bytes)
{
    return _mm_shuffle_epi8(bytes,
                            _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
}

/* Decode a group of 16 symbols, of which only the active lanes' exist. Reads 32 bytes of words. */
INLINE __m512i group_16(__m512i x, uint8_t *out, __m128i numbers, __mmask16 active,
                        const uint32_t *slots, const uint8_t **at)
{
    const __m512i e = look_up(x, _mm512_cvtepu8_epi32(transpose(numbers)), 0, slots);
    _mm_storeu_si128((__m128i *)out, transpose(_mm512_cvtepi32_epi8(e)));
    return advance(x, e, active, at);
}

/* Decode a run with 16 lanes, as run_64; a group takes at most 32 bytes. */
TARGET static int run_16(struct pstk__rans_reader *reader, uint8_t *out, const uint8_t *table,
                         uint32_t n)
{
    const __m512i symbols = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const uint32_t *slots = reader->tables->slot;
    const uint8_t *at = reader->at;
    uint32_t i = 0;
    __m512i x = _mm512_loadu_si512(reader->state);
    for (; n - i >= 16 && reader->limit - at >= 32; i += 16)
        x = group_16(x, out + i, _mm_loadu_si128((const __m128i *)(table + i)), 0xffff, slots, &at);
    if (n - i > 0 && n - i < 16 && reader->limit - at >= 32) {
        const __mmask16 there = (__mmask16)((1u << (n - i)) - 1);
        const __mmask16 active = _mm512_cmplt_epu32_mask(symbols, _mm512_set1_epi32((int)(n - i)));
        x = group_16(x, out + i, _mm_maskz_loadu_epi8(there, table + i), active, slots, &at);
        i = n;
    }
    _mm512_storeu_si512(reader->state, x);
    reader->at = at;
    if (at > reader->end)
        return -1;
    return pstk__rans_run(reader, out + i, table + i, n - i);
}

TARGET static int run_avx512(struct pstk__rans_reader *reader, uint8_t *out, const uint8_t *table,
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

TARGET static void value_tables_avx512(uint8_t *out, const uint64_t *maps, const uint8_t *counts,
                                       uint32_t n, const uint8_t tables[9][64])
{
    for (uint32_t b = 0; b < n; b++) {
        const __m512i row = _mm512_loadu_si512(tables[counts[b]]);
        _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(maps[b], row));
        out += __builtin_popcountll(maps[b]);
    }
}

TARGET static uint32_t take_avx512(uint64_t *maps, int16_t *values, const int16_t *blocks,
                                   uint32_t n)
{
    /* indices for VPERMI2W that bring the two halves of a block into zigzag order */
    const __m512i places = _mm512_loadu_si512(pstk__zigzag);
    const __m512i first = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(places));
    const __m512i second = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(places, 1));
    int16_t *out = values;
    for (uint32_t b = 0; b < n; b++, blocks += 64) {
        const __m512i upper = _mm512_loadu_si512(blocks), lower = _mm512_loadu_si512(blocks + 32);
        const __m512i low = _mm512_permutex2var_epi16(upper, first, lower);
        const __m512i high = _mm512_permutex2var_epi16(upper, second, lower);
        const __mmask32 in_low = _mm512_test_epi16_mask(low, low) & ~1u;
        const __mmask32 in_high = _mm512_test_epi16_mask(high, high);
        maps[b] = (uint64_t)in_high << 32 | in_low;
        _mm512_storeu_si512(out, _mm512_maskz_compress_epi16(in_low, low));
        out += __builtin_popcount(in_low);
        _mm512_storeu_si512(out, _mm512_maskz_compress_epi16(in_high, high));
        out += __builtin_popcount(in_high);
    }
    return (uint32_t)(out - values);
}

TARGET static uint32_t count_wide_avx512(const int8_t *values, uint32_t n)
{
    const __m512i wide = _mm512_set1_epi8(PSTK__PLANES_WIDE);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i += 64) {
        const __mmask64 there = n - i < 64 ? ((__mmask64)1 << (n - i)) - 1 : ~(__mmask64)0;
        const __m512i v = _mm512_maskz_loadu_epi8(there, values + i);
        sum += (uint64_t)__builtin_popcountll(_mm512_cmpeq_epi8_mask(v, wide));
    }
    return (uint32_t)sum;
}

const struct pstk__planes_kernels pstk__planes_kernels_avx512 = {
    .isa = PSTK_KERNELS_AVX512,
    .run = run_avx512,
    .value_tables = value_tables_avx512,
    .take = take_avx512,
    .count_wide = count_wide_avx512,
    PASSES,
};

#endif
