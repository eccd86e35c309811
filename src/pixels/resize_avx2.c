/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_avx2: the two passes with 256-bit registers. A weight is high * 2^15 + low with -2^14 <=
 * low < 2^14, so that VPMADDWD sums two taps by either part in a dword, and
 *     sum >> 15 = sum of taps * high + (sum of taps * low >> 15)
 * is exact: no |low| exceeds its |weight|, so the sums by low fit a dword, as the whole sums do.
 */
#if defined(__x86_64__)

#include "pixels/resize_avx2.h"
#include "pixels/resize_kernels_c.h"

#define PRECISION PSTK__WEIGHT_BITS
#define LOW_BITS 15
#define LOW_HALF (1u << (LOW_BITS - 1))
#define REST (PRECISION - LOW_BITS) /* bits below the byte in a shifted sum */
#define SLOT_ROWS 2u
#define LANES 8u /* row bytes that a register of dwords holds */

static uint32_t high_part(uint32_t w)
{
    return (uint32_t)((int32_t)(w + LOW_HALF) >> LOW_BITS);
}

static uint32_t low_part(uint32_t w)
{
    return w - (high_part(w) << LOW_BITS);
}

/* Pack the same part of two taps' weights as two words of a dword. */
static int32_t low_pair(uint32_t w0, uint32_t w1)
{
    return (int32_t)((low_part(w0) & 0xffff) | low_part(w1) << 16);
}

static int32_t high_pair(uint32_t w0, uint32_t w1)
{
    return (int32_t)((high_part(w0) & 0xffff) | high_part(w1) << 16);
}

/* Return sum >> 15 from the sums by low and by high parts. */
INLINE __m256i joined(__m256i low, __m256i high)
{
    return _mm256_add_epi32(high, _mm256_srai_epi32(low, LOW_BITS));
}

/* Round words of sums >> 15, saturated, to -256..256: (v * 2^8 + 2^14) >> 15 = (v + 2^6) >> 7.
 * Without negative weights sums of few taps are at most 255 * (2^22 + 8), so v < 2^15, and the
 * result is a byte. */
INLINE __m256i rounded_few(__m256i words)
{
    return _mm256_mulhrs_epi16(words, _mm256_set1_epi16(1 << (LOW_BITS - REST)));
}

/* Round dwords of sums >> 15, for any number of taps. */
INLINE __m256i rounded_many(__m256i v)
{
    return _mm256_srai_epi32(_mm256_add_epi32(v, _mm256_set1_epi32(1 << (REST - 1))), REST);
}

INLINE __m256i clipped(__m256i v)
{
    return _mm256_min_epi32(_mm256_max_epi32(v, _mm256_setzero_si256()), _mm256_set1_epi32(255));
}

/* ---- horizontal: packing --------------------------------------------------------------------- */

/*
 * A *half* is four bytes of the output row, one in each dword lane; two halves are a *group*, which
 * fills a register. Its taps come in *blocks* of one or two pairs. The taps of a half must lie
 * within 16 bytes of the input row. Otherwise the axis is packed as *long*: output by output, in
 * quads of taps, or in octets for one channel. `channels` is x->channels, as a constant for the
 * compiler.
 */
#define MAX_PAIRS 8u /* pairs of a half */

struct pair {
    __m128i index[2];        /* [half]: spreads bytes of the 16 to words */
    __m128i low[2], high[2]; /* low and high parts of the weights */
};

struct quad {
    int32_t low[2], high[2]; /* weights of taps 0 and 1, 2 and 3 */
};

struct octet {
    int32_t low[4], high[4]; /* weights of taps 0 and 1, 2 and 3, ... */
};

struct across {
    const struct pstk__axis *axis; /* borrowed */
    uint32_t channels;
    uint32_t flip;
    uint32_t row_size; /* bytes */
    uint32_t n_groups; /* 0: long */
    uint32_t n_blocks; /* blocks of a group */
    uint32_t n_pairs;  /* pairs of a block */
    uint32_t n_chunks; /* long: quads or octets for each output */
    struct pair *pairs;
    uint32_t *places; /* 2 for each block: where in the row the 16 bytes of a half begin */
    struct quad *quads;
    struct octet *octets;
};

