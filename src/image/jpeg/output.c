/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/output.h"

#include "image/channels.h"

#include <string.h>

void pstk__jpeg_choose_output(j_decompress_ptr cinfo, uint32_t channels)
{
    if (cinfo->jpeg_color_space == JCS_CMYK || cinfo->jpeg_color_space == JCS_YCCK)
        cinfo->out_color_space = JCS_CMYK;
    else if (channels == 1 && cinfo->jpeg_color_space == JCS_GRAYSCALE)
        cinfo->out_color_space = JCS_GRAYSCALE;
    else
        cinfo->out_color_space = channels == 4 ? JCS_EXT_RGBA : JCS_RGB;
    cinfo->dct_method = JDCT_ISLOW;
    cinfo->do_fancy_upsampling = TRUE;
    cinfo->do_block_smoothing = FALSE; /* smooth.h does it */
}

/* Return a * b / 255, rounded, as Pillow's MULDIV255. */
static uint32_t muldiv255(uint32_t a, uint32_t b)
{
    uint32_t t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

/* Convert CMYK to RGB, in place. Pillow reads every four-component JPEG as Adobe's inverted CMYK,
 * and converts it by its cmyk2rgb: (255 - k) - c * (255 - k) / 255 with c and k inverted back. A
 * pixel of 4 bytes becomes one of 3, or of 4 with alpha. */
static void cmyk_to_rgb(uint8_t *row, uint32_t n_pixels, uint32_t channels)
{
    for (uint32_t x = 0; x < n_pixels; x++) {
        const uint8_t *in = row + 4 * (size_t)x;
        uint8_t *out = row + channels * (size_t)x;
        uint32_t k = in[3];
        uint8_t rgba[4] = {0, 0, 0, 255};
        for (int i = 0; i < 3; i++)
            rgba[i] = (uint8_t)(k - muldiv255(255u - in[i], k));
        memcpy(out, rgba, channels);
    }
}

void pstk__jpeg_convert_row(j_decompress_ptr cinfo, uint8_t *row, uint32_t n_pixels,
                            uint32_t channels)
{
    if (cinfo->out_color_space == JCS_CMYK)
        cmyk_to_rgb(row, n_pixels, channels == 4 ? 4 : 3);
    if (channels == 1 && cinfo->out_color_space != JCS_GRAYSCALE)
        pstk__gray_from_rgb(row, row, n_pixels);
}
