/* SPDX-License-Identifier: Apache-2.0 */
/* warp_c: the kernels in plain C, the reference for the other ISAs. It uses Pillow's doubles, in
 * Pillow's order of operations. */
#include "pixels/gather.h"
#include "pixels/warp_kernels.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* ---- positions ----------------------------------------------------------------------------- */

static void affine_c(double *x, double *y, const double m[6], uint32_t column, uint32_t row)
{
    const double down = row + 0.5, x_down = m[1] * down, y_down = m[4] * down;
    for (uint32_t i = 0; i < PSTK__WARP_LANES; i++) {
        const double across = (double)(column + i) + 0.5;
        x[i] = m[0] * across + x_down + m[2];
        y[i] = m[3] * across + y_down + m[5];
    }
}

static void perspective_c(double *x, double *y, const double m[8], uint32_t column, uint32_t row)
{
    const double down = row + 0.5;
    for (uint32_t i = 0; i < PSTK__WARP_LANES; i++) {
        const double across = (double)(column + i) + 0.5;
        const double depth = m[6] * across + m[7] * down + 1;
        x[i] = (m[0] * across + m[1] * down + m[2]) / depth;
        y[i] = (m[3] * across + m[4] * down + m[5]) / depth;
    }
}

/* ---- samples ------------------------------------------------------------------------------- */

/* Return 1 when a position lies outside. A position that is not a number does not: Pillow samples
 * it, and gets 0. */
static inline int is_outside(const struct pstk__picture *in, double x, double y)
{
    return x < 0.0 || x >= in->width || y < 0.0 || y >= in->height;
}

static inline int is_number(double x, double y)
{
    return x == x && y == y;
}

/* Return the largest whole number that is not larger than v; v lies within the range of int32_t. */
static inline int32_t floor_of(double v)
{
    const int32_t toward_zero = (int32_t)v;
    return toward_zero - (toward_zero > v);
}

static inline uint32_t clamped(int32_t i, uint32_t n)
{
    return i < 0 ? 0 : (uint32_t)i < n ? (uint32_t)i : n - 1;
}

/* The pixels around a position, 2 or 4 on each axis; a pixel past an edge is the edge's. */
struct taps {
    const uint8_t *rows[4];
    size_t columns[4];
    double dx, dy;
};

INLINE void taps_of(struct taps *taps, const struct pstk__picture *in, double x, double y,
                    uint32_t n_taps, uint32_t channels)
{
    const int32_t left = floor_of(x - 0.5), top = floor_of(y - 0.5);
    taps->dx = x - 0.5 - left;
    taps->dy = y - 0.5 - top;
    for (uint32_t k = 0; k < n_taps; k++) {
        const int32_t offset = (int32_t)k + 1 - (int32_t)n_taps / 2;
        taps->columns[k] = (size_t)clamped(left + offset, in->width) * channels;
        taps->rows[k] =
            in->pixels + (size_t)clamped(top + offset, in->height) * in->width * channels;
    }
}

static inline double mixed(double a, double b, double d)
{
    return a + (b - a) * d;
}

INLINE void bilinear(uint8_t *out, const struct pstk__picture *in, double x, double y,
                     uint32_t channels)
{
    struct taps t;
    taps_of(&t, in, x, y, 2, channels);
    for (uint32_t c = 0; c < channels; c++) {
        double v[2];
        for (uint32_t k = 0; k < 2; k++)
            v[k] = mixed(t.rows[k][t.columns[0] + c], t.rows[k][t.columns[1] + c], t.dx);
        out[c] = (uint8_t)mixed(v[0], v[1], t.dy);
    }
}

static inline double cubic(const double v[4], double d)
{
    const double p2 = -v[0] + v[2], p3 = 2 * (v[0] - v[1]) + v[2] - v[3],
                 p4 = -v[0] + v[1] - v[2] + v[3];
    return v[1] + d * (p2 + d * (p3 + d * p4));
}

static inline uint8_t clipped(double v)
{
    return v <= 0.0 ? 0 : v >= 255.0 ? 255 : (uint8_t)v;
}

INLINE void bicubic(uint8_t *out, const struct pstk__picture *in, double x, double y,
                    uint32_t channels)
{
    struct taps t;
    taps_of(&t, in, x, y, 4, channels);
    for (uint32_t c = 0; c < channels; c++) {
        double v[4];
        for (uint32_t k = 0; k < 4; k++) {
            const uint8_t *row = t.rows[k] + c;
            v[k] = cubic((const double[4]){row[t.columns[0]], row[t.columns[1]], row[t.columns[2]],
                                           row[t.columns[3]]},
                         t.dx);
        }
        out[c] = clipped(cubic(v, t.dy));
    }
}

INLINE void sample_of(uint8_t *out, const struct pstk__picture *in, const double *x,
                      const double *y, uint32_t n, uint32_t filter, uint32_t channels)
{
    for (uint32_t i = 0; i < n; i++, out += channels) {
        if (is_outside(in, x[i], y[i]))
            continue;
        if (!is_number(x[i], y[i]))
            memset(out, 0, channels);
        else if (filter == PSTK__WARP_BILINEAR)
            bilinear(out, in, x[i], y[i], channels);
        else
            bicubic(out, in, x[i], y[i], channels);
    }
}

