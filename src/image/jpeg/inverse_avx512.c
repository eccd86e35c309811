/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/inverse_avx512: the inverse DCT with AVX-512, VBMI2 and VNNI: four blocks at a time, one in
 * each lane. */
#include "image/jpeg/inverse.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define TARGET                                                                                     \
    __attribute__((                                                                                \
        target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vnni,bmi,bmi2,popcnt")))
#define INLINE static inline __attribute__((always_inline))
#define ALIGNED _Alignas(64)

#define GROUP 4u /* blocks transformed together */

#define TIMES_4(...) __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__
#define FACTORS(low, high)                                                                         \
    {                                                                                              \
        TIMES_4(TIMES_4(low, high))                                                                \
    }

/* Factors for the halves of every 32-bit element, named by their result. */
struct factors {
    int16_t ALIGNED one[32];
    int16_t even0[32], even1[32], even2[32], even3[32];
    int16_t z3[32], z4[32];
    int16_t odd0[32], odd1[32], odd2[32], odd3[32];
    int16_t corner_even0[32], corner_even1[32], corner_even2[32], corner_even3[32];
    int16_t corner_odd0[32], corner_odd1[32], corner_odd2[32], corner_odd3[32];
    uint8_t high_halves[64]; /* upper halves of 32-bit elements, moved to the lower half */
    uint8_t rows01[64];      /* see store_rows */
    uint8_t rows23[64];
};

static const uint8_t ALIGNED natural_places[64] = PSTK__IDCT_NATURAL_PLACES;
static const uint8_t ALIGNED zigzag_places[64] = PSTK__IDCT_ZIGZAG_PLACES;
static const uint8_t ALIGNED corner_natural_places[16] = PSTK__IDCT_CORNER_NATURAL_PLACES;
static const uint8_t ALIGNED corner_zigzag_places[16] = PSTK__IDCT_CORNER_ZIGZAG_PLACES;
static const uint8_t layout_places[64] = PSTK__IDCT_LAYOUT_PLACES;

static const struct factors factors = {
    .one = FACTORS(PSTK__IDCT_ONE, 0),
    .even0 = FACTORS(PSTK__IDCT_1_307, PSTK__IDCT_0_541),
    .even1 = FACTORS(PSTK__IDCT_0_541, PSTK__IDCT_M1_307),
    .even2 = FACTORS(-PSTK__IDCT_0_541, -PSTK__IDCT_M1_307),
    .even3 = FACTORS(-PSTK__IDCT_1_307, -PSTK__IDCT_0_541),
    .z3 = FACTORS(PSTK__IDCT_M0_786, PSTK__IDCT_1_176),
    .z4 = FACTORS(PSTK__IDCT_1_176, PSTK__IDCT_0_786),
    .odd0 = FACTORS(PSTK__IDCT_M0_900, PSTK__IDCT_0_601),
    .odd1 = FACTORS(PSTK__IDCT_0_510, PSTK__IDCT_M2_563),
    .odd2 = FACTORS(PSTK__IDCT_M2_563, PSTK__IDCT_M0_510),
    .odd3 = FACTORS(PSTK__IDCT_M0_601, PSTK__IDCT_M0_900),
    .corner_even0 = FACTORS(PSTK__IDCT_ONE, PSTK__IDCT_1_307),
    .corner_even1 = FACTORS(PSTK__IDCT_ONE, PSTK__IDCT_0_541),
    .corner_even2 = FACTORS(PSTK__IDCT_ONE, -PSTK__IDCT_0_541),
    .corner_even3 = FACTORS(PSTK__IDCT_ONE, -PSTK__IDCT_1_307),
    .corner_odd0 = FACTORS(PSTK__IDCT_ODD0_1, PSTK__IDCT_ODD0_3),
    .corner_odd1 = FACTORS(PSTK__IDCT_ODD1_1, PSTK__IDCT_ODD1_3),
    .corner_odd2 = FACTORS(PSTK__IDCT_ODD2_1, PSTK__IDCT_ODD2_3),
    .corner_odd3 = FACTORS(PSTK__IDCT_ODD3_1, PSTK__IDCT_ODD3_3),
    .high_halves = {TIMES_4(2, 3, 2, 3, 6, 7, 6, 7, 10, 11, 10, 11, 14, 15, 14, 15)},
    .rows01 = {0,  1,  8,  9,  0,  1,  8,  9,  16, 17, 24, 25, 16, 17, 24, 25,
               32, 33, 40, 41, 32, 33, 40, 41, 48, 49, 56, 57, 48, 49, 56, 57,
               2,  3,  10, 11, 2,  3,  10, 11, 18, 19, 26, 27, 18, 19, 26, 27,
               34, 35, 42, 43, 34, 35, 42, 43, 50, 51, 58, 59, 50, 51, 58, 59},
    .rows23 = {4,  5,  12, 13, 4,  5,  12, 13, 20, 21, 28, 29, 20, 21, 28, 29,
               36, 37, 44, 45, 36, 37, 44, 45, 52, 53, 60, 61, 52, 53, 60, 61,
               6,  7,  14, 15, 6,  7,  14, 15, 22, 23, 30, 31, 22, 23, 30, 31,
               38, 39, 46, 47, 38, 39, 46, 47, 54, 55, 62, 63, 54, 55, 62, 63},
};

/* Quantisation factors for `dequantise`, of the even and of the odd columns, by pair of rows: bytes
 * with zeros between them, or words. */
struct table {
    __m512i even[4], odd[4];
    __m512i corner_even, corner_odd; /* bytes only */
};

/* Coefficients of a group: [2 * pair of rows + (odd columns)]; block b is in lane b. */
struct group {
    __m512i pair[8];
};

/* The blocks after the last whole group, filled up with zeros. */
struct tail {
    uint64_t maps[GROUP];
    int16_t dc[GROUP];
};

/* The data that all groups of a row of blocks share. */
struct row {
    const struct pstk__block_row *blocks;
    const uint16_t *quant;
    const struct factors *f;
    struct table table;
    struct tail tail;
    __m128i dc_factor;
    size_t stride;
    int is_far; /* 1: a first row may be too large for a shift by 2 */
};

/* The next group's values. */
struct cursor {
    const int8_t *values;
    const int16_t *wide;
};

/* ---- expansion ------------------------------------------------------------------------------ */

INLINE TARGET __m512i load_512(const void *p)
{
    return _mm512_loadu_si512(p);
}

INLINE TARGET __m512i load_128_4_times(const void *p)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128(p));
}

