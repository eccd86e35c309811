/* SPDX-License-Identifier: Apache-2.0 */
/* op: the table of operations, their checks, and how each moves the geometry of a sample. */
#include "augment/op.h"

#include "base/error.h"

#include <math.h>

#define MAX_SIDE 65535u /* pixels: what JPEG can hold, and the record format */
#define MAX_RATIO 65535.0
#define N_TRIES 10 /* torchvision's */

/* ---- the public constructors ----------------------------------------------------------------- */

struct pstk_op pstk_random_resized_crop(uint32_t height, uint32_t width)
{
    return pstk_random_resized_crop_range(height, width, 0.08, 1.0, 3.0 / 4.0, 4.0 / 3.0);
}

struct pstk_op pstk_random_resized_crop_range(uint32_t height, uint32_t width, double scale_min,
                                              double scale_max, double ratio_min, double ratio_max)
{
    return (struct pstk_op){.kind = PSTK_OP_RANDOM_RESIZED_CROP,
                            .width = width,
                            .height = height,
                            .params = {scale_min, scale_max, ratio_min, ratio_max}};
}

struct pstk_op pstk_resize(uint32_t height, uint32_t width)
{
    return (struct pstk_op){.kind = PSTK_OP_RESIZE, .width = width, .height = height};
}

struct pstk_op pstk_resize_shorter(uint32_t side)
{
    return (struct pstk_op){.kind = PSTK_OP_RESIZE_SHORTER, .width = side};
}

struct pstk_op pstk_center_crop(uint32_t height, uint32_t width)
{
    return (struct pstk_op){.kind = PSTK_OP_CENTER_CROP, .width = width, .height = height};
}

struct pstk_op pstk_random_flip(double probability)
{
    return (struct pstk_op){.kind = PSTK_OP_RANDOM_FLIP, .params = {probability}};
}

struct pstk_op pstk_normalize(const float *mean, const float *deviation)
{
    return (struct pstk_op){
        .kind = PSTK_OP_NORMALIZE,
        .params = {mean[0], mean[1], mean[2], deviation[0], deviation[1], deviation[2]}};
}

/* ---- geometry -------------------------------------------------------------------------------- */

static uint32_t at_least_1(double v)
{
    return v < 1.0 ? 1u : (uint32_t)v;
}

/* torchvision's fallback: the greatest centred box within the range of ratios. Ratios so extreme
 * that it would have no pixels, where torchvision fails, give one pixel. */
static struct pstk__box fallback_box(uint32_t width, uint32_t height, const double ratio[2])
{
    struct pstk__box b = {0, 0, width, height};
    const double own = (double)width / height;
    if (own < ratio[0])
        b.height = at_least_1(pstk__rint_even(width / ratio[0]));
    else if (own > ratio[1])
        b.width = at_least_1(pstk__rint_even(height * ratio[1]));
    b.left = (width - b.width) / 2;
    b.top = (height - b.height) / 2;
    return b;
}

struct pstk__box pstk__random_resized_crop_box(struct pstk__random *r, uint32_t width,
                                               uint32_t height, const double scale[2],
                                               const double ratio[2])
{
    const double area = (double)width * height;
    const double log_min = pstk__log(ratio[0]), log_max = pstk__log(ratio[1]);
    for (int i = 0; i < N_TRIES; i++) {
        const double target = area * pstk__random_uniform(r, scale[0], scale[1]);
        const double aspect = pstk__exp(pstk__random_uniform(r, log_min, log_max));
        const double w = pstk__rint_even(sqrt(target * aspect));
        const double h = pstk__rint_even(sqrt(target / aspect));
        if (w < 1.0 || w > width || h < 1.0 || h > height)
            continue;
        struct pstk__box b = {.width = (uint32_t)w, .height = (uint32_t)h};
        b.top = (uint32_t)pstk__random_below(r, height - b.height + 1);
        b.left = (uint32_t)pstk__random_below(r, width - b.width + 1);
        return b;
    }
    return fallback_box(width, height, ratio);
}

static void resize_to(struct pstk__geometry *g, uint32_t width, uint32_t height)
{
    g->out_width = width;
    g->out_height = height;
    g->window_left = g->window_top = 0;
    g->window_width = width;
    g->window_height = height;
    g->resized = 1;
}

static void random_resized_crop(const struct pstk_op *op, struct pstk__random *r,
                                struct pstk__geometry *g)
{
    g->source = pstk__random_resized_crop_box(r, g->image_width, g->image_height, &op->params[0],
                                              &op->params[2]);
    resize_to(g, op->width, op->height);
}

static void resize_exact(const struct pstk_op *op, struct pstk__random *r, struct pstk__geometry *g)
{
    (void)r;
    resize_to(g, op->width, op->height);
}

