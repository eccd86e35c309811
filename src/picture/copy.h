/* SPDX-License-Identifier: Apache-2.0 */
/* copy: pictures whose pixels change their places, but not their values. */
#ifndef PSTK_PICTURE_COPY_H
#define PSTK_PICTURE_COPY_H

#include "picture/picture.h"

/* Copy the window of `in` that begins at (left, top), which may be negative, and has the size of
 * `out`. Pixels outside of `in` become `fill`, one value per channel. */
void pstk__picture_crop(const struct pstk__picture *out, const struct pstk__picture *in,
                        int64_t left, int64_t top, const uint8_t fill[4]);
/* Mirror left and right: `out` has the size of `in`, and other memory. */
void pstk__picture_flip_horizontal(const struct pstk__picture *out, const struct pstk__picture *in);
/* Mirror top and bottom: `out` has the size of `in`, and other memory. */
void pstk__picture_flip_vertical(const struct pstk__picture *out, const struct pstk__picture *in);

#endif
