/* SPDX-License-Identifier: Apache-2.0 */
/* op_center_crop: torchvision's CenterCrop, which pads a smaller image with 0. */
#include "augment/op.h"

struct pstk_op pstk_center_crop(uint32_t height, uint32_t width)
{
    return (struct pstk_op){.kind = PSTK_OP_CENTER_CROP, .width = width, .height = height};
}

/* Return where torchvision's CenterCrop begins in `have` pixels. A cut is rounded half to even;
 * with padding, the smaller half comes first. */
static int64_t center_offset(uint32_t have, uint32_t want)
{
    if (want > have)
        return -(int64_t)((want - have) / 2);
    return (int64_t)pstk__rint_even((have - want) / 2.0);
}

static void apply(const struct pstk_op *op, struct pstk__random *r, struct pstk__geometry *g)
{
    (void)r;
    const int64_t left = center_offset(g->window_width, op->width);
    /* In a mirrored view the offset counts from the right. */
    if (g->flip)
        g->window_left += (int64_t)g->window_width - op->width - left;
    else
        g->window_left += left;
    g->window_top += center_offset(g->window_height, op->height);
    g->window_width = op->width;
    g->window_height = op->height;
}

const struct pstk__op_entry pstk__op_center_crop = {
    .kind = PSTK_OP_CENTER_CROP,
    .effects = PSTK__CROPS,
    .name = "centre crop",
    .check = pstk__op_check_sized,
    .apply = apply,
    .size = pstk__op_size,
};
