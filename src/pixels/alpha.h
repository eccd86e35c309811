/* SPDX-License-Identifier: Apache-2.0 */
/* alpha: multiplies colours of RGBA pixels by alpha and divides by it, as Pillow converts between
 * RGBA and RGBa (Convert.c). Plain C, the reference for vector kernels. Pure. */
#ifndef PSTK_PIXELS_ALPHA_H
#define PSTK_PIXELS_ALPHA_H

#include <stdint.h>

/* Multiply colours by alpha. `out` may be `rgba`; else they do not overlap. */
void pstk__alpha_multiply(uint8_t *out, const uint8_t *rgba, uint32_t n_pixels);
/* Divide colours by alpha, in place. Colours whose alpha is 0 do not change. */
void pstk__alpha_divide(uint8_t *rgba, uint32_t n_pixels);

#endif
