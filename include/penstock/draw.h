/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/draw.h - operations on pixels of the program: the operations that a list draws for one
 * sample, and each of them alone.
 */
#ifndef PENSTOCK_DRAW_H
#define PENSTOCK_DRAW_H

#include <penstock/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- drawn operations ---------------------------------------------------------------------- */

/* Kinds of fixed operations that lists do not take: random operations draw them for one image, and
 * pstk_op_apply takes them. Their numbers differ from those of enum pstk_op_kind. */
enum pstk_drawn_kind {
    /* a part of the image, resized to width x height. Random resized crops draw it */
    PSTK_DRAWN_RESIZED_CROP = 32,
    /* CROP of a part inside of the image; boxes whose centre is outside of it are dropped.
     * RANDOM_IOU_CROP draws it */
    PSTK_DRAWN_IOU_CROP = 151,
    /* the mixed results of its chains. Its children are the chains, each of which begins with
     * MIX_CHAIN; the other children are fixed and keep size and channels. AUG_MIX and TIMM_AUG_MIX
     * draw it */
    PSTK_DRAWN_MIX = 82,
    /* only a child of MIX */
    PSTK_DRAWN_MIX_CHAIN = 83,
};

/* The arithmetic of MIX, in float32; the results, truncated to integers, are the pixels. */
enum pstk_chain_mode {
    /* the sum of the image and of all chains, each times its weight: torchvision's AugMix */
    PSTK_CHAIN_SUM = 0,
    /* Image.blend from the image to the sum of the chains, by the image's weight: timm's AugMix */
    PSTK_CHAIN_BLENDED_SUM = 1,
    /* Image.blend to each chain in turn, by its weight; the image has none: timm's, blended */
    PSTK_CHAIN_BLENDS = 2,
};

/* Cut out the part of height x width at (top, left), whole pixels, and resize it:
 * torchvision.transforms.functional.resized_crop. */
PSTK_API struct pstk_op pstk_resized_crop(uint32_t top, uint32_t left, uint32_t height,
                                          uint32_t width, uint32_t to_height, uint32_t to_width);
/* Mix the chains among the children. `mode`: enum pstk_chain_mode. */
PSTK_API struct pstk_op pstk_mix_chains(uint32_t mode, double weight,
                                        const struct pstk_op *children, uint32_t n_children);
/* Begin a chain of a mix. */
PSTK_API struct pstk_op pstk_mix_chain(double weight);

/* ---- on pixels of the program ------------------------------------------------------------- */

/* The sample that random operations draw for. */
struct pstk_draw {
    /* sizeof(struct pstk_draw), set by the caller */
    uint32_t size;
    /* pstk_output.image.random_group */
    uint32_t random_group;
    uint64_t seed;
    uint64_t epoch;
    uint64_t sample_id;
};

/* Draw the operations that a list applies to one sample: fixed operations, each of which
 * pstk_op_apply takes except ERASE, if they fit the image. They are those that a loader with this
 * seed, list and random group applies to an image of this shape in this epoch. NORMALIZE is left
 * out: it makes no u8 pixels. ERASE comes last. Children of MIX come after it, in `drawn`, too.
 * Returns their number, and writes at most `capacity` of them to `drawn`, which may be NULL if that
 * is 0; negative: an error. All pointers: borrows. EINVAL, ENOTSUP: as pstk_open. */
PSTK_API int pstk_ops_draw(const struct pstk_op *ops, uint32_t n_ops,
                           const struct pstk_shape *shape, const struct pstk_draw *draw,
                           struct pstk_op *drawn, uint32_t capacity, struct pstk_error *err);

/* Apply a fixed operation to pixels. Sets *out_shape to the shape of the result. Writes the result
 * to `out`, which is other memory than the pixels, unless `out` is NULL. `kernels`: enum
 * pstk_kernels. All pointers: borrows. EINVAL: a wrong parameter, a random operation, or an image
 * that lacks the part, is smaller than half of the kernel, or is larger than the size to pad to.
 * ENOTSUP: these kernels do not run here. EFBIG: the result has a side above 65535 pixels, or is
 * more than 16 times as long as wide. */
PSTK_API int pstk_op_apply(const struct pstk_op *op, uint32_t kernels, const void *pixels,
                           const struct pstk_shape *shape, void *out, struct pstk_shape *out_shape,
                           struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
