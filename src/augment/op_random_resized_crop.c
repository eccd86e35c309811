/* SPDX-License-Identifier: Apache-2.0 */
/* op_random_resized_crop: torchvision's RandomResizedCrop. */
#include "augment/sampled_ops.h"

#include "base/error.h"

#include <math.h>

#define MAX_RATIO 65535.0
#define N_TRIES 10 /* as torchvision */

struct pstk_op pstk_random_resized_crop(uint32_t height, uint32_t width)
{
    return pstk_random_resized_crop_range(height, width, 0.08, 1.0, 3.0 / 4.0, 4.0 / 3.0);
}

struct pstk_op pstk_random_resized_crop_range(uint32_t height, uint32_t width, double scale_min,
                                              double scale_max, double ratio_min, double ratio_max)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_RESIZED_CROP, .width = width, .height = height};
    op.params.random_resized_crop =
        (struct pstk_random_resized_crop_params){scale_min, scale_max, ratio_min, ratio_max};
    return op;
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_random_resized_crop_params *p = &op->params.random_resized_crop;
    if (!(p->min_scale >= 0.0 && p->min_scale <= p->max_scale && p->max_scale > 0.0 &&
          p->max_scale <= 1.0))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "scale: value is (%g, %g); must be two fractions of the image's area in "
                          "rising order, 0 <= min <= max <= 1 and max > 0",
                          p->min_scale, p->max_scale);
    if (!(p->min_ratio >= 1.0 / MAX_RATIO && p->min_ratio <= p->max_ratio &&
          p->max_ratio <= MAX_RATIO))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "ratio: value is (%g, %g); must be two ratios of width to height in "
                          "rising order, from 1/65535 to 65535",
                          p->min_ratio, p->max_ratio);
    const int rc = pstk__op_check_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 4, err);
}

static uint32_t at_least_1(double v)
{
    return v < 1.0 ? 1u : (uint32_t)v;
}

/* Return torchvision's fallback, the largest centred box within the range of ratios. For extreme
 * ratios it has no pixels, and torchvision fails; here it has one pixel. */
static struct pstk__box fallback_box(uint32_t width, uint32_t height,
                                     const struct pstk_random_resized_crop_params *by)
{
    struct pstk__box box = {0, 0, width, height};
    const double own = (double)width / height;
    if (own < by->min_ratio)
        box.height = at_least_1(pstk__rint_even(width / by->min_ratio));
    else if (own > by->max_ratio)
        box.width = at_least_1(pstk__rint_even(height * by->max_ratio));
    box.left = (width - box.width) / 2;
    box.top = (height - box.height) / 2;
    return box;
}

struct pstk__box pstk__random_resized_crop_box(struct pstk__random *r, uint32_t width,
                                               uint32_t height,
                                               const struct pstk_random_resized_crop_params *by)
{
    const double area = (double)width * height;
    const double log_min = pstk__log(by->min_ratio), log_max = pstk__log(by->max_ratio);
    for (int i = 0; i < N_TRIES; i++) {
        const double target = area * pstk__random_uniform(r, by->min_scale, by->max_scale);
        const double aspect = pstk__exp(pstk__random_uniform(r, log_min, log_max));
        const double w = pstk__rint_even(sqrt(target * aspect));
        const double h = pstk__rint_even(sqrt(target / aspect));
        if (w < 1.0 || w > width || h < 1.0 || h > height)
            continue;
        struct pstk__box box = {.width = (uint32_t)w, .height = (uint32_t)h};
        box.top = (uint32_t)pstk__random_below(r, height - box.height + 1);
        box.left = (uint32_t)pstk__random_below(r, width - box.width + 1);
        return box;
    }
    return fallback_box(width, height, by);
}

static void draw(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to)
{
    const struct pstk__box box = pstk__random_resized_crop_box(r, to->view.width, to->view.height,
                                                               &op->params.random_resized_crop);
    struct pstk_op drawn =
        pstk_resized_crop(box.top, box.left, box.height, box.width, op->height, op->width);
    drawn.filter = op->filter;
    pstk__sampled_ops_add_resize(&drawn, r, to);
}

const struct pstk__op_entry pstk__op_random_resized_crop = {
    .kind = PSTK_OP_RANDOM_RESIZED_CROP,
    .effects = PSTK__RESIZES,
    .uses = PSTK__USES_FILTER,
    .name = "random resized crop",
    .check = check,
    .draw = draw,
    .size = pstk__op_size,
    .bound = pstk__op_bound,
    .scratch = pstk__op_resize_scratch,
};
