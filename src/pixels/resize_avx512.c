/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_avx512: the two passes with 512-bit registers. A 22-bit weight is three signed digits of
 * base 256, so that VPDPBUSD sums four taps (u8) by one digit (s8) in a dword. d0, d1 and d2 are
 * the sums by digits. Both
 *     sum = d0 + 256 * (d1 + 256 * d2)
 *     sum >> 16 = (((d0 >> 8) + d1) >> 8) + d2
 * are exact. A sum of all taps is >= 0 and below 2^30 (resize_c.c).
 */
#if defined(__x86_64__)

#include "pixels/resize_avx512.h"
#include "pixels/resize_kernels_avx2.h"

#define PRECISION 22 /* bits of a weight */
#define HALF (1 << (PRECISION - 1))
#define SLOT_ROWS 4u
#define LANES 16u         /* row bytes that a register of dwords holds */
#define DIGITS_0 0x808080 /* the bytes of (w + DIGITS_0) ^ DIGITS_0 are the signed digits of w */

/* ---- weights -------------------------------------------------------------------------------- */

/* Return the triangle at input x of eight outputs, in the same steps as in resize_c.c. */
INLINE __m512d triangle(__m512d x, __m512d center, __m512d filterscale)
{
    const __m512d one = _mm512_set1_pd(1.0);
    __m512d t = _mm512_add_pd(_mm512_sub_pd(x, center), _mm512_set1_pd(0.5));
    t = _mm512_abs_pd(_mm512_mul_pd(t, filterscale));
    return _mm512_maskz_sub_pd(_mm512_cmp_pd_mask(t, one, _CMP_LT_OQ), one, t);
}

TARGET static void axis_weights(struct pstk__axis *a, const struct pstk__filter *f,
                                uint32_t first_out)
{
    const __m512d half = _mm512_set1_pd(0.5), fs = _mm512_set1_pd(f->filterscale);
    const __m512d support = _mm512_set1_pd(f->support), one = _mm512_set1_pd(1 << PRECISION);
    const __m256i iota = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (uint32_t i = 0; i < a->n_out; i += 8) {
        const __mmask8 lanes = (__mmask8)_bzhi_u32(0xff, a->n_out - i < 8 ? a->n_out - i : 8);
        const __m256i output = _mm256_add_epi32(_mm256_set1_epi32((int)(first_out + i)), iota);
        const __m512d center = _mm512_mul_pd(_mm512_add_pd(_mm512_cvtepu32_pd(output), half),
                                             _mm512_set1_pd(f->scale));
        const __m512d from = _mm512_add_pd(_mm512_sub_pd(center, support), half);
        const __m512d to = _mm512_add_pd(_mm512_add_pd(center, support), half);
        const __m256i lo = _mm512_cvttpd_epu32(_mm512_max_pd(from, _mm512_setzero_pd()));
        const __m256i hi = _mm512_cvttpd_epu32(_mm512_min_pd(to, _mm512_set1_pd(f->in)));
        const __m256i most = _mm256_sub_epi32(hi, lo);
        const __m512d first = _mm512_cvtepu32_pd(lo);
        __m512d sum = _mm512_setzero_pd();
        __m256i n = _mm256_set1_epi32(1);
        for (uint32_t k = 0; k < f->n_rows; k++) {
            const __mmask8 in = _mm256_cmpgt_epu32_mask(most, _mm256_set1_epi32((int)k));
            const __m512d x = _mm512_add_pd(first, _mm512_set1_pd(k));
            const __m512d w = _mm512_maskz_mov_pd(in, triangle(x, center, fs));
            const __mmask8 some = _mm512_cmp_pd_mask(w, _mm512_setzero_pd(), _CMP_GT_OQ);
            n = _mm256_mask_mov_epi32(n, some, _mm256_set1_epi32((int)k + 1));
            sum = _mm512_add_pd(sum, w);
        }
        for (uint32_t k = 0; k < f->n_rows; k++) {
            const __mmask8 in = _mm256_cmpgt_epu32_mask(n, _mm256_set1_epi32((int)k));
            __m256i w = _mm256_setzero_si256();
            if (in != 0) { /* the divisions take most of the time here */
                const __m512d x = _mm512_add_pd(first, _mm512_set1_pd(k));
                const __m512d part = _mm512_div_pd(triangle(x, center, fs), sum);
                w = _mm512_maskz_cvttpd_epi32(in, _mm512_add_pd(half, _mm512_mul_pd(part, one)));
            }
            _mm256_mask_storeu_epi32(a->weights + (size_t)k * a->n_out + i, lanes, w);
        }
        _mm256_mask_storeu_epi32(a->first + i, lanes, lo);
        _mm256_mask_storeu_epi32(a->n + i, lanes, n);
    }
}

