/* SPDX-License-Identifier: Apache-2.0 */
/* op_jpeg: the loss of a JPEG file, at a fixed quality, or at a random one as in torchvision's
 * JPEG. */
#include "augment/canvas.h"
#include "augment/sampled_ops.h"

#include "base/error.h"
#include "image/jpeg/quality.h"
#include "image/jpeg/recompress.h"

#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

struct pstk_op pstk_jpeg(uint32_t quality)
{
    struct pstk_op op = {.kind = PSTK_OP_JPEG};
    op.params.jpeg = (struct pstk_jpeg_params){quality};
    return op;
}

struct pstk_op pstk_random_jpeg(uint32_t least, uint32_t most)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_JPEG};
    op.params.random_jpeg = (struct pstk_random_jpeg_params){least, most};
    return op;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int is_quality(double value)
{
    return value >= 1 && value <= PSTK__JPEG_MAX_QUALITY && value == (uint32_t)value;
}

static int check_rest(const struct pstk_op *op, uint32_t n_used, struct pstk_error *err)
{
    const int rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, n_used, err);
}

static int check_fixed(const struct pstk_op *op, struct pstk_error *err)
{
    if (!is_quality(op->params.jpeg.quality))
        return FAIL("quality: value is %g; must be a whole number from 1 to %u",
                    op->params.jpeg.quality, PSTK__JPEG_MAX_QUALITY);
    return check_rest(op, 1, err);
}

static int check_random(const struct pstk_op *op, struct pstk_error *err)
{
    const double least = op->params.random_jpeg.min_quality,
                 most = op->params.random_jpeg.max_quality;
    if (!is_quality(least) || !is_quality(most) || least > most)
        return FAIL("quality: value is (%g, %g); must be two whole numbers in rising order, from 1 "
                    "to %u",
                    least, most, PSTK__JPEG_MAX_QUALITY);
    return check_rest(op, 2, err);
}

/* Refuse RGBA: a JPEG file has no alpha. */
static int no_alpha(const struct pstk_op *op, uint32_t channels, struct pstk_error *err)
{
    (void)op;
    if (channels == 4)
        return FAIL("it takes 1 or 3 channels, and the image has 4: a JPEG file has no alpha");
    return (int)channels;
}

/* ---- changes --------------------------------------------------------------------------------- */

static uint64_t scratch(const struct pstk_op *op, const struct pstk__largest *in, uint32_t channels)
{
    (void)op;
    (void)channels;
    return pstk__jpeg_recompress_scratch(in->width);
}

static int change(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *picture = &canvas->picture;
    return pstk__jpeg_recompress(picture->pixels, picture->width, picture->height,
                                 picture->channels, (uint32_t)op->params.jpeg.quality,
                                 &canvas->kernels->jpeg, canvas->arena);
}

static void draw(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to)
{
    const uint32_t least = (uint32_t)op->params.random_jpeg.min_quality,
                   most = (uint32_t)op->params.random_jpeg.max_quality;
    const struct pstk_op drawn =
        pstk_jpeg(least + (uint32_t)pstk__random_below(r, most - least + 1));
    pstk__sampled_ops_add(to, &drawn);
}

#define ENTRY(member, number, words, ...)                                                          \
    const struct pstk__op_entry pstk__op_##member = {.kind = number,                               \
                                                     .effects = PSTK__PICTURES,                    \
                                                     .name = words,                                \
                                                     .channels = no_alpha,                         \
                                                     .scratch = scratch,                           \
                                                     __VA_ARGS__}

ENTRY(jpeg, PSTK_OP_JPEG, "jpeg", .check = check_fixed, .change = change);
ENTRY(random_jpeg, PSTK_OP_RANDOM_JPEG, "random jpeg", .check = check_random, .draw = draw);
