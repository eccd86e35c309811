/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_c: the two passes in plain C, the reference for the other ISAs. It is fast even without
 * CPU flags: 64-bit products carry two channels, and factors have 16 bits where the compiler
 * vectorises.
 */
#include "pixels/alpha.h"
#include "pixels/resize_kernels_c.h"

#include <string.h>

#define PRECISION PSTK__WEIGHT_BITS
#define ONE (1u << PRECISION) /* the weight 1 */
#define HALF (1u << (PRECISION - 1))
#define INLINE static inline __attribute__((always_inline))

/*
 * Return the byte of a sum of products. Sums are modulo 2^32. Without negative weights a sum is
 * below 2^32: 255 * (2^22 + n_taps / 2) + 2^21, n_taps < 2^18. With negative ones, `is_signed`, it
 * fits 32 bits with a sign, and is clipped. `is_signed` is a constant for the compiler, here and
 * below.
 */
INLINE uint8_t rounded(uint32_t sum, int is_signed)
{
    const int32_t v = (int32_t)sum >> PRECISION;
    if (is_signed)
        return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    return (uint8_t)(sum >> PRECISION);
}

/* ---- horizontal ----------------------------------------------------------------------------- */

static inline uint32_t load_32(const uint8_t *in)
{
    return in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

/* Return a weight as the factor of two channels, modulo 2^64. */
INLINE uint64_t factor(int32_t weight, int is_signed)
{
    return is_signed ? (uint64_t)(int64_t)weight : (uint32_t)weight;
}

/* Return the sum in the upper half. A negative sum in the lower half has borrowed 1 from it. */
INLINE uint32_t upper(uint64_t sums, int is_signed)
{
    return (uint32_t)(sums >> 32) + (is_signed ? (uint32_t)sums >> 31 : 0);
}

/*
 * Compute one output pixel of `taps` inputs. One 64-bit product carries two channels, one in each
 * half: no sum reaches 2^32, so nothing carries over, except as in `upper`. With 3 channels it
 * reads 1 byte past the last tap.
 */
INLINE void pixel_of_1(uint8_t *out, const uint8_t *in, const int32_t *weights, uint32_t taps,
                       int is_signed)
{
    uint32_t sum = HALF;
    for (uint32_t k = 0; k < taps; k++)
        sum += in[k] * (uint32_t)weights[k];
    out[0] = rounded(sum, is_signed);
}

INLINE void pixel_of_3(uint8_t *out, const uint8_t *in, const int32_t *weights, uint32_t taps,
                       int is_signed)
{
    uint64_t rb = (uint64_t)HALF << 32 | HALF;
    uint32_t g = HALF;
    for (uint32_t k = 0; k < taps; k++, in += 3) {
        const uint32_t x = load_32(in);
        rb += ((x | (uint64_t)x << 16) & 0x000000ff000000ffull) * factor(weights[k], is_signed);
        g += (x >> 8 & 0xff) * (uint32_t)weights[k];
    }
    out[0] = rounded((uint32_t)rb, is_signed);
    out[1] = rounded(g, is_signed);
    out[2] = rounded(upper(rb, is_signed), is_signed);
}

INLINE void pixel_of_4(uint8_t *out, const uint8_t *in, const int32_t *weights, uint32_t taps,
                       int is_signed)
{
    uint64_t rb = (uint64_t)HALF << 32 | HALF, ga = rb;
    for (uint32_t k = 0; k < taps; k++, in += 4) {
        const uint32_t x = load_32(in);
        const uint64_t w = factor(weights[k], is_signed);
        rb += ((x | (uint64_t)x << 16) & 0x000000ff000000ffull) * w;
        ga += ((x >> 8 | (uint64_t)x << 8) & 0x000000ff000000ffull) * w;
    }
    out[0] = rounded((uint32_t)rb, is_signed);
    out[1] = rounded((uint32_t)ga, is_signed);
    out[2] = rounded(upper(rb, is_signed), is_signed);
    out[3] = rounded(upper(ga, is_signed), is_signed);
}

INLINE void pixel_fast(uint8_t *out, const uint8_t *in, const int32_t *weights, uint32_t taps,
                       uint32_t channels, int is_signed)
{
    if (channels == 1)
        pixel_of_1(out, in, weights, taps, is_signed);
    else if (channels == 3)
        pixel_of_3(out, in, weights, taps, is_signed);
    else
        pixel_of_4(out, in, weights, taps, is_signed);
}

/* Compute the same pixel byte by byte: reads nothing past the last tap. */
INLINE void pixel_exact(uint8_t *out, const uint8_t *in, const int32_t *weights, uint32_t taps,
                        uint32_t channels, int is_signed)
{
    uint32_t sum[PSTK__MAX_CHANNELS] = {HALF, HALF, HALF, HALF};
    for (uint32_t k = 0; k < taps; k++, in += channels)
        for (uint32_t c = 0; c < channels; c++)
            sum[c] += in[c] * (uint32_t)weights[k];
    for (uint32_t c = 0; c < channels; c++)
        out[c] = rounded(sum[c], is_signed);
}

/* An axis packed for row_c: each output's weights are contiguous. */
struct across {
    const struct pstk__axis *axis;
    uint32_t channels;
    uint32_t flip;
    int32_t weights[]; /* n_taps for each output */
};

static uint64_t across_size(uint32_t n_out, uint32_t n_taps, uint32_t channels)
{
    (void)channels;
    return sizeof(struct across) + (uint64_t)n_out * n_taps * sizeof(int32_t);
}

static uint32_t across_init(void *across, const struct pstk__axis *axis, uint32_t channels,
                            uint32_t flip)
{
    struct across *x = across;
    int32_t *w = x->weights;
    x->axis = axis;
    x->channels = channels;
    x->flip = flip;
    for (uint32_t i = 0; i < axis->n_out; i++)
        for (uint32_t k = 0; k < axis->n_taps; k++)
            *w++ = axis->weights[(size_t)k * axis->n_out + i];
    return 0;
}

INLINE uint8_t *place(uint8_t *out, const struct across *x, uint32_t i, uint32_t channels)
{
    return out + (size_t)channels * (x->flip ? x->axis->n_out - 1 - i : i);
}

/* Compute outputs [0, n), all with the same number of taps, which the compiler knows; missing taps
 * have weight 0. */
INLINE void row_fast(uint8_t *out, const uint8_t *in, const struct across *x, uint32_t n,
                     uint32_t taps, uint32_t channels, int is_signed)
{
    const uint32_t *first = x->axis->first, begin = x->axis->begin;
    const int64_t step = x->flip ? -(int64_t)channels : (int64_t)channels;
    const int32_t *weights = x->weights;
    out = place(out, x, 0, channels);
    for (uint32_t i = 0; i < n; i++, out += step)
        pixel_fast(out, in + (size_t)channels * (first[i] - begin), weights + (size_t)taps * i,
                   taps, channels, is_signed);
}

INLINE void row_of(uint8_t *out, const uint8_t *in, const struct across *x, uint32_t channels,
                   int is_signed)
{
    const struct pstk__axis *a = x->axis;
    const uint32_t taps = a->n_taps;
    uint32_t n = a->n_out;
    /* Outputs with n_taps inputs and one more to read take the fast path, without branches. */
    while (n > 0 && a->end - a->first[n - 1] <= taps)
        n--;
    /* The other outputs come first: no value needs a register after the loops below. */
    for (uint32_t i = n; i < a->n_out; i++)
        pixel_exact(place(out, x, i, channels), in + (size_t)channels * (a->first[i] - a->begin),
                    x->weights + (size_t)taps * i, a->n[i], channels, is_signed);
    switch (taps) {
    case 2:
        row_fast(out, in, x, n, 2, channels, is_signed);
        break;
    case 3:
        row_fast(out, in, x, n, 3, channels, is_signed);
        break;
    case 4:
        row_fast(out, in, x, n, 4, channels, is_signed);
        break;
    case 5:
        row_fast(out, in, x, n, 5, channels, is_signed);
        break;
    default:
        row_fast(out, in, x, n, taps, channels, is_signed);
        break;
    }
}

/* Attributes of one function for each number of channels, so that the compiler keeps its values in
 * registers. */
#define APART static __attribute__((noinline))

APART void row_of_1(uint8_t *out, const uint8_t *in, const struct across *across)
{
    if (across->axis->is_signed)
        row_of(out, in, across, 1, 1);
    else
        row_of(out, in, across, 1, 0);
}

APART void row_of_3(uint8_t *out, const uint8_t *in, const struct across *across)
{
    if (across->axis->is_signed)
        row_of(out, in, across, 3, 1);
    else
        row_of(out, in, across, 3, 0);
}

APART void row_of_4(uint8_t *out, const uint8_t *in, const struct across *across)
{
    if (across->axis->is_signed)
        row_of(out, in, across, 4, 1);
    else
        row_of(out, in, across, 4, 0);
}

static void row_c(uint8_t *out, const uint8_t *const *rows, const void *across)
{
    const struct across *x = across;
    if (x->channels == 1)
        row_of_1(out, rows[0], x);
    else if (x->channels == 3)
        row_of_3(out, rows[0], x);
    else
        row_of_4(out, rows[0], x);
}

/* ---- vertical ------------------------------------------------------------------------------- */

#define LOW_BITS 11 /* a weight is high * 2^11 + low; both and a pixel fit 16 bits signed */
#define BLOCK 512   /* bytes whose sums are kept at a time; 4 KiB fit the L1 cache */

static inline int16_t low(int32_t w)
{
    return (int16_t)(w & ((1 << LOW_BITS) - 1));
}

static inline int16_t high(int32_t w)
{
    return (int16_t)(w >> LOW_BITS);
}

/* Compute a column. Sums are modulo 2^32, so the order of additions does not matter. */
INLINE void column_2(uint8_t *restrict out, const uint8_t *const *rows, const int32_t *w,
                     uint32_t size, int is_signed)
{
    const uint8_t *a = rows[0], *b = rows[1];
    const int16_t la = low(w[0]), ha = high(w[0]), lb = low(w[1]), hb = high(w[1]);
    for (uint32_t i = 0; i < size; i++) {
        const int16_t pa = a[i], pb = b[i];
        uint32_t l = (uint32_t)(pa * la) + (uint32_t)(pb * lb);
        uint32_t h = (uint32_t)(pa * ha) + (uint32_t)(pb * hb);
        out[i] = rounded(HALF + l + (h << LOW_BITS), is_signed);
    }
}

INLINE void column_3(uint8_t *restrict out, const uint8_t *const *rows, const int32_t *w,
                     uint32_t size, int is_signed)
{
    const uint8_t *a = rows[0], *b = rows[1], *c = rows[2];
    const int16_t la = low(w[0]), ha = high(w[0]), lb = low(w[1]), hb = high(w[1]);
    const int16_t lc = low(w[2]), hc = high(w[2]);
    for (uint32_t i = 0; i < size; i++) {
        const int16_t pa = a[i], pb = b[i], pc = c[i];
        uint32_t l = (uint32_t)(pa * la) + (uint32_t)(pb * lb) + (uint32_t)(pc * lc);
        uint32_t h = (uint32_t)(pa * ha) + (uint32_t)(pb * hb) + (uint32_t)(pc * hc);
        out[i] = rounded(HALF + l + (h << LOW_BITS), is_signed);
    }
}

/* Add two rows to the sums of a block. */
static void block_add(uint32_t *restrict l, uint32_t *restrict h, const uint8_t *a,
                      const uint8_t *b, const int16_t w[4], uint32_t size)
{
    const int16_t la = w[0], ha = w[1], lb = w[2], hb = w[3];
    for (uint32_t i = 0; i < size; i++) {
        const int16_t pa = a[i], pb = b[i];
        l[i] += (uint32_t)(pa * la) + (uint32_t)(pb * lb);
        h[i] += (uint32_t)(pa * ha) + (uint32_t)(pb * hb);
    }
}

INLINE void column_n(uint8_t *restrict out, const uint8_t *const *rows, const int32_t *w,
                     uint32_t n, uint32_t size, int is_signed)
{
    uint32_t l[BLOCK], h[BLOCK];
    for (uint32_t at = 0; at < size; at += BLOCK) {
        const uint32_t m = size - at < BLOCK ? size - at : BLOCK;
        for (uint32_t i = 0; i < m; i++) {
            l[i] = HALF;
            h[i] = 0;
        }
        for (uint32_t k = 0; k < n; k += 2) {
            const uint32_t j = k + 1 < n ? k + 1 : k; /* an odd last row is paired with weight 0 */
            const int32_t wj = k + 1 < n ? w[j] : 0;
            const int16_t parts[4] = {low(w[k]), high(w[k]), low(wj), high(wj)};
            block_add(l, h, rows[k] + at, rows[j] + at, parts, m);
        }
        for (uint32_t i = 0; i < m; i++)
            out[at + i] = rounded(l[i] + (h[i] << LOW_BITS), is_signed);
    }
}

INLINE void column_of(uint8_t *out, const struct pstk__column *column, int is_signed)
{
    const uint8_t *const *rows = column->slots;
    const uint32_t n = column->n_taps, size = column->size;
    const int32_t *weights = column->scratch;
    if (n == 1 && (uint32_t)weights[0] == ONE)
        memcpy(out, rows[0], size);
    else if (n == 2)
        column_2(out, rows, weights, size, is_signed);
    else if (n == 3)
        column_3(out, rows, weights, size, is_signed);
    else
        column_n(out, rows, weights, n, size, is_signed);
}

/* Compute a column. A slot is one row, so there are as many slots as taps. */
static void column_c(uint8_t *out, const struct pstk__column *column)
{
    for (uint32_t k = 0; k < column->n_taps; k++)
        column->scratch[k] = column->weights[(size_t)k * column->stride];
    if (column->is_signed)
        column_of(out, column, 1);
    else
        column_of(out, column, 0);
}

const struct pstk__pixel_kernels pstk__pixel_c = {
    .isa = PSTK_KERNELS_C,
    .slot_rows = 1,
    .slot_unit = 1,
    .general = &pstk__pixel_c,
    .axis_weights = pstk__axis_weights_c,
    .across_size = across_size,
    .across_init = across_init,
    .resize_rows = row_c,
    .resize_column = column_c,
    .premultiply = pstk__alpha_multiply,
    .unpremultiply = pstk__alpha_divide,
    .lookup_init = pstk__lookup_init_c,
    .finish_row = pstk__finish_row_c,
};
