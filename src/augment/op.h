/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op: the contract of the operations on images, and the driver of a list of them. Pure. An op is
 * one file, op_NAME.c, with its public constructor and its entry; op.c lists the entries. What a
 * list may hold and what becomes of it follows from the ops' *effects*, never from their kinds.
 */
#ifndef PSTK_OP_H
#define PSTK_OP_H

#include "augment/geometry.h"
#include "augment/resize.h"
#include "base/random.h"

/* What an op does to an image: one bit or more. */
enum pstk__effect {
    PSTK__RESIZES = 1, /* chooses the source box and its size after the resize: one op of a list, */
                       /* which sees the whole image */
    PSTK__CROPS = 2,   /* moves or cuts the window */
    PSTK__FLIPS = 4,   /* mirrors */
    PSTK__COLOURS = 8, /* changes pixels one by one, or their channels; black stays black */
    PSTK__FINISHES = 16, /* is folded into the output's table; the last op of a list */
};

/* Members of pstk_op that few ops use: those that an op does not name must be 0. */
enum pstk__op_member {
    PSTK__USES_CHILDREN = 1,
    PSTK__USES_FILTER = 2,
    PSTK__USES_CHANNELS = 4,
    PSTK__USES_FILL = 8,
};

/* What is known of an image after some ops, for any sample. */
struct pstk__view {
    uint32_t width, height; /* pixels; 0: depends on the image */
    uint32_t channels;      /* 1, 3 or 4 */
    uint32_t dtype;         /* of the output: PSTK_U8, F16, BF16, F32 */
    uint32_t effects;       /* of the ops so far */
};

/* What a finishing op makes of a channel: (x / 255 - mean) / deviation. */
struct pstk__normalisation {
    uint32_t is_set; /* 0: x / 255 alone */
    float mean[PSTK__MAX_CHANNELS], deviation[PSTK__MAX_CHANNELS];
};

/* One op. check is called at open; apply by every worker, for each sample: it draws from r, which
 * begins anew for each op of each sample, so that no op's draws depend on another's. */
struct pstk__op_entry {
    uint32_t kind;    /* enum pstk_op_kind */
    uint32_t effects; /* enum pstk__effect */
    uint32_t uses;    /* enum pstk__op_member */
    const char *name; /* in messages */
    /* Check parameters; EINVAL names the wrong one. */
    int (*check)(const struct pstk_op *op, struct pstk_error *err);
    /* RESIZES, CROPS, FLIPS: change the geometry. Pure. */
    void (*apply)(const struct pstk_op *op, struct pstk__random *r, struct pstk__geometry *g);
    /* RESIZES, CROPS: the size that every image has after it, or 0 x 0. */
    void (*size)(const struct pstk_op *op, struct pstk__view *v);
    /* RESIZES: what it resizes any image to at least. */
    void (*bound)(const struct pstk_op *op, struct pstk__resize_bounds *b);
    /* Channels that it makes of images with `channels`, or EINVAL: it does not take such images.
     * NULL: it leaves any number as it is. */
    int (*channels)(const struct pstk_op *op, uint32_t channels, struct pstk_error *err);
    /* COLOURS: n_pixels of `channels` each to those that it makes. The rows do not overlap. Pure.
     */
    void (*colour)(const struct pstk_op *op, uint8_t *out, const uint8_t *in, uint32_t n_pixels,
                   uint32_t channels);
    /* FINISHES. */
    void (*finish)(const struct pstk_op *op, struct pstk__normalisation *n);
};

/* The entry of a kind, NULL when unknown. */
const struct pstk__op_entry *pstk__op_entry(uint32_t kind);

/* Check a list: each op, and their order by effects; the list must fix the size. In: v->channels of
 * what is decoded and v->dtype, the rest 0; out: what is known after all. */
int pstk__ops_check(const struct pstk_op *ops, uint32_t n, struct pstk__view *view,
                    struct pstk_error *err);
/* Apply a list to an image of this size; key.op is set to each op's index. */
void pstk__ops_apply(const struct pstk_op *ops, uint32_t n, uint32_t image_width,
                     uint32_t image_height, struct pstk__random_key key, struct pstk__geometry *g);
/* Set what the list resizes any image to at least; without a resizing op the bounds stay. */
void pstk__ops_bound(const struct pstk_op *ops, uint32_t n, struct pstk__resize_bounds *bounds);
/* How the list finishes. */
void pstk__ops_finish(const struct pstk_op *ops, uint32_t n, struct pstk__normalisation *to);

/* ---- checks that entries share (op_check.c): 0, or EINVAL naming the member --------------------
 */

int pstk__op_check_side(const char *what, uint32_t pixels, struct pstk_error *err);
/* height and width, both used. */
int pstk__op_check_size(const struct pstk_op *op, struct pstk_error *err);
int pstk__op_check_no_size(const struct pstk_op *op, struct pstk_error *err);
/* Flags, and params from n_used on, must be 0: a later version may give them a meaning. */
int pstk__op_check_unused(const struct pstk_op *op, uint32_t n_used, struct pstk_error *err);
/* The driver's, after an entry's own check: members outside of `uses` must be 0. */
int pstk__op_check_members(const struct pstk_op *op, uint32_t uses, struct pstk_error *err);
/* A pstk__op_entry.check of an op whose size is all. */
int pstk__op_check_sized(const struct pstk_op *op, struct pstk_error *err);
/* A pstk__op_entry.size: op->height x op->width. */
void pstk__op_size(const struct pstk_op *op, struct pstk__view *view);
/* A pstk__op_entry.bound: the same. */
void pstk__op_bound(const struct pstk_op *op, struct pstk__resize_bounds *bounds);

/* torchvision's RandomResizedCrop.get_params on draws of r (op_random_resized_crop.c). */
struct pstk__box pstk__random_resized_crop_box(struct pstk__random *r, uint32_t width,
                                               uint32_t height, const double scale[2],
                                               const double ratio[2]);

#endif
