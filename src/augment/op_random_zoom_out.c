/* SPDX-License-Identifier: Apache-2.0 */
/* op_random_zoom_out: torchvision v2's RandomZoomOut, of SSD. */
#include "augment/sampled_ops.h"

#include "base/error.h"

#include <string.h>

#define MAX_SIDES 16.0 /* maximum side of the canvas, in sides of the image */

struct pstk_op pstk_random_zoom_out(double least, double most, double probability)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_ZOOM_OUT};
    op.params.random_zoom_out = (struct pstk_random_zoom_out_params){least, most, probability};
    return op;
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_random_zoom_out_params *p = &op->params.random_zoom_out;
    if (!(p->min_sides >= 1 && p->min_sides <= p->max_sides && p->max_sides <= MAX_SIDES))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "sides: value is (%g, %g); must be two numbers in rising order, from 1 "
                          "to %g",
                          p->min_sides, p->max_sides, MAX_SIDES);
    if (!(p->probability >= 0 && p->probability <= 1))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "probability: value is %g; must be from 0 to 1", p->probability);
    const int rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 3, err);
}

/* Draw as torchvision's make_params, in its order. */
static void draw(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to)
{
    const uint32_t width = to->view.width, height = to->view.height;
    if (!(pstk__random_unit(r) < op->params.random_zoom_out.probability))
        return;
    const double sides = pstk__random_uniform(r, op->params.random_zoom_out.min_sides,
                                              op->params.random_zoom_out.max_sides);
    if (width * sides >= PSTK__MAX_PICTURE_SIDE + 1.0 ||
        height * sides >= PSTK__MAX_PICTURE_SIDE + 1.0) {
        to->rc = pstk__fail(to->err, PSTK_EFBIG, PSTK_STAGE_DECODE,
                            "zooming out: the image has %u x %u pixels there, and would have %g "
                            "times as many on a side; must be at most %u",
                            height, width, sides, PSTK__MAX_PICTURE_SIDE);
        return;
    }
    const uint32_t max_width = (uint32_t)(width * sides), max_height = (uint32_t)(height * sides);
    const double left = (max_width - width) * pstk__random_unit(r);
    const double top = (max_height - height) * pstk__random_unit(r);
    struct pstk_op canvas = pstk_crop_at(-(int32_t)top, -(int32_t)left, max_height, max_width);
    memcpy(canvas.fill, op->fill, sizeof canvas.fill);
    pstk__sampled_ops_add(to, &canvas);
}

/* Leave the size open: every image has its own. */
static void size(const struct pstk_op *op, struct pstk__view *view)
{
    (void)op;
    view->width = view->height = 0;
}

static void largest(const struct pstk_op *op, struct pstk__largest *e)
{
    const double sides = op->params.random_zoom_out.max_sides;
    e->width = (uint32_t)(e->width * sides);
    e->height = (uint32_t)(e->height * sides);
    e->n_pixels = (uint64_t)((double)e->n_pixels * sides * sides) + 1;
}

/* Return whether there was a crop: the pixels that it removed must not be seen again. */
static int needs_picture(const struct pstk_op *op, const struct pstk__view *view)
{
    (void)op;
    return (view->effects & PSTK__CROPS) != 0;
}

const struct pstk__op_entry pstk__op_random_zoom_out = {
    .kind = PSTK_OP_RANDOM_ZOOM_OUT,
    .effects = PSTK__CROPS,
    .uses = PSTK__USES_FILL,
    .name = "random zoom out",
    .check = check,
    .draw = draw,
    .size = size,
    .largest = largest,
    .needs_picture = needs_picture,
};
