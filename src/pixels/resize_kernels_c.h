/* SPDX-License-Identifier: Apache-2.0 */
/* resize_kernels_c: the kernels in plain C. The table is in resize_c.c; the functions below are its
 * parts in other files. */
#ifndef PSTK_PIXELS_RESIZE_KERNELS_C_H
#define PSTK_PIXELS_RESIZE_KERNELS_C_H

#include "pixels/resize_kernels.h"

extern const struct pstk__pixel_kernels pstk__pixel_c; /* resize_c.c */

void pstk__axis_weights_c(struct pstk__axis *axis, const struct pstk__filter *filter,
                          uint32_t first_out);
void pstk__lookup_init_c(void *lookup, const struct pstk__finish *finish);
void pstk__finish_row_c(void *out, const uint8_t *pixels, const struct pstk__finish *finish);

#endif
