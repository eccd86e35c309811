/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boxes: boxes in an image, moved as operations move its pixels. After each operation a box is the
 * bounding box of its four moved corners, clipped to the image, as in torchvision's
 * transforms.v2. A box without area is dropped, and no later operation brings it back. Pure.
 */
#ifndef PSTK_BOXES_H
#define PSTK_BOXES_H

#include "augment/op.h"

/* The sides of a box: 0 <= min.x <= max.x, and the same for y. */
struct pstk__sides {
    struct pstk__point min, max;
};

struct pstk__moved_box {
    struct pstk__sides whole; /* the box, never clipped */
    struct pstk__sides shown; /* the box, clipped after each op */
    uint32_t is_dropped;      /* 1: the sides have no meaning */
    uint32_t is_excluded; /* 1: a condition excludes the box, which is dropped from the beginning */
};

struct pstk__boxes {
    struct pstk__moved_box *boxes; /* borrowed */
    uint32_t n;
    uint32_t n_excluded; /* excluded boxes among them */
};

/* Begin with boxes whose `whole` and `is_excluded` are set, in an image of this size. */
void pstk__boxes_begin(struct pstk__boxes *boxes, uint32_t width, uint32_t height);
/* Move boxes with a fixed op; `view` is the view before the op. */
void pstk__boxes_move(struct pstk__boxes *boxes, const struct pstk_op *op,
                      const struct pstk__view *view);
double pstk__sides_area(const struct pstk__sides *extent);

#endif
