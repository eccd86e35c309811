/* SPDX-License-Identifier: Apache-2.0 */
/* op_iou_crop: torchvision's RandomIoUCrop, the crop of SSD. It draws an IOU_CROP (op_crop.c). */
#include "augment/boxes.h"
#include "augment/sampled_ops.h"

#include "base/error.h"

#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)
#define MAX_RATIO 65535.0
#define MAX_TRIALS 1000.0
#define MAX_ROUNDS 100 /* torchvision tries for ever */

#define N_OPTIONS (sizeof((struct pstk_random_iou_crop_params){0}.options) / sizeof(double))

struct pstk_op pstk_random_iou_crop(void)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_IOU_CROP};
    op.params.random_iou_crop =
        (struct pstk_random_iou_crop_params){0.3, 1, 0.5, 2, 40, {0, 0.1, 0.3, 0.5, 0.7, 0.9, 1}};
    return op;
}

static uint32_t n_options(const struct pstk_op *op)
{
    uint32_t n = 0;
    while (n < N_OPTIONS && op->params.random_iou_crop.options[n] >= 0)
        n++;
    return n;
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_random_iou_crop_params *p = &op->params.random_iou_crop;
    const uint32_t n = n_options(op);
    if (!(p->min_scale > 0 && p->min_scale <= p->max_scale && p->max_scale <= 1))
        return FAIL("scale: value is (%g, %g); must be two fractions of a side in rising order, "
                    "above 0 up to 1",
                    p->min_scale, p->max_scale);
    if (!(p->min_aspect_ratio >= 1 / MAX_RATIO && p->min_aspect_ratio <= p->max_aspect_ratio &&
          p->max_aspect_ratio <= MAX_RATIO))
        return FAIL("aspect_ratio: value is (%g, %g); must be two ratios of width to height in "
                    "rising order, from 1/65535 to 65535",
                    p->min_aspect_ratio, p->max_aspect_ratio);
    if (!(p->trials >= 1 && p->trials <= MAX_TRIALS && p->trials == (uint32_t)p->trials))
        return FAIL("trials: value is %g; must be a whole number from 1 to %g", p->trials,
                    MAX_TRIALS);
    for (uint32_t i = 0; i < N_OPTIONS; i++)
        if (i < n ? !(p->options[i] <= 1) : p->options[i] != -1)
            return FAIL("options[%u]: value is %g; must be from 0 to 1, or -1 after the last", i,
                        p->options[i]);
    if (n == 0)
        return FAIL("options: there is none; must be at least 1");
    const int rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, PSTK_MAX_OP_PARAMS, err);
}

/* ---- draws ----------------------------------------------------------------------------------- */

/* Return the intersection of a box and the crop, divided by their union. */
static double iou(const struct pstk__sides *box, const struct pstk__sides *crop)
{
    const struct pstk__sides both = {.min = {box->min.x > crop->min.x ? box->min.x : crop->min.x,
                                             box->min.y > crop->min.y ? box->min.y : crop->min.y},
                                     .max = {box->max.x < crop->max.x ? box->max.x : crop->max.x,
                                             box->max.y < crop->max.y ? box->max.y : crop->max.y}};
    const double shared =
        both.max.x > both.min.x && both.max.y > both.min.y ? pstk__sides_area(&both) : 0;
    return shared / (pstk__sides_area(box) + pstk__sides_area(crop) - shared);
}

/* Return whether a box whose centre lies in the crop has at least this IoU with it. */
static int is_good(const struct pstk__boxes *boxes, const struct pstk__sides *crop, double least)
{
    for (uint32_t i = 0; i < boxes->n; i++) {
        const struct pstk__moved_box *box = &boxes->boxes[i];
        const struct pstk__sides *e = &box->shown;
        const double x = 0.5 * (e->min.x + e->max.x), y = 0.5 * (e->min.y + e->max.y);
        const int is_within =
            x > crop->min.x && x < crop->max.x && y > crop->min.y && y < crop->max.y;
        if (!box->is_dropped && is_within && iou(e, crop) >= least)
            return 1;
    }
    return 0;
}

/* Make one trial of torchvision's make_params. */
static int try_crop(const struct pstk_op *op, struct pstk__random *r,
                    const struct pstk__sampled_ops *to, double least, struct pstk_op *crop)
{
    const struct pstk_random_iou_crop_params *p = &op->params.random_iou_crop;
    const double w = to->view.width, h = to->view.height;
    const uint32_t width = (uint32_t)(w * pstk__random_uniform(r, p->min_scale, p->max_scale));
    const uint32_t height = (uint32_t)(h * pstk__random_uniform(r, p->min_scale, p->max_scale));
    if (width == 0 || height == 0)
        return 0;
    const double aspect = (double)width / height;
    if (!(aspect >= p->min_aspect_ratio && aspect <= p->max_aspect_ratio))
        return 0;
    const int32_t left = (int32_t)((w - width) * pstk__random_unit(r));
    const int32_t top = (int32_t)((h - height) * pstk__random_unit(r));
    const struct pstk__sides part = {{left, top}, {(double)left + width, (double)top + height}};
    *crop = (struct pstk_op){.kind = PSTK_DRAWN_IOU_CROP, .width = width, .height = height};
    crop->params.iou_crop = (struct pstk_crop_params){top, left};
    return is_good(to->boxes, &part, least);
}

static void draw(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to)
{
    const uint32_t n = n_options(op);
    struct pstk_op crop;
    if (!to->boxes) {
        to->rc = pstk__fail(to->err, PSTK_EINVAL, PSTK_STAGE_DECODE,
                            "a random IoU crop needs boxes, but no boxes follow the image");
        return;
    }
    for (int round = 0; round < MAX_ROUNDS; round++) {
        const double least = op->params.random_iou_crop.options[pstk__random_below(r, n)];
        if (least >= 1)
            return;
        for (uint32_t i = 0; i < (uint32_t)op->params.random_iou_crop.trials; i++)
            if (try_crop(op, r, to, least, &crop)) {
                pstk__sampled_ops_add(to, &crop);
                return;
            }
    }
}

/* Leave the size open: it depends on the sample. */
static void size_random(const struct pstk_op *op, struct pstk__view *view)
{
    (void)op;
    view->width = view->height = 0;
}

const struct pstk__op_entry pstk__op_random_iou_crop = {
    .kind = PSTK_OP_RANDOM_IOU_CROP,
    .effects = PSTK__CROPS | PSTK__LOOKS_AT_BOXES,
    .name = "random IoU crop",
    .check = check,
    .draw = draw,
    .size = size_random,
};