/* Gather sixteen bytes for each lane, even and odd ones apart. */
INLINE TARGET void gather_bytes(__m512i *even, __m512i *odd, __m512i bytes, const uint8_t *places)
{
    const __m512i at = load_128_4_times(places);
    *even = _mm512_maskz_permutexvar_epi8(0x5555555555555555ull, at, bytes);
    *odd = _mm512_maskz_permutexvar_epi8(0xAAAAAAAAAAAAAAAAull, at, bytes);
}

/* Make the table; all factors must fit a byte. */
INLINE TARGET struct table byte_table(const uint16_t *quant)
{
    const __m256i low = _mm512_cvtepi16_epi8(load_512(quant));
    const __m256i high = _mm512_cvtepi16_epi8(load_512(quant + 32));
    const __m512i all = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    struct table t;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        gather_bytes(&t.even[i], &t.odd[i], all, natural_places + 16 * i);
    gather_bytes(&t.corner_even, &t.corner_odd, all, corner_natural_places);
    return t;
}

TARGET static struct table word_table(const uint16_t *quant)
{
    struct table t = {.corner_even = _mm512_setzero_si512()};
    for (int i = 0; i < 4; i++) {
        uint16_t even[8], odd[8];
        for (int k = 0; k < 8; k++) {
            even[k] = quant[natural_places[16 * i + 2 * k]];
            odd[k] = quant[natural_places[16 * i + 2 * k + 1]];
        }
        t.even[i] = load_128_4_times(even);
        t.odd[i] = load_128_4_times(odd);
    }
    return t;
}

