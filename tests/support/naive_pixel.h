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

/* What is to be resized: pixels of 1, 3 or 4 channels. */
struct naive_shape {
    uint32_t w, h, ow, oh, channels;
};

/* One line of n_in pixels, in_step bytes apart, to n_out. */
struct naive_line {
    uint32_t n_in, in_step, n_out, out_step, channels;
};

static void naive_pass(uint8_t *out, const uint8_t *in, struct naive_line l)
{
    const double scale = (double)l.n_in / l.n_out, support = scale < 1.0 ? 1.0 : scale;
    const double ss = 1.0 / support;
    for (uint32_t i = 0; i < l.n_out; i++) {
        const double center = (i + 0.5) * scale;
        int lo = (int)(center - support + 0.5), hi = (int)(center + support + 0.5);
        lo = lo < 0 ? 0 : lo;
        hi = hi > (int)l.n_in ? (int)l.n_in : hi;
        double sum = 0;
        for (int x = lo; x < hi; x++)
            sum += fmax(0.0, 1.0 - fabs((x - center + 0.5) * ss));
        for (uint32_t c = 0; c < l.channels; c++) {
            int64_t v = 1 << 21;
            for (int x = lo; x < hi; x++) {
                const double w = fmax(0.0, 1.0 - fabs((x - center + 0.5) * ss)) / sum;
                v += (int64_t)(int)(0.5 + w * (1 << 22)) * in[(size_t)x * l.in_step + c];
            }
            out[(size_t)i * l.out_step + c] = (uint8_t)(v >> 22);
        }
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
    const int has_alpha = n == 4 && (w != ow || h != oh);
    if (out && wide && from) {
        memcpy(from, in, (size_t)w * h * n);
        if (has_alpha)
            naive_premultiply(from, in, (size_t)w * h * n);
        for (uint32_t y = 0; y < h; y++)
            naive_pass(wide + (size_t)y * ow * n, from + (size_t)y * w * n,
                       (struct naive_line){w, n, ow, n, n});
        for (uint32_t x = 0; x < ow; x++)
            naive_pass(out + (size_t)x * n, wide + (size_t)x * n,
                       (struct naive_line){h, ow * n, oh, ow * n, n});
        if (has_alpha)
            naive_unpremultiply(out, (size_t)ow * oh * n);
    }
    free(from);
    free(wide);
    return out;
}

static inline uint8_t *naive_resize(const uint8_t *in, uint32_t w, uint32_t h, uint32_t ow,
                                    uint32_t oh)
{
    return naive_resize_pixels(in, &(struct naive_shape){w, h, ow, oh, 3});
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