/* ---- horizontal: packing -------------------------------------------------------------------- */

/*
 * A *group* is 16 bytes of the output row, one in each dword lane. Its taps come in *blocks* of
 * four, which fill the lane. The bytes of a block lie in a few *pieces*, 64 bytes of the input row
 * each. VPERMB moves the bytes of a piece to their places.
 */
#define MAX_BLOCKS 8u /* axes with more are packed as chunks */
#define MAX_PIECES 4u /* so that offsets within a block fit a byte */

struct piece_location {
    uint64_t keep; /* mask: bytes of the block that are in this piece */
    uint64_t at;   /* offset of the piece in the row */
};

struct across {
    const struct pstk__axis *axis; /* borrowed */
    uint32_t channels;
    uint32_t flip;
    uint32_t row_size; /* bytes */
    uint32_t n_groups, n_blocks;
    uint32_t n_pieces; /* pieces of every block; 0: the axis is packed as chunks */
    uint32_t n_chunks; /* chunks of an output, with 16 taps each */
    __m512i *index;    /* for each piece of each block of each group */
    __m512i *digits;   /* 3 for each block of each group */
    struct piece_location *locations;
    __m128i *chunks; /* 3, one for each digit, for each chunk of each output */
};

static uint32_t groups_of(uint32_t n_out, uint32_t channels)
{
    return (n_out * channels + LANES - 1) / LANES;
}

#define HEADER_SIZE ((sizeof(struct across) + 63) / 64 * 64)

static uint64_t across_size(uint32_t n_out, uint32_t n_taps, uint32_t channels)
{
    const uint64_t most = (n_taps + 3) / 4, n_blocks = most < MAX_BLOCKS ? most : MAX_BLOCKS;
    const uint64_t block =
        (3 + MAX_PIECES) * sizeof(__m512i) + MAX_PIECES * sizeof(struct piece_location);
    const uint64_t groups = groups_of(n_out, channels) * n_blocks * block;
    const uint64_t chunks = (uint64_t)n_out * ((n_taps + 15) / 16) * 3 * sizeof(__m128i);
    return HEADER_SIZE + (groups > chunks ? groups : chunks);
}

/* The outputs of a group, and the output and channel of each lane. */
struct group {
    uint32_t first, n; /* outputs [first, first + n), n <= 16 */
    __m512i output;    /* output of each lane, counted from first */
    __m512i channel;
    __mmask16 lanes; /* lanes that are in the row */
};

/* Find the outputs of a group. `channels` is x->channels, as a constant for the compiler; also in
 * the functions below. */