/* Expand the coefficients of a block to bytes in zigzag order, and move the cursor past them. */
INLINE TARGET __m512i expand(uint64_t map, struct cursor *cursor)
{
    const __m512i values = load_512(cursor->values);
    cursor->values += __builtin_popcountll(map);
    return _mm512_maskz_expand_epi8(map, values);
}

/* Multiply signed bytes by their factors. Byte factors are at most 255 with a zero next to them, so
 * the instruction never saturates. */
INLINE TARGET void dequantise(struct group *group, __m512i bytes, const struct table *t, int pair,
                              int has_words)
{
    if (has_words) {
        const __m512i even = _mm512_srai_epi16(_mm512_slli_epi16(bytes, 8), 8);
        group->pair[2 * pair] = _mm512_mullo_epi16(even, t->even[pair]);
        group->pair[2 * pair + 1] = _mm512_mullo_epi16(_mm512_srai_epi16(bytes, 8), t->odd[pair]);
    } else {
        group->pair[2 * pair] = _mm512_maddubs_epi16(t->even[pair], bytes);
        group->pair[2 * pair + 1] = _mm512_maddubs_epi16(t->odd[pair], bytes);
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

/* Put wide coefficients in a group in registers. */
INLINE TARGET void patch_group(struct group *group, const uint64_t at[GROUP], struct cursor *cursor,
                               const uint16_t *quant)
{
    int16_t ALIGNED coefficients[8][8 * GROUP];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        _mm512_store_si512(coefficients[i], group->pair[i]);
    cursor->wide = patch(coefficients, at, cursor->wide, quant);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        group->pair[i] = _mm512_load_si512(coefficients[i]);
}

/* Move four DCs to the first words of their lanes. */
INLINE TARGET __m512i lanes_of_dc(__m128i dc)
{
    const __m512i at = _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0);
    return _mm512_maskz_permutexvar_epi16(0x01010101, at, _mm512_castsi128_si512(dc));
}

/* A group being expanded: bytes in zigzag order, and in the order of zigzag_places. */
struct expanded {
    __m512i zigzag[GROUP], ordered[GROUP];
};

INLINE TARGET void expand_group(struct expanded *expanded, const uint64_t maps[GROUP],
                                struct cursor *cursor)
{
    const __m512i order = load_512(zigzag_places);
#pragma GCC unroll 4
    for (uint32_t b = 0; b < GROUP; b++) {
        expanded->zigzag[b] = expand(maps[b], cursor);
        expanded->ordered[b] = _mm512_permutexvar_epi8(order, expanded->zigzag[b]);
    }
}

/* Load the group's coefficients, dequantised. Returns 1 when some are wide. */
INLINE TARGET int dequantise_group(struct group *group, const struct expanded *expanded, __m128i dc,
                                   struct cursor *cursor, const struct row *row, int has_words)
{
    const __m512i *z = expanded->zigzag, *o = expanded->ordered, escape = _mm512_set1_epi8(-128);
    const __m512i least = _mm512_min_epi8(_mm512_min_epi8(z[0], z[1]), _mm512_min_epi8(z[2], z[3]));
    const int is_wide = _mm512_cmpeq_epi8_mask(least, escape) != 0;

    /* Four lanes of each block become four blocks of each lane. */
    const __m512i upper01 = _mm512_shuffle_i64x2(o[0], o[1], 0x44);
    const __m512i upper23 = _mm512_shuffle_i64x2(o[2], o[3], 0x44);
    const __m512i lower01 = _mm512_shuffle_i64x2(o[0], o[1], 0xEE);
    const __m512i lower23 = _mm512_shuffle_i64x2(o[2], o[3], 0xEE);
    const struct table *t = &row->table;
    dequantise(group, _mm512_shuffle_i64x2(upper01, upper23, 0x88), t, 0, has_words);
    dequantise(group, _mm512_shuffle_i64x2(upper01, upper23, 0xDD), t, 1, has_words);
    dequantise(group, _mm512_shuffle_i64x2(lower01, lower23, 0x88), t, 2, has_words);
    dequantise(group, _mm512_shuffle_i64x2(lower01, lower23, 0xDD), t, 3, has_words);
    if (__builtin_expect(is_wide, 0)) {
        const uint64_t at[GROUP] = {
            _mm512_cmpeq_epi8_mask(z[0], escape), _mm512_cmpeq_epi8_mask(z[1], escape),
            _mm512_cmpeq_epi8_mask(z[2], escape), _mm512_cmpeq_epi8_mask(z[3], escape)};
        patch_group(group, at, cursor, row->quant);
    }
    group->pair[0] = _mm512_or_si512(group->pair[0], lanes_of_dc(dc));
    return is_wide;
}

/* Load a group of corners: pairs[0] holds rows 0 and 2, [1] rows 1 and 3. Returns 1 when some
 * coefficients are wide; then nothing was done. */
INLINE TARGET int load_corners(__m512i pairs[2], const uint64_t maps[GROUP], __m128i dc,
                               struct cursor *cursor, const struct table *t)
{
    struct cursor c = *cursor;
    const __m512i at = load_128_4_times(corner_zigzag_places);
    const __m512i e0 = expand(maps[0], &c), e1 = expand(maps[1], &c);
    const __m512i e2 = expand(maps[2], &c), e3 = expand(maps[3], &c);
    const __m512i e01 =
        _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(at, e0), 0xFFFF0000ull, at, e1);
    const __m512i e23 =
        _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(at, e2), 0xFFFFull << 48, at, e3);
    const __m512i bytes = _mm512_mask_blend_epi64(0xF0, e01, e23);
    if (__builtin_expect(_mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(-128)) != 0, 0))
        return 1;
    pairs[0] = _mm512_or_si512(_mm512_maddubs_epi16(t->corner_even, bytes), lanes_of_dc(dc));
    pairs[1] = _mm512_maddubs_epi16(t->corner_odd, bytes);
    *cursor = c;
    return 0;
}