#define HEADER_SIZE ((sizeof(struct across) + 63) / 64 * 64)

static uint32_t groups_of(uint32_t n_out, uint32_t channels)
{
    return (n_out * channels + LANES - 1) / LANES;
}

/* Return the pairs of a block: two when 16 bytes may hold them. With one channel, four outputs
 * begin within 12 bytes at scales up to 4. With three channels and more than four taps, the next
 * output begins too far away. */
static uint32_t pairs_of_block(uint32_t n_taps, uint32_t channels)
{
    return n_taps > 2 && (n_taps <= 4 || channels != 3) ? 2 : 1;
}

static uint64_t across_size(uint32_t n_out, uint32_t n_taps, uint32_t channels)
{
    const uint32_t most = channels == 3 ? (n_taps + 1) / 2 : (n_taps + 3) / 4 * 2;
    const uint64_t n_pairs = min_u32(most, MAX_PAIRS);
    const uint64_t block = sizeof(struct pair) + 2 * sizeof(uint32_t);
    const uint64_t groups = groups_of(n_out, channels) * n_pairs * block;
    const uint64_t chunk = channels == 1 ? (n_taps + 7) / 8 * sizeof(struct octet)
                                         : (n_taps + 3) / 4 * sizeof(struct quad);
    return HEADER_SIZE + (groups > n_out * chunk ? groups : n_out * chunk);
}

INLINE __m128i high_parts(__m128i w)
{
    return _mm_srai_epi32(_mm_add_epi32(w, _mm_set1_epi32((int)LOW_HALF)), LOW_BITS);
}

/* Pack the lower words of two taps of four lanes as pairs. */
INLINE __m128i word_pairs(__m128i v0, __m128i v1)
{
    return _mm_blend_epi16(v0, _mm_slli_epi32(v1, 16), 0xaa);
}

INLINE uint32_t min_of(__m128i v)
{
    v = _mm_min_epu32(v, _mm_shuffle_epi32(v, _MM_SHUFFLE(1, 0, 3, 2)));
    v = _mm_min_epu32(v, _mm_shuffle_epi32(v, _MM_SHUFFLE(2, 3, 0, 1)));
    return (uint32_t)_mm_cvtsi128_si32(v);
}

/* The outputs and channels of a half's lanes. */
struct half {
    uint32_t output[4]; /* output of each lane; 3 channels: [0] where is_next is 0, [1] where it is
                           set */
    __m128i is_next;    /* 3 channels */
    __m128i channel;
};

INLINE struct half half_of(const struct across *x, uint32_t k, uint32_t channels)
{
    const uint32_t begin = 4 * k, last = x->axis->n_out - 1,
                   first = min_u32(begin / channels, last);
    const __m128i iota = _mm_setr_epi32(0, 1, 2, 3);
    struct half h = {.output = {first, min_u32(first + 1, last)}, .channel = iota};
    if (channels == 1) {
        h.output[2] = min_u32(first + 2, last);
        h.output[3] = min_u32(first + 3, last);
        h.channel = _mm_setzero_si128();
    } else if (channels == 3) { /* c, c + 1, ... of one output, then from 0 on those of the next */
        const __m128i sum = _mm_add_epi32(iota, _mm_set1_epi32((int)(begin % 3)));
        h.is_next = _mm_cmpgt_epi32(sum, _mm_set1_epi32(2));
        h.channel = _mm_sub_epi32(sum, _mm_and_si128(h.is_next, _mm_set1_epi32(3)));
    }
    return h;
}

/* Return a value of each lane's output. */
INLINE __m128i of_lanes(const uint32_t *values, const struct half *h, uint32_t channels)
{
    const __m128i first = _mm_set1_epi32((int)values[h->output[0]]);
    if (channels == 1)
        return _mm_setr_epi32((int)values[h->output[0]], (int)values[h->output[1]],
                              (int)values[h->output[2]], (int)values[h->output[3]]);
    if (channels == 3)
        return _mm_blendv_epi8(first, _mm_set1_epi32((int)values[h->output[1]]), h->is_next);
    return first;
}