/* The longer side is cut to an integer, not rounded: torchvision's int(s * long / short). It is
 * below 2^32, and its quotient too coarse for a double to round up to the next integer. */
static void resize_shorter(const struct pstk_op *op, struct pstk__random *r,
                           struct pstk__geometry *g)
{
    (void)r;
    const uint64_t side = op->width;
    const uint32_t w = g->image_width, h = g->image_height;
    if (w <= h)
        resize_to(g, op->width, (uint32_t)(side * h / w));
    else
        resize_to(g, (uint32_t)(side * w / h), op->width);
}

/* Where torchvision's CenterCrop begins in `have` pixels: rounded half to even where it cuts; where
 * it pads, the smaller half goes before. */
static int64_t center_offset(uint32_t have, uint32_t want)
{
    if (want > have)
        return -(int64_t)((want - have) / 2);
    return (int64_t)pstk__rint_even((have - want) / 2.0);
}

static void center_crop(const struct pstk_op *op, struct pstk__random *r, struct pstk__geometry *g)
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

static void random_flip(const struct pstk_op *op, struct pstk__random *r, struct pstk__geometry *g)
{
    g->flip ^= pstk__random_unit(r) < op->params[0];
}

void pstk__ops_apply(const struct pstk_op *ops, uint32_t n, uint32_t image_width,
                     uint32_t image_height, struct pstk__random_key key, struct pstk__geometry *g)
{
    *g = (struct pstk__geometry){.image_width = image_width,
                                 .image_height = image_height,
                                 .source = {0, 0, image_width, image_height}};
    resize_to(g, image_width, image_height);
    g->resized = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct pstk__op_entry *e = pstk__op_entry(ops[i].kind);
        if (e == NULL || e->apply == NULL)
            continue;
        struct pstk__random r;
        key.op = i;
        pstk__random_init(&r, &key);
        e->apply(&ops[i], &r, g);
    }
}

/* ---- checks ---------------------------------------------------------------------------------- */

#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

static int check_side(const char *what, uint32_t v, struct pstk_error *err)
{
    if (v < 1 || v > MAX_SIDE)
        return FAIL("%s is %u; it must be from 1 to %u pixels", what, v, MAX_SIDE);
    return 0;
}

static int check_size(const struct pstk_op *op, struct pstk_error *err)
{
    const int rc = check_side("height", op->height, err);
    return rc < 0 ? rc : check_side("width", op->width, err);
}

static int check_no_size(const struct pstk_op *op, struct pstk_error *err)
{
    if (op->width != 0 || op->height != 0)
        return FAIL("width and height do not apply and must be 0, not %u and %u", op->width,
                    op->height);
    return 0;
}

/* What is not used must be 0, so that a later version can give it a meaning. */
static int check_unused(const struct pstk_op *op, uint32_t n_used, struct pstk_error *err)
{
    if (op->flags != 0)
        return FAIL("flags are 0x%x; this version knows none, they must be 0", op->flags);
    for (uint32_t i = n_used; i < 8; i++)
        if (!(op->params[i] == 0.0))
            return FAIL("params[%u] is not used and must be 0, not %g", i, op->params[i]);
    return 0;
}

static int check_random_resized_crop(const struct pstk_op *op, struct pstk_error *err)
{
    const double *p = op->params;
    if (!(p[0] >= 0.0 && p[0] <= p[1] && p[1] > 0.0 && p[1] <= 1.0))
        return FAIL("scale is (%g, %g); it must be two fractions of the image's area in rising "
                    "order, 0 <= min <= max <= 1 and max > 0",
                    p[0], p[1]);
    if (!(p[2] >= 1.0 / MAX_RATIO && p[2] <= p[3] && p[3] <= MAX_RATIO))
        return FAIL("ratio is (%g, %g); it must be two ratios of width to height in rising order, "
                    "from 1/65535 to 65535",
                    p[2], p[3]);
    const int rc = check_size(op, err);
    return rc < 0 ? rc : check_unused(op, 4, err);
}

static int check_sized(const struct pstk_op *op, struct pstk_error *err)
{
    const int rc = check_size(op, err);
    return rc < 0 ? rc : check_unused(op, 0, err);
}

static int check_resize_shorter(const struct pstk_op *op, struct pstk_error *err)
{
    if (op->height != 0)
        return FAIL("height does not apply and must be 0, not %u: the shorter side is in width",
                    op->height);
    const int rc = check_side("side (width)", op->width, err);
    return rc < 0 ? rc : check_unused(op, 0, err);
}

static int check_random_flip(const struct pstk_op *op, struct pstk_error *err)
{
    if (!(op->params[0] >= 0.0 && op->params[0] <= 1.0))
        return FAIL("probability is %g; it must be from 0 to 1", op->params[0]);
    const int rc = check_no_size(op, err);
    return rc < 0 ? rc : check_unused(op, 1, err);
}

