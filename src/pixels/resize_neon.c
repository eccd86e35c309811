/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_neon: the two passes with NEON. A byte becomes a dword by a look-up, which takes bytes
 * from anywhere in 16, and a weight of 22 bits is one factor. Sums are modulo 2^32, as in
 * resize_c.c. The texts of AVX2 would take about twice the instructions here: NEON has no single
 * one for VPMADDWD.
 */
#if defined(PSTK_NEON)

#include "pixels/resize_kernels_avx2.h"
#include "pixels/resize_kernels_c.h"
#include "pixels/resize_kernels_neon.h"

#include <arm_neon.h>
#include <string.h>

#define PRECISION PSTK__WEIGHT_BITS
#define ONE (1u << PRECISION) /* the weight 1 */
#define WINDOW 16u            /* bytes of a look-up */
#define GROUP 4u              /* outputs computed together; taps of a pixel in a window, too */
#define BLOCK 16u             /* bytes of a column that are computed together */
#define NONE 0x80             /* an index that a look-up gives 0 for */
#define INLINE static inline __attribute__((always_inline))

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/*
 * Return the bytes of eight sums. The upper halves decide: (sum + 2^21) >> 22 is (upper + 2^5) >>
 * 6, since the lower half adds less than 1 to `upper`. Only sums with negative weights are clipped.
 * `is_signed` is a constant for the compiler, here and below.
 */
INLINE uint8x8_t rounded(uint32x4_t a, uint32x4_t b, int is_signed)
{
    const uint16x8_t upper = vuzp2q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
    return is_signed ? vqrshrun_n_s16(vreinterpretq_s16_u16(upper), PRECISION - 16)
                     : vqrshrn_n_u16(upper, PRECISION - 16);
}

INLINE uint8x16_t rounded_16(const uint32x4_t sums[4], int is_signed)
{
    return vcombine_u8(rounded(sums[0], sums[1], is_signed), rounded(sums[2], sums[3], is_signed));
}

INLINE uint32x4_t spread(uint8x16_t bytes, uint8x16_t index)
{
    return vreinterpretq_u32_u8(vqtbl1q_u8(bytes, index));
}

/* ---- horizontal ----------------------------------------------------------------------------- */

/* An axis packed for resize_rows. */
struct across {
    const struct pstk__axis *axis; /* borrowed */
    uint32_t channels;
    uint32_t row_bytes;
    uint32_t row_size; /* the same, or WINDOW: a shorter row is copied to that many bytes */
    uint32_t n_quads;  /* quads of taps of the output that has the most */
    uint32_t n_whole;  /* outputs whose windows all end in the row, a multiple of GROUP */
    uint32_t is_near;  /* one channel: every GROUP of outputs begins in one window */
    uint32_t places[]; /* n_out: where in the row an output's taps begin; then the weights */
};

/* Return the weights of output i, n_quads * 4 of them. `n_quads` may be a constant. */
INLINE const uint32_t *weights_of(const uint32_t *weights, uint32_t i, uint32_t n_quads)
{
    return weights + (size_t)4 * n_quads * i;
}

static uint64_t across_size(uint32_t n_out, uint32_t n_taps, uint32_t channels)
{
    (void)channels;
    return sizeof(struct across) + (uint64_t)n_out * (1 + (n_taps + 3) / 4 * 4) * sizeof(uint32_t);
}

/* Count the outputs whose windows all end in the row. */
static uint32_t whole_of(const struct across *x)
{
    const struct pstk__axis *a = x->axis;
    const uint64_t taps = x->channels == 1 ? a->n_taps - 1 : 4 * (x->n_quads - 1);
    uint32_t n = a->n_out;
    while (n > 0 && x->channels * (a->first[n - 1] - a->begin + taps) + WINDOW > x->row_size)
        n--;
    return n / GROUP * GROUP;
}

static uint32_t is_near(const struct pstk__axis *a)
{
    for (uint32_t i = 0; i < a->n_out; i += GROUP)
        if (a->first[min_u32(i + GROUP, a->n_out) - 1] - a->first[i] >= WINDOW)
            return 0;
    return 1;
}

