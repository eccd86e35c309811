/* SPDX-License-Identifier: Apache-2.0 */
/* op_pad: torchvision's functional pad of PIL images. */
#include "augment/canvas.h"

#include "base/error.h"
#include "pixels/copy.h"

#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

struct pstk_op pstk_pad(uint32_t left, uint32_t top, uint32_t right, uint32_t bottom, uint32_t mode)
{
    struct pstk_op op = {.kind = PSTK_OP_PAD};
    op.params.pad = (struct pstk_pad_params){left, top, right, bottom, mode};
    return op;
}

int pstk__op_check_padding(const struct pstk_pad_params *by, struct pstk_error *err)
{
    static const char *const names[] = {"left", "top", "right", "bottom"};
    const double padding[] = {by->left, by->top, by->right, by->bottom}, mode = by->mode;
    for (int i = 0; i < 4; i++)
        if (!(padding[i] >= 0 && padding[i] <= UINT16_MAX && padding[i] == (uint32_t)padding[i]))
            return FAIL("padding, %s: value is %g; must be a whole number from 0 to 65535 pixels",
                        names[i], padding[i]);
    if (!(mode >= 0 && mode <= PSTK_PAD_SYMMETRIC && mode == (uint32_t)mode))
        return FAIL("mode: value is %g; must be from 0 to %d, an enum pstk_pad_mode", mode,
                    PSTK_PAD_SYMMETRIC);
    return 0;
}

void pstk__largest_pad(struct pstk__largest *largest, uint32_t width, uint32_t height)
{
    largest->n_pixels += (uint64_t)width * largest->height + (uint64_t)height * largest->width +
                         (uint64_t)width * height;
    largest->width += width;
    largest->height += height;
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    int rc = pstk__op_check_padding(&op->params.pad, err);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 5, err);
}

/* Return the pixels that the op adds to width or height. */
static uint32_t more_width(const struct pstk_op *op)
{
    return (uint32_t)(op->params.pad.left + op->params.pad.right);
}

static uint32_t more_height(const struct pstk_op *op)
{
    return (uint32_t)(op->params.pad.top + op->params.pad.bottom);
}

static void size(const struct pstk_op *op, struct pstk__view *view)
{
    if (view->width == 0 || view->height == 0)
        return;
    view->width += more_width(op);
    view->height += more_height(op);
}

static void largest(const struct pstk_op *op, struct pstk__largest *e)
{
    pstk__largest_pad(e, more_width(op), more_height(op));
}

static int needs_picture(const struct pstk_op *op, const struct pstk__view *view)
{
    return op->params.pad.mode != PSTK_PAD_CONSTANT || view->effects & PSTK__CROPS;
}

static void fold(const struct pstk_op *op, struct pstk__geometry *g)
{
    pstk__geometry_crop(g, -(int64_t)op->params.pad.left, -(int64_t)op->params.pad.top,
                        g->crop_width + more_width(op), g->crop_height + more_height(op));
}

static int change(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__picture out = pstk__canvas_spare(canvas, in->width + more_width(op),
                                                        in->height + more_height(op), in->channels);
    pstk__copy_pad(&out, in, (int32_t)op->params.pad.left, (int32_t)op->params.pad.top,
                   (uint32_t)op->params.pad.mode, op->fill);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

static void move(const struct pstk_op *op, const struct pstk__view *view,
                 struct pstk__point *points, uint32_t n)
{
    (void)view;
    pstk__points_shift(points, n, op->params.pad.left, op->params.pad.top);
}

const struct pstk__op_entry pstk__op_pad = {
    .kind = PSTK_OP_PAD,
    .effects = PSTK__CROPS,
    .uses = PSTK__USES_FILL,
    .name = "pad",
    .check = check,
    .size = size,
    .largest = largest,
    .needs_picture = needs_picture,
    .fold = fold,
    .change = change,
    .move = move,
};
