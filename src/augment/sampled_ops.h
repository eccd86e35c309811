/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampled_ops: the fixed ops of a list for one sample. They are a function of the list, the size of
 * the image and the random key. So they are the same on any thread, and for every output of a
 * random group that has the same list. Pure.
 */
#ifndef PSTK_SAMPLED_OPS_H
#define PSTK_SAMPLED_OPS_H

#include "augment/boxes.h"

struct pstk__sampled_ops {
    /* borrowed: room for pstk__ops_max; flags are `flags`. The children of an op are the ops after
     * it */
    struct pstk_op *ops;
    uint32_t n;
    uint32_t flags;            /* PSTK_OP_TENSOR, or 0: from the op that draws */
    struct pstk__view view;    /* view of the sample after these ops; its size is never 0 */
    int rc;                    /* EINVAL, EFBIG: an op cannot be drawn for this image; else 0 */
    struct pstk_error *err;    /* borrowed, or NULL: filled in with rc */
    struct pstk__boxes *boxes; /* borrowed, or NULL: boxes that move with the ops, for ops that read
                                  them */
    uint32_t in_chains;        /* 1: the ops belong to chains, which boxes do not follow */
};

/* Draw for ops [begin, end) of a list, and append. sampled->view is the view after op begin - 1.
 * key.op is set to the index of each op. 0, or EINVAL, EFBIG: an op cannot be drawn for this image;
 * sampled->err names it. */
int pstk__ops_draw(struct pstk__sampled_ops *sampled, const struct pstk_op *ops, uint32_t begin,
                   uint32_t end, struct pstk__random_key key);
/* Append a fixed op; the entries' draw functions call it. */
void pstk__sampled_ops_add(struct pstk__sampled_ops *sampled, const struct pstk_op *op);
/* Append the ops that an op draws from r, or the op itself if it is fixed. */
void pstk__sampled_ops_add_draw(struct pstk__sampled_ops *sampled, const struct pstk_op *op,
                                struct pstk__random *r);
/* Append a resize whose filter is drawn from r if it is RANDOM: a pstk__op_entry.draw. */
void pstk__sampled_ops_add_resize(const struct pstk_op *op, struct pstk__random *r,
                                  struct pstk__sampled_ops *sampled);
/* Fold the drawn ops of a prefix, in order, into the geometry. */
void pstk__geometry_fold(struct pstk__geometry *g, const struct pstk_op *ops, uint32_t n);

#endif
