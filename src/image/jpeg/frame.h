/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/frame: what a JPEG's frame header, its quantisation tables and its colour markers say: all
 * that is needed, apart from the coefficients, to make pixels. Plain data.
 */
#ifndef PSTK_JPEG_FRAME_H
#define PSTK_JPEG_FRAME_H

#include <stdint.h>

#define PSTK__JPEG_MAX_COMPONENTS 4

/* What the components mean, by libjpeg's rules (JFIF and Adobe markers, component ids). */
enum pstk__jpeg_color {
    PSTK__JPEG_GRAY = 1,
    PSTK__JPEG_YCC = 2,
    PSTK__JPEG_RGB = 3,
    PSTK__JPEG_CMYK = 4, /* as Adobe writes it: inverted */
    PSTK__JPEG_YCCK = 5,
};

/* Components that an image of this colour has; 0: no such colour. */
uint32_t pstk__jpeg_color_components(uint32_t color);

struct pstk__jpeg_component {
    uint8_t id;
    uint8_t h, v;           /* sampling factors, 1..4 */
    uint8_t reserved;       /* 0 */
    uint32_t width, height; /* samples that hold pixels: ceil(image side * factor / largest) */
    uint32_t across, down;  /* blocks that hold samples: ceil(width / 8), ceil(height / 8) */
    uint32_t stride, rows;  /* blocks there are: across, down rounded up to whole MCUs of an
                               interleaved scan; n_components = 1: = across, down */
    uint16_t quant[64];     /* natural (row-major) order; as latched when the component was read */
};

struct pstk__jpeg_frame {
    uint32_t width, height; /* pixels; 1..65535 */
    uint32_t n_components;  /* 1, 3 or 4 */
    uint32_t color;         /* enum pstk__jpeg_color */
    uint32_t max_h, max_v;  /* largest sampling factors */
    struct pstk__jpeg_component component[PSTK__JPEG_MAX_COMPONENTS];
};

/* Fill in max_h, max_v and of each component width, height, across, down, stride and rows, from the
 * sides of the image and the factors. */
void pstk__jpeg_frame_layout(struct pstk__jpeg_frame *f);

#endif
