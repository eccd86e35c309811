/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/damaged: the decoder of JPEGs that need guesses, by libjpeg-turbo, as Pillow loads them. */
#ifndef PSTK_JPEG_DAMAGED_H
#define PSTK_JPEG_DAMAGED_H

#include "image/decoder.h"

extern const struct pstk__image_decoder pstk__image_damaged;
#endif
