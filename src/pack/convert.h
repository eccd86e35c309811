/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert: computes the size of an image after pstk_image_convert. Pure.
 */
#ifndef PSTK_CONVERT_H
#define PSTK_CONVERT_H

#include <penstock/format.h>

/* Replace the size of an image by its size after the conversion, in pixels. */
void pstk__convert_size(const struct pstk_convert *how, uint32_t *width, uint32_t *height);

#endif
