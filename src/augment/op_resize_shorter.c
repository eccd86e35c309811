/* SPDX-License-Identifier: Apache-2.0 */
/* op_resize_shorter: resizes the shorter side to a length, and keeps the aspect ratio. */
#include "augment/op.h"

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

/* The longer side is truncated, not rounded: torchvision's int(s * long / short). It is below 2^32,
 * so the quotient is too coarse for a double to round it up to the next integer. */
static void apply(const struct pstk_op *op, struct pstk__random *r, struct pstk__geometry *g)
{
    (void)r;
    const uint64_t side = op->width;
    const uint32_t w = g->image_width, h = g->image_height;
    if (w <= h)
        pstk__geometry_resize(g, op->width, (uint32_t)(side * h / w));
    else
        pstk__geometry_resize(g, (uint32_t)(side * w / h), op->width);
}

static void size(const struct pstk_op *op, struct pstk__view *view)
{
    (void)op;
    view->height = view->width = 0;
}

static void bound(const struct pstk_op *op, struct pstk__resize_bounds *bounds)
{
    bounds->min_out_width = bounds->min_out_height = op->width;
}

const struct pstk__op_entry pstk__op_resize_shorter = {
    .kind = PSTK_OP_RESIZE_SHORTER,
    .effects = PSTK__RESIZES,
    .name = "resize shorter",
    .check = check,
    .apply = apply,
    .size = size,
    .bound = bound,
};
