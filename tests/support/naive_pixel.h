/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive_pixel: what the pixel kernels must equal, written for being read: the formulas of Pillow's
 * Resample.c on whole images, without windows, and float steps without tables.
 */
#ifndef PSTK_TEST_NAIVE_PIXEL_H
#define PSTK_TEST_NAIVE_PIXEL_H

#include "base/cast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The pixels to resize, with 1, 3 or 4 channels. */
struct naive_shape {
    uint32_t w, h, ow, oh, channels;
    uint32_t filter; /* enum pstk_filter */
};

/* n_lines lines of n_in pixels each to n_out, with the bytes from one pixel or line to the next. */
struct naive_lines {
    uint32_t filter, n_in, n_out, channels, n_lines;
    size_t in_step, out_step, in_line, out_line;
};

static const double naive_pi = 3.14159265358979323846;

static double naive_sinc(double x)
{
    return x == 0.0 ? 1.0 : sin(x * naive_pi) / (x * naive_pi);
}

static double naive_filter(uint32_t filter, double x)
{
    const double a = fabs(x);
    if (filter == PSTK_FILTER_BOX)
        return x > -0.5 && x <= 0.5;
    if (filter == PSTK_FILTER_HAMMING)
        return a < 1.0 ? naive_sinc(a) * (0.54f + 0.46f * cos(a * naive_pi)) : 0.0;
    if (filter == PSTK_FILTER_BICUBIC)
        return a < 1.0   ? ((-0.5 + 2.0) * a - (-0.5 + 3.0)) * a * a + 1
               : a < 2.0 ? (((a - 5) * a + 8) * a - 4) * -0.5
                         : 0.0;
    if (filter == PSTK_FILTER_LANCZOS)
        return -3.0 <= x && x < 3.0 ? naive_sinc(x) * naive_sinc(x / 3) : 0.0;
    return fmax(0.0, 1.0 - a);
}

static double naive_reach(uint32_t filter)
{
    return filter == PSTK_FILTER_BOX       ? 0.5
           : filter == PSTK_FILTER_BICUBIC ? 2.0
           : filter == PSTK_FILTER_LANCZOS ? 3.0
                                           : 1.0;
}

/* The taps of one output. */
struct naive_taps {
    uint32_t first, n;
    int32_t *weights; /* room for every input */
};

/* Resample.c's precompute_coeffs and normalize_coeffs_8bpc. */
static void naive_taps(struct naive_taps *taps, uint32_t filter, uint32_t n_in, uint32_t n_out,
                       uint32_t i)
{
    const double scale = (double)n_in / n_out, most = scale < 1.0 ? 1.0 : scale;
    const double support = naive_reach(filter) * most, ss = 1.0 / most, center = (i + 0.5) * scale;
    int lo = (int)(center - support + 0.5), hi = (int)(center + support + 0.5);
    lo = lo < 0 ? 0 : lo;
    hi = hi > (int)n_in ? (int)n_in : hi;
    double sum = 0;
    for (int x = lo; x < hi; x++)
        sum += naive_filter(filter, (x - center + 0.5) * ss);
    for (int x = lo; x < hi; x++) {
        const double w = naive_filter(filter, (x - center + 0.5) * ss) / sum;
        taps->weights[x - lo] = (int32_t)((w < 0 ? -0.5 : 0.5) + w * (1 << 22));
    }
    taps->first = (uint32_t)lo;
    taps->n = (uint32_t)(hi - lo);
}

/* Geometry.c's ImagingScaleAffine: the input that output i copies. */
static uint32_t naive_nearest(uint32_t n_in, uint32_t n_out, uint32_t i)
{
    const double scale = (double)n_in / n_out;
    double at = scale * 0.5;
    while (i-- > 0)
        at += scale;
    return (uint32_t)at;
}

static uint8_t naive_sum(const uint8_t *in, size_t step, const struct naive_taps *taps)
{
    int64_t v = 1 << 21;
    for (uint32_t k = 0; k < taps->n; k++)
        v += (int64_t)taps->weights[k] * in[k * step];
    return (uint8_t)(v < 0 ? 0 : v >> 22 > 255 ? 255 : v >> 22);
}