INLINE __m128i times(__m128i v, uint32_t channels)
{
    return channels == 1   ? v
           : channels == 3 ? _mm_add_epi32(v, _mm_slli_epi32(v, 1))
                           : _mm_slli_epi32(v, 2);
}

/*
 * Fill in block t of half k, counted over all groups. Returns 0 when 16 bytes do not hold it. They
 * do hold it when no output has more than four taps. Then the next output begins at most two inputs
 * later: 3 * (2 + 4) bytes from the first tap of one to the last of the other, less two, because a
 * half has four of their six bytes.
 */
INLINE int half_init(struct across *x, uint32_t k, uint32_t t, uint32_t channels)
{
    const struct pstk__axis *a = x->axis;
    const struct half h = half_of(x, k, channels);
    const uint32_t block = k / 2 * x->n_blocks + t, side = k % 2, tap = 2 * x->n_pairs * t;
    struct pair *pairs = x->pairs + (size_t)block * x->n_pairs;
    const __m128i first = of_lanes(a->first, &h, channels), n = of_lanes(a->n, &h, channels);
    const __m128i from = _mm_add_epi32(
        times(_mm_add_epi32(first, _mm_set1_epi32((int)(tap - a->begin))), channels), h.channel);
    const uint32_t least = channels == 3 ? min_of(from) : (uint32_t)_mm_cvtsi128_si32(from);
    const uint32_t place = min_u32(least, x->row_size - 16);
    /* The number of taps in this block; an output may have none. */
    const __m128i in = _mm_min_epi32(_mm_sub_epi32(n, _mm_set1_epi32((int)tap)),
                                     _mm_set1_epi32((int)(2 * x->n_pairs)));
    const __m128i has = _mm_cmpgt_epi32(in, _mm_setzero_si128());
    const __m128i last = _mm_add_epi32(from, times(_mm_sub_epi32(in, _mm_set1_epi32(1)), channels));
    const __m128i past = _mm_cmpgt_epi32(last, _mm_set1_epi32((int)place + 15));
    if (_mm_movemask_epi8(_mm_and_si128(has, past)))
        return 0;
    /* Indices of the taps' bytes, as words; bytes of taps without weight may be anything. */
    __m128i bytes = _mm_sub_epi32(from, _mm_set1_epi32((int)place));
    bytes = _mm_add_epi32(_mm_or_si128(bytes, _mm_slli_epi32(bytes, 16)),
                          _mm_set1_epi32((int)(0x80008000u + (channels << 16))));
    x->places[2 * block + side] = place;
    for (uint32_t p = 0; p < x->n_pairs; p++) {
        const uint32_t *w = (const uint32_t *)a->weights + (size_t)(tap + 2 * p) * a->n_out;
        const __m128i w0 = of_lanes(w, &h, channels), w1 = of_lanes(w + a->n_out, &h, channels);
        pairs[p].index[side] =
            _mm_add_epi32(bytes, _mm_set1_epi32((int)(0x00020002 * channels * p)));
        const __m128i h0 = high_parts(w0), h1 = high_parts(w1);
        pairs[p].low[side] = word_pairs(_mm_sub_epi32(w0, _mm_slli_epi32(h0, LOW_BITS)),
                                        _mm_sub_epi32(w1, _mm_slli_epi32(h1, LOW_BITS)));
        pairs[p].high[side] = word_pairs(h0, h1);
    }
    return 1;
}

INLINE int halves_init(struct across *x, uint32_t n, uint32_t channels)
{
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t t = 0; t < x->n_blocks; t++)
            if (!half_init(x, k, t, channels))
                return 0;
    return 1;
}

