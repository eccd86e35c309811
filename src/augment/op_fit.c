/* SPDX-License-Identifier: Apache-2.0 */
/* op_fit: ops that fit an image of any size to one size and keep its aspect ratio: a resize of the
 * longer side, padding, and both in one. */
#include "augment/canvas.h"
#include "augment/sampled_ops.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

#define FAIL(code, ...) pstk__fail(err, code, PSTK_STAGE_OPEN, __VA_ARGS__)

struct pstk_op pstk_resize_longest(uint32_t side)
{
    return (struct pstk_op){.kind = PSTK_OP_RESIZE_LONGEST, .width = side};
}

struct pstk_op pstk_pad_to_size(uint32_t height, uint32_t width, uint32_t position)
{
    struct pstk_op op = {.kind = PSTK_OP_PAD_TO_SIZE, .width = width, .height = height};
    op.params.pad_to_size = (struct pstk_position_params){position};
    return op;
}

struct pstk_op pstk_letterbox(uint32_t height, uint32_t width, uint32_t position)
{
    struct pstk_op op = {.kind = PSTK_OP_LETTERBOX, .width = width, .height = height};
    op.params.letterbox = (struct pstk_position_params){position};
    return op;
}

/* ---- shared by ops that keep the aspect ratio ------------------------------------------------ */

/* Return the smallest size after rounding. A side of v pixels becomes at least 1 pixel, and at
 * least v / 2. Products of doubles are rounded, so a millionth more is enough. */
static uint32_t min_of(uint32_t max_in, double scale)
{
    const double out = max_in / (2.000001 * scale);
    return out < 1 ? 1u : out < max_in ? (uint32_t)out : max_in;
}

void pstk__bound_scale(struct pstk__resize_bounds *bounds, double scale, uint32_t filter)
{
    bounds->min_out_width = min_of(bounds->max_in_width, scale);
    bounds->min_out_height = min_of(bounds->max_in_height, scale);
    bounds->filters = pstk__filter_set(filter);
}

uint64_t pstk__scale_scratch(double scale, uint32_t filter, const struct pstk__largest *in,
                             const struct pstk__largest *out, uint32_t channels)
{
    struct pstk__resize_bounds bounds = {.channels = channels,
                                         .max_in_width = in->width,
                                         .max_in_height = in->height,
                                         .max_crop_width = out->width,
                                         .max_crop_height = out->height};
    pstk__bound_scale(&bounds, scale, filter);
    return pstk__resize_scratch(&bounds);
}

struct pstk_op pstk__part_of(const struct pstk_op *op, int64_t top, int64_t left)
{
    struct pstk_op part = pstk_crop_at((int32_t)top, (int32_t)left, op->height, op->width);
    memcpy(part.fill, op->fill, sizeof part.fill);
    return part;
}

/* Change the canvas by another fixed op, which this one is equivalent to. */
static int change_by(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    return pstk__op_entry(op->kind)->change(op, canvas);
}

static int check_position(const struct pstk_op *op, struct pstk_error *err)
{
    const double position = op->params.letterbox.position;
    if (position != PSTK_POSITION_CENTER && position != PSTK_POSITION_TOP_LEFT)
        return FAIL(PSTK_EINVAL, "position: value is %g; must be %d or %d, an enum pstk_position",
                    position, PSTK_POSITION_CENTER, PSTK_POSITION_TOP_LEFT);
    const int rc = pstk__op_check_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 1, err);
}

/* ---- resize longest -------------------------------------------------------------------------- */

static int check_longest(const struct pstk_op *op, struct pstk_error *err)
{
    if (op->height != 0)
        return FAIL(PSTK_EINVAL, "height: value is %u; must be 0 (set the longer side in width)",
                    op->height);
    const int rc = pstk__op_check_side("side (width)", op->width, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 0, err);
}

/* Set the size of an image: torchvision's int(most * short / long), but at least 1. */
static void size_longest(const struct pstk_op *op, struct pstk__view *view)
{
    const uint64_t w = view->width, h = view->height, most = op->width;
    if (w == 0 || h == 0)
        return;
    const uint64_t shorter = w <= h ? most * w / h : most * h / w;
    view->width = (uint32_t)(w > h ? most : shorter < 1 ? 1 : shorter);
    view->height = (uint32_t)(w <= h ? most : shorter < 1 ? 1 : shorter);
}

