/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_c: the loops, for any CPU: the reference for the other variants. */
#include "picture/tensor_fma.h"

#if defined(__FP_FAST_FMAF)
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define FMA(a, b, c) pstk__fma(a, b, c)
#endif

#include "picture/tensor_loops.h"

static uint64_t gray_sum_c(const uint8_t *at, uint64_t n)
{
    return gray_sum_loop(at, n);
}

static void gray_c(uint8_t *out, uint32_t out_channels, const uint8_t *in, uint64_t n)
{
    gray_loop(out, out_channels, in, n);
}

static void saturate_c(uint8_t *at, uint64_t n, float factor, float rest)
{
    saturate_loop(at, n, factor, rest);
}

static void hue_c(uint8_t *at, uint64_t n, float shift)
{
    hue_loop(at, n, shift);
}

static void sharpen_c(uint8_t *out, const uint8_t *in, uint32_t n, uint64_t stride,
                      uint32_t channels, float rest)
{
    sharpen_loop(out, in, n, stride, channels, rest);
}

static void widen_c(float *out, const uint8_t *in, uint32_t n)
{
    widen_loop(out, in, n);
}

static void blur_c(uint8_t *out, const struct pstk__tensor_taps *taps, uint32_t n)
{
    blur_loop(out, taps, n);
}

static void places_c(struct pstk__tensor_block *block, const struct pstk__tensor_grid *grid,
                     uint32_t column, uint32_t row)
{
    places_loop(block, grid, column, row);
}

static void bilinear_c(uint8_t *out, const struct pstk__picture *in,
                       const struct pstk__tensor_block *block, uint32_t n, const uint8_t *fill)
{
    bilinear_loop(out, in, block, n, fill);
}

const struct pstk__tensor_kernels pstk__tensor_c = {
    .variant = PSTK_KERNELS_C,
    .gray_sum = gray_sum_c,
    .gray = gray_c,
    .saturate = saturate_c,
    .shift_hue = hue_c,
    .sharpen = sharpen_c,
    .widen = widen_c,
    .blur = blur_c,
    .places = places_c,
    .bilinear = bilinear_c,
};
