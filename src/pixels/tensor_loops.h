/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_loops: the loops of torchvision's operations on tensors. Compilers vectorise them, as
 * widely as the file allows that includes them: tensor_c.c, tensor_avx2.c, tensor_avx512.c. That
 * file defines FMA(a, b, c), which rounds once, and TARGET, the attribute of its functions; it has
 * the table TENSOR_KERNELS. All other operations round one by one.
 */
#ifndef PSTK_PIXELS_TENSOR_LOOPS_H
#define PSTK_PIXELS_TENSOR_LOOPS_H

#include "pixels/tensor_kernels.h"

#include <stddef.h>
#include <string.h>

#define LOOP static inline __attribute__((always_inline))
#define LANES PSTK__TENSOR_LANES

/* Convert to a byte: clip, then truncate. */
LOOP uint8_t clipped(float v)
{
    v = v > 0.0f ? v : 0.0f;
    v = v < 255.0f ? v : 255.0f;
    return (uint8_t)(int32_t)v;
}

/* Round to nearest, ties to even; |v| < 2^22. */
LOOP float nearest(float v)
{
    return (v + 0x1.8p23f) - 0x1.8p23f;
}

/* ---- colours --------------------------------------------------------------------------------- */

/* Compute rgb_to_grayscale, without its fraction, as for integer images. */
LOOP int32_t gray_of(const uint8_t *rgb)
{
    const float red = rgb[0], green = rgb[1], blue = rgb[2];
    return (int32_t)FMA(blue, 0.114f, FMA(green, 0.587f, red * 0.2989f));
}

LOOP uint64_t gray_sum_loop(const uint8_t *at, uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t done = 0; done < n; done += LANES) {
        const uint32_t size = n - done < LANES ? (uint32_t)(n - done) : LANES;
        uint32_t part = 0;
        for (uint32_t i = 0; i < size; i++)
            part += (uint32_t)gray_of(at + 3 * (done + i));
        sum += part;
    }
    return sum;
}

LOOP void gray_block(uint8_t *restrict out, const uint8_t *restrict in)
{
    for (uint32_t i = 0; i < LANES; i++)
        out[i] = (uint8_t)gray_of(in + (size_t)3 * i);
}

LOOP void gray_loop(uint8_t *out, uint32_t out_channels, const uint8_t *in, uint64_t n)
{
    uint8_t gray[LANES], rest[3 * LANES] = {0};
    for (uint64_t done = 0; done < n; done += LANES) {
        const uint32_t size = n - done < LANES ? (uint32_t)(n - done) : LANES;
        const uint8_t *from = in + 3 * done;
        if (size < LANES)
            from = memcpy(rest, from, (size_t)3 * size);
        gray_block(gray, from);
        uint8_t *to = out + done * out_channels;
        if (out_channels == 1)
            memcpy(to, gray, size);
        for (uint32_t i = 0; i < size && out_channels == 3; i++)
            to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = gray[i];
    }
}

/* One block, with its channels split into floats. */
struct planes {
    float of[3][LANES];
};

LOOP void split(struct planes *planes, const uint8_t *at)
{
    for (uint32_t i = 0; i < LANES; i++) {
        planes->of[0][i] = at[3 * i];
        planes->of[1][i] = at[3 * i + 1];
        planes->of[2][i] = at[3 * i + 2];
    }
}

/* Merge channels into pixels, the reverse of split. */
LOOP void merge(uint8_t *at, const uint8_t bytes[3][LANES])
{
    for (uint32_t i = 0; i < LANES; i++) {
        at[3 * i] = bytes[0][i];
        at[3 * i + 1] = bytes[1][i];
        at[3 * i + 2] = bytes[2][i];
    }
}

LOOP void saturate_block(uint8_t *at, float factor, float rest)
{
    struct planes planes;
    float grays[LANES];
    uint8_t out[3][LANES];
    split(&planes, at);
    for (uint32_t i = 0; i < LANES; i++) {
        const float sum = FMA(planes.of[1][i], 0.587f, planes.of[0][i] * 0.2989f);
        grays[i] = (float)(int32_t)FMA(planes.of[2][i], 0.114f, sum);
    }
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t i = 0; i < LANES; i++)
            out[c][i] = clipped(FMA(grays[i], rest, planes.of[c][i] * factor));
    merge(at, out);
}

LOOP void saturate_loop(uint8_t *at, uint64_t n, float factor, float rest)
{
    uint8_t block[3 * LANES] = {0};
    for (; n >= LANES; n -= LANES, at += (size_t)3 * LANES)
        saturate_block(at, factor, rest);
    memcpy(block, at, 3 * n);
    saturate_block(block, factor, rest);
    memcpy(at, block, 3 * n);
}

