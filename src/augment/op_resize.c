/* SPDX-License-Identifier: Apache-2.0 */
/* op_resize: resizes to a size, whatever the aspect ratio. */
#include "augment/op.h"

struct pstk_op pstk_resize(uint32_t height, uint32_t width)
{
    return (struct pstk_op){.kind = PSTK_OP_RESIZE, .width = width, .height = height};
}

static void apply(const struct pstk_op *op, struct pstk__random *r, struct pstk__geometry *g)
{
    (void)r;
    pstk__geometry_resize(g, op->width, op->height);
}

const struct pstk__op_entry pstk__op_resize = {
    .kind = PSTK_OP_RESIZE,
    .effects = PSTK__RESIZES,
    .name = "resize",
    .check = pstk__op_check_sized,
    .apply = apply,
    .size = pstk__op_size,
    .bound = pstk__op_bound,
};
