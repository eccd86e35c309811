/* SPDX-License-Identifier: Apache-2.0 */
/* op_flip: mirrors left and right, or top and bottom, always or with a probability. */
#include "augment/canvas.h"
#include "augment/sampled_ops.h"

#include "base/error.h"
#include "pixels/copy.h"

struct pstk_op pstk_random_flip(double probability)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_FLIP};
    op.params.random_flip = (struct pstk_probability_params){probability};
    return op;
}

struct pstk_op pstk_random_vertical_flip(double probability)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_VERTICAL_FLIP};
    op.params.random_vertical_flip = (struct pstk_probability_params){probability};
    return op;
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    if (!(op->params.random_flip.probability >= 0.0 && op->params.random_flip.probability <= 1.0))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "probability: value is %g; must be from 0 to 1",
                          op->params.random_flip.probability);
    const int rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 1, err);
}

static void draw(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to)
{
    const struct pstk_op flip = pstk_flip_horizontal();
    if (pstk__random_unit(r) < op->params.random_flip.probability)
        pstk__sampled_ops_add(to, &flip);
}

static void draw_vertical(const struct pstk_op *op, struct pstk__random *r,
                          struct pstk__sampled_ops *to)
{
    const struct pstk_op flip = pstk_flip_vertical();
    if (pstk__random_unit(r) < op->params.random_vertical_flip.probability)
        pstk__sampled_ops_add(to, &flip);
}

const struct pstk__op_entry pstk__op_random_flip = {
    .kind = PSTK_OP_RANDOM_FLIP,
    .effects = PSTK__FLIPS,
    .name = "random flip",
    .check = check,
    .draw = draw,
};

const struct pstk__op_entry pstk__op_random_vertical_flip = {
    .kind = PSTK_OP_RANDOM_VERTICAL_FLIP,
    .effects = PSTK__FLIPS,
    .name = "random vertical flip",
    .check = check,
    .draw = draw_vertical,
};

/* ---- the flips that they draw ---------------------------------------------------------------- */

struct pstk_op pstk_flip_horizontal(void)
{
    return (struct pstk_op){.kind = PSTK_OP_FLIP_HORIZONTAL};
}

struct pstk_op pstk_flip_vertical(void)
{
    return (struct pstk_op){.kind = PSTK_OP_FLIP_VERTICAL};
}

static void fold(const struct pstk_op *op, struct pstk__geometry *g)
{
    (void)op;
    g->flip ^= 1;
}

static void fold_vertical(const struct pstk_op *op, struct pstk__geometry *g)
{
    (void)op;
    g->flip_vertical ^= 1;
}

static int change(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, in->width, in->height, in->channels);
    (void)op;
    pstk__copy_flip_horizontal(canvas->kernels->warp, &out, in);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

static int change_vertical(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, in->width, in->height, in->channels);
    (void)op;
    pstk__copy_flip_vertical(&out, in);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

static void move(const struct pstk_op *op, const struct pstk__view *view,
                 struct pstk__point *points, uint32_t n)
{
    (void)op;
    for (uint32_t i = 0; i < n; i++)
        points[i].x = view->width - points[i].x;
}

static void move_vertical(const struct pstk_op *op, const struct pstk__view *view,
                          struct pstk__point *points, uint32_t n)
{
    (void)op;
    for (uint32_t i = 0; i < n; i++)
        points[i].y = view->height - points[i].y;
}

const struct pstk__op_entry pstk__op_flip_horizontal = {
    .kind = PSTK_OP_FLIP_HORIZONTAL,
    .effects = PSTK__FLIPS,
    .name = "flip",
    .check = pstk__op_check_plain,
    .fold = fold,
    .change = change,
    .move = move,
};

const struct pstk__op_entry pstk__op_flip_vertical = {
    .kind = PSTK_OP_FLIP_VERTICAL,
    .effects = PSTK__FLIPS,
    .name = "vertical flip",
    .check = pstk__op_check_plain,
    .fold = fold_vertical,
    .change = change_vertical,
    .move = move_vertical,
};