static int check_normalize(const struct pstk_op *op, struct pstk_error *err)
{
    for (uint32_t c = 0; c < 3; c++) {
        const float mean = (float)op->params[c], deviation = (float)op->params[3 + c];
        if (!isfinite(mean))
            return FAIL("mean[%u] is %g; it must be finite", c, op->params[c]);
        if (!(isfinite(deviation) && deviation > 0.0f))
            return FAIL("deviation[%u] is %g; it must be finite and greater than 0", c,
                        op->params[3 + c]);
    }
    const int rc = check_no_size(op, err);
    return rc < 0 ? rc : check_unused(op, 6, err);
}

static const struct pstk__op_entry entries[] = {
    {PSTK_OP_RANDOM_RESIZED_CROP, "random resized crop", check_random_resized_crop,
     random_resized_crop},
    {PSTK_OP_RESIZE, "resize", check_sized, resize_exact},
    {PSTK_OP_RESIZE_SHORTER, "resize shorter", check_resize_shorter, resize_shorter},
    {PSTK_OP_CENTER_CROP, "centre crop", check_sized, center_crop},
    {PSTK_OP_RANDOM_FLIP, "random flip", check_random_flip, random_flip},
    {PSTK_OP_NORMALIZE, "normalise", check_normalize, NULL},
};

const struct pstk__op_entry *pstk__op_entry(uint32_t kind)
{
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        if (entries[i].kind == kind)
            return &entries[i];
    return NULL;
}

/* What is known of the view after the operations so far. */
struct view {
    uint32_t width, height; /* 0: depends on the image */
    uint32_t resized, cropped, flipped;
};

/* A resizing op sees the whole image: what it would see after a flip or a crop is not offered. */
static int check_resizing(struct view *v, struct pstk_error *err)
{
    if (v->resized)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "a second resizing operation; leave one of them out");
    if (v->flipped)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "a flip stands before it; put the flip behind the resizing operation");
    if (v->cropped)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "a centre crop stands before it; resize first, then crop");
    v->resized = 1;
    return 0;
}

/* A crop may pad what the image lacks, but not uncover what a crop before it took away. */
static int check_crop(const struct pstk_op *op, struct view *v, struct pstk_error *err)
{
    if (v->cropped && (op->width > v->width || op->height > v->height))
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%u x %u is larger than the centre crop before it, %u x %u; leave one of "
                          "them out",
                          op->height, op->width, v->height, v->width);
    v->cropped = 1;
    return 0;
}

static int step(const struct pstk_op *op, int is_last, uint32_t dtype, struct view *v,
                struct pstk_error *err)
{
    int rc = 0;
    switch (op->kind) {
    case PSTK_OP_NORMALIZE:
        if (!is_last)
            return FAIL("it must be the last operation");
        if (dtype == PSTK_U8)
            return FAIL("it gives fractions, which dtype u8 cannot hold; use f16, bf16 or f32");
        return 0;
    case PSTK_OP_RANDOM_FLIP:
        v->flipped = 1;
        return 0;
    case PSTK_OP_CENTER_CROP:
        rc = check_crop(op, v, err);
        break;
    default:
        rc = check_resizing(v, err);
        break;
    }
    v->height = op->kind == PSTK_OP_RESIZE_SHORTER ? 0 : op->height;
    v->width = op->kind == PSTK_OP_RESIZE_SHORTER ? 0 : op->width;
    return rc;
}

/* Put "ops[j] (name): " before a message. */
static int named(int code, uint32_t j, const char *name, const struct pstk_error *inner,
                 struct pstk_error *err)
{
    return pstk__fail(err, code, PSTK_STAGE_OPEN, "ops[%u] (%s): %.500s", j, name, inner->message);
}

int pstk__ops_check(const struct pstk_op *ops, uint32_t n, uint32_t dtype, uint32_t *height,
                    uint32_t *width, struct pstk_error *err)
{
    struct view v = {0};
    struct pstk_error inner;
    pstk_error_init(&inner, sizeof inner);
    for (uint32_t j = 0; j < n; j++) {
        const struct pstk__op_entry *e = pstk__op_entry(ops[j].kind);
        if (e == NULL)
            return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                              "ops[%u].kind is %u, which this version does not know", j,
                              ops[j].kind);
        int rc = e->check(&ops[j], &inner);
        if (rc == 0)
            rc = step(&ops[j], j + 1 == n, dtype, &v, &inner);
        if (rc < 0)
            return named(rc, j, e->name, &inner, err);
    }
    if (v.width == 0 || v.height == 0)
        return FAIL("ops do not fix the size of the rows; end with a random resized crop, a resize "
                    "to height x width or a centre crop");
    *height = v.height;
    *width = v.width;
    return 0;
}
