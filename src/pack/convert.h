/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert: the sizes that pstk_image_convert gives images. Pure.
 */
#ifndef PSTK_CONVERT_H
#define PSTK_CONVERT_H

#include <penstock/format.h>

/* Width and height that an image of width x height pixels comes out with. */
void pstk__convert_size(const struct pstk_convert *how, uint32_t *width, uint32_t *height);

#endif
