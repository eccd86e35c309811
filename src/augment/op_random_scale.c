/* SPDX-License-Identifier: Apache-2.0 */
/* op_random_scale: resizes to a random size that keep the aspect ratio: torchvision v2's
 * ScaleJitter, RandomShortestSize and RandomResize. */
#include "augment/sampled_ops.h"

#include "base/error.h"

#define MAX_SIDE 65535u
#define MIN_SCALE 1e-3 /* minimum of a scale jitter */
#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

struct pstk_op pstk_scale_jitter(uint32_t height, uint32_t width, double least, double most)
{
    struct pstk_op op = {.kind = PSTK_OP_SCALE_JITTER, .width = width, .height = height};
    op.params.scale_jitter = (struct pstk_scale_jitter_params){least, most};
    return op;
}

struct pstk_op pstk_random_shortest_size(const uint32_t *sides, uint32_t n_sides, uint32_t longest)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_SHORTEST_SIZE, .width = longest};
    for (uint32_t i = 0; i < n_sides && i < PSTK_MAX_OP_PARAMS; i++)
        op.params.random_shortest_size.sides[i] = sides[i];
    return op;
}

struct pstk_op pstk_random_resize(uint32_t least, uint32_t end)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_RESIZE};
    op.params.random_resize = (struct pstk_random_resize_params){least, end};
    return op;
}

/* Leave the size open: every result has its own. */
static void size(const struct pstk_op *op, struct pstk__view *view)
{
    (void)op;
    view->width = view->height = 0;
}

/* Append a resize of the view by a factor; sides are truncated, as by Python's int. */
static void add_scaled(const struct pstk_op *op, double factor, struct pstk__random *r,
                       struct pstk__sampled_ops *to)
{
    const double width = to->view.width * factor, height = to->view.height * factor;
    struct pstk_op resize = {.kind = PSTK_OP_RESIZE, .filter = op->filter};
    resize.width = width < 1 ? 1 : width < UINT32_MAX ? (uint32_t)width : UINT32_MAX;
    resize.height = height < 1 ? 1 : height < UINT32_MAX ? (uint32_t)height : UINT32_MAX;
    pstk__sampled_ops_add_resize(&resize, r, to);
}

static double min_double(double a, double b)
{
    return a < b ? a : b;
}

static double max_double(double a, double b)
{
    return a > b ? a : b;
}

/* ---- scale jitter ---------------------------------------------------------------------------- */

static int check_jitter(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_scale_jitter_params *p = &op->params.scale_jitter;
    const int rc = pstk__op_check_size(op, err);
    if (rc < 0)
        return rc;
    const uint32_t side = op->width > op->height ? op->width : op->height;
    if (!(p->min_scale >= MIN_SCALE && p->min_scale <= p->max_scale &&
          side * p->max_scale <= MAX_SIDE))
        return FAIL("scale: value is (%g, %g); must be two numbers in rising order, from %g to %g, "
                    "where %u pixels become %u",
                    p->min_scale, p->max_scale, MIN_SCALE, (double)MAX_SIDE / side, side, MAX_SIDE);
    return pstk__op_check_unused(op, 2, err);
}

/* Draw as torchvision's scale jitter, which takes the width of the target for the height of the
 * image. */
static void draw_jitter(const struct pstk_op *op, struct pstk__random *r,
                        struct pstk__sampled_ops *to)
{
    const double y = (double)op->width / to->view.height, x = (double)op->height / to->view.width;
    const double scale = pstk__random_uniform(r, op->params.scale_jitter.min_scale,
                                              op->params.scale_jitter.max_scale);
    add_scaled(op, min_double(y, x) * scale, r, to);
}

static void largest_jitter(const struct pstk_op *op, struct pstk__largest *e)
{
    e->width = (uint32_t)(op->height * op->params.scale_jitter.max_scale) + 1;
    e->height = (uint32_t)(op->width * op->params.scale_jitter.max_scale) + 1;
    e->n_pixels = (uint64_t)e->width * e->height;
}

/* Return the image's pixels per pixel of the smallest result. */
static double scale_jitter(const struct pstk_op *op, uint32_t width, uint32_t height)
{
    const double x = (double)width / op->height, y = (double)height / op->width;
    return max_double(x, y) / op->params.scale_jitter.min_scale;
}

static void bound_jitter(const struct pstk_op *op, struct pstk__resize_bounds *bounds)
{
    pstk__bound_scale(bounds, scale_jitter(op, bounds->max_in_width, bounds->max_in_height),
                      op->filter);
}

static uint64_t scratch_jitter(const struct pstk_op *op, const struct pstk__largest *in,
                               uint32_t channels)
{
    struct pstk__largest out;
    largest_jitter(op, &out);
    return pstk__scale_scratch(scale_jitter(op, in->width, in->height), op->filter, in, &out,
                               channels);
}

/* ---- random shortest size, random resize ----------------------------------------------------- */

/* Bounds of both resizes: the smallest and the largest length of the shorter side, and the largest
 * of the longer one, 0: any. */
struct range {
    double least, most, longest;
};

static uint32_t n_sides(const struct pstk_op *op)
{
    uint32_t n = 0;
    while (n < PSTK_MAX_OP_PARAMS && op->params.random_shortest_size.sides[n] != 0)
        n++;
    return n;
}