/* ---- transform ------------------------------------------------------------------------------ */

/* Transform one dimension, for 16 places: eight results each, not yet shifted. */
INLINE TARGET void pass(__m512i out[8], const struct factors *f, __m512i p04, __m512i p26,
                        __m512i p71, __m512i p35, int32_t half)
{
    const __m512i p40 = _mm512_rol_epi32(p04, 16), round = _mm512_set1_epi32(half);
    const __m512i one = load_512(f->one);
    const __m512i sum = _mm512_dpwssd_epi32(round, _mm512_add_epi16(p04, p40), one);
    const __m512i difference = _mm512_dpwssd_epi32(round, _mm512_sub_epi16(p04, p40), one);
    const __m512i even0 = _mm512_dpwssd_epi32(sum, p26, load_512(f->even0));
    const __m512i even3 = _mm512_dpwssd_epi32(sum, p26, load_512(f->even3));
    const __m512i even1 = _mm512_dpwssd_epi32(difference, p26, load_512(f->even1));
    const __m512i even2 = _mm512_dpwssd_epi32(difference, p26, load_512(f->even2));

    const __m512i z = _mm512_add_epi16(p71, p35);
    const __m512i z3 = _mm512_madd_epi16(z, load_512(f->z3));
    const __m512i z4 = _mm512_madd_epi16(z, load_512(f->z4));
    const __m512i odd0 = _mm512_dpwssd_epi32(z4, p71, load_512(f->odd0));
    const __m512i odd1 = _mm512_dpwssd_epi32(z3, p35, load_512(f->odd1));
    const __m512i odd2 = _mm512_dpwssd_epi32(z4, p35, load_512(f->odd2));
    const __m512i odd3 = _mm512_dpwssd_epi32(z3, p71, load_512(f->odd3));

    out[0] = _mm512_add_epi32(even0, odd0);
    out[1] = _mm512_add_epi32(even1, odd1);
    out[2] = _mm512_add_epi32(even2, odd2);
    out[3] = _mm512_add_epi32(even3, odd3);
    out[4] = _mm512_sub_epi32(even3, odd3);
    out[5] = _mm512_sub_epi32(even2, odd2);
    out[6] = _mm512_sub_epi32(even1, odd1);
    out[7] = _mm512_sub_epi32(even0, odd0);
}

