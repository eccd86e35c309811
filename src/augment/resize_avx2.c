/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_avx2: the kernels with 256-bit registers. A 22-bit weight is high * 2^15 + low, so that
 * VPMADDWD sums two taps by either part in a dword, and
 *     sum >> 15 = sum of taps * high + (sum of taps * low >> 15)
 * is exact. Both parts are below 2^15; so is the result, but for sums of very many taps: see
 * rounded_few.
 */
#include "augment/resize.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define CHANNELS 3u
#define FEATURES "avx2,bmi,bmi2,fma,f16c,popcnt"
#define TARGET __attribute__((target(FEATURES)))
#define INLINE static inline __attribute__((always_inline, target(FEATURES)))

#define PRECISION 22 /* bits of a weight */
#define LOW_BITS 15
#define REST (PRECISION - LOW_BITS) /* bits below the byte once a sum is shifted */
#define SLOT_ROWS 2u
#define LANES 8u /* row bytes in a register of dwords */

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The first n of eight dwords. */
INLINE __m256i mask8(uint32_t n)
{
    const __m256i iota = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)min_u32(n, 8)), iota);
}

/* Both parts of two taps' weights, as two words of a dword. */
static int32_t low_pair(uint32_t w0, uint32_t w1)
{
    const uint32_t low = (1u << LOW_BITS) - 1;
    return (int32_t)((w0 & low) | (w1 & low) << 16);
}

static int32_t high_pair(uint32_t w0, uint32_t w1)
{
    return (int32_t)(w0 >> LOW_BITS | w1 >> LOW_BITS << 16);
}

/* sum >> 15 of the sums by low and by high parts. */
INLINE __m256i joined(__m256i low, __m256i high)
{
    return _mm256_add_epi32(high, _mm256_srli_epi32(low, LOW_BITS));
}

/* Words of sums >> 15 to bytes, rounded: (v * 2^8 + 2^14) >> 15 = (v + 2^6) >> 7. Sums of few taps
 * are at most 255 * (2^22 + 8), so that v < 2^15. */
INLINE __m256i rounded_few(__m256i words)
{
    return _mm256_mulhrs_epi16(words, _mm256_set1_epi16(1 << (LOW_BITS - REST)));
}

/* Dwords likewise, of any number of taps. */
INLINE __m256i rounded_many(__m256i v)
{
    return _mm256_srli_epi32(_mm256_add_epi32(v, _mm256_set1_epi32(1 << (REST - 1))), REST);
}

/* ---- weights ------------------------------------------------------------------------------- */

/* The triangle at input x of four outputs; resize_c.c, in the same steps. */
INLINE __m256d triangle(__m256d x, __m256d center, __m256d filterscale)
{
    const __m256d one = _mm256_set1_pd(1.0), sign = _mm256_set1_pd(-0.0);
    __m256d t = _mm256_add_pd(_mm256_sub_pd(x, center), _mm256_set1_pd(0.5));
    t = _mm256_andnot_pd(sign, _mm256_mul_pd(t, filterscale));
    return _mm256_and_pd(_mm256_cmp_pd(t, one, _CMP_LT_OQ), _mm256_sub_pd(one, t));
}

