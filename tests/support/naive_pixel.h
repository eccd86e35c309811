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

static void naive_pass(uint8_t *out, uint32_t n_out, uint32_t out_step, const uint8_t *in,
                       uint32_t n_in, uint32_t in_step)
{
    const double scale = (double)n_in / n_out, support = scale < 1.0 ? 1.0 : scale;
    const double ss = 1.0 / support;
    for (uint32_t i = 0; i < n_out; i++) {
        const double center = (i + 0.5) * scale;
        int lo = (int)(center - support + 0.5), hi = (int)(center + support + 0.5);
        lo = lo < 0 ? 0 : lo;
        hi = hi > (int)n_in ? (int)n_in : hi;
        double sum = 0;
        for (int x = lo; x < hi; x++)
            sum += fmax(0.0, 1.0 - fabs((x - center + 0.5) * ss));
        for (uint32_t c = 0; c < 3; c++) {
            int64_t v = 1 << 21;
            for (int x = lo; x < hi; x++) {
                const double w = fmax(0.0, 1.0 - fabs((x - center + 0.5) * ss)) / sum;
                v += (int64_t)(int)(0.5 + w * (1 << 22)) * in[(size_t)x * in_step + c];
            }
            out[(size_t)i * out_step + c] = (uint8_t)(v >> 22);
        }
    }
}

static uint8_t *naive_resize(const uint8_t *in, uint32_t w, uint32_t h, uint32_t ow, uint32_t oh)
{
    uint8_t *wide = malloc((size_t)ow * h * 3), *out = malloc((size_t)ow * oh * 3);
    for (uint32_t y = 0; y < h && wide && out; y++)
        naive_pass(wide + (size_t)y * ow * 3, ow, 3, in + (size_t)y * w * 3, w, 3);
    for (uint32_t x = 0; x < ow && wide && out; x++)
        naive_pass(out + (size_t)x * 3, oh, ow * 3, wide + (size_t)x * 3, h, ow * 3);
    free(wide);
    return out;
}

/* One value by float steps, each rounded; `volatile` keeps the compiler from folding them. */
static uint32_t naive_value(uint32_t dtype, uint8_t p, uint32_t c, const float *mean,
                            const float *dev)
{
    volatile float v = (float)p / 255.0f;
    uint32_t bits;
    if (mean != NULL) {
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
