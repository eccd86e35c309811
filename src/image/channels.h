/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/channels: rows of RGB as rows of one or of four bytes a pixel, the same for every decoder.
 * Pure. 1 is Pillow's convert("L"), 4 its convert("RGBA") of an image without transparency.
 */
#ifndef PSTK_IMAGE_CHANNELS_H
#define PSTK_IMAGE_CHANNELS_H

#include <stdint.h>

/* Pillow's L24: luma by ITU-R 601-2 in 16-bit fixed point, rounded. The weights add up to 2^16, so
 * a gray is kept. */
static inline uint8_t pstk__luma(const uint8_t *rgb)
{
    return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

/* The luma of each pixel. The rows may be the same, in place. */
void pstk__gray_from_rgb(uint8_t *gray, const uint8_t *rgb, uint64_t n_pixels);
/* Alpha is 255. The rows do not overlap. */
void pstk__rgba_from_rgb(uint8_t *rgba, const uint8_t *rgb, uint64_t n_pixels);
#endif