/* Fill in all halves. Returns 0 when the axis must be packed as long. */
TARGET static int groups_init(struct across *x)
{
    const uint32_t n_taps = x->axis->n_taps, n_groups = groups_of(x->axis->n_out, x->channels);
    x->n_pairs = pairs_of_block(n_taps, x->channels);
    x->n_blocks = (n_taps + 2 * x->n_pairs - 1) / (2 * x->n_pairs);
    if (x->row_size < 16 || x->n_blocks * x->n_pairs > MAX_PAIRS)
        return 0;
    x->places = (uint32_t *)(x->pairs + (size_t)n_groups * x->n_blocks * x->n_pairs);
    const int fit = x->channels == 1   ? halves_init(x, 2 * n_groups, 1)
                    : x->channels == 3 ? halves_init(x, 2 * n_groups, 3)
                                       : halves_init(x, 2 * n_groups, 4);
    if (fit)
        x->n_groups = n_groups;
    return fit;
}

/* Return the weights of taps k and k + 1 of an output; 0 past its last tap. */
static uint64_t two_weights(const struct pstk__axis *axis, uint32_t i, uint32_t k)
{
    if (k >= axis->n[i])
        return 0;
    const size_t at = (size_t)k * axis->n_out + i;
    return (uint32_t)axis->weights[at] | (uint64_t)(uint32_t)axis->weights[at + axis->n_out] << 32;
}

static void quads_init(struct across *across)
{
    struct quad *quad = across->quads;
    for (uint32_t i = 0; i < across->axis->n_out; i++)
        for (uint32_t t = 0; t < across->n_chunks; t++, quad++)
            for (uint32_t p = 0; p < 2; p++) {
                const uint64_t w = two_weights(across->axis, i, 4 * t + 2 * p);
                quad->low[p] = low_pair((uint32_t)w, (uint32_t)(w >> 32));
                quad->high[p] = high_pair((uint32_t)w, (uint32_t)(w >> 32));
            }
}

static void octets_init(struct across *across)
{
    struct octet *octet = across->octets;
    for (uint32_t i = 0; i < across->axis->n_out; i++)
        for (uint32_t t = 0; t < across->n_chunks; t++, octet++)
            for (uint32_t p = 0; p < 4; p++) {
                const uint64_t w = two_weights(across->axis, i, 8 * t + 2 * p);
                octet->low[p] = low_pair((uint32_t)w, (uint32_t)(w >> 32));
                octet->high[p] = high_pair((uint32_t)w, (uint32_t)(w >> 32));
            }
}

/* Pack an axis. Groups do not flip: mirrored halves would reach further. */
static uint32_t across_init(void *across, const struct pstk__axis *axis, uint32_t channels,
                            uint32_t flip)
{
    struct across *x = across;
    uint8_t *memory = (uint8_t *)across + HEADER_SIZE;
    *x =
        (struct across){.axis = axis,
                        .channels = channels,
                        .row_size = channels * (axis->end - axis->begin),
                        .n_chunks = channels == 1 ? (axis->n_taps + 7) / 8 : (axis->n_taps + 3) / 4,
                        .pairs = (struct pair *)memory,
                        .quads = (struct quad *)memory,
                        .octets = (struct octet *)memory};
    if (groups_init(x))
        return flip;
    x->flip = flip;
    if (channels == 1)
        octets_init(x);
    else
        quads_init(x);
    return 0;
}

/* ---- horizontal: rows ---------------------------------------------------------------------- */

INLINE __m256i two_places(const uint8_t *row, const uint32_t *places)
{
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(row + places[0]))),
        _mm_loadu_si128((const __m128i *)(row + places[1])), 1);
}

