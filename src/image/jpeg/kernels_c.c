/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/kernels_c: the reference for the inverse steps: each step as a formula, one sample at a
 * time. */
#include "image/jpeg/frame.h"
#include "image/jpeg/kernels.h"
#include "image/jpeg/zigzag.h"

#include <penstock/penstock.h>

#include <string.h>

/* ---- inverse DCT ---------------------------------------------------------------------------- */

/*
 * libjpeg-turbo's SSE2 and AVX2 versions of jidctint agree with each other, and keep every number
 * in the 16 bits of a vector lane. The product of dequantisation and the four sums before the first
 * multiplication wrap; the first pass's results saturate. The coefficients of a real encoder never
 * show this.
 *
 * All later numbers fit 32 bits. The inputs of a pass have 16 bits, and each output is the sum of
 * at most (8192 + 15137 + 41241) * 32768 = 2115829760 and a rounding of 2^17 in magnitude (the even
 * part's 8192 and 4433 + 10704, the odd part's 4176 + 20995 + 9633 + 6437).
 */

#define FRACTION 13                   /* bits of the constants below: round(x * 2^13) */
#define SHIFT_COLUMNS (FRACTION - 2)  /* numbers between the passes have 2 more bits */
#define SHIFT_ROWS (FRACTION + 2 + 3) /* removes them, and the factor 8 of two passes */
/* Places of the zigzag order below the first row of a block. */
#define BELOW_FIRST_ROW (~0x1800c063ull)

enum {
    F_0_298 = 2446,
    F_0_390 = 3196,
    F_0_541 = 4433,
    F_0_765 = 6270,
    F_0_899 = 7373,
    F_1_175 = 9633,
    F_1_501 = 12299,
    F_1_847 = 15137,
    F_1_961 = 16069,
    F_2_053 = 16819,
    F_2_562 = 20995,
    F_3_072 = 25172,
};

static int16_t wrap(int32_t x)
{
    return (int16_t)(uint16_t)(uint32_t)x;
}

static int16_t saturate(int32_t x)
{
    return (int16_t)(x < INT16_MIN ? INT16_MIN : x > INT16_MAX ? INT16_MAX : x);
}

static uint8_t clamp(int32_t x)
{
    return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

/* Transform the columns. A compiler makes each column one lane. */
static void pass(int16_t *restrict out, const int16_t *restrict in, int shift)
{
    for (int i = 0; i < 8; i++) {
        const int16_t *x = in + i;
        const int32_t sum = wrap(x[0] + x[32]), difference = wrap(x[0] - x[32]);
        const int32_t a = x[16] * (F_0_541 + F_0_765) + x[48] * F_0_541;
        const int32_t b = x[16] * F_0_541 + x[48] * (F_0_541 - F_1_847);
        const int32_t even[4] = {
            sum * (1 << FRACTION) + a,
            difference * (1 << FRACTION) + b,
            difference * (1 << FRACTION) - b,
            sum * (1 << FRACTION) - a,
        };
        const int32_t z73 = wrap(x[56] + x[24]), z51 = wrap(x[40] + x[8]);
        const int32_t c = z73 * (F_1_175 - F_1_961) + z51 * F_1_175;
        const int32_t d = z73 * F_1_175 + z51 * (F_1_175 - F_0_390);
        const int32_t odd[4] = {
            x[8] * (F_1_501 - F_0_899) - x[56] * F_0_899 + d,
            x[24] * (F_3_072 - F_2_562) - x[40] * F_2_562 + c,
            x[40] * (F_2_053 - F_2_562) - x[24] * F_2_562 + d,
            x[56] * (F_0_298 - F_0_899) - x[8] * F_0_899 + c,
        };
        const int32_t half = 1 << (shift - 1);
        for (int k = 0; k < 4; k++) {
            out[8 * k + i] = saturate((even[k] + odd[k] + half) >> shift);
            out[8 * (7 - k) + i] = saturate((even[k] - odd[k] + half) >> shift);
        }
    }
}

/* Transform blocks whose coefficients below the first row are all 0. They must be 0 as coded,
 * because dequantisation can make others 0, too. libjpeg-turbo then shifts instead, which wraps. */
static void pass_of_first_row(int16_t *restrict out, const int16_t *restrict in)
{
    for (int i = 0; i < 64; i++)
        out[i] = wrap(in[i % 8] * 4);
}

static void transpose(int16_t *restrict out, const int16_t *restrict in)
{
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            out[8 * y + x] = in[8 * x + y];
}

static void inverse(uint8_t *out, size_t stride, const struct pstk__block_row *blocks,
                    const uint16_t *quant)
{
    const int8_t *value = blocks->values;
    const int16_t *wide = blocks->wide;
    for (uint32_t i = 0; i < blocks->n_blocks; i++, out += 8) {
        int16_t block[64] = {wrap(blocks->dc[i] * quant[0])}, other[64];
        for (uint64_t map = blocks->maps[i]; map != 0; map &= map - 1) {
            const uint32_t at = pstk__zigzag[__builtin_ctzll(map)];
            const int32_t coefficient = *value == -128 ? *wide++ : *value;
            value++;
            block[at] = wrap(coefficient * quant[at]);
        }
        if (blocks->maps[i] & BELOW_FIRST_ROW)
            pass(other, block, SHIFT_COLUMNS);
        else
            pass_of_first_row(other, block);
        transpose(block, other);
        pass(other, block, SHIFT_ROWS);
        transpose(block, other);
        for (size_t y = 0; y < 8; y++)
            for (size_t x = 0; x < 8; x++)
                out[y * stride + x] = clamp(block[8 * y + x] + 128);
    }
}

/* ---- upsampling ----------------------------------------------------------------------------- */

/*
 * Filter by a triangle: 3/4 of the nearer sample, 1/4 of the other one. Halves are rounded down and
 * up alternately (biases 1 and 2 of 4, 7 and 8 of 16). In jdsample.c the first and last columns
 * have no other sample; the same formulas give their values from a copy of the nearer one.
 */
static void h2v1(uint8_t *out, const uint8_t *in, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, in++) {
        *out++ = (uint8_t)((3 * in[0] + in[-1] + 1) >> 2);
        *out++ = (uint8_t)((3 * in[0] + in[1] + 2) >> 2);
    }
}