INLINE struct group group_of(const struct across *x, uint32_t g, uint32_t channels)
{
    const uint32_t n_out = x->axis->n_out, begin = g * LANES, lead = begin % channels;
    const uint32_t left = n_out * channels - begin, n = left < LANES ? left : LANES;
    const uint32_t first = begin / channels, last = (begin + n - 1) / channels;
    const __m512i iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i byte = _mm512_add_epi32(iota, _mm512_set1_epi32((int)lead));
    struct group group = {.first = first, .n = last - first + 1, .lanes = mask16(n)};
    if (channels == 1) {
        group.output = byte;
        group.channel = _mm512_setzero_si512();
    } else if (channels == 3) { /* this division by 3 is exact for numbers below 18 */
        const __m512i third = _mm512_srli_epi32(_mm512_mullo_epi32(byte, _mm512_set1_epi32(11)), 5);
        const __m512i thrice = _mm512_add_epi32(third, _mm512_slli_epi32(third, 1));
        group.output = third;
        group.channel = _mm512_sub_epi32(byte, thrice);
    } else {
        group.output = _mm512_srli_epi32(byte, 2);
        group.channel = _mm512_and_si512(byte, _mm512_set1_epi32(3));
    }
    if (x->flip) {
        group.first = n_out - 1 - last;
        group.output = _mm512_sub_epi32(_mm512_set1_epi32((int)(last - first)), group.output);
    }
    return group;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Return the offset of a block's pieces. At the row's end they move back into the row. */
INLINE uint32_t begin_of(const struct across *x, const struct group *group, uint32_t block,
                         uint32_t channels)
{
    const struct pstk__axis *a = x->axis;
    const uint32_t last = x->row_size > 64 ? x->row_size - 64 : 0;
    return min_u32(channels * (a->first[group->first] - a->begin + 4 * block), last);
}

/* Return the number of pieces that hold every block. */
INLINE uint32_t pieces_of(const struct across *x, uint32_t channels)
{
    const struct pstk__axis *a = x->axis;
    uint32_t most = 1;
    for (uint32_t g = 0; g < x->n_groups; g++) {
        const struct group group = group_of(x, g, channels);
        const uint32_t last = a->first[group.first + group.n - 1] - a->begin;
        for (uint32_t t = 0; t < x->n_blocks; t++) {
            const uint32_t end = min_u32(channels * (last + 4 * t + 4), x->row_size);
            const uint32_t n = (end - begin_of(x, &group, t, channels) + 63) / 64;
            most = n > most ? n : most;
        }
    }
    return most;
}

/* Regroup the bytes 0, 1, 2 of four taps' weights to three dwords of four digits. */
INLINE void digits_of(__m512i *digits, __m512i u0, __m512i u1, __m512i u2, __m512i u3)
{
    const __m512i low = _mm512_set1_epi32(0xff), half = _mm512_set1_epi32(0xffff);
    const __m512i low2 = _mm512_set1_epi32(0xff00ff);
#define SELECT(mask, a, b) _mm512_ternarylogic_epi32(mask, a, b, 0xca) /* mask ? a : b */
    const __m512i a0 = SELECT(low, u0, _mm512_slli_epi32(u1, 8));
    const __m512i b0 = SELECT(low2, u2, _mm512_slli_epi32(u3, 8));
    const __m512i a1 = SELECT(low, _mm512_srli_epi32(u0, 8), u1);
    const __m512i b1 = SELECT(low, _mm512_srli_epi32(u2, 8), u3);
    const __m512i a2 = SELECT(low, _mm512_srli_epi32(u0, 16), _mm512_srli_epi32(u1, 8));
    const __m512i b2 = SELECT(low, _mm512_srli_epi32(u2, 16), _mm512_srli_epi32(u3, 8));
    digits[0] = SELECT(half, a0, _mm512_slli_epi32(b0, 16));
    digits[1] = SELECT(half, a1, _mm512_slli_epi32(b1, 16));
    digits[2] = SELECT(half, a2, _mm512_slli_epi32(b2, 16));
#undef SELECT
}

INLINE void block_init(struct across *x, const struct group *group, uint32_t g, uint32_t t,
                       uint32_t channels)
{
    const struct pstk__axis *a = x->axis;
    const __mmask16 outputs = mask16(group->n);
    const __m512i zero = _mm512_set1_epi32(DIGITS_0);
    __m512i taps[4];
    for (uint32_t k = 0; k < 4; k++) {
        const int32_t *weights = a->weights + (size_t)(4 * t + k) * a->n_out + group->first;
        const __m512i w = _mm512_maskz_permutexvar_epi32(
            group->lanes, group->output, _mm512_maskz_loadu_epi32(outputs, weights));
        taps[k] = _mm512_xor_si512(_mm512_add_epi32(w, zero), zero);
    }
    const size_t block = (size_t)g * x->n_blocks + t;
    digits_of(x->digits + 3 * block, taps[0], taps[1], taps[2], taps[3]);

    const __m512i first = _mm512_permutexvar_epi32(
        group->output, _mm512_maskz_loadu_epi32(outputs, a->first + group->first));
    const uint32_t begin = begin_of(x, group, t, channels);
    const uint32_t last = x->row_size > 64 ? x->row_size - 64 : 0;
    /* Offsets of the taps' bytes from `begin`; offsets of taps without weight may be anything. */
    __m512i offset = _mm512_add_epi32(_mm512_mullo_epi32(first, _mm512_set1_epi32((int)channels)),
                                      group->channel);
    offset = _mm512_add_epi32(offset,
                              _mm512_set1_epi32((int)(channels * (4 * t - a->begin)) - (int)begin));
    offset = _mm512_shuffle_epi8(offset, _mm512_broadcast_i32x4(_mm_setr_epi8(
                                             0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12)));
    offset = _mm512_add_epi8(offset, _mm512_set1_epi32((int)(channels * 0x03020100)));
    for (uint32_t p = 0; p < x->n_pieces; p++) {
        const uint32_t at = min_u32(begin + 64 * p, last);
        const __m512i piece = _mm512_and_si512(offset, _mm512_set1_epi8((char)0xc0));
        x->index[block * x->n_pieces + p] =
            _mm512_add_epi8(offset, _mm512_set1_epi8((char)(begin + 64 * p - at)));
        x->locations[block * x->n_pieces + p] = (struct piece_location){
            .keep = _mm512_cmpeq_epi8_mask(piece, _mm512_set1_epi8((char)(64 * p))), .at = at};
    }
}

/* Fill in the digits of all outputs' weights, 16 taps at a time, digit by digit. */
static void chunks_init(struct across *across)
{
    const struct pstk__axis *axis = across->axis;
    for (uint32_t i = 0; i < axis->n_out; i++) {
        uint8_t *digits = (uint8_t *)(across->chunks + (size_t)i * across->n_chunks * 3);
        memset(digits, 0, (size_t)across->n_chunks * 48);
        for (uint32_t k = 0; k < axis->n[i]; k++) {
            const uint32_t w = (uint32_t)axis->weights[(size_t)k * axis->n_out + i];
            const uint32_t u = (w + DIGITS_0) ^ DIGITS_0;
            uint8_t *at = digits + k / 16 * 48 + k % 16;
            at[0] = (uint8_t)u;
            at[16] = (uint8_t)(u >> 8);
            at[32] = (uint8_t)(u >> 16);
        }
    }
}

/* Pack the axis in `memory`: in groups, or in chunks if groups cannot hold it. */
INLINE void pack(struct across *x, uint8_t *memory, uint32_t channels)
{
    const uint32_t n_pieces = x->n_blocks > MAX_BLOCKS ? 0 : pieces_of(x, channels);
    if (n_pieces == 0 || n_pieces > MAX_PIECES) {
        x->chunks = (__m128i *)memory;
        chunks_init(x);
        return;
    }
    const size_t n_blocks = (size_t)x->n_groups * x->n_blocks;
    x->n_pieces = n_pieces;
    x->digits = (__m512i *)memory;
    x->index = x->digits + 3 * n_blocks;
    x->locations = (struct piece_location *)(x->index + n_pieces * n_blocks);
    for (uint32_t g = 0; g < x->n_groups; g++) {
        const struct group group = group_of(x, g, channels);
        for (uint32_t t = 0; t < x->n_blocks; t++)
            block_init(x, &group, g, t, channels);
    }
}

TARGET static uint32_t across_init(void *across, const struct pstk__axis *axis, uint32_t channels,
                                   uint32_t flip)
{
    struct across *x = across;
    uint8_t *memory = (uint8_t *)across + HEADER_SIZE;
    *x = (struct across){.axis = axis,
                         .channels = channels,
                         .flip = flip,
                         .row_size = channels * (axis->end - axis->begin),
                         .n_groups = groups_of(axis->n_out, channels),
                         .n_blocks = (axis->n_taps + 3) / 4,
                         .n_chunks = (axis->n_taps + 15) / 16};
    if (channels == 1)
        pack(x, memory, 1);
    else if (channels == 3)
        pack(x, memory, 3);
    else
        pack(x, memory, 4);
    return 0;
}

/* ---- horizontal: rows ----------------------------------------------------------------------- */

/*
 * Join the sums of four rows to dwords with a byte of each row. The rounded byte is at bit 22 of a
 * sum. Rows 0 and 1 come shifted right by 16, with bits 30 and above 0; rows 2 and 3 come
 * unshifted, so that their bytes have the same position in the upper half.
 */
INLINE __m512i four_rows(__m512i v0, __m512i v1, __m512i v2, __m512i v3)
{
    const __m512i even = _mm512_mask_mov_epi16(v0, 0xaaaaaaaa, v2);
    const __m512i odd = _mm512_mask_mov_epi16(v1, 0xaaaaaaaa, v3);
    /* a | (b & mask) */
    return _mm512_ternarylogic_epi32(_mm512_srli_epi16(even, 6), _mm512_slli_epi16(odd, 2),
                                     _mm512_set1_epi16((short)0xff00), 0xf8);
}

/* Return sum >> 16 of a lane's four taps. */
INLINE __m512i from_right(__m512i taps, __m512i d0, __m512i d1, __m512i d2)
{
    __m512i v = _mm512_dpbusd_epi32(_mm512_set1_epi32(HALF), taps, d0);
    v = _mm512_dpbusd_epi32(_mm512_srai_epi32(v, 8), taps, d1);
    return _mm512_dpbusd_epi32(_mm512_srai_epi32(v, 8), taps, d2);
}

/* Return the whole sum, rounding included. */
INLINE __m512i from_left(__m512i taps, __m512i d0, __m512i d1, __m512i d2)
{
    __m512i v = _mm512_dpbusd_epi32(_mm512_set1_epi32(HALF >> 16), taps, d2);
    v = _mm512_dpbusd_epi32(_mm512_slli_epi32(v, 8), taps, d1);
    return _mm512_dpbusd_epi32(_mm512_slli_epi32(v, 8), taps, d0);
}

/* Resize rows of at least 64 bytes, with one block of one piece, which holds nearly all axes of up
 * to four taps. */
TARGET static void rows_of_one(uint8_t *slot, const uint8_t *const *rows, const struct across *x)
{
    const uint8_t *r0 = rows[0], *r1 = rows[1], *r2 = rows[2], *r3 = rows[3];
    const __m512i *digits = x->digits, *index = x->index;
    for (uint32_t g = 0; g < x->n_groups; g++, digits += 3) {
        const size_t at = x->locations[g].at;
        const __m512i gather = index[g], d0 = digits[0], d1 = digits[1], d2 = digits[2];
        const __m512i x0 = _mm512_permutexvar_epi8(gather, _mm512_loadu_si512(r0 + at));
        const __m512i x1 = _mm512_permutexvar_epi8(gather, _mm512_loadu_si512(r1 + at));
        const __m512i x2 = _mm512_permutexvar_epi8(gather, _mm512_loadu_si512(r2 + at));
        const __m512i x3 = _mm512_permutexvar_epi8(gather, _mm512_loadu_si512(r3 + at));
        const __m512i v0 = from_right(x0, d0, d1, d2), v1 = from_right(x1, d0, d1, d2);
        const __m512i v2 = from_left(x2, d0, d1, d2), v3 = from_left(x3, d0, d1, d2);
        _mm512_store_si512(slot + (size_t)g * 64, four_rows(v0, v1, v2, v3));
    }
}

/*
 * Resize rows with any number of blocks and pieces; `narrow`: rows are shorter than 64 bytes. For
 * one row, and a group of pixels with 3 channels:
 *
 *   row     r g b r g b r g b r g b ...  64 bytes: piece 0  |  64 bytes: piece 1 ...
 *             |                                    |
 *             | VPERMB by the piece's index        | the same, for the bytes in `keep`
 *             v                                    v
 *   taps    t0 t1 t2 t3 | t0 t1 t2 t3 | ...        16 dword lanes, one a byte of the output row
 *           lane 0: r   | lane 1: g   |            t0 to t3: the block's four taps of that byte
 *             |
 *             | VPDPBUSD by each of the weights' three digits
 *             v
 *   digits  w0 w1 w2 w3 | w0 w1 w2 w3 | ...        added to sum0, sum1, sum2, block after block;
 *                                                  each block is 4 taps further along the row
 *
 *   sum0 + 256 * (sum1 + 256 * sum2)               sum of all taps; bits 22 to 29 are the byte
 *             |
 *             v four_rows
 *   slot    byte 0 of rows 0 1 2 3 | byte 1 of rows 0 1 2 3 | ...      16 lanes
 */
INLINE void rows_of_blocks(uint8_t *slot, const uint8_t *const *rows, const struct across *x,
                           uint32_t n_blocks, uint32_t n_pieces, int narrow)
{
    const __m512i *digits = x->digits, *index = x->index;
    const struct piece_location *location = x->locations;
    const __mmask64 bytes = mask64(x->row_size);
    for (uint32_t g = 0; g < x->n_groups; g++) {
        __m512i sum0[SLOT_ROWS], sum1[SLOT_ROWS], sum2[SLOT_ROWS];
        for (uint32_t r = 0; r < SLOT_ROWS; r++) {
            sum0[r] = _mm512_set1_epi32(HALF);
            sum1[r] = sum2[r] = _mm512_setzero_si512();
        }
        for (uint32_t t = 0; t < n_blocks; t++, digits += 3) {
            __m512i taps[SLOT_ROWS];
            for (uint32_t p = 0; p < n_pieces; p++, index++, location++)
                for (uint32_t r = 0; r < SLOT_ROWS; r++) {
                    const uint8_t *from = rows[r] + location->at;
                    const __m512i piece =
                        narrow ? _mm512_maskz_loadu_epi8(bytes, from) : _mm512_loadu_si512(from);
                    taps[r] = p == 0 ? _mm512_permutexvar_epi8(*index, piece)
                                     : _mm512_mask_permutexvar_epi8(taps[r], location->keep, *index,
                                                                    piece);
                }
            for (uint32_t r = 0; r < SLOT_ROWS; r++) {
                sum0[r] = _mm512_dpbusd_epi32(sum0[r], taps[r], digits[0]);
                sum1[r] = _mm512_dpbusd_epi32(sum1[r], taps[r], digits[1]);
                sum2[r] = _mm512_dpbusd_epi32(sum2[r], taps[r], digits[2]);
            }
        }
        for (uint32_t r = 0; r < SLOT_ROWS; r++) {
            sum1[r] = _mm512_add_epi32(sum1[r], _mm512_slli_epi32(sum2[r], 8));
            sum0[r] = _mm512_add_epi32(sum0[r], _mm512_slli_epi32(sum1[r], 8));
        }
        _mm512_store_si512(slot + (size_t)g * 64,
                           four_rows(_mm512_srli_epi32(sum0[0], 16), _mm512_srli_epi32(sum0[1], 16),
                                     sum0[2], sum0[3]));
    }
}

#define PLANES_4(channels, c, k)                                                                   \
    (channels) * (k) + (c), (channels) * ((k) + 1) + (c), (channels) * ((k) + 2) + (c),            \
        (channels) * ((k) + 3) + (c)
#define PLANES(n, c) PLANES_4(n, c, 0), PLANES_4(n, c, 4), PLANES_4(n, c, 8), PLANES_4(n, c, 12)
static const uint8_t planes_1[64] = {PLANES(1, 0)};
static const uint8_t planes_3[64] = {PLANES(3, 0), PLANES(3, 1), PLANES(3, 2)};
static const uint8_t planes_4[64] = {PLANES(4, 0), PLANES(4, 1), PLANES(4, 2), PLANES(4, 3)};

/* Resize one row, output by output, 16 taps at a time: their bytes become 16 of each channel, in
 * four dword lanes for each channel. */
INLINE void row_long(uint8_t *slot, uint32_t r, const uint8_t *row, const struct across *x,
                     uint32_t channels)
{
    const struct pstk__axis *a = x->axis;
    const __m512i gather = _mm512_loadu_si512(channels == 1   ? planes_1
                                              : channels == 3 ? planes_3
                                                              : planes_4);
    const uint32_t chunk = 16 * channels; /* bytes */
    const __m128i *digits = x->chunks;
    for (uint32_t i = 0; i < a->n_out; i++) {
        const uint32_t out = x->flip ? a->n_out - 1 - i : i;
        uint32_t at = channels * (a->first[i] - a->begin);
        __m512i sum0 = _mm512_setzero_si512(), sum1 = sum0, sum2 = sum0;
        for (uint32_t k = 0; k < x->n_chunks; k++, at += chunk, digits += 3) {
            const uint32_t left = at < x->row_size ? x->row_size - at : 0;
            const __m512i piece =
                _mm512_maskz_loadu_epi8(mask64(left < chunk ? left : chunk), row + (left ? at : 0));
            const __m512i taps = _mm512_permutexvar_epi8(gather, piece);
            sum0 = _mm512_dpbusd_epi32(sum0, taps, _mm512_broadcast_i32x4(digits[0]));
            sum1 = _mm512_dpbusd_epi32(sum1, taps, _mm512_broadcast_i32x4(digits[1]));
            sum2 = _mm512_dpbusd_epi32(sum2, taps, _mm512_broadcast_i32x4(digits[2]));
        }
        sum1 = _mm512_add_epi32(sum1, _mm512_slli_epi32(sum2, 8));
        __m512i v = _mm512_add_epi32(sum0, _mm512_slli_epi32(sum1, 8));
        v = _mm512_add_epi32(v, _mm512_shuffle_epi32(v, _MM_PERM_BADC));
        v = _mm512_add_epi32(v, _mm512_shuffle_epi32(v, _MM_PERM_CDAB));
        v = _mm512_srli_epi32(_mm512_add_epi32(v, _mm512_set1_epi32(HALF)), PRECISION);
        uint8_t *to = slot + (size_t)out * channels * SLOT_ROWS + r;
        to[0] = (uint8_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(v));
        if (channels > 1) {
            to[SLOT_ROWS] = (uint8_t)_mm_cvtsi128_si32(_mm512_extracti32x4_epi32(v, 1));
            to[2 * SLOT_ROWS] = (uint8_t)_mm_cvtsi128_si32(_mm512_extracti32x4_epi32(v, 2));
        }
        if (channels > 3)
            to[3 * SLOT_ROWS] = (uint8_t)_mm_cvtsi128_si32(_mm512_extracti32x4_epi32(v, 3));
    }
}

TARGET static void rows_long(uint8_t *slot, const uint8_t *const *rows, const struct across *x)
{
    for (uint32_t r = 0; r < SLOT_ROWS; r++)
        if (x->channels == 1)
            row_long(slot, r, rows[r], x, 1);
        else if (x->channels == 3)
            row_long(slot, r, rows[r], x, 3);
        else
            row_long(slot, r, rows[r], x, 4);
}

TARGET static void resize_rows(uint8_t *slot, const uint8_t *const *rows, const void *across)
{
    const struct across *x = across;
    const int narrow = x->row_size < 64;
    if (x->n_pieces == 0) {
        rows_long(slot, rows, x);
    } else if (narrow) {
        rows_of_blocks(slot, rows, x, x->n_blocks, 1, 1);
    } else if (x->n_blocks == 1 && x->n_pieces == 1) {
        rows_of_one(slot, rows, x);
    } else if (x->n_blocks == 2 && x->n_pieces == 1) {
        rows_of_blocks(slot, rows, x, 2, 1, 0);
    } else if (x->n_blocks == 2 && x->n_pieces == 2) {
        rows_of_blocks(slot, rows, x, 2, 2, 0);
    } else {
        rows_of_blocks(slot, rows, x, x->n_blocks, x->n_pieces, 0);
    }
}

/* ---- vertical ------------------------------------------------------------------------------- */

/* Return the digits of four weights, as dwords 0 to 2. */
INLINE __m128i digits_of_four(__m128i w)
{
    const __m128i zero = _mm_set1_epi32(DIGITS_0);
    const __m128i u = _mm_xor_si128(_mm_add_epi32(w, zero), zero);
    return _mm_shuffle_epi8(u,
                            _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, -1, -1, -1, -1));
}

