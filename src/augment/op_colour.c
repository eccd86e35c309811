/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_colour: the colour operations of Pillow with given parameters: torchvision's
 * adjust_brightness, adjust_contrast and so on for PIL images. Operations that map each byte by
 * itself have tables, which the canvas folds.
 */
#include "augment/canvas.h"
#include "augment/op_tensor.h"

#include "base/error.h"

#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

struct pstk_op pstk_adjust(uint32_t kind, double value)
{
    return (struct pstk_op){.kind = kind, .params.values = {value}};
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Check the only parameter. */
static int check_value(const struct pstk_op *op, const char *what, double least, double most,
                       struct pstk_error *err)
{
    if (!(op->params.values[0] >= least && op->params.values[0] <= most))
        return FAIL("%s: value is %g; must be from %g to %g", what, op->params.values[0], least,
                    most);
    const int rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 1, err);
}

#define MAX_FACTOR 1e6 /* a larger factor is a mistake; float can hold far more */

static int check_factor(const struct pstk_op *op, struct pstk_error *err)
{
    return check_value(op, "factor", 0, MAX_FACTOR, err);
}

static int check_hue(const struct pstk_op *op, struct pstk_error *err)
{
    return check_value(op, "hue", -0.5, 0.5, err);
}

static int check_solarize(const struct pstk_op *op, struct pstk_error *err)
{
    return check_value(op, "threshold", 0, 256, err);
}

static int check_whole(const char *what, double value, int least, int most, struct pstk_error *err)
{
    if (!(value >= least && value <= most && value == (int)value))
        return FAIL("%s: value is %g; must be a whole number from %d to %d", what, value, least,
                    most);
    return 0;
}

static int check_posterize(const struct pstk_op *op, struct pstk_error *err)
{
    const int rc = check_whole("bits", op->params.posterize.bits, 0, 8, err);
    return rc < 0 ? rc : check_value(op, "bits", 0, 8, err);
}

static int check_solarize_add(const struct pstk_op *op, struct pstk_error *err)
{
    int rc = check_whole("add", op->params.solarize_add.add, -255, 255, err);
    if (rc == 0)
        rc = check_whole("threshold", op->params.solarize_add.threshold, 0, 256, err);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 2, err);
}

static int check_gamma(const struct pstk_op *op, struct pstk_error *err)
{
    if (!(op->params.gamma.gamma >= 0 && op->params.gamma.gamma <= MAX_FACTOR))
        return FAIL("gamma: value is %g; must be from 0 to %g", op->params.gamma.gamma, MAX_FACTOR);
    if (!(op->params.gamma.gain >= 0 && op->params.gamma.gain <= MAX_FACTOR))
        return FAIL("gain: value is %g; must be from 0 to %g", op->params.gamma.gain, MAX_FACTOR);
    const int rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 2, err);
}

static int check_permute(const struct pstk_op *op, struct pstk_error *err)
{
    uint32_t seen = 0;
    for (int i = 0; i < 3; i++) {
        const int rc = check_whole("order", op->params.permute_channels.order[i], 0, 2, err);
        if (rc < 0)
            return rc;
        seen |= 1u << (uint32_t)op->params.permute_channels.order[i];
    }
    if (seen != 7)
        return FAIL("order: value is (%g, %g, %g); must have each of 0, 1 and 2 once",
                    op->params.permute_channels.order[0], op->params.permute_channels.order[1],
                    op->params.permute_channels.order[2]);
    const int rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 3, err);
}

