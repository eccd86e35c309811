/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_ops: what the ops of an image output do to one sample. Drawn once, for the rows of the
 * image and for all outputs that follow them. Used by one worker.
 */
#ifndef PSTK_IMAGE_OPS_H
#define PSTK_IMAGE_OPS_H

#include "augment/moved_points.h"
#include "augment/sampled_ops.h"
#include "sample/plan.h"

/* How an upright pixel (x, y) is found in the image as coded: swapped, then mirrored. */
struct pstk__turn {
    uint8_t swap, mirror_x, mirror_y;
};

struct pstk__image_ops {
    struct pstk_op *ops;    /* max_ops; borrowed from the worker's arena */
    uint32_t n_prefix;      /* fixed ops that are folded into the geometry */
    uint32_t n_changes;     /* after them: fixed ops that change a picture */
    uint32_t n_erasures;    /* after them: fixed ops that erase */
    struct pstk__turn turn; /* of the image */
    uint32_t width, height; /* of the image, turned upright */
};

/* Draw for an output and an image. image_ops->ops is set; the other members are results. `key`: its
 * group and op do not matter. boxes: those that the ops look at, or NULL; they are moved. 0, or
 * EINVAL, EFBIG: an op cannot be drawn for this image; err says which. */
int pstk__image_ops_init(struct pstk__image_ops *image_ops, const struct pstk__output *o,
                         const struct pstk__image_info *info, const struct pstk__random_key *key,
                         struct pstk__boxes *boxes, struct pstk_error *err);
/* Move other boxes of the image as coded, whose `whole` is set. */
void pstk__image_ops_move_boxes(const struct pstk__image_ops *image_ops, struct pstk__boxes *boxes);
/* Move points of the image as coded, which are set. */
void pstk__image_ops_move_points(const struct pstk__image_ops *image_ops,
                                 struct pstk__moved_points *points);
/* Whether the ops mirror the image, on the whole: two flips do not. Its EXIF orientation does not
 * count. Sets the view after all ops that change a picture. */
int pstk__image_ops_mirrors(const struct pstk__image_ops *image_ops, struct pstk__view *view);

#endif