TARGET static void axis_weights(struct pstk__axis *a, const struct pstk__filter *f, uint32_t window)
{
    const __m256d half = _mm256_set1_pd(0.5), fs = _mm256_set1_pd(f->filterscale);
    const __m256d support = _mm256_set1_pd(f->support), one = _mm256_set1_pd(1 << PRECISION);
    const __m256d iota = _mm256_setr_pd(0.0, 1.0, 2.0, 3.0);
    for (uint32_t i = 0; i < a->n_out; i += 4) {
        const __m128i lanes = _mm256_castsi256_si128(mask8(a->n_out - i));
        const __m256d output = _mm256_add_pd(_mm256_set1_pd(window + i), iota);
        const __m256d center = _mm256_mul_pd(_mm256_add_pd(output, half), _mm256_set1_pd(f->scale));
        const __m256d from = _mm256_add_pd(_mm256_sub_pd(center, support), half);
        const __m256d to = _mm256_add_pd(_mm256_add_pd(center, support), half);
        const __m128i lo = _mm256_cvttpd_epi32(_mm256_max_pd(from, _mm256_setzero_pd()));
        const __m128i hi = _mm256_cvttpd_epi32(_mm256_min_pd(to, _mm256_set1_pd(f->in)));
        const __m256d first = _mm256_cvtepi32_pd(lo), end = _mm256_cvtepi32_pd(hi);
        __m256d sum = _mm256_setzero_pd(), n = _mm256_set1_pd(1.0);
        for (uint32_t k = 0; k < f->n_rows; k++) {
            const __m256d x = _mm256_add_pd(first, _mm256_set1_pd(k));
            const __m256d in = _mm256_cmp_pd(x, end, _CMP_LT_OQ);
            const __m256d w = _mm256_and_pd(in, triangle(x, center, fs));
            const __m256d some = _mm256_cmp_pd(w, _mm256_setzero_pd(), _CMP_GT_OQ);
            n = _mm256_blendv_pd(n, _mm256_set1_pd(k + 1.0), some);
            sum = _mm256_add_pd(sum, w);
        }
        for (uint32_t k = 0; k < f->n_rows; k++) {
            const __m256d x = _mm256_add_pd(first, _mm256_set1_pd(k));
            const __m256d in = _mm256_cmp_pd(_mm256_set1_pd(k), n, _CMP_LT_OQ);
            const __m256d part = _mm256_div_pd(triangle(x, center, fs), sum);
            const __m256d w = _mm256_add_pd(half, _mm256_mul_pd(part, one));
            _mm_maskstore_epi32(a->weights + (size_t)k * a->n_out + i, lanes,
                                _mm256_cvttpd_epi32(_mm256_and_pd(in, w)));
        }
        _mm_maskstore_epi32((int32_t *)a->first + i, lanes, lo);
        _mm_maskstore_epi32((int32_t *)a->n + i, lanes, _mm256_cvttpd_epi32(n));
    }
}

/* ---- horizontal: packing --------------------------------------------------------------------- */

/*
 * A *half* is four bytes of the output row, one a dword lane; two halves make a *group*, which
 * fills a register. Their taps come in *blocks* of one or two pairs: those of a half are within 16
 * bytes of the input row. Where they are not, the axis goes as *long*: output by output, in quads
 * of taps.
 */
#define MAX_BLOCKS 8u

struct pair {
    __m128i index[2];        /* [half]: bytes of the 16 to words */
    __m128i low[2], high[2]; /* parts of the weights */
};

struct quad {
    int32_t low[2], high[2]; /* of taps 0 and 1, 2 and 3 */
};

struct across {
    const struct pstk__axis *axis; /* borrowed */
    uint32_t flip;
    uint32_t row_size; /* bytes */
    uint32_t n_groups; /* 0: long */
    uint32_t n_blocks; /* of a group */
    uint32_t n_pairs;  /* of a block */
    uint32_t n_quads;  /* long: of an output */
    struct pair *pairs;
    uint32_t *places; /* of each block, 2: where in the row a half's 16 bytes begin */
    struct quad *quads;
};

#define HEADER_SIZE ((sizeof(struct across) + 63) / 64 * 64)

static uint32_t groups_of(uint32_t n_out)
{
    return (n_out * CHANNELS + LANES - 1) / LANES;
}

static uint64_t across_size(uint32_t n_out, uint32_t n_taps)
{
    const uint64_t n_pairs = min_u32((n_taps + 1) / 2, MAX_BLOCKS);
    const uint64_t block = sizeof(struct pair) + 2 * sizeof(uint32_t);
    const uint64_t groups = groups_of(n_out) * n_pairs * block;
    const uint64_t quads = (uint64_t)n_out * ((n_taps + 3) / 4) * sizeof(struct quad);
    return HEADER_SIZE + (groups > quads ? groups : quads);
}

/* Low parts (and with `high`, high parts) of two taps of four lanes, as pairs of words. */
INLINE __m128i weight_pairs(__m128i w0, __m128i w1, int high)
{
    const __m128i low = _mm_set1_epi32((1 << LOW_BITS) - 1);
    if (high)
        return _mm_or_si128(_mm_srli_epi32(w0, LOW_BITS),
                            _mm_slli_epi32(_mm_srli_epi32(w1, LOW_BITS), 16));
    return _mm_or_si128(_mm_and_si128(w0, low), _mm_slli_epi32(_mm_and_si128(w1, low), 16));
}

INLINE uint32_t least_of(__m128i v)
{
    v = _mm_min_epu32(v, _mm_shuffle_epi32(v, _MM_SHUFFLE(1, 0, 3, 2)));
    v = _mm_min_epu32(v, _mm_shuffle_epi32(v, _MM_SHUFFLE(2, 3, 0, 1)));
    return (uint32_t)_mm_cvtsi128_si32(v);
}

/*
 * Fill block t of half k, counted over all groups; 0 where 16 bytes do not hold it. They do where
 * no output has more than four taps: then the next one begins at most two inputs on, which is 3 *
 * (2 + 4) bytes from its first to the other's last, less two, as a half is four of their six.
 */