LOOP float min_of(float a, float b)
{
    return a < b ? a : b;
}

LOOP float max_of(float a, float b)
{
    return a > b ? a : b;
}

/* Return a if `is`, 1 or 0, is 1, else b, without a branch, which compilers do not vectorise. */
LOOP float chosen(int32_t is, float a, float b)
{
    const uint32_t mask = 0u - (uint32_t)is;
    uint32_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = (x & mask) | (y & ~mask);
    memcpy(&a, &x, sizeof a);
    return a;
}

/* A colour: hue in turns, saturation, value. */
struct hsv {
    float h, s, v;
};

/* Compute _rgb_to_hsv. For gray, all terms of the hue are 0 except constants, which the masks leave
 * out. */
LOOP struct hsv hsv_of(float red, float green, float blue)
{
    const float most = max_of(red, max_of(green, blue));
    const float reach = most - min_of(red, min_of(green, blue));
    const float divisor = chosen(reach > 0.0f, reach, 1.0f);
    const float by = chosen(reach > 0.0f, most, 1.0f);
    const float r = (most - red) / divisor, g = (most - green) / divisor,
                b = (most - blue) / divisor;
    const float at_red = b - g, at_green = (r + 2.0f) - b, at_blue = (g + 4.0f) - r;
    const float others = chosen(most == green, at_green, at_blue);
    const float turn = chosen(most == red, at_red, others) * (float)(1.0 / 6.0) + 1.0f;
    return (struct hsv){.h = turn - chosen(turn >= 1.0f, 1.0f, 0.0f), .s = reach / by, .v = most};
}

/* Return h + shift, modulo 1, from -0.5 to 1.5; a negative sum near 0 may give 1 itself. */
LOOP float shifted(float h, float shift)
{
    const float sum = h + shift;
    const float by = chosen(sum < 0.0f, 1.0f, 0.0f);
    return sum + chosen(sum >= 1.0f, -1.0f, by);
}

LOOP float within_1(float v)
{
    return min_of(max_of(v, 0.0f), 1.0f);
}

LOOP uint8_t byte_of(float v)
{
    return (uint8_t)(int32_t)(v * 255.999f);
}

/* Convert by _hsv_to_rgb. */
LOOP void shift_one(uint8_t *rgb, float red, float green, float blue, float shift)
{
    const struct hsv hsv = hsv_of(red, green, blue);
    const float sixths = shifted(hsv.h, shift) * 6.0f;
    const int32_t whole = (int32_t)sixths, side = whole - 6 * (whole >= 6);
    const float part = hsv.s * (sixths - (float)whole), rest = 1.0f - hsv.s, v = hsv.v;
    const float q = within_1((1.0f - part) * v), t = within_1((part + rest) * v),
                p = within_1(rest * v);
    const float r =
        chosen((side == 0) | (side == 5), v, chosen(side == 1, q, chosen(side == 4, t, p)));
    const float g =
        chosen((side == 1) | (side == 2), v, chosen(side == 0, t, chosen(side == 3, q, p)));
    const float b =
        chosen((side == 3) | (side == 4), v, chosen(side == 2, t, chosen(side == 5, q, p)));
    rgb[0] = byte_of(r);
    rgb[1] = byte_of(g);
    rgb[2] = byte_of(b);
}

LOOP void hue_block(uint8_t *at, float shift)
{
    const float by = (float)(1.0 / 255.0);
    struct planes planes;
    uint8_t out[3][LANES];
    split(&planes, at);
    for (uint32_t i = 0; i < LANES; i++) {
        uint8_t rgb[3];
        shift_one(rgb, planes.of[0][i] * by, planes.of[1][i] * by, planes.of[2][i] * by, shift);
        out[0][i] = rgb[0];
        out[1][i] = rgb[1];
        out[2][i] = rgb[2];
    }
    merge(at, out);
}

LOOP void hue_loop(uint8_t *at, uint64_t n, float shift)
{
    uint8_t block[3 * LANES] = {0};
    for (; n >= LANES; n -= LANES, at += (size_t)3 * LANES)
        hue_block(at, shift);
    memcpy(block, at, 3 * n);
    hue_block(block, shift);
    memcpy(at, block, 3 * n);
}

/* ---- neighbours ------------------------------------------------------------------------------ */

/* Sharpen by the rounded mean of adjust_sharpness. A sum of integers divided by 13 is at least 1 /
 * 26 from a half, so no rounding of torch's floats changes it. */
