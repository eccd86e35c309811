/* SPDX-License-Identifier: Apache-2.0 */
/* op_resize_shorter: resizes the shorter side to a length, and keeps the aspect ratio. */
#include "augment/canvas.h"
#include "augment/drawing.h"

#include "base/error.h"

struct pstk_op pstk_resize_shorter(uint32_t side)
{
    return (struct pstk_op){.kind = PSTK_OP_RESIZE_SHORTER, .width = side};
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    if (op->height != 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "height: value is %u; must be 0 (set the shorter side in width)",
                          op->height);
    const int rc = pstk__op_check_side("side (width)", op->width, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 0, err);
}

/* Set the size of an image. The longer side is truncated, not rounded: torchvision's int(s * long /
 * short). It is below 2^32, so the quotient is too coarse for a double to round it up to the next
 * integer. */
static void resized(const struct pstk_op *op, uint32_t *width, uint32_t *height)
{
    const uint64_t side = op->width, w = *width, h = *height;
    *width = (uint32_t)(w <= h ? side : side * w / h);
    *height = (uint32_t)(w <= h ? side * h / w : side);
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

static void bound(const struct pstk_op *op, struct pstk__resize_bounds *bounds)
{
    bounds->min_out_width = bounds->min_out_height = op->width;
    bounds->filters = pstk__filter_set(op->filter);
}

/* ---- of a whole picture ---------------------------------------------------------------------- */

#define MAX_ASPECT 16u /* long / short, of a picture that becomes another: it bounds the memory */

static void largest(const struct pstk_op *op, struct pstk__largest *e)
{
    e->width = e->height = op->width * MAX_ASPECT;
    e->n_pixels = (uint64_t)op->width * op->width * MAX_ASPECT;
}

static int change(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    uint32_t width = canvas->picture.width, height = canvas->picture.height;
    resized(op, &width, &height);
    if (width > op->width * MAX_ASPECT || height > op->width * MAX_ASPECT)
        return PSTK_EFBIG;
    return pstk__canvas_resize(canvas, NULL, op->filter, width, height);
}

static uint64_t scratch(const struct pstk_op *op, const struct pstk__largest *in, uint32_t channels)
{
    const struct pstk__resize_bounds bounds = {
        .channels = channels,
        .filters = pstk__filter_set(op->filter),
        .max_in_width = in->width,
        .max_in_height = in->height,
        .min_out_width = op->width,
        .min_out_height = op->width,
        .max_window_width = op->width * MAX_ASPECT,
        .max_window_height = op->width * MAX_ASPECT,
    };
    return pstk__resize_scratch(&bounds);
}

const struct pstk__op_entry pstk__op_resize_shorter = {
    .kind = PSTK_OP_RESIZE_SHORTER,
    .effects = PSTK__RESIZES,
    .uses = PSTK__USES_FILTER,
    .name = "resize shorter",
    .check = check,
    .draw = pstk__drawing_add_resize,
    .size = size,
    .largest = largest,
    .fold = fold,
    .bound = bound,
    .change = change,
    .scratch = scratch,
};