/* Pack an axis. finish_row flips. */
static uint32_t across_init(void *across, const struct pstk__axis *axis, uint32_t channels,
                            uint32_t flip)
{
    struct across *x = across;
    uint32_t *w = x->places + axis->n_out;
    x->axis = axis;
    x->channels = channels;
    x->row_bytes = channels * (axis->end - axis->begin);
    x->row_size = x->row_bytes < WINDOW ? WINDOW : x->row_bytes;
    x->n_quads = (axis->n_taps + 3) / 4;
    x->n_whole = whole_of(x);
    x->is_near = is_near(axis);
    for (uint32_t i = 0; i < axis->n_out; i++) {
        x->places[i] = channels * (axis->first[i] - axis->begin);
        for (uint32_t k = 0; k < 4 * x->n_quads; k++)
            *w++ = (uint32_t)axis->weights[(size_t)k * axis->n_out + i];
    }
    return flip;
}

/* Return the index of the bytes of tap k's channels. The fourth of three belongs to the next tap,
 * and no one reads its sum. */
INLINE uint8x16_t channels_of(uint32_t k, uint32_t channels)
{
    const uint8_t at = (uint8_t)(k * channels);
    const uint8x16_t index = {at,     NONE, NONE, NONE, at + 1, NONE, NONE, NONE,
                              at + 2, NONE, NONE, NONE, at + 3, NONE, NONE, NONE};
    return index;
}

/* Sum up n_taps of a pixel's channels; four at a time, with weights of 0 after the last tap. With
 * `is_end` a window may end past the row, and is taken from its last bytes. */
INLINE uint32x4_t pixel_sum(const uint8_t *row, uint32_t row_size, uint32_t at, const uint32_t *w,
                            uint32_t n_taps, uint32_t channels, int is_end)
{
    uint32x4_t sum = vdupq_n_u32(0);
    for (uint32_t t = 0; t < n_taps; t += 4, w += 4, at += 4 * channels) {
        const uint32_t from = is_end ? min_u32(at, row_size - WINDOW) : at;
        const uint8x16_t window = vld1q_u8(row + from), off = vdupq_n_u8((uint8_t)(at - from));
        const uint32x4_t by = vld1q_u32(w);
        for (uint32_t k = 0; k < (n_taps < 4 && !is_end ? n_taps : 4); k++) {
            const uint8x16_t index = channels_of(k, channels);
            const uint32x4_t taps = spread(window, is_end ? vaddq_u8(index, off) : index);
            const uint32_t weight = by[k];
            sum = t + k == 0 ? vmulq_n_u32(taps, weight) : vmlaq_n_u32(sum, taps, weight);
        }
    }
    return sum;
}

/* Store a group of pixels. It writes WINDOW bytes. */
INLINE void store_group(uint8_t *out, const uint32x4_t sums[GROUP], uint32_t channels,
                        int is_signed)
{
    const uint8x16_t packed = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, NONE, NONE, NONE, NONE};
    const uint8x16_t bytes = rounded_16(sums, is_signed);
    vst1q_u8(out, channels == 3 ? vqtbl1q_u8(bytes, packed) : bytes);
}

/* Compute the outputs after n_whole. */
INLINE void last_pixels(uint8_t *out, const uint8_t *row, const struct across *x, uint32_t channels,
                        int is_signed)
{
    const uint32_t *weights = x->places + x->axis->n_out, last = x->axis->n_out - 1;
    for (uint32_t i = x->n_whole; i <= last; i += GROUP) {
        uint32x4_t sums[GROUP];
        for (uint32_t k = 0; k < GROUP; k++) {
            const uint32_t at = min_u32(i + k, last);
            sums[k] = pixel_sum(row, x->row_size, x->places[at],
                                weights_of(weights, at, x->n_quads), x->axis->n[at], channels, 1);
        }
        store_group(out + (size_t)channels * i, sums, channels, is_signed);
    }
}

INLINE void pixel_groups(uint8_t *out, const uint8_t *row, const struct across *x, uint32_t n_taps,
                         uint32_t channels, int is_signed)
{
    const uint32_t *places = x->places, *w = places + x->axis->n_out, n = x->n_whole;
    const uint32_t n_weights = (n_taps + 3) / 4 * 4;
    for (size_t i = 0; i < n; i += GROUP, w += GROUP * n_weights) {
        uint32x4_t sums[GROUP];
        for (uint32_t k = 0; k < GROUP; k++)
            sums[k] =
                pixel_sum(row, 0, places[i + k], w + (size_t)k * n_weights, n_taps, channels, 0);
        store_group(out + channels * i, sums, channels, is_signed);
    }
}

