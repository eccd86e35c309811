/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_avx512: the loops, for vectors of 512 bits. The build forbids compilers to contract
 * products and sums by themselves. */
#if defined(__x86_64__)

#include "picture/avx512.h"

#define FMA(a, b, c) __builtin_fmaf(a, b, c)

#include "picture/tensor_loops.h"

TARGET static uint64_t gray_sum_avx512(const uint8_t *at, uint64_t n)
{
    return gray_sum_loop(at, n);
}

TARGET static void gray_avx512(uint8_t *out, uint32_t out_channels, const uint8_t *in, uint64_t n)
{
    gray_loop(out, out_channels, in, n);
}

TARGET static void saturate_avx512(uint8_t *at, uint64_t n, float factor, float rest)
{
    saturate_loop(at, n, factor, rest);
}

TARGET static void hue_avx512(uint8_t *at, uint64_t n, float shift)
{
    hue_loop(at, n, shift);
}

TARGET static void sharpen_avx512(uint8_t *out, const uint8_t *in, uint32_t n, uint64_t stride,
                                  uint32_t channels, float rest)
{
    sharpen_loop(out, in, n, stride, channels, rest);
}

TARGET static void widen_avx512(float *out, const uint8_t *in, uint32_t n)
{
    widen_loop(out, in, n);
}

TARGET static void blur_avx512(uint8_t *out, const struct pstk__tensor_taps *taps, uint32_t n)
{
    blur_loop(out, taps, n);
}

TARGET static void places_avx512(struct pstk__tensor_block *block,
                                 const struct pstk__tensor_grid *grid, uint32_t column,
                                 uint32_t row)
{
    places_loop(block, grid, column, row);
}

TARGET static void bilinear_avx512(uint8_t *out, const struct pstk__picture *in,
                                   const struct pstk__tensor_block *block, uint32_t n,
                                   const uint8_t *fill)
{
    bilinear_loop(out, in, block, n, fill);
}

const struct pstk__tensor_kernels pstk__tensor_avx512 = {
    .variant = PSTK_KERNELS_AVX512,
    .gray_sum = gray_sum_avx512,
    .gray = gray_avx512,
    .saturate = saturate_avx512,
    .shift_hue = hue_avx512,
    .sharpen = sharpen_avx512,
    .widen = widen_avx512,
    .blur = blur_avx512,
    .places = places_avx512,
    .bilinear = bilinear_avx512,
};

#endif
