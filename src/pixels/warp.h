/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warp: moves the pixels of a picture as Pillow 12.1's Image.transform does. A matrix maps a pixel
 * of the output to a position in the input. Source: Pillow's Geometry.c.
 */
#ifndef PSTK_PIXELS_WARP_H
#define PSTK_PIXELS_WARP_H

#include "pixels/warp_kernels.h"

/* Return the kernels of an ISA (AUTO: the best that this CPU runs), NULL when this build or CPU
 * does not have them. */
const struct pstk__warp_kernels *pstk__warp_kernels(uint32_t isa);

/*
 * Transform a picture by an affine matrix: Image.transform(size of out, AFFINE, m, filter,
 * fillcolor=fill). m: x = m[0] x' + m[1] y' + m[2], y = m[3] x' + m[4] y' + m[5]; filter: enum
 * pstk__warp_filter. `in` and `out` have the same channels, and do not overlap. With RGBA and a
 * filter other than nearest the pixels of `in` are overwritten: Pillow multiplies them by alpha.
 * Nearest also takes pictures whose `channels` is 2: pixels of any two bytes.
 *
 * Not as Pillow: a position that rounding moves to less than -32768 pixels is outside; in Pillow it
 * wraps, and lies in an input that has 32768 pixels or more on that axis.
 */
void pstk__warp_affine(const struct pstk__warp_kernels *kernels, const struct pstk__picture *out,
                       const struct pstk__picture *in, const double m[6], uint32_t filter,
                       const uint8_t fill[4]);
/* Transform a picture by a perspective matrix: Image.transform(size of out, PERSPECTIVE, m, ...).
 * As pstk__warp_affine, both coordinates divided by m[6] x' + m[7] y' + 1. */
void pstk__warp_perspective(const struct pstk__warp_kernels *kernels,
                            const struct pstk__picture *out, const struct pstk__picture *in,
                            const double m[8], uint32_t filter, const uint8_t fill[4]);

#endif