/* Transform when inputs 4..7 are 0. No sum of 16 bits can wrap then, so each product has one input.
 */
INLINE TARGET void corner_pass(__m512i out[8], const struct factors *f, __m512i p02, __m512i p13,
                               int32_t half)
{
    const __m512i round = _mm512_set1_epi32(half);
    const __m512i even0 = _mm512_dpwssd_epi32(round, p02, load_512(f->corner_even0));
    const __m512i even1 = _mm512_dpwssd_epi32(round, p02, load_512(f->corner_even1));
    const __m512i even2 = _mm512_dpwssd_epi32(round, p02, load_512(f->corner_even2));
    const __m512i even3 = _mm512_dpwssd_epi32(round, p02, load_512(f->corner_even3));
    const __m512i odd0 = _mm512_madd_epi16(p13, load_512(f->corner_odd0));
    const __m512i odd1 = _mm512_madd_epi16(p13, load_512(f->corner_odd1));
    const __m512i odd2 = _mm512_madd_epi16(p13, load_512(f->corner_odd2));
    const __m512i odd3 = _mm512_madd_epi16(p13, load_512(f->corner_odd3));
    out[0] = _mm512_add_epi32(even0, odd0);
    out[1] = _mm512_add_epi32(even1, odd1);
    out[2] = _mm512_add_epi32(even2, odd2);
    out[3] = _mm512_add_epi32(even3, odd3);
    out[4] = _mm512_sub_epi32(even3, odd3);
    out[5] = _mm512_sub_epi32(even2, odd2);
    out[6] = _mm512_sub_epi32(even1, odd1);
    out[7] = _mm512_sub_epi32(even0, odd0);
}

INLINE TARGET __m512i pack_rows(__m512i a, __m512i b)
{
    return _mm512_packs_epi32(_mm512_srai_epi32(a, PSTK__IDCT_SHIFT_1),
                              _mm512_srai_epi32(b, PSTK__IDCT_SHIFT_1));
}

/* Return the even (odd) elements of each lane of a and b. */
INLINE TARGET __m512i even_elements(__m512i a, __m512i b)
{
    return _mm512_castps_si512(
        _mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0x88));
}

INLINE TARGET __m512i odd_elements(__m512i a, __m512i b)
{
    return _mm512_castps_si512(
        _mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0xDD));
}

/* Run the first pass: from columns in pairs of rows to rows, 0..3 and then 4..7, in pairs of
 * columns: [4 * (lower rows) + pair]. */
INLINE TARGET void columns(struct group *rows, const struct group *group, const struct factors *f)
{
    __m512i v[8];
    pass(v, f, group->pair[0], group->pair[2], group->pair[4], group->pair[6], PSTK__IDCT_ROUND_1);
    const __m512i even01 = pack_rows(v[0], v[1]), even23 = pack_rows(v[2], v[3]);
    const __m512i even45 = pack_rows(v[4], v[5]), even67 = pack_rows(v[6], v[7]);
    rows->pair[0] = even_elements(even01, even23);
    rows->pair[1] = odd_elements(even01, even23);
    rows->pair[4] = even_elements(even45, even67);
    rows->pair[5] = odd_elements(even45, even67);
    pass(v, f, group->pair[1], group->pair[3], group->pair[5], group->pair[7], PSTK__IDCT_ROUND_1);
    const __m512i odd01 = pack_rows(v[0], v[1]), odd23 = pack_rows(v[2], v[3]);
    const __m512i odd45 = pack_rows(v[4], v[5]), odd67 = pack_rows(v[6], v[7]);
    rows->pair[2] = even_elements(odd01, odd23);
    rows->pair[3] = odd_elements(odd01, odd23);
    rows->pair[6] = even_elements(odd45, odd67);
    rows->pair[7] = odd_elements(odd45, odd67);
}