static struct range range_of(const struct pstk_op *op)
{
    const struct pstk_random_resize_params *p = &op->params.random_resize;
    const double *sides = op->params.random_shortest_size.sides;
    if (op->kind == PSTK_OP_RANDOM_RESIZE)
        return (struct range){p->min_side, p->end_side - 1, 0};
    struct range range = {sides[0], sides[0], op->width};
    for (uint32_t i = 1; i < n_sides(op); i++) {
        range.least = min_double(range.least, sides[i]);
        range.most = max_double(range.most, sides[i]);
    }
    return range;
}

static int check_side(const char *what, double side, struct pstk_error *err)
{
    if (!(side >= 1 && side <= MAX_SIDE && side == (uint32_t)side))
        return FAIL("%s: value is %g; must be a whole number from 1 to %u pixels", what, side,
                    MAX_SIDE);
    return 0;
}

static int check_shortest(const struct pstk_op *op, struct pstk_error *err)
{
    const uint32_t n = n_sides(op);
    int rc =
        n > 0 ? 0 : FAIL("sides: value is empty; must have 1 to %d lengths", PSTK_MAX_OP_PARAMS);
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = check_side("side", op->params.random_shortest_size.sides[i], err);
    if (rc == 0 && op->width > MAX_SIDE)
        rc = FAIL("longest (width): value is %u; must be 0, or at most %u pixels", op->width,
                  MAX_SIDE);
    if (rc == 0 && op->height != 0)
        rc = FAIL("height: value is %u; must be 0, because it does not apply", op->height);
    return rc < 0 ? rc : pstk__op_check_unused(op, n, err);
}

static int check_resize(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_random_resize_params *p = &op->params.random_resize;
    int rc = check_side("min_side", p->min_side, err);
    if (rc == 0)
        rc = check_side("end_side", p->end_side, err);
    if (rc == 0 && !(p->min_side < p->end_side))
        rc = FAIL("end_side: value is %g; must be above min_side, %g", p->end_side, p->min_side);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 2, err);
}

static double longest_of(const struct pstk_op *op)
{
    const struct range range = range_of(op);
    return range.longest > 0 ? range.longest : range.most * PSTK__MAX_ASPECT;
}

/* Draw as torchvision's, with its order of operations. */
static void draw_shortest(const struct pstk_op *op, struct pstk__random *r,
                          struct pstk__sampled_ops *to)
{
    const uint32_t w = to->view.width, h = to->view.height;
    const double side = op->params.random_shortest_size.sides[pstk__random_below(r, n_sides(op))];
    double factor = side / (w < h ? w : h);
    if (op->width > 0)
        factor = min_double(factor, (double)op->width / (w < h ? h : w));
    if ((w < h ? h : w) * factor < longest_of(op) + 1)
        add_scaled(op, factor, r, to);
    else
        to->rc = pstk__fail(to->err, PSTK_EFBIG, PSTK_STAGE_DECODE,
                            "resizing the shorter side to %g pixels: the image has %u x %u there, "
                            "and would have a side of more than %g; set a longest side",
                            side, h, w, longest_of(op));
}

static void draw_resize(const struct pstk_op *op, struct pstk__random *r,
                        struct pstk__sampled_ops *to)
{
    const struct range range = range_of(op);
    const uint64_t n = (uint64_t)(range.most - range.least) + 1;
    struct pstk_op shorter =
        pstk_resize_shorter((uint32_t)(range.least + (double)pstk__random_below(r, n)));
    shorter.filter = op->filter;
    pstk__sampled_ops_add_resize(&shorter, r, to);
}

static void largest_shorter(const struct pstk_op *op, struct pstk__largest *e)
{
    e->width = e->height = (uint32_t)longest_of(op);
    e->n_pixels = (uint64_t)range_of(op).most * e->width;
}

static double scale_shorter(const struct pstk_op *op, uint32_t width, uint32_t height)
{
    const struct range range = range_of(op);
    const double scale = (width < height ? width : height) / range.least;
    const double longer = width < height ? height : width;
    return range.longest > 0 ? max_double(scale, longer / range.longest) : scale;
}

static void bound_shorter(const struct pstk_op *op, struct pstk__resize_bounds *bounds)
{
    pstk__bound_scale(bounds, scale_shorter(op, bounds->max_in_width, bounds->max_in_height),
                      op->filter);
}

static uint64_t scratch_shorter(const struct pstk_op *op, const struct pstk__largest *in,
                                uint32_t channels)
{
    struct pstk__largest out;
    largest_shorter(op, &out);
    return pstk__scale_scratch(scale_shorter(op, in->width, in->height), op->filter, in, &out,
                               channels);
}

#define ENTRY(member, number, words, ...)                                                          \
    const struct pstk__op_entry pstk__op_##member = {.kind = number,                               \
                                                     .effects = PSTK__RESIZES,                     \
                                                     .uses = PSTK__USES_FILTER,                    \
                                                     .name = words,                                \
                                                     .size = size,                                 \
                                                     __VA_ARGS__}

ENTRY(scale_jitter, PSTK_OP_SCALE_JITTER, "scale jitter", .check = check_jitter,
      .draw = draw_jitter, .largest = largest_jitter, .bound = bound_jitter,
      .scratch = scratch_jitter);
ENTRY(random_shortest_size, PSTK_OP_RANDOM_SHORTEST_SIZE, "random shortest size",
      .check = check_shortest, .draw = draw_shortest, .largest = largest_shorter,
      .bound = bound_shorter, .scratch = scratch_shorter);
ENTRY(random_resize, PSTK_OP_RANDOM_RESIZE, "random resize", .check = check_resize,
      .draw = draw_resize, .largest = largest_shorter, .bound = bound_shorter,
      .scratch = scratch_shorter);