/* Store bytes [i, i + n), at most 64, of a row, from sums >> 16. */
INLINE void store_64(uint8_t *out, uint32_t i, uint32_t n, const __m512i v[4])
{
    const __m512i a = _mm512_srli_epi16(_mm512_packus_epi32(v[0], v[1]), 6);
    const __m512i b = _mm512_srli_epi16(_mm512_packus_epi32(v[2], v[3]), 6);
    /* Packing within 128-bit lanes leaves dword 4 k + i of the row at dword 4 i + k. */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(a, b));
    if (n == 64)
        _mm512_storeu_si512(out + i, bytes);
    else
        _mm512_mask_storeu_epi8(out + i, mask64(n), bytes);
}

/*
 * Load four taps. If they begin at row `lead` of a slot and continue in the next slot, rows of the
 * next slot take the places of the rows before `lead`: `after`. The weights come in the same order.
 */
INLINE __m512i taps_at(const struct pstk__column *c, size_t i, __mmask64 after, int straddle)
{
    const __m512i taps = _mm512_load_si512(c->slots[0] + 4 * i);
    return straddle ? _mm512_mask_loadu_epi8(taps, after, c->slots[1] + 4 * i) : taps;
}

/* The operands from which a column of at most four taps is computed. */
struct four {
    __m512i digits[3];
    __mmask64 after;
    int straddle;
};

