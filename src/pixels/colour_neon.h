/* SPDX-License-Identifier: Apache-2.0 */
/* colour_neon: blocks of the colour kernels with NEON, whose loads and stores split and join
 * channels. Only for colour_avx2.h. */
#ifndef PSTK_PIXELS_COLOUR_NEON_H
#define PSTK_PIXELS_COLOUR_NEON_H

INLINE __m256i of_halves(uint8x16_t low, uint8x16_t high)
{
    return pstk__neon_joined(vreinterpretq_s64_u8(low), vreinterpretq_s64_u8(high));
}

INLINE uint8x16_t half_of(const struct block *block, uint32_t c, int half)
{
    return vreinterpretq_u8_s64(pstk__neon_half(block->of[c], half));
}

INLINE struct block load_3(const uint8_t *at)
{
    const uint8x16x3_t low = vld3q_u8(at), high = vld3q_u8(at + 48);
    return (struct block){{of_halves(low.val[0], high.val[0]), of_halves(low.val[1], high.val[1]),
                           of_halves(low.val[2], high.val[2]), _mm256_setzero_si256()}};
}

INLINE void store_3(uint8_t *at, const struct block *block)
{
    const uint8x16x3_t low = {{half_of(block, 0, 0), half_of(block, 1, 0), half_of(block, 2, 0)}},
                       high = {{half_of(block, 0, 1), half_of(block, 1, 1), half_of(block, 2, 1)}};
    vst3q_u8(at, low);
    vst3q_u8(at + 48, high);
}

INLINE struct block load_4(const uint8_t *at)
{
    const uint8x16x4_t low = vld4q_u8(at), high = vld4q_u8(at + 64);
    return (struct block){{of_halves(low.val[0], high.val[0]), of_halves(low.val[1], high.val[1]),
                           of_halves(low.val[2], high.val[2]), of_halves(low.val[3], high.val[3])}};
}

INLINE void store_4(uint8_t *at, const struct block *block)
{
    const uint8x16x4_t low = {{half_of(block, 0, 0), half_of(block, 1, 0), half_of(block, 2, 0),
                               half_of(block, 3, 0)}},
                       high = {{half_of(block, 0, 1), half_of(block, 1, 1), half_of(block, 2, 1),
                                half_of(block, 3, 1)}};
    vst4q_u8(at, low);
    vst4q_u8(at + 64, high);
}

/* Return pstk__luma of eight pixels. */
INLINE uint16x8_t luma_of_8(uint16x8_t red, uint16x8_t green, uint16x8_t blue)
{
    uint32x4_t low = vmull_n_u16(vget_low_u16(red), 19595), high = vmull_high_n_u16(red, 19595);
    low = vmlal_n_u16(low, vget_low_u16(green), 38470);
    high = vmlal_high_n_u16(high, green, 38470);
    low = vmlal_n_u16(low, vget_low_u16(blue), 7471);
    high = vmlal_high_n_u16(high, blue, 7471);
    return vrshrn_high_n_u32(vrshrn_n_u32(low, 16), high, 16);
}

INLINE uint8x16_t luma_of_half(const struct block *block, int half)
{
    const uint8x16_t red = half_of(block, 0, half), green = half_of(block, 1, half),
                     blue = half_of(block, 2, half);
    const uint16x8_t low = luma_of_8(vmovl_u8(vget_low_u8(red)), vmovl_u8(vget_low_u8(green)),
                                     vmovl_u8(vget_low_u8(blue)));
    const uint16x8_t high =
        luma_of_8(vmovl_high_u8(red), vmovl_high_u8(green), vmovl_high_u8(blue));
    return vmovn_high_u16(vmovn_u16(low), high);
}

/* Compute pstk__luma. */
INLINE __m256i luma_of(const struct block *block)
{
    return of_halves(luma_of_half(block, 0), luma_of_half(block, 1));
}

/* Return the luma of the 32 pixels at an address, in order. */
INLINE __m256i luma_at(const uint8_t *at, uint32_t channels)
{
    const struct block block = channels == 3 ? load_3(at) : load_4(at);
    return luma_of(&block);
}

#endif
