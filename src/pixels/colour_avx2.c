/* SPDX-License-Identifier: Apache-2.0 */
/* colour_avx2: the colour kernels with 256-bit registers. */
#if defined(__x86_64__) || defined(PSTK_NEON)

#include "pixels/colour_avx2.h"

#include <penstock/penstock.h>

#include <string.h>

/* ---- tables ---------------------------------------------------------------------------------- */

#if defined(PSTK_NEON)

/* A table of 256 bytes is four of NEON's. One of them gives 0 for, or leaves, what is not in it. */
struct lookup {
    uint8x16x4_t quarter[4];
};

static void lookup_init(struct lookup *lookup, const uint8_t to[256])
{
    for (size_t k = 0; k < 4; k++)
        lookup->quarter[k] = vld1q_u8_x4(to + 64 * k);
}

INLINE __m256i look_up(const struct lookup *lookup, __m256i v)
{
    uint8x16_t out[2];
    for (int i = 0; i < 2; i++) {
        uint8x16_t index = vreinterpretq_u8_s64(pstk__neon_half(v, i));
        out[i] = vqtbl4q_u8(lookup->quarter[0], index);
        for (int k = 1; k < 4; k++) {
            index = vsubq_u8(index, vdupq_n_u8(64));
            out[i] = vqtbx4q_u8(out[i], lookup->quarter[k], index);
        }
    }
    return pstk__neon_joined(vreinterpretq_s64_u8(out[0]), vreinterpretq_s64_u8(out[1]));
}

INLINE void look_up_two(const struct lookup *lookup, __m256i v[2])
{
    v[0] = look_up(lookup, v[0]);
    v[1] = look_up(lookup, v[1]);
}

#else

/*
 * A table of 256 bytes as 16 shuffles. A shuffle gives 0 for indices from 128 on, else the entry at
 * the index modulo 16. Index v - 16 k, which saturates at -128, is below 128 exactly when v < 128
 * and v >= 16 k; so the shuffles 0 to k of the lower half give entries for a byte of row k, and
 * each has the row's difference to the row before. With v - 128 the same is true of the upper half.
 */
struct lookup {
    __m128i low[8], high[8];
};

TARGET static void lookup_init(struct lookup *lookup, const uint8_t to[256])
{
    const __m128i *rows = (const __m128i *)to;
    __m128i low = _mm_setzero_si128(), high = low;
    for (uint32_t k = 0; k < 8; k++) {
        const __m128i next_low = _mm_loadu_si128(rows + k),
                      next_high = _mm_loadu_si128(rows + 8 + k);
        lookup->low[k] = _mm_xor_si128(low, next_low);
        lookup->high[k] = _mm_xor_si128(high, next_high);
        low = next_low;
        high = next_high;
    }
}

INLINE __m256i look_up(const struct lookup *lookup, __m256i v)
{
    const __m256i row = _mm256_set1_epi8(16);
    __m256i low = v, high = _mm256_xor_si256(v, _mm256_set1_epi8(-128));
    __m256i out = _mm256_setzero_si256();
    for (uint32_t k = 0; k < 8; k++) {
        const __m256i of_low = _mm256_broadcastsi128_si256(lookup->low[k]),
                      of_high = _mm256_broadcastsi128_si256(lookup->high[k]);
        out = _mm256_xor_si256(out, _mm256_shuffle_epi8(of_low, low));
        out = _mm256_xor_si256(out, _mm256_shuffle_epi8(of_high, high));
        low = _mm256_subs_epi8(low, row);
        high = _mm256_subs_epi8(high, row);
    }
    return out;
}

/* Look up two registers at a time, which share the loads of the table. */
INLINE void look_up_two(const struct lookup *lookup, __m256i v[2])
{
    const __m256i row = _mm256_set1_epi8(16), upper = _mm256_set1_epi8(-128);
    __m256i low[2] = {v[0], v[1]};
    __m256i high[2] = {_mm256_xor_si256(v[0], upper), _mm256_xor_si256(v[1], upper)};
    v[0] = v[1] = _mm256_setzero_si256();
    for (uint32_t k = 0; k < 8; k++) {
        const __m256i of_low = _mm256_broadcastsi128_si256(lookup->low[k]),
                      of_high = _mm256_broadcastsi128_si256(lookup->high[k]);
        for (uint32_t i = 0; i < 2; i++) {
            v[i] = _mm256_xor_si256(v[i], _mm256_shuffle_epi8(of_low, low[i]));
            v[i] = _mm256_xor_si256(v[i], _mm256_shuffle_epi8(of_high, high[i]));
            low[i] = _mm256_subs_epi8(low[i], row);
            high[i] = _mm256_subs_epi8(high[i], row);
        }
    }
}

#endif

