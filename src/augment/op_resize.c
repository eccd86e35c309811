/* SPDX-License-Identifier: Apache-2.0 */
/* op_resize: resizes to a size, with any aspect ratio. */
#include "augment/canvas.h"
#include "augment/sampled_ops.h"

struct pstk_op pstk_resize(uint32_t height, uint32_t width)
{
    return (struct pstk_op){.kind = PSTK_OP_RESIZE, .width = width, .height = height};
}

static void fold(const struct pstk_op *op, struct pstk__geometry *g)
{
    pstk__geometry_resize(g, op->width, op->height);
    g->filter = op->filter;
}

static int change(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    return pstk__canvas_resize(canvas, NULL, op->filter, op->width, op->height);
}

const struct pstk__op_entry pstk__op_resize = {
    .kind = PSTK_OP_RESIZE,
    .effects = PSTK__RESIZES,
    .uses = PSTK__USES_FILTER,
    .name = "resize",
    .check = pstk__op_check_sized,
    .draw = pstk__sampled_ops_add_resize,
    .size = pstk__op_size,
    .fold = fold,
    .bound = pstk__op_bound,
    .change = change,
    .move = pstk__op_move_resized,
    .scratch = pstk__op_resize_scratch,
};