/* Refuse RGBA, for which Pillow has no such operation. */
static int no_alpha(const struct pstk_op *op, uint32_t channels, struct pstk_error *err)
{
    (void)op;
    if (channels == 4)
        return FAIL(
            "it takes 1 or 3 channels, and the image has 4, as Pillow has no such operation "
            "on RGBA");
    return (int)channels;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void table_brightness(const struct pstk_op *op, struct pstk__colour_table *table)
{
    pstk__colour_table_brightness(table, (float)op->params.brightness.factor);
}

static void table_invert(const struct pstk_op *op, struct pstk__colour_table *table)
{
    (void)op;
    pstk__colour_table_invert(table);
}

static void table_posterize(const struct pstk_op *op, struct pstk__colour_table *table)
{
    pstk__colour_table_posterize(table, (uint32_t)op->params.posterize.bits);
}

static void table_solarize(const struct pstk_op *op, struct pstk__colour_table *table)
{
    pstk__colour_table_solarize(table, op->params.solarize.threshold);
}

static void table_solarize_add(const struct pstk_op *op, struct pstk__colour_table *table)
{
    pstk__colour_table_solarize_add(table, (int32_t)op->params.solarize_add.add,
                                    (int32_t)op->params.solarize_add.threshold);
}

static void table_gamma(const struct pstk_op *op, struct pstk__colour_table *table)
{
    pstk__colour_table_gamma(table, op->params.gamma.gamma, op->params.gamma.gain);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static int contrast(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const uint32_t mean = pstk__colour_mean(canvas->kernels->colour, &canvas->picture);
    pstk__colour_table_contrast(&canvas->table, mean, (float)op->params.contrast.factor);
    canvas->has_table = 1;
    return 0;
}

static int saturation(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    pstk__colour_saturation(canvas->kernels->colour, &canvas->picture,
                            (float)op->params.saturation.factor);
    return 0;
}

static int hue(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    pstk__colour_hue(canvas->kernels->colour, &canvas->picture, op->params.hue.hue);
    return 0;
}

static int sharpness(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__picture out =
        pstk__canvas_spare(canvas, in->width, in->height, in->channels);
    pstk__colour_sharpness(canvas->kernels->colour, &out, in, (float)op->params.sharpness.factor);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

static int autocontrast(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    (void)op;
    pstk__colour_autocontrast(canvas->kernels->colour, &canvas->picture);
    return 0;
}

static int equalize(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    (void)op;
    pstk__colour_equalize(canvas->kernels->colour, &canvas->picture);
    return 0;
}

static int permute(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const uint32_t order[3] = {(uint32_t)op->params.permute_channels.order[0],
                               (uint32_t)op->params.permute_channels.order[1],
                               (uint32_t)op->params.permute_channels.order[2]};
    pstk__colour_permute(canvas->kernels->colour, &canvas->picture, order);
    return 0;
}

/* ---- entries --------------------------------------------------------------------------------- */

#define ENTRY_OF(what, member, number, words, ...)                                                 \
    const struct pstk__op_entry pstk__op_##member = {                                              \
        .kind = number, .effects = PSTK__PICTURES | (what), .name = words, __VA_ARGS__}
#define ENTRY(...) ENTRY_OF(0, __VA_ARGS__)
#define ENTRY_BY_PIXEL(...) ENTRY_OF(PSTK__BY_PIXEL, __VA_ARGS__)

ENTRY(brightness, PSTK_OP_BRIGHTNESS, "brightness", .check = check_factor,
      .table = table_brightness, .tensor = &pstk__op_tensor_brightness);
ENTRY(contrast, PSTK_OP_CONTRAST, "contrast", .check = check_factor, .change = contrast,
      .tensor = &pstk__op_tensor_contrast);
ENTRY_BY_PIXEL(saturation, PSTK_OP_SATURATION, "saturation", .check = check_factor,
               .change = saturation, .tensor = &pstk__op_tensor_saturation);
ENTRY(sharpness, PSTK_OP_SHARPNESS, "sharpness", .check = check_factor, .change = sharpness,
      .tensor = &pstk__op_tensor_sharpness);
ENTRY_BY_PIXEL(hue, PSTK_OP_HUE, "hue", .check = check_hue, .change = hue,
               .tensor = &pstk__op_tensor_hue);
ENTRY(gamma, PSTK_OP_GAMMA, "gamma", .check = check_gamma, .table = table_gamma,
      .tensor = &pstk__op_tensor_gamma);
ENTRY(invert, PSTK_OP_INVERT, "invert", .check = pstk__op_check_plain, .channels = no_alpha,
      .table = table_invert);
ENTRY(posterize, PSTK_OP_POSTERIZE, "posterize", .check = check_posterize, .channels = no_alpha,
      .table = table_posterize);
ENTRY(solarize, PSTK_OP_SOLARIZE, "solarize", .check = check_solarize, .channels = no_alpha,
      .table = table_solarize);
ENTRY(solarize_add, PSTK_OP_SOLARIZE_ADD, "solarize add", .check = check_solarize_add,
      .channels = no_alpha, .table = table_solarize_add, .tensor = &pstk__op_tensor_none);
ENTRY(autocontrast, PSTK_OP_AUTOCONTRAST, "autocontrast", .check = pstk__op_check_plain,
      .channels = no_alpha, .change = autocontrast, .tensor = &pstk__op_tensor_autocontrast);
ENTRY(equalize, PSTK_OP_EQUALIZE, "equalize", .check = pstk__op_check_plain, .channels = no_alpha,
      .change = equalize);
ENTRY_BY_PIXEL(permute_channels, PSTK_OP_PERMUTE_CHANNELS, "permute channels",
               .check = check_permute, .change = permute);