/* Compute sums >> 15 of a group, of two rows at a time: they share the loads of the weights. */
INLINE void group_sums(__m256i sums[2], const struct pair *pairs, const uint32_t *places,
                       const uint8_t *const *rows, uint32_t n_pairs, uint32_t n_blocks)
{
    __m256i low[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    __m256i high[2] = {low[0], low[1]};
    for (uint32_t t = 0; t < n_blocks; t++, places += 2) {
        const __m256i in[2] = {two_places(rows[0], places), two_places(rows[1], places)};
        for (uint32_t p = 0; p < n_pairs; p++, pairs++) {
            const __m256i index = _mm256_load_si256((const __m256i *)pairs->index);
            const __m256i by_low = _mm256_load_si256((const __m256i *)pairs->low);
            const __m256i by_high = _mm256_load_si256((const __m256i *)pairs->high);
            for (uint32_t k = 0; k < 2; k++) {
                const __m256i taps = _mm256_shuffle_epi8(in[k], index);
                const __m256i l = _mm256_madd_epi16(taps, by_low);
                const __m256i h = _mm256_madd_epi16(taps, by_high);
                low[k] = t + p == 0 ? l : _mm256_add_epi32(low[k], l);
                high[k] = t + p == 0 ? h : _mm256_add_epi32(high[k], h);
            }
        }
    }
    sums[0] = joined(low[0], high[0]);
    sums[1] = joined(low[1], high[1]);
}

/* Join sums >> 15 of two rows to rounded words of both. */
INLINE __m256i joined_rows(__m256i v0, __m256i v1, int is_signed)
{
    const __m256i turns = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1));
    if (!is_signed)
        return rounded_few(_mm256_or_si256(v0, _mm256_slli_epi32(v1, 16)));
    const __m256i words = rounded_few(_mm256_packs_epi32(v0, v1));
    return _mm256_shuffle_epi8(_mm256_packus_epi16(words, words), turns);
}

/* Resize rows in groups. `is_signed` is the axis's, as a constant for the compiler; also in the
 * functions below. */
INLINE void rows_of_groups(uint8_t *slot, const uint8_t *const *rows, const struct across *x,
                           uint32_t n_pairs, uint32_t n_blocks, int is_signed)
{
    const uint8_t *const two[2] = {rows[0], rows[1]};
    const struct pair *pairs = x->pairs;
    const uint32_t *places = x->places;
    for (uint32_t g = 0; g < x->n_groups; g++) {
        __m256i sums[2];
        group_sums(sums, pairs, places, two, n_pairs, n_blocks);
        _mm256_store_si256((__m256i *)slot + g, joined_rows(sums[0], sums[1], is_signed));
        pairs += n_blocks * n_pairs;
        places += 2 * n_blocks;
    }
}

/* Load 16 bytes of each row, one row in each half. */
INLINE __m256i two_rows(const uint8_t *const *rows, uint32_t at)
{
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(rows[0] + at))),
        _mm_loadu_si128((const __m128i *)(rows[1] + at)), 1);
}

/* Round dwords of sums >> 15 of two rows, one row in each half, and join them to words of both. */
INLINE __m128i words_of_two(__m256i v, int is_signed)
{
    v = is_signed ? clipped(rounded_many(v)) : rounded_many(v);
    return _mm_or_si128(_mm256_castsi256_si128(v),
                        _mm_slli_epi32(_mm256_extracti128_si256(v, 1), 16));
}

/* Compute an output's channels, one row in each half: a quad of taps has 12 or 16 bytes. */
INLINE void rows_of_quads(uint8_t *slot, const uint8_t *const *rows, const struct across *x,
                          uint32_t channels, int is_signed)
{
    const struct pstk__axis *a = x->axis;
    const __m256i pair = _mm256_broadcastsi128_si256(
        channels == 3 ? _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1)
                      : _mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1));
    const struct quad *quad = x->quads;
    for (uint32_t i = 0; i < a->n_out; i++, quad += x->n_chunks) {
        const uint32_t out = x->flip ? a->n_out - 1 - i : i, n_quads = (a->n[i] + 3) / 4;
        __m256i low = _mm256_setzero_si256(), high = low;
        for (uint32_t t = 0; t < n_quads; t++) {
            const uint32_t at = channels * (a->first[i] - a->begin + 4 * t);
            const uint32_t from = min_u32(at, x->row_size - 16);
            const __m256i in = two_rows(rows, from);
            const __m256i index = _mm256_add_epi8(pair, _mm256_set1_epi16((int16_t)(at - from)));
            const __m256i taps = _mm256_shuffle_epi8(in, index);
            const __m256i others = _mm256_shuffle_epi8(
                in, _mm256_add_epi8(index, _mm256_set1_epi16((int16_t)(2 * channels))));
            const __m256i low0 = _mm256_set1_epi32(quad[t].low[0]);
            const __m256i low1 = _mm256_set1_epi32(quad[t].low[1]);
            const __m256i high0 = _mm256_set1_epi32(quad[t].high[0]);
            const __m256i high1 = _mm256_set1_epi32(quad[t].high[1]);
            low = _mm256_add_epi32(low, _mm256_madd_epi16(taps, low0));
            low = _mm256_add_epi32(low, _mm256_madd_epi16(others, low1));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(taps, high0));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(others, high1));
        }
        const __m128i both = words_of_two(joined(low, high), is_signed);
        uint8_t *to = slot + (size_t)out * channels * sizeof(int32_t);
        if (channels == 4) {
            _mm_storeu_si128((__m128i *)to, both);
            continue;
        }
        _mm_storel_epi64((__m128i *)to, both);
        _mm_storeu_si32(to + 8, _mm_shuffle_epi32(both, 2));
    }
}

