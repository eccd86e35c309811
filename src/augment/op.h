/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op: the contract of the operations on images, and the functions that work on a list of them.
 * Pure. One file, op_NAME.c, is one op or a family of them: public constructors and entries. op.c
 * lists the entries. Rules for a list depend on the *effects* of its ops, never on their kinds.
 *
 * An op is *fixed* or *random*. The parameters of a fixed op define its effect completely. A random
 * op draws fixed ops for each sample (sampled_ops.h). The drawn ops act in two steps. The ops of
 * the list's *prefix* are folded into the geometry of the decoder's rows and into row-wise colours;
 * those after it change a whole picture, one after the other (canvas.h).
 */
#ifndef PSTK_OP_H
#define PSTK_OP_H

#include "augment/geometry.h"
#include "augment/points.h"
#include "base/random.h"
#include "pixels/resize.h"

#include <penstock/draw.h>

struct pstk__canvas;
struct pstk__colour_table;
struct pstk__sampled_ops;
struct pstk__rotation;

/* The effects of an op on an image; one bit or more. */
enum pstk__effect {
    PSTK__RESIZES = 1,      /* chooses a source box and the size after the resize */
    PSTK__CROPS = 2,        /* moves or cuts the crop rectangle */
    PSTK__FLIPS = 4,        /* mirrors left and right, or top and bottom */
    PSTK__COLOURS = 8,      /* changes pixels one by one, or their channels; black stays black */
    PSTK__FINISHES = 16,    /* is folded into the output's table; only ops that ERASE may follow */
    PSTK__PICTURES = 32,    /* needs a whole picture: it and all later ops are not in the prefix */
    PSTK__ERASES = 128,     /* overwrites elements of the finished row; only such ops follow */
    PSTK__KNOWS_IMAGE = 64, /* its parameters belong to one image: drawn, never in a list */
    PSTK__FILLS = 256, /* for views: an op that CROPS has a fill, so not all padding is black */
    PSTK__LOOKS_AT_BOXES = 512, /* its draw depends on the boxes that follow the image */
    PSTK__KEEPS_CENTRES = 1024, /* boxes whose centres it removes are dropped */
    PSTK__BY_PIXEL = 2048,      /* PICTURES: changes each pixel by itself; so do tables */
};

/* Members of pstk_op that few ops use. They must be 0 in an op that does not name them. */
enum pstk__op_member {
    PSTK__USES_CHILDREN = 1,
    PSTK__USES_FILTER = 2,
    PSTK__USES_CHANNELS = 4,
    PSTK__USES_FILL = 8,
    PSTK__USES_FUNCTION = 16, /* function and user */
};

/* The properties of an image after some ops: for any sample or, while drawing, for one. */
struct pstk__view {
    uint32_t width, height; /* pixels; 0: depends on the image */
    uint32_t channels;      /* 1, 3 or 4 */
    uint32_t dtype;         /* dtype of the output: PSTK_U8, F16, BF16, F32 */
    uint32_t effects;       /* effects of the ops so far */
};

/* Upper bounds on a picture after some ops, for any sample. */
struct pstk__largest {
    uint32_t width, height; /* pixels */
    uint64_t n_pixels;      /* <= width * height */
};

/* An op by the tensor reference, for ops whose flags have PSTK_OP_TENSOR. check adds to the
 * entry's; the other members all replace the entry's: a fixed op has `table` or `change`. */
struct pstk__op_tensor {
    /* Check more than the entry does: EINVAL or ENOTSUP. NULL: nothing more. `channels`: of the
     * image */
    int (*check)(const struct pstk_op *op, uint32_t channels, struct pstk_error *err);
    void (*colour)(const struct pstk_op *op, uint8_t *out, const uint8_t *in, uint32_t n_pixels,
                   uint32_t channels);
    void (*table)(const struct pstk_op *op, struct pstk__colour_table *table);
    int (*change)(const struct pstk_op *op, struct pstk__canvas *canvas);
    uint64_t (*scratch)(const struct pstk_op *op, const struct pstk__largest *in,
                        uint32_t channels);
};

/* One op. pstk_open calls check. Every worker calls the other functions, for each sample. */
struct pstk__op_entry {
    uint32_t kind;    /* enum pstk_op_kind, or pstk_drawn_kind */
    uint32_t effects; /* enum pstk__effect */
    uint32_t uses;    /* enum pstk__op_member */
    const char *name; /* name in messages */
    /* Check the parameters; EINVAL names the wrong one. */
    int (*check)(const struct pstk_op *op, struct pstk_error *err);
    /* Check the op against the view before it. NULL: it accepts any view. */
    int (*check_view)(const struct pstk_op *op, const struct pstk__view *view,
                      struct pstk_error *err);
    /* Random ops, and resizes, whose filter may be RANDOM: draw fixed ops, at most `max_ops`. r
     * starts anew for each op of the list and each sample, so an op's draws never depend on another
     * op's. */
    void (*draw)(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to);
    /* Random ops: return the largest number of fixed ops for one sample. NULL: 1. */
    uint32_t (*max_ops)(const struct pstk_op *op);
    /* Set the size after the op; v has the size before it. NULL: the op keeps the size. */
    void (*size)(const struct pstk_op *op, struct pstk__view *v);
    /* Set upper bounds on the picture after the op. NULL: the view's size, if it is known. */
    void (*largest)(const struct pstk_op *op, struct pstk__largest *e);
    /* Random ops that draw several changes of the size: set upper bounds on the pictures between
     * them. NULL: no more than before or after. */
    void (*between)(const struct pstk_op *op, struct pstk__largest *e);
    /* Return the channels that the op makes of `channels`, or EINVAL if it does not take that
     * number. NULL: it keeps them. */
    int (*channels)(const struct pstk_op *op, uint32_t channels, struct pstk_error *err);

