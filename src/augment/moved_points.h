/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moved_points: points of an image that move as operations move its pixels, and the points that an
 * operation removed. A point lies in an image of width x height if 0 <= x <= width and 0 <= y <=
 * height. Both edges count alike, so a flip changes nothing. Pure.
 */
#ifndef PSTK_MOVED_POINTS_H
#define PSTK_MOVED_POINTS_H

#include "augment/op.h"

struct pstk__moved_points {
    struct pstk__point *points; /* borrowed; never clipped; NaN: no position */
    uint8_t *is_outside;        /* borrowed; 1: left the image, for good */
    uint32_t n;
};

/* Begin with points that are set, in an image of this size. */
void pstk__moved_points_begin(struct pstk__moved_points *points, uint32_t width, uint32_t height);
/* Move points with a fixed op; `view` is the view before the op. */
void pstk__moved_points_move(struct pstk__moved_points *points, const struct pstk_op *op,
                             const struct pstk__view *view);
/* Return whether a fixed op mirrors an image of this view, so that a turn to the right becomes one
 * to the left. */
int pstk__op_mirrors(const struct pstk_op *op, const struct pstk__view *view);

#endif