INLINE int half_init(struct across *x, uint32_t k, uint32_t t)
{
    const struct pstk__axis *a = x->axis;
    const uint32_t begin = 4 * k, c = begin % 3;
    const uint32_t i = min_u32(begin / 3, a->n_out - 1), j = min_u32(i + 1, a->n_out - 1);
    const uint32_t block = k / 2 * x->n_blocks + t, side = k % 2, tap = 2 * x->n_pairs * t;
    struct pair *pairs = x->pairs + (size_t)block * x->n_pairs;
    /* Channels c, c + 1, ... of output i, then from red on those of the next. */
    const __m128i sum = _mm_add_epi32(_mm_setr_epi32(0, 1, 2, 3), _mm_set1_epi32((int)c));
    const __m128i is_next = _mm_cmpgt_epi32(sum, _mm_set1_epi32(2));
    const __m128i channel = _mm_sub_epi32(sum, _mm_and_si128(is_next, _mm_set1_epi32(3)));
#define OF_BOTH(of_i, of_next)                                                                     \
    _mm_blendv_epi8(_mm_set1_epi32((int)(of_i)), _mm_set1_epi32((int)(of_next)), is_next)
    const __m128i from = _mm_add_epi32(OF_BOTH(CHANNELS * (a->first[i] - a->begin + tap),
                                               CHANNELS * (a->first[j] - a->begin + tap)),
                                       channel);
    const uint32_t place = min_u32(least_of(from), x->row_size - 16);
    const __m128i last =
        _mm_add_epi32(from, OF_BOTH(CHANNELS * (min_u32(a->n[i] - tap, 2 * x->n_pairs) - 1),
                                    CHANNELS * (min_u32(a->n[j] - tap, 2 * x->n_pairs) - 1)));
    /* An output may have no tap in this block. */
    const __m128i has = OF_BOTH(a->n[i] > tap ? -1 : 0, a->n[j] > tap ? -1 : 0);
    const __m128i beyond = _mm_sub_epi32(last, _mm_set1_epi32((int)place + 15));
    if (_mm_movemask_epi8(_mm_and_si128(has, _mm_cmpgt_epi32(beyond, _mm_setzero_si128()))))
        return 0;
    /* Words of a tap's byte; those of taps without weight may be anything. */
    __m128i bytes = _mm_sub_epi32(from, _mm_set1_epi32((int)place));
    bytes = _mm_add_epi32(_mm_or_si128(bytes, _mm_slli_epi32(bytes, 16)),
                          _mm_set1_epi32((int)0x80038000));
    x->places[2 * block + side] = place;
    for (uint32_t p = 0; p < x->n_pairs; p++) {
        const int32_t *w = a->weights + (size_t)(tap + 2 * p) * a->n_out, *v = w + a->n_out;
        const __m128i w0 = OF_BOTH(w[i], w[j]), w1 = OF_BOTH(v[i], v[j]);
        pairs[p].index[side] = _mm_add_epi32(bytes, _mm_set1_epi32((int)(0x00060006 * p)));
        pairs[p].low[side] = weight_pairs(w0, w1, 0);
        pairs[p].high[side] = weight_pairs(w0, w1, 1);
    }
#undef OF_BOTH
    return 1;
}

/* Fill all halves. 0: the axis has to go as long. */
TARGET static int groups_init(struct across *x)
{
    const uint32_t n_taps = x->axis->n_taps, n_groups = groups_of(x->axis->n_out);
    x->n_pairs = n_taps > 2 && n_taps <= 4 ? 2 : 1;
    x->n_blocks = (n_taps + 2 * x->n_pairs - 1) / (2 * x->n_pairs);
    if (x->row_size < 16 || x->n_blocks > MAX_BLOCKS)
        return 0;
    x->places = (uint32_t *)(x->pairs + (size_t)n_groups * x->n_blocks * x->n_pairs);
    for (uint32_t k = 0; k < 2 * n_groups; k++)
        for (uint32_t t = 0; t < x->n_blocks; t++)
            if (!half_init(x, k, t))
                return 0;
    x->n_groups = n_groups;
    return 1;
}

static void quads_init(struct across *x)
{
    const struct pstk__axis *a = x->axis;
    struct quad *quad = x->quads;
    for (uint32_t i = 0; i < a->n_out; i++)
        for (uint32_t t = 0; t < x->n_quads; t++, quad++)
            for (uint32_t p = 0; p < 2; p++) {
                const size_t at = (size_t)(4 * t + 2 * p) * a->n_out + i;
                const uint32_t w0 = (uint32_t)a->weights[at];
                const uint32_t w1 = (uint32_t)a->weights[at + a->n_out];
                quad->low[p] = low_pair(w0, w1);
                quad->high[p] = high_pair(w0, w1);
            }
}

