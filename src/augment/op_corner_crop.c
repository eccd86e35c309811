/* SPDX-License-Identifier: Apache-2.0 */
/* op_corner_crop: one of the five parts of torchvision's functional.five_crop. */
#include "augment/canvas.h"
#include "augment/sampled_ops.h"

#include "base/error.h"

struct pstk_op pstk_corner_crop(uint32_t height, uint32_t width, uint32_t corner)
{
    struct pstk_op op = {.kind = PSTK_OP_CORNER_CROP, .width = width, .height = height};
    op.params.corner_crop = (struct pstk_corner_crop_params){corner};
    return op;
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    const double corner = op->params.corner_crop.corner;
    if (!(corner >= PSTK_CORNER_TOP_LEFT && corner <= PSTK_CORNER_CENTER &&
          corner == (uint32_t)corner))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "corner: value is %g; must be from %d to %d, an enum pstk_corner", corner,
                          PSTK_CORNER_TOP_LEFT, PSTK_CORNER_CENTER);
    const int rc = pstk__op_check_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 1, err);
}

static int is_smaller(const struct pstk_op *op, const struct pstk__view *view)
{
    return view->width < op->width || view->height < op->height;
}

static int fail_smaller(const struct pstk_op *op, const struct pstk__view *view, uint32_t stage,
                        struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EINVAL, stage,
                      "a corner crop of %u x %u pixels: the image has %u x %u there; must not be "
                      "smaller, so resize it first",
                      op->height, op->width, view->height, view->width);
}

static int check_view(const struct pstk_op *op, const struct pstk__view *view,
                      struct pstk_error *err)
{
    const int is_known = view->width > 0 && view->height > 0;
    return is_known && is_smaller(op, view) ? fail_smaller(op, view, PSTK_STAGE_OPEN, err) : 0;
}

/* Return the crop of an image that is at least as large. */
static struct pstk_op part_of(const struct pstk_op *op, uint32_t width, uint32_t height)
{
    const uint32_t right = width - op->width, bottom = height - op->height;
    switch ((uint32_t)op->params.corner_crop.corner) {
    case PSTK_CORNER_TOP_LEFT:
        return pstk__part_of(op, 0, 0);
    case PSTK_CORNER_TOP_RIGHT:
        return pstk__part_of(op, 0, right);
    case PSTK_CORNER_BOTTOM_LEFT:
        return pstk__part_of(op, bottom, 0);
    case PSTK_CORNER_BOTTOM_RIGHT:
        return pstk__part_of(op, bottom, right);
    default:
        return pstk__part_of(op, (int64_t)pstk__rint_even(bottom / 2.0),
                             (int64_t)pstk__rint_even(right / 2.0));
    }
}

static void draw(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to)
{
    (void)r;
    if (is_smaller(op, &to->view)) {
        to->rc = fail_smaller(op, &to->view, PSTK_STAGE_DECODE, to->err);
        return;
    }
    const struct pstk_op part = part_of(op, to->view.width, to->view.height);
    pstk__sampled_ops_add(to, &part);
}

static int fits(const struct pstk_op *op, const struct pstk__view *view)
{
    return is_smaller(op, view) ? PSTK_EINVAL : 0;
}

static int change(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk_op part = part_of(op, canvas->picture.width, canvas->picture.height);
    return pstk__op_entry(part.kind)->change(&part, canvas);
}

const struct pstk__op_entry pstk__op_corner_crop = {
    .kind = PSTK_OP_CORNER_CROP,
    .effects = PSTK__CROPS,
    .name = "corner crop",
    .check = check,
    .check_view = check_view,
    .draw = draw,
    .size = pstk__op_size,
    .fits = fits,
    .change = change,
};