/* Return a mask of the bytes of the lanes whose blocks have only their first row. */
INLINE uint64_t first_row_lanes(const uint64_t maps[GROUP])
{
    uint64_t lanes = 0;
    for (uint32_t b = 0; b < GROUP; b++)
        lanes |= maps[b] & ~PSTK__IDCT_FIRST_ROW ? 0 : 0xFFFFull << 16 * b;
    return lanes;
}

/* Shift instead of transforming in the first pass of such blocks, as libjpeg-turbo does. The shift
 * wraps where the pass saturates. */
TARGET static __attribute__((noinline)) void
shift_first_rows(struct group *rows, const struct group *group, uint64_t lanes)
{
    const __m512i first = _mm512_set1_epi32(0x05040100), second = _mm512_set1_epi32(0x0D0C0908);
    const __m512i even = _mm512_slli_epi16(group->pair[0], 2),
                  odd = _mm512_slli_epi16(group->pair[1], 2);
    for (int i = 0; i < 8; i += 4) {
        rows->pair[i] = _mm512_mask_shuffle_epi8(rows->pair[i], lanes, even, first);
        rows->pair[i + 1] = _mm512_mask_shuffle_epi8(rows->pair[i + 1], lanes, even, second);
        rows->pair[i + 2] = _mm512_mask_shuffle_epi8(rows->pair[i + 2], lanes, odd, first);
        rows->pair[i + 3] = _mm512_mask_shuffle_epi8(rows->pair[i + 3], lanes, odd, second);
    }
}

/* Join the second pass's results of two columns. 18 bits are shifted out, 16 of them by taking the
 * upper halves. The results have 14 bits, so nothing saturates. */
INLINE TARGET __m512i pack_columns(__m512i a, __m512i b, __m512i high_halves)
{
    const __m512i both = _mm512_mask_shuffle_epi8(b, 0x3333333333333333ull, a, high_halves);
    return _mm512_srai_epi16(both, PSTK__IDCT_SHIFT_2 - 16);
}

/* Store the second pass's results of four rows. */
INLINE TARGET void store_rows(uint8_t *out, size_t stride, const __m512i v[8],
                              const struct factors *f)
{
    const __mmask64 right = 0xF0F0F0F0F0F0F0F0ull;
    const __m512i center = _mm512_set1_epi8(-128), high = load_512(f->high_halves);
    /* two columns of each row, and the next two in the upper half of the lane */
    const __m512i columns0123 = _mm512_xor_si512(
        _mm512_packs_epi16(pack_columns(v[0], v[1], high), pack_columns(v[2], v[3], high)), center);
    const __m512i columns4567 = _mm512_xor_si512(
        _mm512_packs_epi16(pack_columns(v[4], v[5], high), pack_columns(v[6], v[7], high)), center);
    const __m512i at01 = load_512(f->rows01), at23 = load_512(f->rows23);
    const __m512i rows01 = _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(at01, columns0123),
                                                        right, at01, columns4567);
    const __m512i rows23 = _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(at23, columns0123),
                                                        right, at23, columns4567);
    _mm256_storeu_si256((__m256i *)(void *)out, _mm512_castsi512_si256(rows01));
    _mm256_storeu_si256((__m256i *)(void *)(out + stride), _mm512_extracti64x4_epi64(rows01, 1));
    _mm256_storeu_si256((__m256i *)(void *)(out + 2 * stride), _mm512_castsi512_si256(rows23));
    _mm256_storeu_si256((__m256i *)(void *)(out + 3 * stride),
                        _mm512_extracti64x4_epi64(rows23, 1));
}

/* Run the second pass of half a group, rows 0..3 or 4..7, and store it. */
INLINE TARGET void transform(uint8_t *out, const struct row *row, const struct group *rows,
                             uint32_t first)
{
    const __m512i *p = rows->pair + first;
    __m512i v[8];
    pass(v, row->f, p[0], p[1], p[2], p[3], PSTK__IDCT_ROUND_2);
    store_rows(out + first * row->stride, row->stride, v, row->f);
}