/* Sample n positions. Each call has a constant filter and number of channels. */
INLINE void sample_by(uint8_t *out, const struct pstk__picture *in, const double *x,
                      const double *y, uint32_t n, uint32_t filter)
{
    if (in->channels == 1)
        sample_of(out, in, x, y, n, filter, 1);
    else if (in->channels == 3)
        sample_of(out, in, x, y, n, filter, 3);
    else
        sample_of(out, in, x, y, n, filter, 4);
}

static void bilinear_c(uint8_t *out, const struct pstk__picture *in, const double *x,
                       const double *y, uint32_t n)
{
    sample_by(out, in, x, y, n, PSTK__WARP_BILINEAR);
}

static void bicubic_c(uint8_t *out, const struct pstk__picture *in, const double *x,
                      const double *y, uint32_t n)
{
    sample_by(out, in, x, y, n, PSTK__WARP_BICUBIC);
}

static void nearest_c(uint8_t *out, const struct pstk__picture *in, const double *x,
                      const double *y, uint32_t n)
{
    const size_t size = in->channels;
    for (uint32_t i = 0; i < n; i++, out += size)
        if (!is_outside(in, x[i], y[i]) && is_number(x[i], y[i]))
            memcpy(out, in->pixels + ((size_t)(uint32_t)y[i] * in->width + (uint32_t)x[i]) * size,
                   size);
}

/* ---- walks --------------------------------------------------------------------------------- */

/* Copy pixels with constant sizes. Each pixel except the last is copied with `copied` bytes; the
 * next pixel overwrites the bytes past it. */
INLINE void walk_of(uint8_t *out, const struct pstk__picture *in, struct pstk__warp_walk walk,
                    uint32_t n, uint32_t size, uint32_t copied)
{
    const size_t stride = (size_t)in->width * size;
    const uint8_t *pixels = in->pixels;
    for (uint32_t i = 0; i + 1 < n; i++, out += size) {
        memcpy(out, pixels + (walk.y >> 16) * stride + (size_t)(walk.x >> 16) * size, copied);
        walk.x += walk.x_step;
        walk.y += walk.y_step;
    }
    memcpy(out, pixels + (walk.y >> 16) * stride + (size_t)(walk.x >> 16) * size, size);
}

static void walk_c(uint8_t *out, const struct pstk__picture *in, const struct pstk__warp_walk *walk,
                   uint32_t n)
{
    if (in->channels == 1)
        walk_of(out, in, *walk, n, 1, 1);
    else if (in->channels == 2)
        walk_of(out, in, *walk, n, 2, 2);
    else if (in->channels == 3)
        walk_of(out, in, *walk, n, 3, 4);
    else
        walk_of(out, in, *walk, n, 4, 4);
}

/* ---- mirrors ------------------------------------------------------------------------------- */

INLINE void reverse_of(uint8_t *out, const uint8_t *in, uint32_t n, uint32_t size)
{
    in += (size_t)n * size;
    for (uint32_t i = 0; i < n; i++, out += size) {
        in -= size;
        memcpy(out, in, size);
    }
}

static void reverse_c(uint8_t *out, const uint8_t *in, uint32_t n, uint32_t size)
{
    if (size == 1)
        reverse_of(out, in, n, 1);
    else if (size == 2)
        reverse_of(out, in, n, 2);
    else if (size == 3)
        reverse_of(out, in, n, 3);
    else
        reverse_of(out, in, n, 4);
}

#define SIDE 32u /* side of a block of pixels, whose input and output fit the L1 cache */

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Copy n pixels that lie `step` bytes apart. Each except the last is copied with `copied` bytes;
 * the next pixel overwrites the bytes past it. */
INLINE void gather(uint8_t *out, const uint8_t *in, ptrdiff_t step, uint32_t n, uint32_t size,
                   uint32_t copied)
{
    for (uint32_t i = 1; i < n; i++, out += size, in += step)
        memcpy(out, in, copied);
    memcpy(out, in, size);
}

static void gather_pixels(uint8_t *out, const uint8_t *in, ptrdiff_t step, uint32_t n,
                          uint32_t size)
{
    if (size == 1)
        gather(out, in, step, n, 1, 1);
    else if (size == 2)
        gather(out, in, step, n, 2, 2);
    else if (size == 3)
        gather(out, in, step, n, 3, 4);
    else
        gather(out, in, step, n, 4, 4);
}

static void transpose_c(const struct pstk__warp_transpose *t)
{
    for (uint32_t top = 0; top < t->height; top += SIDE) {
        const uint32_t end = min_u32(top + SIDE, t->height);
        for (uint32_t left = 0; left < t->width; left += SIDE)
            for (uint32_t row = top; row < end; row++)
                gather_pixels(
                    t->out + (ptrdiff_t)row * t->out_step + (ptrdiff_t)(left * (size_t)t->size),
                    t->in + (ptrdiff_t)left * t->in_step + (ptrdiff_t)(row * (size_t)t->size),
                    t->in_step, min_u32(SIDE, t->width - left), t->size);
    }
}

const struct pstk__warp_kernels pstk__warp_c = {
    .isa = PSTK_KERNELS_C,
    .affine = affine_c,
    .perspective = perspective_c,
    .sample = {nearest_c, bilinear_c, bicubic_c},
    .walk = walk_c,
    .gather = pstk__gather_pixels,
    .reverse = reverse_c,
    .transpose = transpose_c,
};