/* Groups do not flip: mirrored halves would reach further. */
static uint32_t across_init(void *across, const struct pstk__axis *axis, uint32_t flip)
{
    struct across *x = across;
    uint8_t *memory = (uint8_t *)across + HEADER_SIZE;
    *x = (struct across){.axis = axis,
                         .row_size = CHANNELS * (axis->end - axis->begin),
                         .n_quads = (axis->n_taps + 3) / 4,
                         .pairs = (struct pair *)memory,
                         .quads = (struct quad *)memory};
    if (groups_init(x))
        return flip;
    x->flip = flip;
    quads_init(x);
    return 0;
}

/* ---- horizontal: rows ---------------------------------------------------------------------- */

/* sums >> 15 of a group. */
INLINE __m256i group_sum(const struct pair *pairs, const uint32_t *places, const uint8_t *row,
                         uint32_t n_pairs, uint32_t n_blocks)
{
    __m256i low = _mm256_setzero_si256(), high = low;
    for (uint32_t t = 0; t < n_blocks; t++, places += 2) {
        const __m256i in = _mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(row + places[0]))),
            _mm_loadu_si128((const __m128i *)(row + places[1])), 1);
        for (uint32_t p = 0; p < n_pairs; p++, pairs++) {
            const __m256i taps =
                _mm256_shuffle_epi8(in, _mm256_load_si256((const __m256i *)pairs->index));
            const __m256i l =
                _mm256_madd_epi16(taps, _mm256_load_si256((const __m256i *)pairs->low));
            const __m256i h =
                _mm256_madd_epi16(taps, _mm256_load_si256((const __m256i *)pairs->high));
            low = t + p == 0 ? l : _mm256_add_epi32(low, l);
            high = t + p == 0 ? h : _mm256_add_epi32(high, h);
        }
    }
    return joined(low, high);
}

INLINE void rows_of_groups(uint8_t *slot, const uint8_t *const *rows, const struct across *x,
                           uint32_t n_pairs, uint32_t n_blocks)
{
    const uint8_t *r0 = rows[0], *r1 = rows[1];
    const struct pair *pairs = x->pairs;
    const uint32_t *places = x->places;
    for (uint32_t g = 0; g < x->n_groups; g++) {
        const __m256i v0 = group_sum(pairs, places, r0, n_pairs, n_blocks);
        const __m256i v1 = group_sum(pairs, places, r1, n_pairs, n_blocks);
        const __m256i both = _mm256_or_si256(v0, _mm256_slli_epi32(v1, 16));
        _mm256_store_si256((__m256i *)slot + g, rounded_few(both));
        pairs += n_blocks * n_pairs;
        places += 2 * n_blocks;
    }
}

/* Red, green, blue of an output, of one row in either half: a quad of taps is 12 bytes. */
TARGET static void rows_long(uint8_t *slot, const uint8_t *const *rows, const struct across *x)
{
    const struct pstk__axis *a = x->axis;
    const __m256i pair = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
    const struct quad *quad = x->quads;
    for (uint32_t i = 0; i < a->n_out; i++, quad += x->n_quads) {
        const uint32_t out = x->flip ? a->n_out - 1 - i : i, n_quads = (a->n[i] + 3) / 4;
        __m256i low = _mm256_setzero_si256(), high = low;
        for (uint32_t t = 0; t < n_quads; t++) {
            const uint32_t at = CHANNELS * (a->first[i] - a->begin + 4 * t);
            const uint32_t from = min_u32(at, x->row_size - 16);
            const __m256i in = _mm256_inserti128_si256(
                _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(rows[0] + from))),
                _mm_loadu_si128((const __m128i *)(rows[1] + from)), 1);
            const __m256i index = _mm256_add_epi8(pair, _mm256_set1_epi16((int16_t)(at - from)));
            const __m256i taps = _mm256_shuffle_epi8(in, index);
            const __m256i others =
                _mm256_shuffle_epi8(in, _mm256_add_epi8(index, _mm256_set1_epi16(6)));
            const __m256i low0 = _mm256_set1_epi32(quad[t].low[0]);
            const __m256i low1 = _mm256_set1_epi32(quad[t].low[1]);
            const __m256i high0 = _mm256_set1_epi32(quad[t].high[0]);
            const __m256i high1 = _mm256_set1_epi32(quad[t].high[1]);
            low = _mm256_add_epi32(low, _mm256_madd_epi16(taps, low0));
            low = _mm256_add_epi32(low, _mm256_madd_epi16(others, low1));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(taps, high0));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(others, high1));
        }
        const __m256i v = rounded_many(joined(low, high));
        const __m128i both = _mm_or_si128(_mm256_castsi256_si128(v),
                                          _mm_slli_epi32(_mm256_extracti128_si256(v, 1), 16));
        uint8_t *to = slot + (size_t)out * CHANNELS * sizeof(int32_t);
        _mm_storel_epi64((__m128i *)to, both);
        _mm_storeu_si32(to + 8, _mm_shuffle_epi32(both, 2));
    }
}