/* Transform a group of corners from coefficients to samples. */
INLINE TARGET void transform_corners(uint8_t *out, size_t stride, const __m512i pairs[2],
                                     const struct factors *f)
{
    __m512i v[8];
    corner_pass(v, f, pairs[0], pairs[1], PSTK__IDCT_ROUND_1);
    const __m512i rows01 = pack_rows(v[0], v[1]), rows23 = pack_rows(v[2], v[3]);
    const __m512i rows45 = pack_rows(v[4], v[5]), rows67 = pack_rows(v[6], v[7]);
    corner_pass(v, f, even_elements(rows01, rows23), odd_elements(rows01, rows23),
                PSTK__IDCT_ROUND_2);
    store_rows(out, stride, v, f);
    corner_pass(v, f, even_elements(rows45, rows67), odd_elements(rows45, rows67),
                PSTK__IDCT_ROUND_2);
    store_rows(out + 4 * stride, stride, v, f);
}

/* Store blocks without AC: one value each. Both passes shift, and the second one saturates. */
INLINE TARGET void flat_group(uint8_t *out, size_t stride, __m128i dc)
{
    const __m128i scaled = _mm_srai_epi16(_mm_slli_epi16(dc, 2), 4);
    const __m128i words = _mm_srai_epi16(_mm_add_epi16(scaled, _mm_set1_epi16(1)), 1);
    const __m128i bytes = _mm_xor_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(-128));
    const __m256i each =
        _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    const __m256i row = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), each);
    for (int y = 0; y < 8; y++, out += stride)
        _mm256_storeu_si256((__m256i *)(void *)out, row);
}

/* ---- rows of blocks ------------------------------------------------------------------------- */

/* Return 1 when a dequantised coefficient of a first row may be too large for a shift by 2, wide
 * ones not considered. */
TARGET static int is_first_row_far(const struct pstk__block_row *r, const uint16_t *quant)
{
    const __m128i first = _mm_loadu_si128((const __m128i *)(const void *)quant);
    const __mmask8 far = _mm_mask_cmpgt_epu16_mask(0xFE, first, _mm_set1_epi16(8191 / 127));
    const __m512i q = _mm512_set1_epi16((int16_t)quant[0]);
    const __m512i limit = _mm512_set1_epi16(1 << 13), range = _mm512_set1_epi16(1 << 14);
    __mmask32 dc_far = 0;
    for (uint32_t i = 0; i < r->n_blocks; i += 32) {
        const uint32_t left = r->n_blocks - i;
        const __mmask32 k = left < 32 ? (1u << left) - 1 : 0xFFFFFFFFu;
        const __m512i dc = _mm512_mullo_epi16(_mm512_maskz_loadu_epi16(k, r->dc + i), q);
        dc_far |= _mm512_cmpge_epu16_mask(_mm512_add_epi16(dc, limit), range);
    }
    return far != 0 || dc_far != 0;
}

/* Return the same pointer, but hide its value from the compiler, which would otherwise rebuild each
 * constant in every turn. */
INLINE const struct factors *opaque(const struct factors *f)
{
    __asm__("" : "+r"(f));
    return f;
}

static struct tail tail_of(const struct pstk__block_row *row)
{
    const uint32_t n = row->n_blocks % GROUP, first = row->n_blocks - n;
    struct tail tail = {{0}, {0}};
    for (uint32_t i = 0; i < n; i++) {
        tail.maps[i] = row->maps[first + i];
        tail.dc[i] = row->dc[first + i];
    }
    return tail;
}

/* Return the maps, and below the DCs, of the group that begins with block i. */
INLINE const uint64_t *maps_of(const struct row *r, uint32_t i)
{
    return r->blocks->n_blocks - i >= GROUP ? r->blocks->maps + i : r->tail.maps;
}

