/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/damaged: decodes damaged JPEGs as Pillow loads them, with libjpeg-turbo's guesses. */
#ifndef PSTK_JPEG_DAMAGED_H
#define PSTK_JPEG_DAMAGED_H

#include "image/decoder.h"

extern const struct pstk__image_decoder pstk__image_damaged;
#endif
