/* SPDX-License-Identifier: Apache-2.0 */
/* op_crop: torchvision's functional crop, which may reach outside of the image, and the crop that a
 * random IoU crop draws, which lies inside. */
#include "augment/canvas.h"

#include "base/error.h"
#include "pixels/copy.h"

#define MAX_OFFSET 1e6 /* pixels; random crops draw less */

struct pstk_op pstk_crop_at(int32_t top, int32_t left, uint32_t height, uint32_t width)
{
    struct pstk_op op = {.kind = PSTK_OP_CROP, .width = width, .height = height};
    op.params.crop = (struct pstk_crop_params){top, left};
    return op;
}

/* Check top and left, whole numbers from `least` to `most`. */
static int check_offset(const struct pstk_op *op, double least, double most, struct pstk_error *err)
{
    static const char *const names[] = {"top", "left"};
    for (int i = 0; i < 2; i++) {
        const double v = op->params.values[i];
        if (!(v >= least && v <= most && v == (int32_t)v))
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "%s: value is %g; must be a whole number from %g to %g", names[i], v,
                              least, most);
    }
    const int rc = pstk__op_check_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 2, err);
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    return check_offset(op, -MAX_OFFSET, MAX_OFFSET, err);
}

static int check_inside(const struct pstk_op *op, struct pstk_error *err)
{
    return check_offset(op, 0, UINT16_MAX, err);
}

static int needs_picture(const struct pstk_op *op, const struct pstk__view *view)
{
    const double top = op->params.crop.top, left = op->params.crop.left;
    const int is_inside = top >= 0 && left >= 0 && top + op->height <= view->height &&
                          left + op->width <= view->width;
    return !is_inside && view->effects & PSTK__CROPS;
}

static void fold(const struct pstk_op *op, struct pstk__geometry *g)
{
    pstk__geometry_crop(g, (int64_t)op->params.crop.left, (int64_t)op->params.crop.top, op->width,
                        op->height);
}

static int change(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, op->width, op->height, in->channels);
    pstk__copy_crop(&out, in, (int32_t)op->params.crop.left, (int32_t)op->params.crop.top,
                    op->fill);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

static void move(const struct pstk_op *op, const struct pstk__view *view,
                 struct pstk__point *points, uint32_t n)
{
    (void)view;
    pstk__points_shift(points, n, -op->params.crop.left, -op->params.crop.top);
}

const struct pstk__op_entry pstk__op_crop = {
    .kind = PSTK_OP_CROP,
    .effects = PSTK__CROPS,
    .uses = PSTK__USES_FILL,
    .name = "crop",
    .check = check,
    .size = pstk__op_size,
    .needs_picture = needs_picture,
    .fold = fold,
    .change = change,
    .move = move,
};

/* The entry of the op that a random IoU crop draws. */
const struct pstk__op_entry pstk__op_iou_crop = {
    .kind = PSTK_DRAWN_IOU_CROP,
    .effects = PSTK__CROPS | PSTK__KNOWS_IMAGE | PSTK__KEEPS_CENTRES,
    .name = "IoU crop",
    .check = check_inside,
    .size = pstk__op_size,
    .fold = fold,
    .change = change,
    .move = move,
};