/* Map all channels by one table. */
TARGET static void look_up_bytes(const struct pstk__picture *picture, const struct lookup *lookup)
{
    __m256i *at = (__m256i *)picture->pixels;
    uint64_t n = n_blocks_of(picture) * picture->channels;
    for (; n > 1; n -= 2, at += 2) {
        __m256i v[2] = {_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)};
        look_up_two(lookup, v);
        _mm256_storeu_si256(at, v[0]);
        _mm256_storeu_si256(at + 1, v[1]);
    }
    if (n > 0)
        _mm256_storeu_si256(at, look_up(lookup, _mm256_loadu_si256(at)));
}

INLINE void look_up_3(struct block *block, const void *lookups)
{
    const struct lookup *of = lookups;
    for (uint32_t c = 0; c < 3; c++)
        block->of[c] = look_up(&of[c], block->of[c]);
}

INLINE void look_up_4(struct block *block, const void *lookups)
{
    const struct lookup *of = lookups;
    for (uint32_t c = 0; c < 4; c++)
        block->of[c] = look_up(&of[c], block->of[c]);
}

/* Return 1 if a table is (v & *mask) ^ *flips, as the tables of invert and posterize are. */
static int has_bits(const uint8_t to[256], uint8_t *mask, uint8_t *flips)
{
    uint32_t n_bad = 0;
    *flips = to[0];
    *mask = to[0] ^ to[255];
    for (uint32_t v = 0; v < 256; v++)
        n_bad |= (uint8_t)((v & *mask) ^ *flips ^ to[v]);
    return n_bad == 0;
}

TARGET static void change_bits(const struct pstk__picture *picture, uint8_t mask, uint8_t flips)
{
    const __m256i by_mask = _mm256_set1_epi8((char)mask), by_flips = _mm256_set1_epi8((char)flips);
    __m256i *at = (__m256i *)picture->pixels;
    for (uint64_t n = n_blocks_of(picture) * picture->channels; n > 0; n--, at++)
        _mm256_storeu_si256(
            at, _mm256_xor_si256(_mm256_and_si256(_mm256_loadu_si256(at), by_mask), by_flips));
}

TARGET static void apply(const struct pstk__picture *picture,
                         const struct pstk__colour_table *table)
{
    const struct pstk__picture rest = rest_of(picture);
    struct lookup lookups[4];
    int is_one = 1;
    for (uint32_t c = 0; c < picture->channels; c++) {
        lookup_init(&lookups[c], table->to[c]);
        is_one = is_one && memcmp(table->to[c], table->to[0], 256) == 0;
    }
    uint8_t mask, flips;
    if (is_one && has_bits(table->to[0], &mask, &flips))
        change_bits(picture, mask, flips);
    else if (is_one)
        look_up_bytes(picture, lookups);
    else if (picture->channels == 3)
        each_block(picture, 3, look_up_3, lookups);
    else
        each_block(picture, 4, look_up_4, lookups);
    pstk__colour_c.apply(&rest, table);
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
 * compiler. Byte i of 32 * channels bytes is always of the same channel. */
INLINE void range_of(struct pstk__colour_range *range, const struct pstk__picture *picture,
                     uint32_t channels)
{
    const __m256i *at = (const __m256i *)picture->pixels;
    __m256i least[4], most[4];
    for (uint32_t c = 0; c < channels; c++)
        least[c] = most[c] = _mm256_loadu_si256(at + c);
    for (uint64_t n = n_blocks_of(picture); n > 0; n--, at += channels)
        for (uint32_t c = 0; c < channels; c++) {
            const __m256i v = _mm256_loadu_si256(at + c);
            least[c] = _mm256_min_epu8(least[c], v);
            most[c] = _mm256_max_epu8(most[c], v);
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

#if !defined(PSTK_NEON)

/* Multiply two channels of 32 pixels by their weights, below 2^15, and add the products; in the
 * order of struct wide. */
INLINE struct wide weighed(__m256i a, __m256i b, int a_weight, int b_weight)
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i weights = _mm256_set1_epi32(b_weight << 16 | a_weight);
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    return (struct wide){{_mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), weights),
                          _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), weights),
                          _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), weights),
                          _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), weights)}};
}

/* Compute pstk__luma. Half of green's weight, 38470, is added twice. */
INLINE __m256i luma_of(const struct block *block)
{
    const struct wide one = weighed(block->of[0], block->of[1], 19595, 38470 / 2),
                      other = weighed(block->of[2], block->of[1], 7471, 38470 / 2);
    struct wide gray;
    for (uint32_t i = 0; i < 4; i++) {
        const __m256i sum = _mm256_add_epi32(one.of[i], other.of[i]);
        gray.of[i] = _mm256_srli_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(0x8000)), 16);
    }
    return narrowed(gray);
}

