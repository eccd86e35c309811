/* SPDX-License-Identifier: Apache-2.0 */
/* op_resize_shorter: resizes the shorter side to a length, or to less if the longer side would
 * become too long, and keeps the aspect ratio. */
#include "augment/canvas.h"
#include "augment/sampled_ops.h"

#include "base/error.h"

#define MAX_SIDE 65535u

struct pstk_op pstk_resize_shorter(uint32_t side)
{
    return pstk_resize_shorter_max(side, 0);
}

struct pstk_op pstk_resize_shorter_max(uint32_t side, uint32_t longest)
{
    struct pstk_op op = {.kind = PSTK_OP_RESIZE_SHORTER, .width = side};
    op.params.resize_shorter = (struct pstk_resize_shorter_params){longest};
    return op;
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    if (op->height != 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "height: value is %u; must be 0 (set the shorter side in width)",
                          op->height);
    const double longest = op->params.resize_shorter.longest;
    if (!(longest == 0 || (longest > op->width && longest <= MAX_SIDE)) ||
        longest != (uint32_t)longest)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "longest: value is %g; must be 0, or a whole number of pixels "
                          "above the shorter side, %u, up to %u",
                          longest, op->width, MAX_SIDE);
    const int rc = pstk__op_check_side("side (width)", op->width, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 1, err);
}

/* Set the size of an image. Sides are truncated, not rounded: torchvision's int(s * long / short).
 * A product of two sides is below 2^36, so a double never rounds the quotient up to the next
 * integer. A shorter side of 0 in torchvision is 1 here. A longer side that does not fit 32 bits
 * becomes the largest value that does. */
static void resized(const struct pstk_op *op, uint32_t *width, uint32_t *height)
{
    const uint64_t w = *width, h = *height, most = (uint64_t)op->params.resize_shorter.longest;
    uint64_t shorter = op->width, longer = w <= h ? shorter * h / w : shorter * w / h;
    if (most > 0 && longer > most) {
        shorter = most * shorter / longer;
        shorter = shorter < 1 ? 1 : shorter;
        longer = most;
    }
    longer = longer < UINT32_MAX ? longer : UINT32_MAX;
    *width = (uint32_t)(w <= h ? shorter : longer);
    *height = (uint32_t)(w <= h ? longer : shorter);
}

static void size(const struct pstk_op *op, struct pstk__view *view)
{
    if (view->width > 0 && view->height > 0)
        resized(op, &view->width, &view->height);
}

static void fold(const struct pstk_op *op, struct pstk__geometry *g)
{
    uint32_t width = g->image_width, height = g->image_height;
    resized(op, &width, &height);
    pstk__geometry_resize(g, width, height);
    g->filter = op->filter;
}

/*
 * Return a size such that no image of at most `max_in` on this axis, `max_side` on either, is
 * resized by more than max_in to that size. If the longer side does not bound the size, in / out is
 * at most max_side / width. If it does, in / out of the longer side is at most max_side / longest,
 * and that of the shorter side less than twice as much: truncation halves at most a number that is
 * 1 or more.
 */
static uint32_t min_out(const struct pstk_op *op, uint32_t max_in, uint32_t max_side)
{
    const uint32_t half = (uint32_t)op->params.resize_shorter.longest / 2;
    const uint32_t least = half > 0 && half < op->width ? half : op->width;
    if (half == 0 || max_side == 0) /* no limit, or no image */
        return op->width;
    const uint64_t out = (uint64_t)max_in * least / max_side;
    return out < 1 ? 1 : (uint32_t)out;
}

static void bound(const struct pstk_op *op, struct pstk__resize_bounds *bounds)
{
    const uint32_t w = bounds->max_in_width, h = bounds->max_in_height, most = w > h ? w : h;
    bounds->min_out_width = min_out(op, w, most);
    bounds->min_out_height = min_out(op, h, most);
    bounds->filters = pstk__filter_set(op->filter);
}

/* ---- of a whole picture ---------------------------------------------------------------------- */

static uint32_t longest_of(const struct pstk_op *op)
{
    return op->params.resize_shorter.longest > 0 ? (uint32_t)op->params.resize_shorter.longest
                                                 : op->width * PSTK__MAX_ASPECT;
}

static void largest(const struct pstk_op *op, struct pstk__largest *e)
{
    e->width = e->height = longest_of(op);
    e->n_pixels = (uint64_t)op->width * longest_of(op);
}

static int fits(const struct pstk_op *op, const struct pstk__view *view)
{
    uint32_t width = view->width, height = view->height;
    resized(op, &width, &height);
    return width > longest_of(op) || height > longest_of(op) ? PSTK_EFBIG : 0;
}

static int change(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    uint32_t width = canvas->picture.width, height = canvas->picture.height;
    resized(op, &width, &height);
    return pstk__canvas_resize(canvas, NULL, op->filter, width, height);
}

static void move(const struct pstk_op *op, const struct pstk__view *view,
                 struct pstk__point *points, uint32_t n)
{
    const struct pstk__box all = {.width = view->width, .height = view->height};
    uint32_t width = view->width, height = view->height;
    resized(op, &width, &height);
    pstk__points_resize(points, n, &all, width, height);
}

static uint64_t scratch(const struct pstk_op *op, const struct pstk__largest *in, uint32_t channels)
{
    struct pstk__resize_bounds bounds = {
        .channels = channels,
        .max_in_width = in->width,
        .max_in_height = in->height,
        .max_crop_width = longest_of(op),
        .max_crop_height = longest_of(op),
    };
    bound(op, &bounds);
    return pstk__resize_scratch(&bounds);
}

const struct pstk__op_entry pstk__op_resize_shorter = {
    .kind = PSTK_OP_RESIZE_SHORTER,
    .effects = PSTK__RESIZES,
    .uses = PSTK__USES_FILTER,
    .name = "resize shorter",
    .check = check,
    .draw = pstk__sampled_ops_add_resize,
    .size = size,
    .largest = largest,
    .fold = fold,
    .bound = bound,
    .fits = fits,
    .change = change,
    .move = move,
    .scratch = scratch,
};