INLINE __m256i sum_of_four(__m256i v)
{
    v = _mm256_add_epi32(v, _mm256_shuffle_epi32(v, _MM_SHUFFLE(1, 0, 3, 2)));
    return _mm256_add_epi32(v, _mm256_shuffle_epi32(v, _MM_SHUFFLE(2, 3, 0, 1)));
}

/* Compute one channel, one row in each half: the four lanes are pairs of an octet of taps. */
INLINE void rows_of_octets(uint8_t *slot, const uint8_t *const *rows, const struct across *x,
                           int is_signed)
{
    const struct pstk__axis *a = x->axis;
    const __m256i words = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -1, 1, -1, 2, -1, 3, -1, 4, -1, 5, -1, 6, -1, 7, -1));
    const struct octet *octet = x->octets;
    for (uint32_t i = 0; i < a->n_out; i++, octet += x->n_chunks) {
        const uint32_t out = x->flip ? a->n_out - 1 - i : i, n_octets = (a->n[i] + 7) / 8;
        __m256i low = _mm256_setzero_si256(), high = low;
        for (uint32_t t = 0; t < n_octets; t++) {
            const uint32_t at = a->first[i] - a->begin + 8 * t;
            const uint32_t from = min_u32(at, x->row_size - 16);
            const __m256i index = _mm256_add_epi8(words, _mm256_set1_epi16((int16_t)(at - from)));
            const __m256i taps = _mm256_shuffle_epi8(two_rows(rows, from), index);
            const __m128i l = _mm_loadu_si128((const __m128i *)octet[t].low);
            const __m128i h = _mm_loadu_si128((const __m128i *)octet[t].high);
            low = _mm256_add_epi32(low, _mm256_madd_epi16(taps, _mm256_broadcastsi128_si256(l)));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(taps, _mm256_broadcastsi128_si256(h)));
        }
        const __m256i v = joined(sum_of_four(low), sum_of_four(high));
        _mm_storeu_si32(slot + (size_t)out * sizeof(int32_t), words_of_two(v, is_signed));
    }
}

INLINE void rows_long(uint8_t *slot, const uint8_t *const *rows, const struct across *x,
                      int is_signed)
{
    if (x->channels == 1)
        rows_of_octets(slot, rows, x, is_signed);
    else if (x->channels == 3)
        rows_of_quads(slot, rows, x, 3, is_signed);
    else
        rows_of_quads(slot, rows, x, 4, is_signed);
}

INLINE void rows_of_any(uint8_t *slot, const uint8_t *const *rows, const struct across *x,
                        int is_signed)
{
    if (x->n_groups == 0)
        rows_long(slot, rows, x, is_signed);
    else if (x->n_pairs == 2 && x->n_blocks == 1)
        rows_of_groups(slot, rows, x, 2, 1, is_signed);
    else if (x->n_pairs == 2)
        rows_of_groups(slot, rows, x, 2, x->n_blocks, is_signed);
    else if (x->n_blocks == 1)
        rows_of_groups(slot, rows, x, 1, 1, is_signed);
    else if (x->n_blocks == 3)
        rows_of_groups(slot, rows, x, 1, 3, is_signed);
    else
        rows_of_groups(slot, rows, x, 1, x->n_blocks, is_signed);
}