INLINE void four_64(uint8_t *out, const struct pstk__column *c, const struct four *f, uint32_t i,
                    uint32_t n)
{
    __m512i v[4];
    for (uint32_t k = 0; k < 4; k++)
        v[k] = 16 * k < n ? from_right(taps_at(c, i + 16 * k, f->after, f->straddle), f->digits[0],
                                       f->digits[1], f->digits[2])
                          : _mm512_setzero_si512();
    store_64(out, i, n, v);
}

INLINE void column_of_four(uint8_t *out, const struct pstk__column *c, __m128i digits, int straddle)
{
    const struct four f = {
        .digits = {_mm512_broadcastd_epi32(digits),
                   _mm512_broadcastd_epi32(_mm_shuffle_epi32(digits, _MM_PERM_BBBB)),
                   _mm512_broadcastd_epi32(_mm_shuffle_epi32(digits, _MM_PERM_CCCC))},
        .after = 0x1111111111111111ull * ((1u << c->lead) - 1),
        .straddle = straddle,
    };
    uint32_t i = 0;
    for (; i + 64 <= c->size; i += 64)
        four_64(out, c, &f, i, 64);
    if (i < c->size)
        four_64(out, c, &f, i, c->size - i);
}

/* Compute 16 bytes of a column with any number of taps. digits: 4 dwords a slot, the last one
 * unused. */