LOOP void sharpen_loop(uint8_t *restrict out, const uint8_t *restrict in, uint32_t n,
                       uint64_t stride, uint32_t channels, float rest)
{
    const uint8_t *above = in - stride, *below = in + stride;
    const int64_t step = channels;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t sum = (uint32_t)above[i - step] + above[i] + above[i + step] + in[i - step] +
                             5u * in[i] + in[i + step] + below[i - step] + below[i] +
                             below[i + step];
        const int32_t mean =
            (int32_t)((sum + 6) * 20165 >> 18); /* divided by 13, exact up to 3321 */
        out[i] = clipped(FMA((float)(mean - in[i]), rest, (float)in[i]));
    }
}

LOOP void widen_loop(float *restrict out, const uint8_t *restrict in, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = in[i];
}

/* Sum all taps, row by row. */
LOOP void blur_block(uint8_t *restrict out, const struct pstk__tensor_taps *taps, uint32_t at,
                     uint32_t n)
{
    float sums[LANES] = {0};
    const float *weight = taps->weights;
    for (uint32_t r = 0; r < taps->size[1]; r++)
        for (uint32_t k = 0; k < taps->size[0]; k++, weight++) {
            const float *from = taps->rows[r] + at + (size_t)k * taps->channels;
            for (uint32_t i = 0; i < n; i++)
                sums[i] = FMA(from[i], *weight, sums[i]);
        }
    for (uint32_t i = 0; i < n; i++)
        out[at + i] = clipped(nearest(sums[i]));
}

LOOP void blur_loop(uint8_t *restrict out, const struct pstk__tensor_taps *taps, uint32_t n)
{
    uint32_t at = 0;
    for (; at + LANES <= n; at += LANES)
        blur_block(out, taps, at, LANES);
    blur_block(out, taps, at, n - at);
}

/* ---- warps ----------------------------------------------------------------------------------- */

/* Limit a position to the input's neighbourhood. NaN becomes a position outside. */
LOOP float bounded(float v, float most)
{
    v = v > -2.0f ? v : -2.0f;
    return v < most ? v : most;
}

LOOP float dot(const float weights[3], float x, float y)
{
    return (x * weights[0] + y * weights[1]) + weights[2];
}

LOOP void places_loop(struct pstk__tensor_block *restrict block,
                      const struct pstk__tensor_grid *grid, uint32_t column, uint32_t row)
{
    const struct pstk__tensor_grid g = *grid;
    const float right = (float)g.in_width + 1.0f, bottom = (float)g.in_height + 1.0f;
    const float y = g.first[1] + (float)row;
    for (uint32_t i = 0; i < LANES; i++) {
        const float x = g.first[0] + (float)(int32_t)(column + i);
        block->x[i] = dot(g.x, x, y);
        block->y[i] = dot(g.y, x, y);
    }
    for (uint32_t i = 0; i < LANES && g.has_divisor; i++) {
        const float divisor = dot(g.divisor, g.first[0] + (float)(int32_t)(column + i), y);
        block->x[i] = block->x[i] / divisor - 1.0f;
        block->y[i] = block->y[i] / divisor - 1.0f;
    }
    for (uint32_t i = 0; i < LANES; i++) {
        block->x[i] = bounded(FMA(block->x[i] + 1.0f, g.half_side[0], -0.5f), right);
        block->y[i] = bounded(FMA(block->y[i] + 1.0f, g.half_side[1], -0.5f), bottom);
    }
}

/* The four pixels around the positions of a block, and their weights. */
struct corners {
    float weights[4][LANES];
    float pixels[4][4][LANES]; /* corner, channel; 0 outside */
    float inside[4][LANES];    /* 1 when the corner is inside, else 0 */
    int32_t x[LANES], y[LANES];
};

LOOP void weigh(struct corners *restrict to, const struct pstk__tensor_block *restrict block)
{
    for (uint32_t i = 0; i < LANES; i++) {
        const int32_t x = (int32_t)block->x[i], y = (int32_t)block->y[i];
        to->x[i] = x - ((float)x > block->x[i]);
        to->y[i] = y - ((float)y > block->y[i]);
    }
    for (uint32_t i = 0; i < LANES; i++) {
        const float left = block->x[i] - (float)to->x[i], right = 1.0f - left;
        const float up = block->y[i] - (float)to->y[i], down = 1.0f - up;
        to->weights[0][i] = down * right;
        to->weights[1][i] = down * left;
        to->weights[2][i] = up * right;
        to->weights[3][i] = up * left;
    }
}

/* Fetch pixel i of a corner. `size` is a constant for the compiler. */
LOOP void fetch_one(struct corners *restrict to, const uint8_t *at, uint32_t k, uint32_t i,
                    uint32_t size)
{
    to->inside[k][i] = 1.0f;
    for (uint32_t c = 0; c < size; c++)
        to->pixels[k][c][i] = at[c];
}

