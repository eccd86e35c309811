/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/frame: a JPEG's frame header, quantisation tables and colour: all data except the
 * coefficients from which pixels are made. Plain data.
 */
#ifndef PSTK_JPEG_FRAME_H
#define PSTK_JPEG_FRAME_H

#include <stdint.h>

#define PSTK__JPEG_MAX_COMPONENTS 4

/* The meaning of the components, by libjpeg's rules (JFIF and Adobe markers, component ids). */
enum pstk__jpeg_color {
    PSTK__JPEG_GRAY = 1,
    PSTK__JPEG_YCC = 2,
    PSTK__JPEG_RGB = 3,
    PSTK__JPEG_CMYK = 4, /* as Adobe writes it: inverted */
    PSTK__JPEG_YCCK = 5,
};

/* Return the number of components of a colour; 0: there is no such colour. */
uint32_t pstk__jpeg_color_components(uint32_t color);

struct pstk__jpeg_component {
    uint8_t id;
    uint8_t h, v;           /* sampling factors, 1..4 */
    uint8_t reserved;       /* 0 */
    uint32_t width, height; /* samples for pixels: ceil(image side * factor / largest factor) */
    uint32_t across, down;  /* blocks for samples: ceil(width / 8), ceil(height / 8) */
    uint32_t stride, rows; /* all blocks: across and down rounded up to whole MCUs of an interleaved
                              scan; with n_components = 1: across and down */
    uint16_t quant[64]; /* natural (row-major) order; the table in force when the component was read
                         */
};

struct pstk__jpeg_frame {
    uint32_t width, height; /* pixels; 1..65535 */
    uint32_t n_components;  /* 1, 3 or 4 */
    uint32_t color;         /* enum pstk__jpeg_color */
    uint32_t max_h, max_v;  /* largest sampling factors */
    struct pstk__jpeg_component component[PSTK__JPEG_MAX_COMPONENTS];
};

/* Fill in max_h, max_v, and width, height, across, down, stride and rows of each component, from
 * the image's sides and the factors. */
void pstk__jpeg_frame_layout(struct pstk__jpeg_frame *f);

#endif