static struct pstk_op resize_to(const struct pstk_op *op, uint32_t height, uint32_t width)
{
    struct pstk_op resize = pstk_resize(height, width);
    resize.filter = op->filter;
    return resize;
}

static struct pstk_op longest_of(const struct pstk_op *op, struct pstk__view view)
{
    size_longest(op, &view);
    return resize_to(op, view.height, view.width);
}

static void draw_longest(const struct pstk_op *op, struct pstk__random *r,
                         struct pstk__sampled_ops *to)
{
    const struct pstk_op resize = longest_of(op, to->view);
    pstk__sampled_ops_add_resize(&resize, r, to);
}

static void largest_longest(const struct pstk_op *op, struct pstk__largest *e)
{
    *e = (struct pstk__largest){
        .width = op->width, .height = op->width, .n_pixels = (uint64_t)op->width * op->width};
}

static double scale_longest(const struct pstk_op *op, uint32_t width, uint32_t height)
{
    return (double)(width > height ? width : height) / op->width;
}

static void bound_longest(const struct pstk_op *op, struct pstk__resize_bounds *bounds)
{
    pstk__bound_scale(bounds, scale_longest(op, bounds->max_in_width, bounds->max_in_height),
                      op->filter);
}

static struct pstk__view view_of(const struct pstk__picture *picture)
{
    return (struct pstk__view){
        .width = picture->width, .height = picture->height, .channels = picture->channels};
}

static int change_longest(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk_op resize = longest_of(op, view_of(&canvas->picture));
    return change_by(&resize, canvas);
}

static uint64_t scratch_longest(const struct pstk_op *op, const struct pstk__largest *in,
                                uint32_t channels)
{
    struct pstk__largest out;
    largest_longest(op, &out);
    return pstk__scale_scratch(scale_longest(op, in->width, in->height), op->filter, in, &out,
                               channels);
}

const struct pstk__op_entry pstk__op_resize_longest = {
    .kind = PSTK_OP_RESIZE_LONGEST,
    .effects = PSTK__RESIZES,
    .uses = PSTK__USES_FILTER,
    .name = "resize longest",
    .check = check_longest,
    .draw = draw_longest,
    .size = size_longest,
    .largest = largest_longest,
    .bound = bound_longest,
    .change = change_longest,
    .scratch = scratch_longest,
};

/* ---- pad to size ----------------------------------------------------------------------------- */

static int is_larger(const struct pstk_op *op, const struct pstk__view *view)
{
    return view->width > op->width || view->height > op->height;
}

/* Return the crop that pads an image. The smaller half of the padding comes first. */
static struct pstk_op padded_of(const struct pstk_op *op, const struct pstk__view *view)
{
    if (op->params.pad_to_size.position == PSTK_POSITION_TOP_LEFT)
        return pstk__part_of(op, 0, 0);
    return pstk__part_of(op, -(int64_t)((op->height - view->height) / 2),
                         -(int64_t)((op->width - view->width) / 2));
}

static int fail_larger(const struct pstk_op *op, const struct pstk__view *view, uint32_t stage,
                       struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EINVAL, stage,
                      "padding to %u x %u pixels: the image has %u x %u there; must not be larger, "
                      "so resize it first",
                      op->height, op->width, view->height, view->width);
}

static int check_view_pad(const struct pstk_op *op, const struct pstk__view *view,
                          struct pstk_error *err)
{
    return is_larger(op, view) ? fail_larger(op, view, PSTK_STAGE_OPEN, err) : 0;
}

static void draw_pad(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to)
{
    (void)r;
    if (is_larger(op, &to->view)) {
        to->rc = fail_larger(op, &to->view, PSTK_STAGE_DECODE, to->err);
        return;
    }
    const struct pstk_op part = padded_of(op, &to->view);
    pstk__sampled_ops_add(to, &part);
}

