/* SPDX-License-Identifier: Apache-2.0 */
#include "image/channels.h"

void pstk__gray_from_rgb(uint8_t *gray, const uint8_t *rgb, uint64_t n_pixels)
{
    for (uint64_t i = 0; i < n_pixels; i++, rgb += 3)
        gray[i] = pstk__luma(rgb);
}

void pstk__rgba_from_rgb(uint8_t *rgba, const uint8_t *rgb, uint64_t n_pixels)
{
    for (uint64_t i = 0; i < n_pixels; i++, rgb += 3, rgba += 4) {
        rgba[0] = rgb[0];
        rgba[1] = rgb[1];
        rgba[2] = rgb[2];
        rgba[3] = 255;
    }
}