INLINE void row_of_pixels(uint8_t *out, const uint8_t *row, const struct across *x,
                          uint32_t channels, int is_signed)
{
    const uint32_t n_taps = x->axis->n_taps;
    /* These numbers are constants for the compiler. */
    if (n_taps <= 2)
        pixel_groups(out, row, x, 2, channels, is_signed);
    else if (n_taps == 3)
        pixel_groups(out, row, x, 3, channels, is_signed);
    else if (n_taps == 4)
        pixel_groups(out, row, x, 4, channels, is_signed);
    else
        pixel_groups(out, row, x, n_taps, channels, is_signed);
    last_pixels(out, row, x, channels, is_signed);
}

/* ---- horizontal: one channel ---------------------------------------------------------------- */

/* Compute the first n outputs, four of which begin in one window: a lane each. The weights are the
 * axis's own. */
INLINE void near_groups(uint8_t *out, const uint8_t *row, const struct across *x, uint32_t n,
                        uint32_t n_taps, int is_signed)
{
    const uint32_t *places = x->places, *weights = (const uint32_t *)x->axis->weights;
    const size_t n_out = x->axis->n_out;
    for (size_t i = 0; i < n; i += GROUP) {
        const uint32x4_t from = vld1q_u32(places + i);
        const uint32x4_t index = vorrq_u32(vsubq_u32(from, vdupq_laneq_u32(from, 0)),
                                           vdupq_n_u32(NONE << 24 | NONE << 16 | NONE << 8));
        const uint8_t *at = row + places[i];
        uint32x4_t sum = vdupq_n_u32(0);
        for (uint32_t k = 0; k < n_taps; k++) {
            const uint32x4_t taps = spread(vld1q_u8(at + k), vreinterpretq_u8_u32(index));
            const uint32x4_t by = vld1q_u32(weights + k * n_out + i);
            sum = k == 0 ? vmulq_u32(taps, by) : vmlaq_u32(sum, taps, by);
        }
        vst1_lane_u32((uint32_t *)(void *)(out + i),
                      vreinterpret_u32_u8(rounded(sum, sum, is_signed)), 0);
    }
}

/* Compute one output: its taps are lanes. */
INLINE void sample(uint8_t *out, const uint8_t *row, const struct across *x, uint32_t i,
                   int is_signed)
{
    const uint32_t *w = weights_of(x->places + x->axis->n_out, i, x->n_quads), n = x->axis->n[i];
    const uint8_t *from = row + x->places[i];
    uint32x4_t sum = vdupq_n_u32(0);
    for (uint32_t k = 0; k < n; k += 4, w += 4) {
        uint32_t four = 0;
        memcpy(&four, from + k, min_u32(n - k, 4));
        const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
        sum = vmlaq_u32(sum, vmovl_u16(vget_low_u16(words)), vld1q_u32(w));
    }
    sum = vdupq_n_u32(vaddvq_u32(sum));
    vst1_lane_u8(out + i, rounded(sum, sum, is_signed), 0);
}

INLINE void row_of_samples(uint8_t *out, const uint8_t *row, const struct across *x, int is_signed)
{
    const uint32_t n_near = x->is_near ? x->n_whole : 0, n_taps = x->axis->n_taps;
    if (n_taps == 1) /* a second tap may lie past the row, even if its weight is 0 */
        near_groups(out, row, x, n_near, 1, is_signed);
    else if (n_taps == 2)
        near_groups(out, row, x, n_near, 2, is_signed);
    else
        near_groups(out, row, x, n_near, n_taps, is_signed);
    for (uint32_t i = n_near; i < x->axis->n_out; i++)
        sample(out, row, x, i, is_signed);
}

/* ---- horizontal: rows ----------------------------------------------------------------------- */

/* Attributes of one function for each number of channels, so that the compiler keeps its values in
 * registers. */
#define APART static __attribute__((noinline))

