/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op: what the operations of an image output do to its geometry. L2, pure. A table by kind; each
 * entry checks its parameters at open and moves the geometry of a sample. Ops that change pixels
 * other than by cutting, resizing and mirroring (normalise) are folded into the output's table.
 */
#ifndef PSTK_OP_H
#define PSTK_OP_H

#include "augment/resize.h"
#include "base/random.h"

/*
 * The geometry of a sample under way: the source box is resized to out_width x out_height, of which
 * the window is kept (it may reach outside: those pixels are 0), then mirrored if flip.
 * Coordinates are of the image after EXIF orientation.
 */
struct pstk__geometry {
    uint32_t image_width, image_height;
    struct pstk__box source;
    uint32_t out_width, out_height;  /* after resize; = source size before any */
    int64_t window_left, window_top; /* in the resized image */
    uint32_t window_width, window_height;
    uint32_t resized; /* 1: a resizing op was applied */
    uint32_t flip;
};

struct pstk__op_entry {
    uint32_t kind; /* enum pstk_op_kind */
    const char *name;
    /* Check parameters; EINVAL names what is wrong. */
    int (*check)(const struct pstk_op *op, struct pstk_error *err);
    /* Apply to g, drawing from r. Pure. NULL: no geometry. */
    void (*apply)(const struct pstk_op *op, struct pstk__random *r, struct pstk__geometry *g);
};

/* The entry of a kind, NULL when unknown. */
const struct pstk__op_entry *pstk__op_entry(uint32_t kind);

/* Check a list: each op, their order (one resizing op at most, a flip not before it, normalise last
 * and only for float dtypes), and that they fix the size, given in *height, *width. */
int pstk__ops_check(const struct pstk_op *ops, uint32_t n, uint32_t dtype, uint32_t *height,
                    uint32_t *width, struct pstk_error *err);
/* Apply a list to an image of this size; key.op is set to each op's index. */
void pstk__ops_apply(const struct pstk_op *ops, uint32_t n, uint32_t image_width,
                     uint32_t image_height, struct pstk__random_key key, struct pstk__geometry *g);
/* torchvision's RandomResizedCrop.get_params on draws of r. */
struct pstk__box pstk__random_resized_crop_box(struct pstk__random *r, uint32_t width,
                                               uint32_t height, const double scale[2],
                                               const double ratio[2]);

#endif
