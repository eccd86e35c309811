/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/kernels_neon: upsampling and colour with NEON, whose loads and stores interleave. The
 * texts of AVX2 would take twice the instructions here, most of them for the order of bytes. */
#include "image/jpeg/frame.h"
#include "image/jpeg/inverse.h"

#if defined(PSTK_NEON)

#include <penstock/penstock.h>

#include <arm_neon.h>

#define STEP 16u /* samples */
#define INLINE static inline __attribute__((always_inline))

/* The words of 16 samples, in order. */
struct words {
    uint16x8_t low, high;
};

/* ---- upsampling ----------------------------------------------------------------------------- */

/* Return 3 near + far. */
INLINE struct words sums_of(const uint8_t *near, const uint8_t *far)
{
    const uint8x16_t x = vld1q_u8(near), y = vld1q_u8(far), three = vdupq_n_u8(3);
    const uint16x8_t low = vmovl_u8(vget_low_u8(y)), high = vmovl_high_u8(y);
    return (struct words){vmlal_u8(low, vget_low_u8(x), vget_low_u8(three)),
                          vmlal_high_u8(high, x, three)};
}

/* Return sums / 4, with a bias of 1 or 2, the latter by rounding. */
INLINE uint8x16_t quarter(struct words sums, uint32_t bias)
{
    const uint16x8_t one = vdupq_n_u16(1);
    if (bias == 2)
        return vrshrn_high_n_u16(vrshrn_n_u16(sums.low, 2), sums.high, 2);
    return vshrn_high_n_u16(vshrn_n_u16(vaddq_u16(sums.low, one), 2), vaddq_u16(sums.high, one), 2);
}

static void h2v1(uint8_t *out, const uint8_t *in, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += STEP, in += STEP, out += 2 * STEP) {
        const uint8x16x2_t both = {
            {quarter(sums_of(in, in - 1), 1), quarter(sums_of(in, in + 1), 2)}};
        vst2q_u8(out, both);
    }
}

/* Return (3 here + other + bias) / 16, with a bias of 7 or 8, the latter by rounding. */
INLINE uint8x8_t column(uint16x8_t here, uint16x8_t other, uint32_t bias)
{
    const uint16x8_t sum = vmlaq_n_u16(other, here, 3);
    return bias == 8 ? vrshrn_n_u16(sum, 4) : vshrn_n_u16(vaddq_u16(sum, vdupq_n_u16(7)), 4);
}

INLINE uint8x16_t columns(struct words here, struct words other, uint32_t bias)
{
    return vcombine_u8(column(here.low, other.low, bias), column(here.high, other.high, bias));
}

static void h2v2(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += STEP, out += 2 * STEP, near += STEP, far += STEP) {
        const struct words here = sums_of(near, far);
        const uint8x16x2_t both = {{columns(here, sums_of(near - 1, far - 1), 8),
                                    columns(here, sums_of(near + 1, far + 1), 7)}};
        vst2q_u8(out, both);
    }
}

static void h1v2(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n, uint32_t bias)
{
    for (uint32_t i = 0; i < n && bias == 1; i += STEP)
        vst1q_u8(out + i, quarter(sums_of(near + i, far + i), 1));
    for (uint32_t i = 0; i < n && bias == 2; i += STEP)
        vst1q_u8(out + i, quarter(sums_of(near + i, far + i), 2));
}

/* ---- colour --------------------------------------------------------------------------------- */

static void rgb_from_gray(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    for (uint32_t i = 0; i < n; i += STEP) {
        const uint8x16_t y = vld1q_u8(samples[0] + i);
        const uint8x16x3_t pixels = {{y, y, y}};
        vst3q_u8(rgb + (size_t)3 * i, pixels);
    }
}

static void rgb_from_rgb(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    const uint8_t *red = samples[0], *green = samples[1], *blue = samples[2];
    for (uint32_t i = 0; i < n; i += STEP) {
        const uint8x16x3_t pixels = {{vld1q_u8(red + i), vld1q_u8(green + i), vld1q_u8(blue + i)}};
        vst3q_u8(rgb + (size_t)3 * i, pixels);
    }
}

/*
 * jdcolor.c's sums with twice the chroma, x = 2 (c - 128), in 16 bits, as kernels_avx2.c has them:
 *   red   y + (x * 22971 + 2^14 >> 15)
 *   blue  y + (x * 29033 + 2^14 >> 15)
 *   green y + (-xb * 11277 - xr * 23401 + 2^15 >> 16)
 */
#define RED 22971
#define BLUE 29033
#define GREEN_BLUE (-11277)
#define GREEN_RED (-23401)

/* Twice the chroma of 16 pixels. */
struct chroma {
    int16x8_t low, high;
};

INLINE struct chroma chroma_of(const uint8_t *at)
{
    const int8x16_t c = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(at), vdupq_n_u8(0x80)));
    return (struct chroma){vshll_n_s8(vget_low_s8(c), 1), vshll_high_n_s8(c, 1)};
}

INLINE int16x8_t green_of(int16x8_t blue, int16x8_t red)
{
    int32x4_t low = vmull_n_s16(vget_low_s16(blue), GREEN_BLUE);
    int32x4_t high = vmull_high_n_s16(blue, GREEN_BLUE);
    low = vmlal_n_s16(low, vget_low_s16(red), GREEN_RED);
    high = vmlal_high_n_s16(high, red, GREEN_RED);
    return vrshrn_high_n_s32(vrshrn_n_s32(low, 16), high, 16);
}

/* Add differences to the luma, and clip. */
INLINE uint8x16_t clipped(uint8x16_t y, int16x8_t low, int16x8_t high)
{
    const uint16x8_t sums[2] = {vaddw_u8(vreinterpretq_u16_s16(low), vget_low_u8(y)),
                                vaddw_high_u8(vreinterpretq_u16_s16(high), y)};
    return vqmovun_high_s16(vqmovun_s16(vreinterpretq_s16_u16(sums[0])),
                            vreinterpretq_s16_u16(sums[1]));
}

static void rgb_from_ycc(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    const uint8_t *luma = samples[0], *blues = samples[1], *reds = samples[2];
    for (uint32_t i = 0; i < n; i += STEP) {
        const uint8x16_t y = vld1q_u8(luma + i);
        const struct chroma cb = chroma_of(blues + i), cr = chroma_of(reds + i);
        const uint8x16x3_t pixels = {
            {clipped(y, vqrdmulhq_n_s16(cr.low, RED), vqrdmulhq_n_s16(cr.high, RED)),
             clipped(y, green_of(cb.low, cr.low), green_of(cb.high, cr.high)),
             clipped(y, vqrdmulhq_n_s16(cb.low, BLUE), vqrdmulhq_n_s16(cb.high, BLUE))}};
        vst3q_u8(rgb + (size_t)3 * i, pixels);
    }
}

const struct pstk__jpeg_kernels pstk__jpeg_kernels_neon = {
    .isa = PSTK_KERNELS_NEON,
    .inverse = pstk__jpeg_inverse_avx2,
    .h2v1 = h2v1,
    .h2v2 = h2v2,
    .h1v2 = h1v2,
    .rgb = {[PSTK__JPEG_GRAY] = rgb_from_gray,
            [PSTK__JPEG_YCC] = rgb_from_ycc,
            [PSTK__JPEG_RGB] = rgb_from_rgb,
            [PSTK__JPEG_CMYK] = pstk__jpeg_rgb_from_cmyk,
            [PSTK__JPEG_YCCK] = pstk__jpeg_rgb_from_ycck},
};

#endif