TARGET static void rows_positive(uint8_t *slot, const uint8_t *const *rows, const struct across *x)
{
    rows_of_any(slot, rows, x, 0);
}

TARGET static void rows_signed(uint8_t *slot, const uint8_t *const *rows, const struct across *x)
{
    rows_of_any(slot, rows, x, 1);
}

static void rows_wide(uint8_t *slot, const uint8_t *const *rows, const struct across *x)
{
    if (x->axis->is_signed)
        rows_signed(slot, rows, x);
    else
        rows_positive(slot, rows, x);
}

/* Resize rows of less than 16 bytes, which a load would overrun. */
static void rows_short(uint8_t *slot, const uint8_t *const *rows, const struct across *x)
{
    uint8_t copies[2][16] = {{0}, {0}};
    const uint8_t *const wide[2] = {copies[0], copies[1]};
    struct across same = *x;
    memcpy(copies[0], rows[0], x->row_size);
    memcpy(copies[1], rows[1], x->row_size);
    same.row_size = 16;
    rows_wide(slot, wide, &same);
}

static void resize_rows(uint8_t *slot, const uint8_t *const *rows, const void *across)
{
    const struct across *x = across;
    if (x->row_size < 16)
        rows_short(slot, rows, x);
    else
        rows_wide(slot, rows, x);
}

/* ---- vertical ------------------------------------------------------------------------------ */

/*
 * Up to four taps are one or two *pairs*, the two words of a dword. If the first tap is a slot's
 * second row and the last tap a slot's first row, a pair joins the first slot's second row and the
 * last slot's first row.
 */
struct pairs {
    const uint8_t *slots[2];
    const uint8_t *last;     /* first words of pair 0; NULL: these are in slots[0], too */
    int32_t low[2], high[2]; /* weights */
};

/* Prepare the pairs. For four taps the sums by low fit a dword even for low < 2^15, which takes
 * fewer steps to split off; this runs for each output row. */
static struct pairs pairs_of(const struct pstk__column *column)
{
    uint32_t w[6] = {0};
    struct pairs pairs = {.slots = {column->slots[0], column->slots[column->n_slots > 1]}};
    for (uint32_t k = 0; k < column->n_taps; k++)
        w[column->lead + k] = (uint32_t)column->weights[(size_t)k * column->stride];
    if (column->lead != 0 && column->n_taps % 2 == 0) {
        pairs.last = column->slots[column->n_slots - 1];
        w[0] = w[column->n_taps];
        if (column->n_taps == 2)
            w[2] = 0;
    }
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t w0 = w[2 * k], w1 = w[2 * k + 1], low = (1u << LOW_BITS) - 1;
        pairs.low[k] = (int32_t)((w0 & low) | (w1 & low) << 16);
        pairs.high[k] = (int32_t)((w0 >> LOW_BITS & 0xffff) | w1 >> LOW_BITS << 16);
    }
    return pairs;
}

INLINE __m256i load_8(const uint8_t *slot, size_t i)
{
    return _mm256_load_si256((const __m256i *)(slot + 4 * i));
}

/* Narrow four registers of words to 32 clipped bytes; a and b hold two registers each, packed. */
INLINE __m256i narrow_32(__m256i a, __m256i b)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order);
}

