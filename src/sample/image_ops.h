/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_ops: the drawn ops of an image output for one sample. They are drawn once, for the rows of
 * the image and for all outputs that follow it. Used by one worker.
 */
#ifndef PSTK_IMAGE_OPS_H
#define PSTK_IMAGE_OPS_H

#include "augment/moved_points.h"
#include "augment/sampled_ops.h"
#include "sample/plan.h"

/* The position of an upright pixel (x, y) in the image as coded: swap, then mirror. */
struct pstk__turn {
    uint8_t swap, mirror_x, mirror_y;
};

struct pstk__image_ops {
    struct pstk_op *ops; /* max_ops; borrowed from the worker's arena */
    uint32_t n_prefix;  /* number of fixed ops, first in `ops`, that are folded into the geometry */
    uint32_t n_changes; /* number of fixed ops after the prefix that change a picture */
    uint32_t n_erasures;    /* number of fixed ops after the changes that erase */
    struct pstk__turn turn; /* EXIF orientation of the image */
    uint32_t width, height; /* pixels of the image, turned upright */
};

/* Draw the ops for an output and an image. image_ops->ops is set; the other members are results.
 * key: its group and op are not used. boxes: those that the ops depend on, or NULL; they are moved.
 * Returns 0, or EINVAL, EFBIG: an op cannot be drawn for this image, and err names it. */
int pstk__image_ops_init(struct pstk__image_ops *image_ops, const struct pstk__output *o,
                         const struct pstk__image_info *info, const struct pstk__random_key *key,
                         struct pstk__boxes *boxes, struct pstk_error *err);
/* Move other boxes, given in the image as coded; their `whole` is set. */
void pstk__image_ops_move_boxes(const struct pstk__image_ops *image_ops, struct pstk__boxes *boxes);
/* Move points, given in the image as coded; they are set. */
void pstk__image_ops_move_points(const struct pstk__image_ops *image_ops,
                                 struct pstk__moved_points *points);
/* Return 1 if the ops mirror the image in total: two flips cancel. The EXIF orientation does not
 * count. Sets the view after all ops that change a picture. */
int pstk__image_ops_mirrors(const struct pstk__image_ops *image_ops, struct pstk__view *view);

#endif