INLINE __m512i column_sum(const struct pstk__column *c, const int32_t *digits, size_t i)
{
    __m512i sum0 = _mm512_set1_epi32(HALF), sum1 = _mm512_setzero_si512(), sum2 = sum1;
    for (uint32_t s = 0; s < c->n_slots; s++) {
        const __m512i taps = _mm512_load_si512(c->slots[s] + 4 * i);
        sum0 = _mm512_dpbusd_epi32(sum0, taps, _mm512_set1_epi32(digits[4 * s]));
        sum1 = _mm512_dpbusd_epi32(sum1, taps, _mm512_set1_epi32(digits[4 * s + 1]));
        sum2 = _mm512_dpbusd_epi32(sum2, taps, _mm512_set1_epi32(digits[4 * s + 2]));
    }
    sum1 = _mm512_add_epi32(sum1, _mm512_slli_epi32(sum2, 8));
    return _mm512_srli_epi32(_mm512_add_epi32(sum0, _mm512_slli_epi32(sum1, 8)), 16);
}

TARGET static void column_of_many(uint8_t *out, const struct pstk__column *c)
{
    int32_t *digits = c->scratch;
    memset(digits, 0, (size_t)c->n_slots * SLOT_ROWS * sizeof *digits);
    for (uint32_t k = 0; k < c->n_taps; k++)
        digits[c->lead + k] = c->weights[(size_t)k * c->stride];
    for (uint32_t s = 0; s < c->n_slots; s++) {
        const __m128i w = _mm_loadu_si128((const __m128i *)(digits + 4 * s));
        _mm_storeu_si128((__m128i *)(digits + 4 * s), digits_of_four(w));
    }
    for (uint32_t i = 0; i < c->size; i += 64) {
        const uint32_t left = c->size - i, n = left < 64 ? left : 64;
        __m512i v[4];
        for (uint32_t k = 0; k < 4; k++)
            v[k] = column_sum(c, digits, i + 16 * k);
        store_64(out, i, n, v);
    }
}