APART void row_of_1(uint8_t *out, const uint8_t *row, const struct across *x)
{
    if (x->axis->is_signed)
        row_of_samples(out, row, x, 1);
    else
        row_of_samples(out, row, x, 0);
}

APART void row_of_3(uint8_t *out, const uint8_t *row, const struct across *x)
{
    if (x->axis->is_signed)
        row_of_pixels(out, row, x, 3, 1);
    else
        row_of_pixels(out, row, x, 3, 0);
}

APART void row_of_4(uint8_t *out, const uint8_t *row, const struct across *x)
{
    if (x->axis->is_signed)
        row_of_pixels(out, row, x, 4, 1);
    else
        row_of_pixels(out, row, x, 4, 0);
}

static void row_of(uint8_t *out, const uint8_t *row, const struct across *x)
{
    if (x->channels == 1)
        row_of_1(out, row, x);
    else if (x->channels == 3)
        row_of_3(out, row, x);
    else
        row_of_4(out, row, x);
}

/* A row of less than a window is copied to one. */
static void resize_rows(uint8_t *slot, const uint8_t *const *rows, const void *across)
{
    const struct across *x = across;
    if (x->row_bytes >= WINDOW) {
        row_of(slot, rows[0], x);
        return;
    }
    uint8_t copy[WINDOW] = {0};
    memcpy(copy, rows[0], x->row_bytes);
    row_of(slot, copy, x);
}

/* ---- vertical ------------------------------------------------------------------------------- */

/* Compute BLOCK bytes from offset `at` on. A slot is one row, so there are as many slots as taps.
 * `n_taps` is a constant for the compiler up to 4. */
INLINE uint8x16_t column_block(const struct pstk__column *c, const uint32_t *weights, size_t at,
                               uint32_t n_taps, int is_signed)
{
    uint32x4_t sums[4];
    for (uint32_t j = 0; j < 4; j++)
        sums[j] = vdupq_n_u32(0);
    for (uint32_t k = 0; k < n_taps; k++) {
        const uint8x16_t row = vld1q_u8(c->slots[k] + at);
        for (uint32_t j = 0; j < 4; j++) {
            const uint32x4_t taps = spread(row, channels_of(j, 4));
            sums[j] =
                k == 0 ? vmulq_n_u32(taps, weights[k]) : vmlaq_n_u32(sums[j], taps, weights[k]);
        }
    }
    return rounded_16(sums, is_signed);
}

/* A slot is longer than its row, but `out` is not. */
INLINE void column_of(uint8_t *out, const struct pstk__column *c, uint32_t n_taps, int is_signed)
{
    const uint32_t whole = c->size / BLOCK * BLOCK, *weights = (const uint32_t *)c->scratch;
    for (size_t at = 0; at < whole; at += BLOCK)
        vst1q_u8(out + at, column_block(c, weights, at, n_taps, is_signed));
    if (whole < c->size) {
        uint8_t bytes[BLOCK];
        vst1q_u8(bytes, column_block(c, weights, whole, n_taps, is_signed));
        memcpy(out + whole, bytes, c->size - whole);
    }
}

INLINE void column_of_any(uint8_t *out, const struct pstk__column *c, int is_signed)
{
    if (c->n_taps == 1 && (uint32_t)c->scratch[0] == ONE)
        memcpy(out, c->slots[0], c->size);
    else if (c->n_taps == 2)
        column_of(out, c, 2, is_signed);
    else if (c->n_taps == 3)
        column_of(out, c, 3, is_signed);
    else if (c->n_taps == 4)
        column_of(out, c, 4, is_signed);
    else
        column_of(out, c, c->n_taps, is_signed);
}

static void resize_column(uint8_t *out, const struct pstk__column *c)
{
    for (uint32_t k = 0; k < c->n_taps; k++)
        c->scratch[k] = c->weights[(size_t)k * c->stride];
    if (c->is_signed)
        column_of_any(out, c, 1);
    else
        column_of_any(out, c, 0);
}

/* Weights are doubles, of which NEON has two in a register: plain C. */
const struct pstk__pixel_kernels pstk__pixel_neon = {
    .isa = PSTK_KERNELS_NEON,
    .slot_rows = 1,
    .slot_unit = 1,
    .general = &pstk__pixel_neon,
    .axis_weights = pstk__axis_weights_c,
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
