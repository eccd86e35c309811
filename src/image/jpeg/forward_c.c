/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/forward_c: the reference for the forward steps: each step as a formula, one sample at a
 * time. */
#include "image/jpeg/forward.h"
#include "image/jpeg/forward_constants.h"
#include "image/jpeg/forward_pack.h"

#include <penstock/penstock.h>

/* ---- colour --------------------------------------------------------------------------------- */

static void split(uint8_t *const ycc[3], const uint8_t *rgb, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, rgb += 3) {
        const int32_t r = rgb[0], g = rgb[1], b = rgb[2];
        ycc[0][i] = (uint8_t)((PSTK__F_0_29900 * r + PSTK__F_0_58700 * g + PSTK__F_0_11400 * b +
                               PSTK__COLOUR_HALF) >>
                              16);
        ycc[1][i] = (uint8_t)((PSTK__F_0_50000 * b - PSTK__F_0_16874 * r - PSTK__F_0_33126 * g +
                               PSTK__COLOUR_CENTRE) >>
                              16);
        ycc[2][i] = (uint8_t)((PSTK__F_0_50000 * r - PSTK__F_0_41869 * g - PSTK__F_0_08131 * b +
                               PSTK__COLOUR_CENTRE) >>
                              16);
    }
}

static void halve(uint8_t *out, const uint8_t *upper, const uint8_t *lower, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (uint8_t)((upper[2 * i] + upper[2 * i + 1] + lower[2 * i] + lower[2 * i + 1] + 1u +
                            i % 2) >>
                           2);
}

/* ---- forward DCT ---------------------------------------------------------------------------- */

/* Shift a number right, rounded. */
static int16_t descaled(int32_t x, int shift)
{
    return (int16_t)((x + (1 << (shift - 1))) >> shift);
}

/* Transform the columns. `shift` is applied to products. Sums of samples get PSTK__DCT_BETWEEN more
 * bits in the first pass, and lose them in the second. A compiler makes each column one lane. */
static void pass(int16_t *restrict out, const int16_t *restrict in, int shift)
{
    const int is_first = shift < PSTK__DCT_FRACTION;
    for (int i = 0; i < 8; i++) {
        const int16_t *x = in + i;
        const int32_t s0 = x[0] + x[56], s1 = x[8] + x[48], s2 = x[16] + x[40], s3 = x[24] + x[32];
        const int32_t d0 = x[0] - x[56], d1 = x[8] - x[48], d2 = x[16] - x[40], d3 = x[24] - x[32];
        const int32_t a = s0 + s3, b = s0 - s3, c = s1 + s2, d = s1 - s2;
        const int32_t z1 = (b + d) * PSTK__F_0_541;
        const int32_t z5 = (d3 + d1 + d2 + d0) * PSTK__F_1_175;
        const int32_t z3 = z5 - (d3 + d1) * PSTK__F_1_961, z4 = z5 - (d2 + d0) * PSTK__F_0_390;
        const int32_t outer = (d3 + d0) * PSTK__F_0_899, inner = (d2 + d1) * PSTK__F_2_562;
        out[i] = is_first ? (int16_t)((a + c) * (1 << PSTK__DCT_BETWEEN))
                          : descaled(a + c, PSTK__DCT_BETWEEN);
        out[32 + i] = is_first ? (int16_t)((a - c) * (1 << PSTK__DCT_BETWEEN))
                               : descaled(a - c, PSTK__DCT_BETWEEN);
        out[16 + i] = descaled(z1 + b * PSTK__F_0_765, shift);
        out[48 + i] = descaled(z1 - d * PSTK__F_1_847, shift);
        out[56 + i] = descaled(d3 * PSTK__F_0_298 - outer + z3, shift);
        out[40 + i] = descaled(d2 * PSTK__F_2_053 - inner + z4, shift);
        out[24 + i] = descaled(d1 * PSTK__F_3_072 - inner + z3, shift);
        out[8 + i] = descaled(d0 * PSTK__F_1_501 - outer + z4, shift);
    }
}

static void transpose(int16_t *restrict out, const int16_t *restrict in)
{
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            out[8 * y + x] = in[8 * x + y];
}

static void quantise(int16_t *block, const struct pstk__jpeg_divisors *divisors)
{
    for (int i = 0; i < 64; i++) {
        const uint32_t a = (uint32_t)(block[i] < 0 ? -block[i] : block[i]) + divisors->half[i];
        const uint32_t q = (a * divisors->reciprocal[i] >> 16) * divisors->scale[i] >> 16;
        block[i] = (int16_t)(block[i] < 0 ? -(int32_t)q : (int32_t)q);
    }
}

static void transform(const struct pstk__block_writer *to, const uint8_t *samples, size_t stride,
                      uint32_t n_blocks, const struct pstk__jpeg_divisors *divisors)
{
    struct pstk__block_writer writer = *to;
    for (uint32_t i = 0; i < n_blocks; i++, samples += 8) {
        int16_t block[64], other[64];
        for (size_t y = 0; y < 8; y++) /* as columns, so that the first pass transforms rows */
            for (size_t x = 0; x < 8; x++)
                block[8 * x + y] = (int16_t)(samples[y * stride + x] - 128);
        pass(other, block, PSTK__DCT_FRACTION - PSTK__DCT_BETWEEN);
        transpose(block, other);
        pass(other, block, PSTK__DCT_FRACTION + PSTK__DCT_BETWEEN);
        quantise(other, divisors);
        pstk__block_pack(&writer, other);
    }
}

const struct pstk__forward_kernels pstk__forward_kernels_c = {
    .isa = PSTK_KERNELS_C, .split = split, .halve = halve, .transform = transform};