TARGET static void resize_column(uint8_t *out, const struct pstk__column *c)
{
    if (c->n_taps > SLOT_ROWS) {
        column_of_many(out, c);
        return;
    }
    const size_t stride = c->stride;
    const int32_t *w = c->weights;
    const __m128i digits =
        digits_of_four(_mm_setr_epi32(w[0], w[stride], w[2 * stride], w[3 * stride]));
    const __m128i turned = _mm_rolv_epi32(digits, _mm_set1_epi32((int)(8 * c->lead)));
    if (c->n_slots > 1)
        column_of_four(out, c, turned, 1);
    else
        column_of_four(out, c, turned, 0);
}

const struct pstk__pixel_kernels pstk__pixel_avx512 = {
    .isa = PSTK_KERNELS_AVX512,
    .slot_rows = SLOT_ROWS,
    .slot_unit = 4,
    .general = &pstk__pixel_avx2, /* the dot products here take weights >= 0 */
    .axis_weights = axis_weights,
    .across_size = across_size,
    .across_init = across_init,
    .resize_rows = resize_rows,
    .resize_column = resize_column,
    .premultiply = pstk__premultiply_avx512,
    .unpremultiply = pstk__unpremultiply_avx512,
    .lookup_init = pstk__lookup_init_avx512,
    .finish_row = pstk__finish_row_avx512,
};

#endif
