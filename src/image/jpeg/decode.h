/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/decode: the decoder of JPEG files, by libjpeg-turbo. */
#ifndef PSTK_JPEG_DECODE_H
#define PSTK_JPEG_DECODE_H

#include "image/decoder.h"

extern const struct pstk__image_decoder pstk__image_jpeg;
/* The probe and scratch of this decoder; the decoder of damaged files has the same. */
int pstk__jpeg_probe(const void *data, uint64_t size, uint64_t max_pixels,
                     struct pstk__image_info *info, struct pstk_error *err);
uint64_t pstk__jpeg_scratch(uint32_t max_width, uint32_t max_height, uint64_t max_pixels);
/* Return "libjpeg-turbo 2.1.5" or similar. Static storage. */
const char *pstk__jpeg_library(void);
#endif