static void h2v2(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n)
{
    int before = 3 * near[-1] + far[-1], here = 3 * near[0] + far[0];
    for (uint32_t i = 0; i < n; i++) {
        const int after = 3 * near[i + 1] + far[i + 1];
        *out++ = (uint8_t)((3 * here + before + 8) >> 4);
        *out++ = (uint8_t)((3 * here + after + 7) >> 4);
        before = here;
        here = after;
    }
}

static void h1v2(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n, uint32_t bias)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (uint8_t)((3u * near[i] + far[i] + bias) >> 2);
}

/* ---- colour --------------------------------------------------------------------------------- */

/* round(x * 2^16), x as in jdcolor.c */
#define FIX_0_34414 22554
#define FIX_0_71414 46802
#define FIX_1_40200 91881
#define FIX_1_77200 116130

static void rgb_of(uint8_t rgb[3], int32_t y, int32_t cb, int32_t cr)
{
    const int32_t half = 1 << 15;
    cb -= 128;
    cr -= 128;
    rgb[0] = clamp(y + ((FIX_1_40200 * cr + half) >> 16));
    rgb[1] = clamp(y + ((-FIX_0_34414 * cb - FIX_0_71414 * cr + half) >> 16));
    rgb[2] = clamp(y + ((FIX_1_77200 * cb + half) >> 16));
}

/* Convert one of inverted C, M and Y (as RGB) and K as Pillow does: k - c k / 255, rounded as its
 * MULDIV255. */
static uint8_t under_black(uint32_t c, uint32_t k)
{
    const uint32_t t = c * k + 128;
    return (uint8_t)(k - (((t >> 8) + t) >> 8));
}

static void rgb_from_gray(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, rgb += 3)
        memset(rgb, samples[0][i], 3);
}

static void rgb_from_ycc(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, rgb += 3)
        rgb_of(rgb, samples[0][i], samples[1][i], samples[2][i]);
}

static void rgb_from_rgb(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t c = 0; c < 3; c++)
            *rgb++ = samples[c][i];
}

void pstk__jpeg_rgb_from_cmyk(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t c = 0; c < 3; c++)
            *rgb++ = under_black(255u - samples[c][i], samples[3][i]);
}

void pstk__jpeg_rgb_from_ycck(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint8_t inverted[3]; /* C, M and Y are 255 minus RGB */
        rgb_of(inverted, samples[0][i], samples[1][i], samples[2][i]);
        for (uint32_t c = 0; c < 3; c++)
            *rgb++ = under_black(inverted[c], samples[3][i]);
    }
}

const struct pstk__jpeg_kernels pstk__jpeg_kernels_c = {
    .isa = PSTK_KERNELS_C,
    .inverse = inverse,
    .h2v1 = h2v1,
    .h2v2 = h2v2,
    .h1v2 = h1v2,
    .rgb = {[PSTK__JPEG_GRAY] = rgb_from_gray,
            [PSTK__JPEG_YCC] = rgb_from_ycc,
            [PSTK__JPEG_RGB] = rgb_from_rgb,
            [PSTK__JPEG_CMYK] = pstk__jpeg_rgb_from_cmyk,
            [PSTK__JPEG_YCCK] = pstk__jpeg_rgb_from_ycck},
};