INLINE TARGET __m128i dc_of(const struct row *r, uint32_t i)
{
    const void *dc = r->blocks->n_blocks - i >= GROUP ? r->blocks->dc + i : r->tail.dc;
    return _mm_mullo_epi16(_mm_loadl_epi64(dc), r->dc_factor);
}

enum kind { FLAT, CORNERS, WHOLE };

INLINE enum kind kind_of(const struct row *r, const uint64_t maps[GROUP], int has_words)
{
    const uint64_t any = maps[0] | maps[1] | maps[2] | maps[3];
    if (any == 0)
        return FLAT;
    return any & ~PSTK__IDCT_CORNER || r->is_far || has_words ? WHOLE : CORNERS;
}

/*
 * Transform groups from block i on, as long as they are of kind WHOLE. Returns the first block
 * left. While one group is transformed, the next is expanded. The transform keeps the CPU's
 * multipliers busy, the expansion its only shuffle unit.
 */
INLINE TARGET uint32_t inverse_whole(uint8_t *out, uint32_t i, const struct row *r,
                                     struct cursor *c, int has_words)
{
    const uint64_t *maps = maps_of(r, i);
    struct expanded expanded;
    struct group group, rows;
    expand_group(&expanded, maps, c);
    int is_wide = dequantise_group(&group, &expanded, dc_of(r, i), c, r, has_words);
    for (;;) {
        uint8_t *to = out + 8 * (size_t)i;
        columns(&rows, &group, r->f);
        const uint64_t lanes = r->is_far | is_wide ? first_row_lanes(maps) : 0;
        if (__builtin_expect(lanes != 0, 0)) {
            struct group shifted = rows, from = group;
            shift_first_rows(&shifted, &from, lanes);
            rows = shifted;
        }
        i += GROUP;
        maps = i < r->blocks->n_blocks ? maps_of(r, i) : NULL;
        if (!maps || kind_of(r, maps, has_words) != WHOLE) {
            transform(to, r, &rows, 0);
            transform(to, r, &rows, 4);
            return i;
        }
        expand_group(&expanded, maps, c);
        transform(to, r, &rows, 0);
        is_wide = dequantise_group(&group, &expanded, dc_of(r, i), c, r, has_words);
        transform(to, r, &rows, 4);
    }
}

INLINE TARGET void inverse(uint8_t *out, size_t stride, const struct pstk__block_row *blocks,
                           const uint16_t *quant, int has_words)
{
    const struct row r = {.blocks = blocks,
                          .quant = quant,
                          .f = opaque(&factors),
                          .table = has_words ? word_table(quant) : byte_table(quant),
                          .tail = tail_of(blocks),
                          .dc_factor = _mm_set1_epi16((int16_t)quant[0]),
                          .stride = stride,
                          .is_far = is_first_row_far(blocks, quant)};
    struct cursor c = {blocks->values, blocks->wide};
    for (uint32_t i = 0; i < blocks->n_blocks;) {
        const uint64_t *maps = maps_of(&r, i);
        const enum kind kind = kind_of(&r, maps, has_words);
        __m512i pairs[2];
        if (kind == FLAT) {
            flat_group(out + 8 * (size_t)i, stride, dc_of(&r, i));
            i += GROUP;
        } else if (kind == CORNERS && load_corners(pairs, maps, dc_of(&r, i), &c, &r.table) == 0) {
            transform_corners(out + 8 * (size_t)i, stride, pairs, r.f);
            i += GROUP;
        } else {
            i = inverse_whole(out, i, &r, &c, has_words);
        }
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

TARGET void pstk__jpeg_inverse_avx512(uint8_t *out, size_t stride,
                                      const struct pstk__block_row *blocks, const uint16_t *quant)
{
    const __m512i both = _mm512_or_si512(load_512(quant), load_512(quant + 32));
    if (_mm512_test_epi16_mask(both, _mm512_set1_epi16((int16_t)0xFF00)))
        inverse_words(out, stride, blocks, quant);
    else
        inverse_bytes(out, stride, blocks, quant);
}

#endif