    /* Functions of the prefix. */

    /* CROPS: return whether the op needs a whole picture, when `view` is the view before it: it
     * mirrors the edges, or may show pixels that an earlier crop removed. NULL: its size alone
     * decides. */
    int (*needs_picture)(const struct pstk_op *op, const struct pstk__view *view);
    /* Fixed ops that RESIZE, CROP, FLIP: change the geometry. */
    void (*fold)(const struct pstk_op *op, struct pstk__geometry *g);
    /* RESIZES: set the smallest size that the op resizes any image to, and its filters. */
    void (*bound)(const struct pstk_op *op, struct pstk__resize_bounds *b);
    /* COLOURS: convert n_pixels of `channels` each. The rows do not overlap. */
    void (*colour)(const struct pstk_op *op, uint8_t *out, const uint8_t *in, uint32_t n_pixels,
                   uint32_t channels);

    /* Functions after the prefix. */

    /* Fixed ops that map each byte of a channel by itself: fill the table. */
    void (*table)(const struct pstk_op *op, struct pstk__colour_table *table);
    /* Check that the op can change an image of this view: 0, EFBIG: the picture would be too large,
     * or EINVAL: the image lacks the part that the op names. NULL: it can change any. */
    int (*fits)(const struct pstk_op *op, const struct pstk__view *view);
    /* Other fixed ops except those that FINISH or ERASE: change the picture, which `fits` accepted.
     * 0, ENOMEM, or ECANCELED: a function of the program failed, and canvas->failure has its error.
     */
    int (*change)(const struct pstk_op *op, struct pstk__canvas *canvas);
    /* Return the maximum arena bytes of change, or of any change that the op draws. NULL: 0. */
    uint64_t (*scratch)(const struct pstk_op *op, const struct pstk__largest *in,
                        uint32_t channels);

    /* Fixed ops that move pixels: move n points in the same way. `view` is the view before the op.
     * NULL: pixels stay in place. */
    void (*move)(const struct pstk_op *op, const struct pstk__view *view,
                 struct pstk__point *points, uint32_t n);

    /* FINISHES: set the normalisation. */
    void (*finish)(const struct pstk_op *op, struct pstk__normalisation *n);
    /* Fixed ops that ERASE: change the finished row, whose layout `finish` describes. */
    void (*erase)(const struct pstk_op *op, const struct pstk__finish *finish, void *row);

    const struct pstk__op_tensor *tensor; /* NULL: the op always works as Pillow does */
};

#define PSTK__MAX_OP_DEPTH 8u /* levels of nested children */
#define PSTK__MAX_OPS 4096u   /* in a list, with all children; also fixed ops of a sample */
#define PSTK__MAX_PICTURE_SIDE (1u << 20) /* pixels of a picture between two ops */

/* Return the entry of a kind, NULL when it is unknown. */
const struct pstk__op_entry *pstk__op_entry(uint32_t kind);

/* Check an op by the tensor reference, if its flags say so; its entry's check has passed
 * (op_tensor.c). */
int pstk__op_check_tensor(const struct pstk_op *op, uint32_t channels, struct pstk_error *err);
/* Return the functions that the entry has for the op's reference (op_tensor.c). */
struct pstk__op_tensor pstk__op_work(const struct pstk_op *op);

/* Check a list: each op, and their order by effects. The list must fix the size. In:
 * view->channels, as decoded, and view->dtype, the rest 0. Out: the view after all ops. */
int pstk__ops_check(const struct pstk_op *ops, uint32_t n, struct pstk__view *view,
                    struct pstk_error *err);
/* Check a list that may leave the size open, as pstk__ops_check does; an open size is 0. */
int pstk__ops_check_open(const struct pstk_op *ops, uint32_t n, struct pstk__view *view,
                         struct pstk_error *err);
/* Return the number of ops in the prefix. */
uint32_t pstk__ops_prefix(const struct pstk_op *ops, uint32_t n);
/* Return the view after one op, which is checked; `before` is the view before it. */
struct pstk__view pstk__op_view(const struct pstk_op *op, const struct pstk__view *before);
/* Return upper bounds on the picture after the op, from the bounds `before`; `after` is the view
 * after it. */
