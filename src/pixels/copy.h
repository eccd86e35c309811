/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy: moves pixels without changing them: mirrors, quarter turns, padding, crops. `channels` may
 * also be 2, for pixels of any two bytes. `in` and `out` have the same channels, and do not
 * overlap.
 */
#ifndef PSTK_PIXELS_COPY_H
#define PSTK_PIXELS_COPY_H

#include "pixels/warp_kernels.h"

#include <penstock/ops.h>

/* Mirror left to right; `out` has the size of `in`. */
void pstk__copy_flip_horizontal(const struct pstk__warp_kernels *kernels,
                                const struct pstk__picture *out, const struct pstk__picture *in);
void pstk__copy_flip_vertical(const struct pstk__picture *out, const struct pstk__picture *in);

/* Quarters of a turn counter-clockwise: Image.transpose(ROTATE_90), and so on. */
enum pstk__turn {
    PSTK__TURN_0,
    PSTK__TURN_90,
    PSTK__TURN_180,
    PSTK__TURN_270,
};
/* Turn a picture. `out` has the width and the height of `in`, swapped after 90 and 270 degrees. */
void pstk__copy_turn(const struct pstk__warp_kernels *kernels, const struct pstk__picture *out,
                     const struct pstk__picture *in, uint32_t turn);

/* Copy the input to (left, top) of `out`, which may be negative, and pad the rest as torchvision's
 * functional.pad does with a PIL image. mode: enum pstk_pad_mode. As in torchvision, pixels outside
 * of `out` are cropped before the rest is mirrored; except with PSTK_PAD_CONSTANT some of the input
 * must lie inside. */
void pstk__copy_pad(const struct pstk__picture *out, const struct pstk__picture *in, int32_t left,
                    int32_t top, uint32_t mode, const uint8_t fill[4]);
/* Copy the part of the input that begins at (left, top) and has the size of `out`; pixels outside
 * the input get the fill. This is Image.crop, whose fill is 0. */
void pstk__copy_crop(const struct pstk__picture *out, const struct pstk__picture *in, int32_t left,
                     int32_t top, const uint8_t fill[4]);

#endif
