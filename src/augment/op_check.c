/* SPDX-License-Identifier: Apache-2.0 */
/* op_check: checks that several ops share. */
#include "augment/op.h"

#include "base/error.h"

#define MAX_SIDE 65535u /* pixels; the limit of JPEG and of the record format */

#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

int pstk__op_check_side(const char *what, uint32_t pixels, struct pstk_error *err)
{
    if (pixels < 1 || pixels > MAX_SIDE)
        return FAIL("%s: value is %u; must be from 1 to %u pixels", what, pixels, MAX_SIDE);
    return 0;
}

int pstk__op_check_size(const struct pstk_op *op, struct pstk_error *err)
{
    const int rc = pstk__op_check_side("height", op->height, err);
    return rc < 0 ? rc : pstk__op_check_side("width", op->width, err);
}

int pstk__op_check_no_size(const struct pstk_op *op, struct pstk_error *err)
{
    if (op->width != 0 || op->height != 0)
        return FAIL("width, height: values are %u and %u; must be 0, because they do not apply",
                    op->width, op->height);
    return 0;
}

int pstk__op_check_unused(const struct pstk_op *op, uint32_t n_used, struct pstk_error *err)
{
    if (op->flags != 0)
        return FAIL("flags: value is 0x%x; must be 0, because this version knows none", op->flags);
    for (uint32_t i = n_used; i < PSTK_MAX_OP_PARAMS; i++)
        if (!(op->params.values[i] == 0.0))
            return FAIL("params.values[%u]: value is %g; must be 0, because it is not used", i,
                        op->params.values[i]);
    return 0;
}

int pstk__op_check_members(const struct pstk_op *op, uint32_t uses, struct pstk_error *err)
{
    if (!(uses & PSTK__USES_CHILDREN) && (op->children || op->n_children != 0))
        return FAIL(
            "n_children: value is %u; must be 0, and children NULL, because they do not apply",
            op->n_children);
    if (!(uses & PSTK__USES_FILTER) && op->filter != 0)
        return FAIL("filter: value is %u; must be 0, because it does not apply", op->filter);
    if (op->filter > PSTK_FILTER_RANDOM)
        return FAIL("filter: value is %u; must be from 0 to %d, an enum pstk_filter", op->filter,
                    PSTK_FILTER_RANDOM);
    if (!(uses & PSTK__USES_CHANNELS) && op->channels != 0)
        return FAIL("channels: value is %u; must be 0, because they do not apply", op->channels);
    if (!(uses & PSTK__USES_FUNCTION) && (op->function || op->user))
        return FAIL("function, user: values are set; must be NULL, because they do not apply");
    for (uint32_t c = 0; c < sizeof op->fill && !(uses & PSTK__USES_FILL); c++)
        if (op->fill[c] != 0)
            return FAIL("fill: value is %u; must be 0, because it does not apply", op->fill[c]);
    return 0;
}

int pstk__op_has_fill(const struct pstk_op *op)
{
    return op->fill[0] != 0 || op->fill[1] != 0 || op->fill[2] != 0 || op->fill[3] != 0;
}

int pstk__op_check_plain(const struct pstk_op *op, struct pstk_error *err)
{
    const int rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 0, err);
}

int pstk__op_check_sized(const struct pstk_op *op, struct pstk_error *err)
{
    const int rc = pstk__op_check_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 0, err);
}

void pstk__op_size(const struct pstk_op *op, struct pstk__view *view)
{
    view->height = op->height;
    view->width = op->width;
}

void pstk__op_bound(const struct pstk_op *op, struct pstk__resize_bounds *bounds)
{
    bounds->min_out_width = op->width;
    bounds->min_out_height = op->height;
    bounds->filters = pstk__filter_set(op->filter);
}

void pstk__op_move_resized(const struct pstk_op *op, const struct pstk__view *view,
                           struct pstk__point *points, uint32_t n)
{
    const struct pstk__box all = {.width = view->width, .height = view->height};
    pstk__points_resize(points, n, &all, op->width, op->height);
}

uint64_t pstk__op_resize_scratch(const struct pstk_op *op, const struct pstk__largest *in,
                                 uint32_t channels)
{
    const struct pstk__resize_bounds bounds = {
        .channels = channels,
        .filters = pstk__filter_set(op->filter),
        .max_in_width = in->width,
        .max_in_height = in->height,
        .min_out_width = op->width,
        .min_out_height = op->height,
        .max_crop_width = op->width,
        .max_crop_height = op->height,
    };
    return pstk__resize_scratch(&bounds);
}
