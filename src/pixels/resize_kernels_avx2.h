/* SPDX-License-Identifier: Apache-2.0 */
/* resize_kernels_avx2: the kernels with 256-bit registers. The table is in resize_avx2.c; the
 * functions below are its parts in other files. */
#ifndef PSTK_PIXELS_RESIZE_KERNELS_AVX2_H
#define PSTK_PIXELS_RESIZE_KERNELS_AVX2_H

#include "pixels/resize_kernels.h"

#if defined(__x86_64__)
extern const struct pstk__pixel_kernels pstk__pixel_avx2; /* resize_avx2.c */
#endif

#if defined(__x86_64__) || defined(PSTK_NEON)
void pstk__axis_weights_avx2(struct pstk__axis *axis, const struct pstk__filter *filter,
                             uint32_t first_out);
void pstk__premultiply_avx2(uint8_t *out, const uint8_t *rgba, uint32_t n_pixels);
void pstk__unpremultiply_avx2(uint8_t *rgba, uint32_t n_pixels);
void pstk__lookup_init_avx2(void *lookup, const struct pstk__finish *finish);
void pstk__finish_row_avx2(void *out, const uint8_t *pixels, const struct pstk__finish *finish);
#endif

#endif
