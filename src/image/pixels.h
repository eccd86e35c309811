/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pixels: the decoder of images that are stored decoded, as rows of gray, RGB or RGBA, in
 * samples of 8 or 16 bits (little-endian). It gives Pillow's result for a PNG file with the same
 * samples: the high byte of 16-bit ones. 16-bit gray is refused, as in a PNG file: see png/decode.
 */
#ifndef PSTK_IMAGE_PIXELS_H
#define PSTK_IMAGE_PIXELS_H

#include "image/decoder.h"

extern const struct pstk__image_decoder pstk__image_pixels;

/* Return 1 when stored pixels can have these channels and bits of a sample. */
static inline int pstk__pixels_known(uint32_t channels, uint32_t bit_depth)
{
    return (channels == 1 || channels == 3 || channels == 4) && (bit_depth == 8 || bit_depth == 16);
}

/* Return the bytes of such a pixel: 1 to 8. */
static inline uint32_t pstk__pixels_size(uint32_t channels, uint32_t bit_depth)
{
    return channels * (bit_depth / 8);
}
#endif
