/* SPDX-License-Identifier: Apache-2.0 */
/* op_center_crop: torchvision's CenterCrop, which pads a smaller image with 0. */
#include "augment/canvas.h"

#include "pixels/copy.h"

struct pstk_op pstk_center_crop(uint32_t height, uint32_t width)
{
    return (struct pstk_op){.kind = PSTK_OP_CENTER_CROP, .width = width, .height = height};
}

/* Return the offset of torchvision's CenterCrop in `have` pixels. A cut is rounded half to even; of
 * a padding, the smaller half comes first. */
static int64_t center_offset(uint32_t have, uint32_t want)
{
    if (want > have)
        return -(int64_t)((want - have) / 2);
    return (int64_t)pstk__rint_even((have - want) / 2.0);
}

static void fold(const struct pstk_op *op, struct pstk__geometry *g)
{
    pstk__geometry_crop(g, center_offset(g->crop_width, op->width),
                        center_offset(g->crop_height, op->height), op->width, op->height);
}

static int change(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, op->width, op->height, in->channels);
    pstk__copy_crop(&out, in, (int32_t)center_offset(in->width, op->width),
                    (int32_t)center_offset(in->height, op->height), op->fill);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

static void move(const struct pstk_op *op, const struct pstk__view *view,
                 struct pstk__point *points, uint32_t n)
{
    pstk__points_shift(points, n, -(double)center_offset(view->width, op->width),
                       -(double)center_offset(view->height, op->height));
}

const struct pstk__op_entry pstk__op_center_crop = {
    .kind = PSTK_OP_CENTER_CROP,
    .effects = PSTK__CROPS,
    .name = "centre crop",
    .check = pstk__op_check_sized,
    .size = pstk__op_size,
    .fold = fold,
    .change = change,
    .move = move,
};
