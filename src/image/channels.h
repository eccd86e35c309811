/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/channels: converts rows of pixels between 1 (gray), 3 (RGB) and 4 (RGBA) channels. The
 * results are those of Pillow's Image.convert for images without a tRNS chunk, for every decoder
 * and operation. Pure.
 */
#ifndef PSTK_IMAGE_CHANNELS_H
#define PSTK_IMAGE_CHANNELS_H

#include <stdint.h>

/* Return Pillow's L24: luma by ITU-R 601-2 in 16-bit fixed point, rounded. The weights add up to
 * 2^16, so a gray keeps its value. */
static inline uint8_t pstk__luma(const uint8_t *rgb)
{
    return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

/* Convert n_pixels from in_channels to out_channels, which differ. To 1: luma, rounded. To 4: alpha
 * is 255. From 4: alpha is dropped. The rows do not overlap. */
void pstk__channels_convert(uint8_t *out, uint32_t out_channels, const uint8_t *in,
                            uint32_t in_channels, uint64_t n_pixels);
/* Compute the luma of each pixel. `gray` may be `rgb`. */
void pstk__gray_from_rgb(uint8_t *gray, const uint8_t *rgb, uint64_t n_pixels);
/* Add an alpha of 255 to each pixel. The rows do not overlap. */
void pstk__rgba_from_rgb(uint8_t *rgba, const uint8_t *rgb, uint64_t n_pixels);
#endif
