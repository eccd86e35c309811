/* SPDX-License-Identifier: Apache-2.0 */
/* resize_kernels_avx512: the kernels with 512-bit registers. The table is in resize_avx512.c; the
 * functions below are its parts in other files. */
#ifndef PSTK_PIXELS_RESIZE_KERNELS_AVX512_H
#define PSTK_PIXELS_RESIZE_KERNELS_AVX512_H

#include "pixels/resize_kernels.h"

#if defined(__x86_64__)
extern const struct pstk__pixel_kernels pstk__pixel_avx512; /* resize_avx512.c */

void pstk__premultiply_avx512(uint8_t *out, const uint8_t *rgba, uint32_t n_pixels);
void pstk__unpremultiply_avx512(uint8_t *rgba, uint32_t n_pixels);
void pstk__lookup_init_avx512(void *lookup, const struct pstk__finish *finish);
void pstk__finish_row_avx512(void *out, const uint8_t *pixels, const struct pstk__finish *finish);
#endif

#endif