/* Fetch the corners' pixels. Pixels outside are 0 already. */
LOOP void fetch(struct corners *restrict to, const struct pstk__picture *in, uint32_t n,
                uint32_t size)
{
    const uint32_t width = in->width, height = in->height;
    const size_t stride = (size_t)width * size;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t x = (uint32_t)to->x[i], y = (uint32_t)to->y[i]; /* -1 is greater than all */
        const uint8_t *at = in->pixels + (ptrdiff_t)to->y[i] * (ptrdiff_t)stride +
                            (ptrdiff_t)to->x[i] * (ptrdiff_t)size;
        const int left = x < width, right = x + 1 < width;
        if (y < height && left)
            fetch_one(to, at, 0, i, size);
        if (y < height && right)
            fetch_one(to, at + size, 1, i, size);
        if (y + 1 < height && left)
            fetch_one(to, at + stride, 2, i, size);
        if (y + 1 < height && right)
            fetch_one(to, at + stride + size, 3, i, size);
    }
}

LOOP float sum_of(const struct corners *from, const float (*pixels)[LANES], size_t step, uint32_t i)
{
    const float(*w)[LANES] = from->weights;
    const float first = FMA(pixels[step][i], w[1][i], pixels[0][i] * w[0][i]);
    return FMA(pixels[3 * step][i], w[3][i], FMA(pixels[2 * step][i], w[2][i], first));
}

LOOP void bilinear_loop(uint8_t *out, const struct pstk__picture *in,
                        const struct pstk__tensor_block *block, uint32_t n, const uint8_t *fill)
{
    struct corners corners;
    uint8_t bytes[LANES];
    memset(corners.pixels, 0, sizeof corners.pixels);
    memset(corners.inside, 0, sizeof corners.inside);
    weigh(&corners, block);
    if (in->channels == 3)
        fetch(&corners, in, n, 3);
    else
        fetch(&corners, in, n, in->channels);
    for (uint32_t c = 0; c < in->channels; c++) {
        const float to = fill ? fill[c] : 0.0f;
        float sums[LANES];
        for (uint32_t i = 0; i < LANES; i++)
            sums[i] = sum_of(&corners, &corners.pixels[0][c], 4, i);
        for (uint32_t i = 0; i < LANES && fill; i++)
            sums[i] = (sums[i] - to) * sum_of(&corners, &corners.inside[0], 1, i) + to;
        for (uint32_t i = 0; i < LANES; i++)
            bytes[i] = clipped(nearest(sums[i]));
        for (uint32_t i = 0; i < n; i++)
            out[i * in->channels + c] = bytes[i];
    }
}

/* ---- the kernels of the file -------------------------------------------------------------------
 */

TARGET static uint64_t gray_sum(const uint8_t *at, uint64_t n)
{
    return gray_sum_loop(at, n);
}

TARGET static void gray(uint8_t *out, uint32_t out_channels, const uint8_t *in, uint64_t n)
{
    gray_loop(out, out_channels, in, n);
}

TARGET static void saturate(uint8_t *at, uint64_t n, float factor, float rest)
{
    saturate_loop(at, n, factor, rest);
}

TARGET static void hue(uint8_t *at, uint64_t n, float shift)
{
    hue_loop(at, n, shift);
}

TARGET static void sharpen(uint8_t *out, const uint8_t *in, uint32_t n, uint64_t stride,
                           uint32_t channels, float rest)
{
    sharpen_loop(out, in, n, stride, channels, rest);
}

TARGET static void widen(float *out, const uint8_t *in, uint32_t n)
{
    widen_loop(out, in, n);
}

TARGET static void blur(uint8_t *out, const struct pstk__tensor_taps *taps, uint32_t n)
{
    blur_loop(out, taps, n);
}

TARGET static void places(struct pstk__tensor_block *block, const struct pstk__tensor_grid *grid,
                          uint32_t column, uint32_t row)
{
    places_loop(block, grid, column, row);
}

TARGET static void bilinear(uint8_t *out, const struct pstk__picture *in,
                            const struct pstk__tensor_block *block, uint32_t n, const uint8_t *fill)
{
    bilinear_loop(out, in, block, n, fill);
}

#define TENSOR_KERNELS(which)                                                                      \
    {                                                                                              \
        .isa = which, .gray_sum = gray_sum, .gray = gray, .saturate = saturate, .shift_hue = hue,  \
        .sharpen = sharpen, .widen = widen, .blur = blur, .places = places, .bilinear = bilinear   \
    }

#endif