/* A pass to the same size changes nothing. `weights` has room for n_in. */
static void naive_pass(uint8_t *out, const uint8_t *in, int32_t *weights,
                       const struct naive_lines *l)
{
    for (uint32_t i = 0; i < l->n_out; i++) {
        struct naive_taps taps = {.n = 1, .weights = weights};
        weights[0] = 1 << 22;
        if (l->filter == PSTK_FILTER_NEAREST || l->n_in == l->n_out)
            taps.first = naive_nearest(l->n_in, l->n_out, i);
        else
            naive_taps(&taps, l->filter, l->n_in, l->n_out, i);
        for (uint32_t k = 0; k < l->n_lines; k++)
            for (uint32_t c = 0; c < l->channels; c++)
                out[k * l->out_line + i * l->out_step + c] =
                    naive_sum(in + k * l->in_line + taps.first * l->in_step + c, l->in_step, &taps);
    }
}

/* Pillow's RGBA to RGBa, and back: n bytes, of which every fourth is alpha. */
static void naive_premultiply(uint8_t *out, const uint8_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = i % 4 == 3 ? in[i] : (uint8_t)floor(in[i] * in[i | 3] / 255.0 + 0.5);
}

static void naive_unpremultiply(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (i % 4 != 3 && p[i | 3] != 0)
            p[i] = (uint8_t)fmin(255.0, floor(255.0 * p[i] / p[i | 3]));
}

static uint8_t *naive_resize_pixels(const uint8_t *in, const struct naive_shape *s)
{
    const uint32_t n = s->channels, w = s->w, h = s->h, ow = s->ow, oh = s->oh;
    uint8_t *out = malloc((size_t)ow * oh * n), *wide = malloc((size_t)ow * h * n);
    uint8_t *from = malloc((size_t)w * h * n);
    int32_t *weights = malloc((w > h ? w : h) * sizeof *weights);
    const int has_alpha = n == 4 && (w != ow || h != oh) && s->filter != PSTK_FILTER_NEAREST;
    const size_t wide_row = (size_t)ow * n;
    const struct naive_lines rows = {s->filter, w, ow, n, h, n, n, (size_t)w * n, wide_row};
    const struct naive_lines columns = {s->filter, h, oh, n, ow, wide_row, wide_row, n, n};
    if (out && wide && from && weights) {
        memcpy(from, in, (size_t)w * h * n);
        if (has_alpha)
            naive_premultiply(from, in, (size_t)w * h * n);
        naive_pass(wide, from, weights, &rows);
        naive_pass(out, wide, weights, &columns);
        if (has_alpha)
            naive_unpremultiply(out, (size_t)ow * oh * n);
    }
    free(weights);
    free(from);
    free(wide);
    return out;
}

static inline uint8_t *naive_resize(const uint8_t *in, uint32_t w, uint32_t h, uint32_t ow,
                                    uint32_t oh)
{
    return naive_resize_pixels(in, &(struct naive_shape){w, h, ow, oh, 3, 0});
}

/* One value by float steps, each rounded; `volatile` keeps the compiler from folding them. */
static uint32_t naive_value(uint32_t dtype, uint8_t p, uint32_t c, const float *mean,
                            const float *dev)
{
    volatile float v = (float)p / 255.0f;
    uint32_t bits;
    if (mean) {
        v = v - mean[c];
        v = v / dev[c];
    }
    const float f = v;
    memcpy(&bits, &f, sizeof bits);
    return dtype == PSTK_U8     ? p
           : dtype == PSTK_F16  ? pstk__f16_from_f32(f)
           : dtype == PSTK_BF16 ? pstk__bf16_from_f32(f)
                                : bits;
}

static uint32_t naive_element(const void *row, uint32_t dtype, uint64_t i)
{
    uint32_t v = 0;
    const uint32_t size = pstk_dtype_size(dtype);
    memcpy(&v, (const uint8_t *)row + i * size, size);
    return v;
}

#endif
