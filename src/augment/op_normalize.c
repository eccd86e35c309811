/* SPDX-License-Identifier: Apache-2.0 */
/* op_normalize: torchvision's ToTensor, or ToDtype, alone or with Normalize, folded into the
 * output's table. */
#include "augment/op.h"

#include "base/error.h"

#include <math.h>

struct pstk_op pstk_normalize(const float *mean, const float *deviation)
{
    return pstk_normalize_channels(3, mean, deviation);
}

struct pstk_op pstk_normalize_channels(uint32_t channels, const float *mean, const float *deviation)
{
    struct pstk_op op = {.kind = PSTK_OP_NORMALIZE, .channels = channels};
    for (uint32_t c = 0; c < channels && channels <= PSTK__MAX_CHANNELS; c++) {
        op.params.normalize.mean[c] = mean[c];
        op.params.normalize.deviation[c] = deviation[c];
    }
    return op;
}

struct pstk_op pstk_to_float(uint32_t scale)
{
    struct pstk_op op = {.kind = PSTK_OP_TO_FLOAT};
    op.params.to_float = (struct pstk_to_float_params){scale};
    return op;
}

/* Return the channels of the op; 0, which programs for three channels may leave, means 3. */
static uint32_t channels_of(const struct pstk_op *op)
{
    return op->channels ? op->channels : 3;
}

static int check_scale(double scale, struct pstk_error *err)
{
    if (scale != PSTK_SCALE_DIVIDE && scale != PSTK_SCALE_MULTIPLY)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "scale: value is %g; must be 0 or 1, an enum pstk_scale", scale);
    return 0;
}

static int check_unused(const struct pstk_op *op, uint32_t n, struct pstk_error *err)
{
    const struct pstk_normalize_params *p = &op->params.normalize;
    for (uint32_t c = n; c < PSTK__MAX_CHANNELS; c++)
        if (p->mean[c] != 0 || p->deviation[c] != 0)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "mean[%u], deviation[%u]: values are %g and %g; must be 0, because "
                              "they are not used",
                              c, c, p->mean[c], p->deviation[c]);
    return pstk__op_check_unused(op, 2 * PSTK__MAX_CHANNELS + 1, err);
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_normalize_params *p = &op->params.normalize;
    const uint32_t n = channels_of(op);
    if (n != 1 && n != 3 && n != 4)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "channels: value is %u; must be 1, 3 or 4", n);
    for (uint32_t c = 0; c < n; c++) {
        const float mean = (float)p->mean[c], deviation = (float)p->deviation[c];
        if (!isfinite(mean))
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "mean[%u]: value is %g; must be finite", c, p->mean[c]);
        if (!(isfinite(deviation) && deviation > 0.0f))
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "deviation[%u]: value is %g; must be finite and greater than 0", c,
                              p->deviation[c]);
    }
    int rc = check_scale(p->scale, err);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : check_unused(op, n, err);
}

static int check_float(const struct pstk_op *op, struct pstk_error *err)
{
    int rc = check_scale(op->params.to_float.scale, err);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 1, err);
}

static int check_channels(const struct pstk_op *op, uint32_t channels, struct pstk_error *err)
{
    const uint32_t n = channels_of(op);
    if (n != channels)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "mean and deviation: they have %u number%s; must be %u, one for each "
                          "channel of the image",
                          n, n == 1 ? "" : "s", channels);
    return (int)n;
}

static int check_view(const struct pstk_op *op, const struct pstk__view *view,
                      struct pstk_error *err)
{
    (void)op;
    if (view->dtype == PSTK_U8)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "its results are fractions, which dtype u8 cannot hold; use f16, bf16 or f32");
    return 0;
}

static void finish(const struct pstk_op *op, struct pstk__normalisation *normalisation)
{
    normalisation->is_set = 1;
    normalisation->scale = (uint32_t)op->params.normalize.scale;
    const uint32_t channels = channels_of(op);
    for (uint32_t c = 0; c < channels; c++) {
        normalisation->mean[c] = (float)op->params.normalize.mean[c];
        normalisation->deviation[c] = (float)op->params.normalize.deviation[c];
    }
}

static void finish_float(const struct pstk_op *op, struct pstk__normalisation *normalisation)
{
    normalisation->scale = (uint32_t)op->params.to_float.scale;
}

const struct pstk__op_entry pstk__op_to_float = {
    .kind = PSTK_OP_TO_FLOAT,
    .effects = PSTK__FINISHES,
    .name = "to float",
    .check = check_float,
    .check_view = check_view,
    .finish = finish_float,
};

const struct pstk__op_entry pstk__op_normalize = {
    .kind = PSTK_OP_NORMALIZE,
    .effects = PSTK__FINISHES,
    .uses = PSTK__USES_CHANNELS,
    .name = "normalise",
    .check = check,
    .check_view = check_view,
    .channels = check_channels,
    .finish = finish,
};