/* Return the luma of the 32 pixels at an address, in order. Reads up to 4 bytes after them. */
INLINE __m256i luma_at(const uint8_t *at, uint32_t channels)
{
    const int8_t n = (int8_t)channels;
    /* Red and green, and blue and green, of four pixels, as words. */
    const __m128i red_green = _mm_setr_epi8(0, -1, 1, -1, n, -1, n + 1, -1, 2 * n, -1, 2 * n + 1,
                                            -1, 3 * n, -1, 3 * n + 1, -1);
    const __m128i blue_green = _mm_setr_epi8(2, -1, 1, -1, n + 2, -1, n + 1, -1, 2 * n + 2, -1,
                                             2 * n + 1, -1, 3 * n + 2, -1, 3 * n + 1, -1);
    const __m256i one = _mm256_set1_epi32(38470 / 2 << 16 | 19595);
    const __m256i other = _mm256_set1_epi32(38470 / 2 << 16 | 7471);
    struct wide gray;
    for (uint32_t i = 0; i < 4; i++) {
        const __m256i v =
            load_halves(at + (size_t)4 * i * channels, at + (size_t)(16 + 4 * i) * channels);
        const __m256i sum = _mm256_add_epi32(
            _mm256_madd_epi16(_mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(red_green)), one),
            _mm256_madd_epi16(_mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(blue_green)),
                              other));
        gray.of[i] = _mm256_srli_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(0x8000)), 16);
    }
    return narrowed(gray);
}

#endif

/* Sum the luma. `channels`, also 1, is a constant for the compiler. */
INLINE uint64_t sum_of(const struct pstk__picture *picture, uint32_t channels)
{
    const uint8_t *at = picture->pixels;
    __m256i sum = _mm256_setzero_si256();
    for (uint64_t n = n_blocks_of(picture); n > 0; n--, at += (size_t)BLOCK * channels) {
        const __m256i gray =
            channels > 1 ? luma_at(at, channels) : _mm256_loadu_si256((const __m256i *)at);
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(gray, _mm256_setzero_si256()));
    }
    uint64_t sums[4];
    _mm256_storeu_si256((__m256i *)sums, sum);
    return sums[0] + sums[1] + sums[2] + sums[3];
}

TARGET static uint64_t luma_sum(const struct pstk__picture *picture)
{
    const struct pstk__picture rest = rest_of(picture);
    const uint64_t sum = pstk__colour_c.luma_sum(&rest);
    if (picture->channels == 1)
        return sum + sum_of(picture, 1);
    return sum + (picture->channels == 3 ? sum_of(picture, 3) : sum_of(picture, 4));
}

/* Write the luma of the whole blocks. `channels`, 3 or 4, is a constant for the compiler. */
INLINE void luma_blocks(uint8_t *out, uint32_t out_channels, const struct pstk__picture *picture,
                        uint32_t channels)
{
    const uint8_t *at = picture->pixels;
    for (uint64_t n = n_blocks_of(picture); n > 0; n--, at += (size_t)BLOCK * channels) {
        const __m256i gray = luma_at(at, channels);
        if (out_channels == 1)
            _mm256_storeu_si256((__m256i *)out, gray);
        else
            store_3(out, &(struct block){{gray, gray, gray, gray}});
        out += (size_t)BLOCK * out_channels;
    }
}

TARGET static void luma(uint8_t *out, uint32_t out_channels, const struct pstk__picture *picture)
{
    const struct pstk__picture rest = rest_of(picture);
    if (picture->channels == 3)
        luma_blocks(out, out_channels, picture, 3);
    else
        luma_blocks(out, out_channels, picture, 4);
    pstk__colour_c.luma(out + n_blocks_of(picture) * BLOCK * out_channels, out_channels, &rest);
}

INLINE void saturate_block(struct block *block, const void *factor)
{
    const __m256 by = _mm256_set1_ps(*(const float *)factor);
    const struct wide gray = widened(luma_of(block));
    for (uint32_t c = 0; c < 3; c++) {
        struct wide colour = widened(block->of[c]);
        for (uint32_t i = 0; i < 4; i++)
            colour.of[i] = blended(gray.of[i], colour.of[i], by);
        block->of[c] = narrowed(colour);
    }
}

TARGET static void saturate(const struct pstk__picture *picture, float factor)
{
    const struct pstk__picture rest = rest_of(picture);
    if (picture->channels == 3)
        each_block(picture, 3, saturate_block, &factor);
    else
        each_block(picture, 4, saturate_block, &factor);
    pstk__colour_c.saturate(&rest, factor);
}

/* ---- order ----------------------------------------------------------------------------------- */

INLINE void permute_block(struct block *block, const void *settings)
{
    const uint32_t *order = settings;
    const struct block old = *block;
    for (uint32_t c = 0; c < 3; c++)
        block->of[c] = old.of[order[c]];
}

TARGET static void permute(const struct pstk__picture *picture, const uint32_t order[3])
{
    const struct pstk__picture rest = rest_of(picture);
    if (picture->channels == 3)
        each_block(picture, 3, permute_block, order);
    else
        each_block(picture, 4, permute_block, order);
    pstk__colour_c.permute(&rest, order);
}

const struct pstk__colour_kernels pstk__colour_avx2 = {
    .isa = AVX2_ISA,
    .apply = apply,
    .range = range,
    .luma_sum = luma_sum,
    .luma = luma,
    .saturate = saturate,
    .shift_hue = pstk__shift_hue_avx2,
    .permute = permute,
    .sharpen_row = pstk__sharpen_row_avx2,
};

#endif
