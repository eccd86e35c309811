/* SPDX-License-Identifier: Apache-2.0 */
/* op_random_crop: torchvision's RandomCrop, with its optional padding first. */
#include "augment/sampled_ops.h"

#include "base/error.h"

#include <string.h>

struct pstk_op pstk_random_crop(uint32_t height, uint32_t width, uint32_t padding)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_CROP, .width = width, .height = height};
    op.params.random_crop = (struct pstk_random_crop_params){padding, padding, padding, padding};
    return op;
}

/* Return the padding that is added before the size is checked. */
static struct pstk_pad_params padding_of(const struct pstk_op *op)
{
    const struct pstk_random_crop_params *p = &op->params.random_crop;
    return (struct pstk_pad_params){p->left, p->top, p->right, p->bottom, p->mode};
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    const double needed = op->params.random_crop.pad_if_needed;
    const struct pstk_pad_params by = padding_of(op);
    int rc = pstk__op_check_padding(&by, err);
    if (rc < 0)
        return rc;
    if (needed != 0 && needed != 1)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "pad_if_needed: value is %g; must be 0 or 1", needed);
    rc = pstk__op_check_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 6, err);
}

static int pads(const struct pstk_op *op)
{
    const struct pstk_random_crop_params *p = &op->params.random_crop;
    return p->left > 0 || p->top > 0 || p->right > 0 || p->bottom > 0 || p->pad_if_needed == 1;
}

static int needs_picture(const struct pstk_op *op, const struct pstk__view *view)
{
    return pads(op) &&
           (op->params.random_crop.mode != PSTK_PAD_CONSTANT || view->effects & PSTK__CROPS);
}

/* ---- draws ----------------------------------------------------------------------------------- */

/* The picture that is cropped, after its padding. With a constant, the crop op pads; otherwise, pad
 * ops do. */
struct padded {
    int64_t left, top;     /* offset of the picture in it; 0 after pad ops */
    int64_t width, height; /* pixels */
};

static void pad(const struct pstk_pad_params *by, struct padded *padded,
                struct pstk__sampled_ops *to)
{
    const int is_constant = by->mode == PSTK_PAD_CONSTANT;
    struct pstk_op drawn = {.kind = PSTK_OP_PAD};
    drawn.params.pad = *by;
    padded->width += (int64_t)(by->left + by->right);
    padded->height += (int64_t)(by->top + by->bottom);
    padded->left += is_constant ? (int64_t)by->left : 0;
    padded->top += is_constant ? (int64_t)by->top : 0;
    if (!is_constant && (by->left > 0 || by->top > 0 || by->right > 0 || by->bottom > 0))
        pstk__sampled_ops_add(to, &drawn);
}

/* Draw as torchvision's forward and get_params, in their order. With a constant, the crop pads. */
static void draw(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to)
{
    struct padded padded = {.width = to->view.width, .height = to->view.height};
    const struct pstk_pad_params by = padding_of(op);
    const int if_needed = op->params.random_crop.pad_if_needed == 1;
    pad(&by, &padded, to);
    const double x = (double)(op->width - padded.width), y = (double)(op->height - padded.height);
    if (if_needed && x > 0)
        pad(&(struct pstk_pad_params){x, 0, x, 0, by.mode}, &padded, to);
    if (if_needed && y > 0)
        pad(&(struct pstk_pad_params){0, y, 0, y, by.mode}, &padded, to);
    if (padded.width < op->width || padded.height < op->height) {
        to->rc =
            pstk__fail(to->err, PSTK_EINVAL, PSTK_STAGE_DECODE,
                       "a random crop of %u x %u pixels does not fit into the image, which "
                       "has %lld x %lld there; resize it first, or set pad_if_needed",
                       op->height, op->width, (long long)padded.height, (long long)padded.width);
        return;
    }
    const int64_t top = (int64_t)pstk__random_below(r, (uint64_t)(padded.height - op->height) + 1);
    const int64_t left = (int64_t)pstk__random_below(r, (uint64_t)(padded.width - op->width) + 1);
    struct pstk_op crop = pstk_crop_at((int32_t)(top - padded.top), (int32_t)(left - padded.left),
                                       op->height, op->width);
    memcpy(crop.fill, op->fill, sizeof crop.fill);
    pstk__sampled_ops_add(to, &crop);
}

/* Return the maximum ops: the crop, and without a constant three paddings: on all sides, in width
 * and in height. */
static uint32_t most(const struct pstk_op *op)
{
    return op->params.random_crop.mode == PSTK_PAD_CONSTANT ? 1 : 4;
}

/* Bound the padded picture. A picture that is too small is padded to less than twice the crop. */
static void between(const struct pstk_op *op, struct pstk__largest *e)
{
    const struct pstk_random_crop_params *p = &op->params.random_crop;
    if (p->mode == PSTK_PAD_CONSTANT)
        return;
    pstk__largest_pad(e, (uint32_t)(p->left + p->right), (uint32_t)(p->top + p->bottom));
    if (p->pad_if_needed == 1)
        pstk__largest_pad(e, 2 * op->width, 2 * op->height);
}

const struct pstk__op_entry pstk__op_random_crop = {
    .kind = PSTK_OP_RANDOM_CROP,
    .effects = PSTK__CROPS,
    .uses = PSTK__USES_FILL,
    .name = "random crop",
    .check = check,
    .draw = draw,
    .max_ops = most,
    .size = pstk__op_size,
    .between = between,
    .needs_picture = needs_picture,
};
