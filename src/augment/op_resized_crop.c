/* SPDX-License-Identifier: Apache-2.0 */
/* op_resized_crop: torchvision's functional resized_crop: a part of the image, resized. */
#include "augment/canvas.h"

#include "base/error.h"

struct pstk_op pstk_resized_crop(uint32_t top, uint32_t left, uint32_t height, uint32_t width,
                                 uint32_t to_height, uint32_t to_width)
{
    struct pstk_op op = {.kind = PSTK_DRAWN_RESIZED_CROP, .width = to_width, .height = to_height};
    op.params.resized_crop = (struct pstk_resized_crop_params){top, left, height, width};
    return op;
}

static struct pstk__box part_of(const struct pstk_op *op)
{
    return (struct pstk__box){.top = (uint32_t)op->params.resized_crop.top,
                              .left = (uint32_t)op->params.resized_crop.left,
                              .height = (uint32_t)op->params.resized_crop.height,
                              .width = (uint32_t)op->params.resized_crop.width};
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    static const char *const names[] = {"top", "left", "height", "width"};
    for (int i = 0; i < 4; i++)
        if (!(op->params.values[i] >= (i < 2 ? 0 : 1) && op->params.values[i] <= UINT16_MAX &&
              op->params.values[i] == (uint32_t)op->params.values[i]))
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "part.%s: value is %g; must be a whole number from %d to 65535",
                              names[i], op->params.values[i], i < 2 ? 0 : 1);
    const int rc = pstk__op_check_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 4, err);
}

static void fold(const struct pstk_op *op, struct pstk__geometry *g)
{
    g->source = part_of(op);
    pstk__geometry_resize(g, op->width, op->height);
    g->filter = op->filter;
}

static int fits(const struct pstk_op *op, const struct pstk__view *view)
{
    const struct pstk__box part = part_of(op);
    const int is_inside = (uint64_t)part.left + part.width <= view->width &&
                          (uint64_t)part.top + part.height <= view->height;
    return is_inside ? 0 : PSTK_EINVAL;
}

static int change(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__box part = part_of(op);
    return pstk__canvas_resize(canvas, &part, op->filter, op->width, op->height);
}

static void move(const struct pstk_op *op, const struct pstk__view *view,
                 struct pstk__point *points, uint32_t n)
{
    const struct pstk__box part = part_of(op);
    (void)view;
    pstk__points_resize(points, n, &part, op->width, op->height);
}

const struct pstk__op_entry pstk__op_resized_crop = {
    .kind = PSTK_DRAWN_RESIZED_CROP,
    .effects = PSTK__RESIZES | PSTK__KNOWS_IMAGE,
    .uses = PSTK__USES_FILTER,
    .name = "resized crop",
    .check = check,
    .size = pstk__op_size,
    .fold = fold,
    .bound = pstk__op_bound,
    .fits = fits,
    .change = change,
    .move = move,
    .scratch = pstk__op_resize_scratch,
};