static int needs_picture_pad(const struct pstk_op *op, const struct pstk__view *view)
{
    (void)op;
    return (view->effects & PSTK__CROPS) != 0;
}

static int fits_pad(const struct pstk_op *op, const struct pstk__view *view)
{
    return is_larger(op, view) ? PSTK_EINVAL : 0;
}

static int change_pad(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__view view = view_of(&canvas->picture);
    const struct pstk_op part = padded_of(op, &view);
    return change_by(&part, canvas);
}

const struct pstk__op_entry pstk__op_pad_to_size = {
    .kind = PSTK_OP_PAD_TO_SIZE,
    .effects = PSTK__CROPS,
    .uses = PSTK__USES_FILL,
    .name = "pad to size",
    .check = check_position,
    .check_view = check_view_pad,
    .draw = draw_pad,
    .size = pstk__op_size,
    .needs_picture = needs_picture_pad,
    .fits = fits_pad,
    .change = change_pad,
};

/* ---- letterbox ------------------------------------------------------------------------------- */

/* The two ops of a letterbox for one image. */
struct letters {
    struct pstk_op resize, part;
};

static uint32_t fitted(double side, uint32_t most)
{
    const double rounded = pstk__rint_even(side);
    return rounded < 1 ? 1u : rounded < most ? (uint32_t)rounded : most;
}

/* Return the ops of Pillow's ImageOps.pad, with its order of operations; a side has at least 1
 * pixel. */
static struct letters letters_of(const struct pstk_op *op, const struct pstk__view *view)
{
    const double ratio = (double)view->width / view->height;
    const double wanted = (double)op->width / op->height;
    uint32_t width = op->width, height = op->height;
    if (ratio > wanted)
        height = fitted((double)view->height / view->width * op->width, op->height);
    else if (ratio < wanted)
        width = fitted(ratio * op->height, op->width);
    const double half = op->params.letterbox.position == PSTK_POSITION_CENTER ? 0.5 : 0.0;
    const double left = pstk__rint_even((op->width - width) * half);
    const double top = pstk__rint_even((op->height - height) * half);
    return (struct letters){resize_to(op, height, width),
                            pstk__part_of(op, -(int64_t)top, -(int64_t)left)};
}

static void draw_letterbox(const struct pstk_op *op, struct pstk__random *r,
                           struct pstk__sampled_ops *to)
{
    const struct letters letters = letters_of(op, &to->view);
    pstk__sampled_ops_add_resize(&letters.resize, r, to);
    pstk__sampled_ops_add(to, &letters.part);
}

static uint32_t max_letterbox(const struct pstk_op *op)
{
    (void)op;
    return 2;
}

static double scale_letterbox(const struct pstk_op *op, uint32_t width, uint32_t height)
{
    const double x = (double)width / op->width, y = (double)height / op->height;
    return x > y ? x : y;
}

static void bound_letterbox(const struct pstk_op *op, struct pstk__resize_bounds *bounds)
{
    pstk__bound_scale(bounds, scale_letterbox(op, bounds->max_in_width, bounds->max_in_height),
                      op->filter);
}

static int change_letterbox(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__view view = view_of(&canvas->picture);
    const struct letters letters = letters_of(op, &view);
    const int rc = change_by(&letters.resize, canvas);
    return rc < 0 ? rc : change_by(&letters.part, canvas);
}

static uint64_t scratch_letterbox(const struct pstk_op *op, const struct pstk__largest *in,
                                  uint32_t channels)
{
    const struct pstk__largest out = {.width = op->width, .height = op->height};
    return pstk__scale_scratch(scale_letterbox(op, in->width, in->height), op->filter, in, &out,
                               channels);
}

const struct pstk__op_entry pstk__op_letterbox = {
    .kind = PSTK_OP_LETTERBOX,
    .effects = PSTK__RESIZES | PSTK__CROPS,
    .uses = PSTK__USES_FILTER | PSTK__USES_FILL,
    .name = "letterbox",
    .check = check_position,
    .draw = draw_letterbox,
    .max_ops = max_letterbox,
    .size = pstk__op_size,
    .bound = bound_letterbox,
    .change = change_letterbox,
    .scratch = scratch_letterbox,
};
