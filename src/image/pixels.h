/* SPDX-License-Identifier: Apache-2.0 */
/* image/pixels: the decoder of images that are stored decoded, as rows of RGB. */
#ifndef PSTK_IMAGE_PIXELS_H
#define PSTK_IMAGE_PIXELS_H

#include "image/decoder.h"

extern const struct pstk__image_decoder pstk__image_pixels;
#endif
