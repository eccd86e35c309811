/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_tensor: the operations of torchvision's v2 on uint8 tensors. Operations with the same pixels
 * as Pillow's (invert, posterize, solarize, equalize, flips, crops) are not here.
 */
#include "augment/op_tensor.h"

#include "augment/canvas.h"
#include "base/error.h"
#include "pixels/rotation.h"

#include <string.h>

#define FAIL(code, ...) pstk__fail(err, code, PSTK_STAGE_OPEN, __VA_ARGS__)

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_none(const struct pstk_op *op, uint32_t channels, struct pstk_error *err)
{
    (void)op;
    (void)channels;
    return FAIL(PSTK_ENOTSUP,
                "this operation has no tensor reference in penstock; use the pil reference");
}

static int check_alpha(const struct pstk_op *op, uint32_t channels, struct pstk_error *err)
{
    (void)op;
    if (channels == 4)
        return FAIL(PSTK_EINVAL,
                    "by the tensor reference it takes 1 or 3 channels, and the image has 4; decode "
                    "3, or use the pil reference");
    return 0;
}

static int check_filter(const struct pstk_op *op, uint32_t channels, struct pstk_error *err)
{
    (void)channels;
    if (op->filter == PSTK_FILTER_BICUBIC)
        return FAIL(PSTK_EINVAL, "filter: value is BICUBIC; by the tensor reference it must be "
                                 "NEAREST or BILINEAR");
    return 0;
}

int pstk__op_check_tensor(const struct pstk_op *op, uint32_t channels, struct pstk_error *err)
{
    const struct pstk__op_tensor *tensor = pstk__op_entry(op->kind)->tensor;
    return op->flags & PSTK_OP_TENSOR && tensor && tensor->check ? tensor->check(op, channels, err)
                                                                 : 0;
}

struct pstk__op_tensor pstk__op_work(const struct pstk_op *op)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    if (op->flags & PSTK_OP_TENSOR && entry->tensor)
        return *entry->tensor;
    return (struct pstk__op_tensor){.colour = entry->colour,
                                    .table = entry->table,
                                    .change = entry->change,
                                    .scratch = entry->scratch};
}

/* ---- colours --------------------------------------------------------------------------------- */

static void table_brightness(const struct pstk_op *op, struct pstk__colour_table *table)
{
    pstk__tensor_table_brightness(table, op->params.brightness.factor);
}

static void table_gamma(const struct pstk_op *op, struct pstk__colour_table *table)
{
    pstk__tensor_table_gamma(table, op->params.gamma.gamma, op->params.gamma.gain);
}

static int contrast(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    struct pstk__colour_table table;
    const float mean = pstk__tensor_mean(canvas->kernels->tensor, &canvas->picture);
    pstk__tensor_table_contrast(&table, mean, op->params.contrast.factor);
    pstk__colour_apply(canvas->kernels->colour, &canvas->picture, &table);
    return 0;
}

static int autocontrast(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    struct pstk__colour_range range;
    struct pstk__colour_table table;
    (void)op;
    canvas->kernels->colour->range(&range, &canvas->picture);
    pstk__tensor_table_autocontrast(&table, &range);
    pstk__colour_apply(canvas->kernels->colour, &canvas->picture, &table);
    return 0;
}

static int saturation(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    pstk__tensor_saturation(canvas->kernels->tensor, &canvas->picture,
                            op->params.saturation.factor);
    return 0;
}

static int hue(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    pstk__tensor_hue(canvas->kernels->tensor, &canvas->picture, op->params.hue.hue);
    return 0;
}

static int sharpness(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, in->width, in->height, in->channels);
    pstk__tensor_sharpness(canvas->kernels->tensor, &out, in, op->params.sharpness.factor);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

/* Convert with the best kernels: rows have no canvas to choose them. */
static void colour_grayscale(const struct pstk_op *op, uint8_t *out, const uint8_t *in,
                             uint32_t n_pixels, uint32_t channels)
{
    pstk__tensor_grayscale(pstk__tensor_kernels(PSTK_KERNELS_AUTO), out, op->channels, in, channels,
                           n_pixels);
}