TARGET static void resize_rows(uint8_t *slot, const uint8_t *const *rows, const void *across)
{
    const struct across *x = across;
    if (x->n_groups == 0 && x->row_size < 16) {
        uint8_t copies[2][16] = {{0}, {0}};
        const uint8_t *const wide[2] = {copies[0], copies[1]};
        struct across same = *x;
        memcpy(copies[0], rows[0], x->row_size);
        memcpy(copies[1], rows[1], x->row_size);
        same.row_size = 16;
        rows_long(slot, wide, &same);
    } else if (x->n_groups == 0) {
        rows_long(slot, rows, x);
    } else if (x->n_pairs == 2) {
        rows_of_groups(slot, rows, x, 2, 1);
    } else if (x->n_blocks == 1) {
        rows_of_groups(slot, rows, x, 1, 1);
    } else if (x->n_blocks == 3) {
        rows_of_groups(slot, rows, x, 1, 3);
    } else {
        rows_of_groups(slot, rows, x, 1, x->n_blocks);
    }
}

/* ---- vertical ------------------------------------------------------------------------------ */

/*
 * Up to four taps are one or two *pairs*, the two words of a dword. Where the first tap is a slot's
 * second row, and the last one a slot's first, a pair is the first slot's second row and the last
 * slot's first.
 */
struct pairs {
    const uint8_t *slots[2];
    const uint8_t *last;     /* the first words of pair 0, or NULL: they are in slots[0], too */
    int32_t low[2], high[2]; /* weights */
};

static struct pairs pairs_of(const struct pstk__column *c)
{
    uint32_t w[6] = {0};
    struct pairs p = {.slots = {c->slots[0], c->slots[c->n_slots > 1]}};
    for (uint32_t k = 0; k < c->n_taps; k++)
        w[c->lead + k] = (uint32_t)c->weights[(size_t)k * c->stride];
    if (c->lead != 0 && c->n_taps % 2 == 0) {
        p.last = c->slots[c->n_slots - 1];
        w[0] = w[c->n_taps];
        if (c->n_taps == 2)
            w[2] = 0;
    }
    for (uint32_t k = 0; k < 2; k++) {
        p.low[k] = low_pair(w[2 * k], w[2 * k + 1]);
        p.high[k] = high_pair(w[2 * k], w[2 * k + 1]);
    }
    return p;
}

INLINE __m256i load_8(const uint8_t *slot, size_t i)
{
    return _mm256_load_si256((const __m256i *)(slot + 4 * i));
}

/* 32 bytes of four registers of words, two and two, each as of packs. */
INLINE __m256i narrow_32(__m256i a, __m256i b)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order);
}

INLINE void store_32(uint8_t *out, __m256i v, uint32_t n)
{
    if (n >= 32) {
        _mm256_storeu_si256((__m256i *)out, v);
    } else {
        uint8_t bytes[32];
        _mm256_storeu_si256((__m256i *)bytes, v);
        memcpy(out, bytes, n);
    }
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
                 narrow_32(rounded_few(_mm256_packus_epi32(v[0], v[1])),
                           rounded_few(_mm256_packus_epi32(v[2], v[3]))),
                 c->size - i);
    }
}

/* Any number of taps. */
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
    if (n_pairs == 1 && p.last == NULL)
        column_few(out, c, &p, 1, 0);
    else if (n_pairs == 1)
        column_few(out, c, &p, 1, 1);
    else if (p.last == NULL)
        column_few(out, c, &p, 2, 0);
    else
        column_few(out, c, &p, 2, 1);
}

const struct pstk__pixel_kernels pstk__pixel_avx2 = {
    .variant = PSTK_VARIANT_AVX2,
    .slot_rows = SLOT_ROWS,
    .slot_unit = 4,
    .axis_weights = axis_weights,
    .across_size = across_size,
    .across_init = across_init,
    .resize_rows = resize_rows,
    .resize_column = resize_column,
    .lookup_init = pstk__lookup_init_avx2,
    .finish_row = pstk__finish_row_avx2,
};

#endif
