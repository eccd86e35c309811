/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_avx2: the loops, for vectors of 256 bits. The build forbids compilers to contract products
 * and sums by themselves. */
#if defined(__x86_64__)

#define TARGET __attribute__((target("avx2,bmi,bmi2,fma,f16c,popcnt")))
#define FMA(a, b, c) __builtin_fmaf(a, b, c)

#include "picture/tensor_loops.h"

TARGET static uint64_t gray_sum_avx2(const uint8_t *at, uint64_t n)
{
    return gray_sum_loop(at, n);
}

TARGET static void gray_avx2(uint8_t *out, uint32_t out_channels, const uint8_t *in, uint64_t n)
{
    gray_loop(out, out_channels, in, n);
}

TARGET static void saturate_avx2(uint8_t *at, uint64_t n, float factor, float rest)
{
    saturate_loop(at, n, factor, rest);
}

TARGET static void hue_avx2(uint8_t *at, uint64_t n, float shift)
{
    hue_loop(at, n, shift);
}

TARGET static void sharpen_avx2(uint8_t *out, const uint8_t *in, uint32_t n, uint64_t stride,
                                uint32_t channels, float rest)
{
    sharpen_loop(out, in, n, stride, channels, rest);
}

TARGET static void widen_avx2(float *out, const uint8_t *in, uint32_t n)
{
    widen_loop(out, in, n);
}

TARGET static void blur_avx2(uint8_t *out, const struct pstk__tensor_taps *taps, uint32_t n)
{
    blur_loop(out, taps, n);
}

TARGET static void places_avx2(struct pstk__tensor_block *block,
                               const struct pstk__tensor_grid *grid, uint32_t column, uint32_t row)
{
    places_loop(block, grid, column, row);
}

TARGET static void bilinear_avx2(uint8_t *out, const struct pstk__picture *in,
                                 const struct pstk__tensor_block *block, uint32_t n,
                                 const uint8_t *fill)
{
    bilinear_loop(out, in, block, n, fill);
}

const struct pstk__tensor_kernels pstk__tensor_avx2 = {
    .variant = PSTK_KERNELS_AVX2,
    .gray_sum = gray_sum_avx2,
    .gray = gray_avx2,
    .saturate = saturate_avx2,
    .shift_hue = hue_avx2,
    .sharpen = sharpen_avx2,
    .widen = widen_avx2,
    .blur = blur_avx2,
    .places = places_avx2,
    .bilinear = bilinear_avx2,
};

#endif
