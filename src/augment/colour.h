/* SPDX-License-Identifier: Apache-2.0 */
/* colour: converts rows of pixels between 1 (gray), 3 (RGB) and 4 (RGBA) channels, as Pillow's
 * Image.convert does. Pure. */
#ifndef PSTK_COLOUR_H
#define PSTK_COLOUR_H

#include <stdint.h>

/* Convert n_pixels from in_channels to out_channels, which differ. To 1: luma, rounded (Pillow's
 * L24). To 4: alpha is 255. From 4: alpha is dropped. The rows do not overlap. */
void pstk__colour_convert(uint8_t *out, uint32_t out_channels, const uint8_t *in,
                          uint32_t in_channels, uint32_t n_pixels);

#endif
