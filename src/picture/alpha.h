/* SPDX-License-Identifier: Apache-2.0 */
/* alpha: multiplies colours of RGBA pixels by alpha and divides by it, in place, as Pillow converts
 * between RGBA and RGBa (Convert.c). */
#ifndef PSTK_ALPHA_H
#define PSTK_ALPHA_H

#include <stdint.h>

void pstk__alpha_multiply(uint8_t *rgba, uint64_t n_pixels);
/* Where alpha is 0, colours do not change. */
void pstk__alpha_divide(uint8_t *rgba, uint64_t n_pixels);

#endif
