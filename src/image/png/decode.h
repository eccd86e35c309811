/* SPDX-License-Identifier: Apache-2.0 */
/* png/decode: the decoder of PNG files, by libpng. */
#ifndef PSTK_PNG_DECODE_H
#define PSTK_PNG_DECODE_H

#include "image/decoder.h"

extern const struct pstk__image_decoder pstk__image_png;
#endif