INLINE void column_few(uint8_t *out, const struct pstk__column *c, const struct pairs *p,
                       uint32_t n_pairs, int apart)
{
    const __m256i low0 = _mm256_set1_epi32(p->low[0]), low1 = _mm256_set1_epi32(p->low[1]);
    const __m256i high0 = _mm256_set1_epi32(p->high[0]), high1 = _mm256_set1_epi32(p->high[1]);
    for (uint32_t i = 0; i < c->size; i += 32) {
        __m256i v[4];
        for (uint32_t k = 0; k < 4; k++) {
            const size_t at = i + 8 * k;
            __m256i taps = load_8(p->slots[0], at);
            if (apart)
                taps = _mm256_blend_epi16(taps, load_8(p->last, at), 0x55);
            __m256i low = _mm256_madd_epi16(taps, low0), high = _mm256_madd_epi16(taps, high0);
            if (n_pairs == 2) {
                const __m256i others = load_8(p->slots[1], at);
                low = _mm256_add_epi32(low, _mm256_madd_epi16(others, low1));
                high = _mm256_add_epi32(high, _mm256_madd_epi16(others, high1));
            }
            v[k] = joined(low, high);
        }
        store_32(out + i,
                 narrow_32(rounded_few(_mm256_packs_epi32(v[0], v[1])),
                           rounded_few(_mm256_packs_epi32(v[2], v[3]))),
                 c->size - i);
    }
}

/* Compute a column of any number of taps. */
TARGET static void column_many(uint8_t *out, const struct pstk__column *c)
{
    int32_t *weights = c->scratch;
    memset(weights, 0, (size_t)c->n_slots * SLOT_ROWS * sizeof *weights);
    for (uint32_t k = 0; k < c->n_taps; k++)
        weights[c->lead + k] = c->weights[(size_t)k * c->stride];
    for (uint32_t s = 0; s < c->n_slots; s++) {
        const uint32_t w0 = (uint32_t)weights[2 * s], w1 = (uint32_t)weights[2 * s + 1];
        weights[2 * s] = low_pair(w0, w1);
        weights[2 * s + 1] = high_pair(w0, w1);
    }
    for (uint32_t i = 0; i < c->size; i += 32) {
        __m256i low[4], high[4];
        for (uint32_t k = 0; k < 4; k++)
            low[k] = high[k] = _mm256_setzero_si256();
        for (uint32_t s = 0; s < c->n_slots; s++)
            for (uint32_t k = 0; k < 4; k++) {
                const __m256i taps = load_8(c->slots[s], i + 8 * k);
                const __m256i l = _mm256_set1_epi32(weights[2 * s]);
                const __m256i h = _mm256_set1_epi32(weights[2 * s + 1]);
                low[k] = _mm256_add_epi32(low[k], _mm256_madd_epi16(taps, l));
                high[k] = _mm256_add_epi32(high[k], _mm256_madd_epi16(taps, h));
            }
        for (uint32_t k = 0; k < 4; k++)
            low[k] = rounded_many(joined(low[k], high[k]));
        store_32(
            out + i,
            narrow_32(_mm256_packus_epi32(low[0], low[1]), _mm256_packus_epi32(low[2], low[3])),
            c->size - i);
    }
}

TARGET static void resize_column(uint8_t *out, const struct pstk__column *c)
{
    if (c->n_taps > 4) {
        column_many(out, c);
        return;
    }
    const struct pairs p = pairs_of(c);
    const uint32_t n_pairs = c->n_taps > 2 ? 2 : 1;
    if (n_pairs == 1 && !p.last)
        column_few(out, c, &p, 1, 0);
    else if (n_pairs == 1)
        column_few(out, c, &p, 1, 1);
    else if (!p.last)
        column_few(out, c, &p, 2, 0);
    else
        column_few(out, c, &p, 2, 1);
}

const struct pstk__pixel_kernels pstk__pixel_avx2 = {
    .isa = PSTK_KERNELS_AVX2,
    .slot_rows = SLOT_ROWS,
    .slot_unit = 4,
    .general = &pstk__pixel_avx2,
    .axis_weights = pstk__axis_weights_avx2,
    .across_size = across_size,
    .across_init = across_init,
    .resize_rows = resize_rows,
    .resize_column = resize_column,
    .premultiply = pstk__premultiply_avx2,
    .unpremultiply = pstk__unpremultiply_avx2,
    .prefers_affine = 1,
    .lookup_init = pstk__lookup_init_avx2,
    .finish_row = pstk__finish_row_avx2,
};

#endif
