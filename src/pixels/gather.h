/* SPDX-License-Identifier: Apache-2.0 */
/* gather: copies pixels of a row by their indices. */
#ifndef PSTK_PIXELS_GATHER_H
#define PSTK_PIXELS_GATHER_H

#include <stdint.h>

/* Copy the pixels input[0] to input[n - 1] of a row; they have `size` bytes, 1 to 4; n >= 1. */
void pstk__gather_pixels(uint8_t *out, const uint8_t *in, const uint32_t *input, uint32_t n,
                         uint32_t size);

#endif