struct pstk__largest pstk__op_largest(const struct pstk_op *op, const struct pstk__view *after,
                                      struct pstk__largest before);
/* Return the maximum number of fixed ops that n ops draw for one sample; UINT32_MAX: that many, or
 * more. */
uint32_t pstk__ops_max(const struct pstk_op *ops, uint32_t n);
/* Set the smallest size that the ops resize any image to. Without a resizing op the bounds do not
 * change. */
void pstk__ops_bound(const struct pstk_op *ops, uint32_t n, struct pstk__resize_bounds *bounds);
/* Set the normalisation of the list. */
void pstk__ops_finish(const struct pstk_op *ops, uint32_t n, struct pstk__normalisation *to);

/* ---- checks that entries share (op_check.c): 0, or EINVAL naming the member ------------------ */

int pstk__op_check_side(const char *what, uint32_t pixels, struct pstk_error *err);
/* Check height and width, for an op that uses both. */
int pstk__op_check_size(const struct pstk_op *op, struct pstk_error *err);
int pstk__op_check_no_size(const struct pstk_op *op, struct pstk_error *err);
/* Check the centre of a warp, pixels (op_warp.c). */
int pstk__op_check_center(const double center[2], struct pstk_error *err);
/* Return the rotation of an image of this size (op_warp.c). */
struct pstk__rotation pstk__op_rotation(const struct pstk_op *op, uint32_t width, uint32_t height);
/* Set upper bounds on a picture after it is turned by any angle, and expanded (op_warp.c). */
void pstk__largest_turned(struct pstk__largest *largest);
/* Check that flags are 0, and params from n_used on: a later version may give them a meaning. */
int pstk__op_check_unused(const struct pstk_op *op, uint32_t n_used, struct pstk_error *err);
/* Check that members outside of `uses` are 0. pstk__ops_check calls it after the entry's own
 * check. */
int pstk__op_check_members(const struct pstk_op *op, uint32_t uses, struct pstk_error *err);
/* Return whether the fill is not black. */
int pstk__op_has_fill(const struct pstk_op *op);
/* Check a padding and its mode (op_pad.c). */
int pstk__op_check_padding(const struct pstk_pad_params *by, struct pstk_error *err);
/* Check the filter of a warp, not RANDOM (op_warp.c). */
int pstk__op_check_warp_filter(const struct pstk_op *op, struct pstk_error *err);
/* Check an op without parameters: a pstk__op_entry.check. */
int pstk__op_check_plain(const struct pstk_op *op, struct pstk_error *err);
/* Check an op whose only parameter is its size: a pstk__op_entry.check. */
int pstk__op_check_sized(const struct pstk_op *op, struct pstk_error *err);
/* Set op->height x op->width: a pstk__op_entry.size. */
void pstk__op_size(const struct pstk_op *op, struct pstk__view *view);
/* Set op->height x op->width: a pstk__op_entry.bound. */
void pstk__op_bound(const struct pstk_op *op, struct pstk__resize_bounds *bounds);
/* Move points as a resize to op->height x op->width does: a pstk__op_entry.move. */
void pstk__op_move_resized(const struct pstk_op *op, const struct pstk__view *view,
                           struct pstk__point *points, uint32_t n);
/* Return the scratch of a resize to op->height x op->width: a pstk__op_entry.scratch. */
uint64_t pstk__op_resize_scratch(const struct pstk_op *op, const struct pstk__largest *in,
                                 uint32_t channels);

/* Largest length in pixels of a resized picture's longer side for one of the shorter side, if
 * nothing else bounds the longer one. It bounds the memory. */
#define PSTK__MAX_ASPECT 16u
/* Set bounds of resizes that keep the aspect ratio: to sides of the image divided by at most
 * `scale`, rounded up or down, but at least 1 pixel. bounds->max_in_* are set (op_fit.c). */
void pstk__bound_scale(struct pstk__resize_bounds *bounds, double scale, uint32_t filter);
/* Return the scratch of such resizes, if no side of the result exceeds `out` (op_fit.c). */
uint64_t pstk__scale_scratch(double scale, uint32_t filter, const struct pstk__largest *in,
                             const struct pstk__largest *out, uint32_t channels);
/* Return the crop of height x width that begins at (top, left) of a view, with the op's fill. The
 * crop has padding around the view, or lies inside it (op_fit.c). */
struct pstk_op pstk__part_of(const struct pstk_op *op, int64_t top, int64_t left);

/* Add the width and height of a padding (op_pad.c). */
void pstk__largest_pad(struct pstk__largest *largest, uint32_t width, uint32_t height);

/* Draw a box from r as torchvision's RandomResizedCrop.get_params does
 * (op_random_resized_crop.c). */
struct pstk__box pstk__random_resized_crop_box(struct pstk__random *r, uint32_t width,
                                               uint32_t height,
                                               const struct pstk_random_resized_crop_params *by);

#endif