static int grayscale(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, in->width, in->height, op->channels);
    pstk__tensor_grayscale(canvas->kernels->tensor, out.pixels, op->channels, in->pixels,
                           in->channels, (uint64_t)in->width * in->height);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

/* ---- blur ------------------------------------------------------------------------------------ */

static uint64_t scratch_blur(const struct pstk_op *op, const struct pstk__largest *in,
                             uint32_t channels)
{
    const uint32_t size[2] = {(uint32_t)op->params.gaussian_blur.kernel[0],
                              (uint32_t)op->params.gaussian_blur.kernel[1]};
    return pstk__tensor_blur_scratch(size, in->width, channels) + 64;
}

static int gaussian_blur(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__blur_params params = {
        .size = {(uint32_t)op->params.gaussian_blur.kernel[0],
                 (uint32_t)op->params.gaussian_blur.kernel[1]},
        .sigma = {op->params.gaussian_blur.sigma[0], op->params.gaussian_blur.sigma[1]}};
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, in->width, in->height, in->channels);
    void *memory = pstk__arena_get(canvas->arena,
                                   pstk__tensor_blur_scratch(params.size, in->width, in->channels));
    if (!memory)
        return PSTK_ENOMEM;
    pstk__tensor_blur(canvas->kernels->tensor, &out, in, &params, memory);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

/* ---- warps ----------------------------------------------------------------------------------- */

/* Warp the picture to one of this size. A black fill is torchvision's None. */
static void warp(const struct pstk_op *op, struct pstk__canvas *canvas, struct pstk__tensor_warp to,
                 uint32_t width, uint32_t height)
{
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, width, height, canvas->picture.channels);
    to.is_bilinear = op->filter == PSTK_FILTER_BILINEAR;
    to.fill = pstk__op_has_fill(op) ? op->fill : NULL;
    pstk__tensor_warp(canvas->kernels->tensor, &out, &canvas->picture, &to);
    pstk__canvas_swap(canvas, &out);
}

static int affine(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__tensor_warp to = {.m = op->params.affine.matrix};
    warp(op, canvas, to, canvas->picture.width, canvas->picture.height);
    return 0;
}

static int perspective(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__tensor_warp to = {.m = op->params.perspective.matrix, .has_divisor = 1};
    warp(op, canvas, to, canvas->picture.width, canvas->picture.height);
    return 0;
}

static int rotate(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__rotation rotation = pstk__op_rotation(op, in->width, in->height);
    const struct pstk__tensor_warp to = {.m = rotation.m};
    if (!rotation.exact) {
        warp(op, canvas, to, rotation.width, rotation.height);
        return 0;
    }
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, rotation.width, rotation.height, in->channels);
    pstk__copy_turn(canvas->kernels->warp, &out, in, rotation.turn);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

/* ---- entries --------------------------------------------------------------------------------- */

#define ENTRY(member, ...) const struct pstk__op_tensor pstk__op_tensor_##member = {__VA_ARGS__}

ENTRY(none, .check = check_none);
ENTRY(random_colour, .check = check_alpha);
ENTRY(random_blur, .scratch = scratch_blur);
ENTRY(random_warp, .check = check_filter);
ENTRY(brightness, .check = check_alpha, .table = table_brightness);
ENTRY(contrast, .check = check_alpha, .change = contrast);
ENTRY(saturation, .check = check_alpha, .change = saturation);
ENTRY(hue, .check = check_alpha, .change = hue);
ENTRY(gamma, .check = check_alpha, .table = table_gamma);
ENTRY(sharpness, .check = check_alpha, .change = sharpness);
ENTRY(autocontrast, .check = check_alpha, .change = autocontrast);
ENTRY(grayscale, .check = check_alpha, .colour = colour_grayscale, .change = grayscale);
ENTRY(gaussian_blur, .change = gaussian_blur, .scratch = scratch_blur);
ENTRY(affine, .check = check_filter, .change = affine);
ENTRY(perspective, .check = check_filter, .change = perspective);
ENTRY(rotate, .check = check_filter, .change = rotate);
