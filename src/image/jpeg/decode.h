/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/decode: the decoder of JPEG files, by libjpeg-turbo. */
#ifndef PSTK_JPEG_DECODE_H
#define PSTK_JPEG_DECODE_H

#include "image/decoder.h"

extern const struct pstk__image_decoder pstk__image_jpeg;
/* Return "libjpeg-turbo 2.1.5" or similar. Static storage. */
const char *pstk__jpeg_library(void);
#endif
