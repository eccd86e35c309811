/* SPDX-License-Identifier: Apache-2.0 */
/* resize_kernels_neon: the kernels for NEON. The table is in resize_neon.c; alpha, the finish and
 * their tables are the functions of resize_kernels_avx2.h, compiled for NEON. */
#ifndef PSTK_PIXELS_RESIZE_KERNELS_NEON_H
#define PSTK_PIXELS_RESIZE_KERNELS_NEON_H

#include "pixels/resize_kernels.h"

#if defined(PSTK_NEON)
extern const struct pstk__pixel_kernels pstk__pixel_neon; /* resize_neon.c */
#endif

#endif
