/* SPDX-License-Identifier: Apache-2.0 */
#include "image/channels.h"

/* Callers pass constants, so that the compiler makes a loop for each pair of channel numbers. */
static inline void convert(uint8_t *out, uint32_t out_channels, const uint8_t *in,
                           uint32_t in_channels, uint64_t n_pixels)
{
    for (uint64_t i = 0; i < n_pixels; i++, in += in_channels, out += out_channels) {
        if (out_channels == 1) {
            out[0] = pstk__luma(in);
            continue;
        }
        out[0] = in[0];
        out[1] = in[in_channels == 1 ? 0 : 1];
        out[2] = in[in_channels == 1 ? 0 : 2];
        if (out_channels == 4)
            out[3] = 255;
    }
}

void pstk__channels_convert(uint8_t *out, uint32_t out_channels, const uint8_t *in,
                            uint32_t in_channels, uint64_t n_pixels)
{
    if (out_channels == 1 && in_channels == 3)
        convert(out, 1, in, 3, n_pixels);
    else if (out_channels == 1)
        convert(out, 1, in, 4, n_pixels);
    else if (out_channels == 3 && in_channels == 1)
        convert(out, 3, in, 1, n_pixels);
    else if (out_channels == 3)
        convert(out, 3, in, 4, n_pixels);
    else if (in_channels == 1)
        convert(out, 4, in, 1, n_pixels);
    else
        convert(out, 4, in, 3, n_pixels);
}

void pstk__gray_from_rgb(uint8_t *gray, const uint8_t *rgb, uint64_t n_pixels)
{
    convert(gray, 1, rgb, 3, n_pixels);
}

void pstk__rgba_from_rgb(uint8_t *rgba, const uint8_t *rgb, uint64_t n_pixels)
{
    convert(rgba, 4, rgb, 3, n_pixels);
}
