/* SPDX-License-Identifier: Apache-2.0 */
/* channels: what a row of RGB must be in 1 and in 4 channels, one pixel after the other. */
#ifndef PSTK_TEST_CHANNELS_H
#define PSTK_TEST_CHANNELS_H

#include <stdint.h>
#include <string.h>

/* Pillow's L24 and, without alpha, convert("RGBA"). 1: a pixel is another. */
static int row_differs(const uint8_t *pixels, const uint8_t *rgb, uint32_t width, uint32_t channels)
{
    if (channels == 3)
        return memcmp(pixels, rgb, 3 * (size_t)width) != 0;
    for (uint32_t x = 0; x < width; x++, rgb += 3, pixels += channels) {
        const uint32_t l = (rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16;
        if (channels == 1 ? pixels[0] != l
                          : pixels[0] != rgb[0] || pixels[1] != rgb[1] || pixels[2] != rgb[2])
            return 1;
        if (channels == 4 && pixels[3] != 255)
            return 1;
    }
    return 0;
}

#endif
