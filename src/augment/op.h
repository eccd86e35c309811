/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op: the contract of the operations on images, and the functions that work on a list of them.
 * Pure. One file, op_NAME.c, is one op: its public constructor and its entry. op.c lists the
 * entries. Rules for a list depend on the *effects* of its ops, never on their kinds.
 */
#ifndef PSTK_OP_H
#define PSTK_OP_H

#include "augment/geometry.h"
#include "augment/resize.h"
#include "base/random.h"

/* What an op does to an image; one bit or more. */
enum pstk__effect {
    PSTK__RESIZES = 1, /* chooses the source box and the size after the resize: one op of a list, */
                       /* and it sees the whole image */
    PSTK__CROPS = 2,   /* moves or cuts the window */
    PSTK__FLIPS = 4,   /* mirrors */
    PSTK__COLOURS = 8, /* changes pixels one by one, or their channels; black stays black */
    PSTK__FINISHES = 16, /* is folded into the output's table; must be the last op */
};

/* Members of pstk_op that few ops use. An op that does not name one requires that it is 0. */
enum pstk__op_member {
    PSTK__USES_CHILDREN = 1,
    PSTK__USES_FILTER = 2,
    PSTK__USES_CHANNELS = 4,
    PSTK__USES_FILL = 8,
};

/* What some ops make of an image, for any sample. */
struct pstk__view {
    uint32_t width, height; /* pixels; 0: depends on the image */
    uint32_t channels;      /* 1, 3 or 4 */
    uint32_t dtype;         /* of the output: PSTK_U8, F16, BF16, F32 */
    uint32_t effects;       /* of the ops so far */
};

/* What a finishing op does to a channel: (x / 255 - mean) / deviation. */
struct pstk__normalisation {
    uint32_t is_set; /* 0: only x / 255 */
    float mean[PSTK__MAX_CHANNELS], deviation[PSTK__MAX_CHANNELS];
};

/* One op. pstk_open calls check. Every worker calls apply, for each sample. apply draws from r,
 * which starts anew for each op of each sample, so that no op's draws depend on another's. */
struct pstk__op_entry {
    uint32_t kind;    /* enum pstk_op_kind */
    uint32_t effects; /* enum pstk__effect */
    uint32_t uses;    /* enum pstk__op_member */
    const char *name; /* in messages */
    /* Check the parameters; EINVAL names the wrong one. */
    int (*check)(const struct pstk_op *op, struct pstk_error *err);
    /* RESIZES, CROPS, FLIPS: change the geometry. */
    void (*apply)(const struct pstk_op *op, struct pstk__random *r, struct pstk__geometry *g);
    /* RESIZES, CROPS: set the size that every image has after the op, or 0 x 0. */
    void (*size)(const struct pstk_op *op, struct pstk__view *v);
    /* RESIZES: set the least size that the op resizes any image to. */
    void (*bound)(const struct pstk_op *op, struct pstk__resize_bounds *b);
    /* Return the channels that the op makes of `channels`, or EINVAL if it does not take that
     * number. NULL: it keeps them. */
    int (*channels)(const struct pstk_op *op, uint32_t channels, struct pstk_error *err);
    /* COLOURS: convert n_pixels of `channels` each. The rows do not overlap. */
    void (*colour)(const struct pstk_op *op, uint8_t *out, const uint8_t *in, uint32_t n_pixels,
                   uint32_t channels);
    /* FINISHES: set the normalisation. */
    void (*finish)(const struct pstk_op *op, struct pstk__normalisation *n);
};

/* The entry of a kind, NULL when unknown. */
const struct pstk__op_entry *pstk__op_entry(uint32_t kind);

/* Check a list: each op, and their order by effects. The list must fix the size. In:
 * view->channels, as decoded, and view->dtype, the rest 0. Out: the view after all ops. */
int pstk__ops_check(const struct pstk_op *ops, uint32_t n, struct pstk__view *view,
                    struct pstk_error *err);
/* Apply a list to an image of this size; sets key.op to the index of each op. */
void pstk__ops_apply(const struct pstk_op *ops, uint32_t n, uint32_t image_width,
                     uint32_t image_height, struct pstk__random_key key, struct pstk__geometry *g);
/* Set the least size that the list resizes any image to. Without a resizing op the bounds do not
 * change. */
void pstk__ops_bound(const struct pstk_op *ops, uint32_t n, struct pstk__resize_bounds *bounds);
/* Set the normalisation of the list. */
void pstk__ops_finish(const struct pstk_op *ops, uint32_t n, struct pstk__normalisation *to);

/* ---- checks that entries share (op_check.c): 0, or EINVAL naming the member ------------------ */

int pstk__op_check_side(const char *what, uint32_t pixels, struct pstk_error *err);
/* Check height and width, for an op that uses both. */
int pstk__op_check_size(const struct pstk_op *op, struct pstk_error *err);
int pstk__op_check_no_size(const struct pstk_op *op, struct pstk_error *err);
/* Check that flags are 0, and params from n_used on: a later version may give them a meaning. */
int pstk__op_check_unused(const struct pstk_op *op, uint32_t n_used, struct pstk_error *err);
/* Check that members outside of `uses` are 0. pstk__ops_check calls it after the entry's own
 * check. */
int pstk__op_check_members(const struct pstk_op *op, uint32_t uses, struct pstk_error *err);
/* Check an op whose only parameter is its size: a pstk__op_entry.check. */
int pstk__op_check_sized(const struct pstk_op *op, struct pstk_error *err);
/* Set op->height x op->width: a pstk__op_entry.size. */
void pstk__op_size(const struct pstk_op *op, struct pstk__view *view);
/* Set op->height x op->width: a pstk__op_entry.bound. */
void pstk__op_bound(const struct pstk_op *op, struct pstk__resize_bounds *bounds);

/* Draw a box from r as torchvision's RandomResizedCrop.get_params does
 * (op_random_resized_crop.c). */
struct pstk__box pstk__random_resized_crop_box(struct pstk__random *r, uint32_t width,
                                               uint32_t height, const double scale[2],
                                               const double ratio[2]);

#endif
