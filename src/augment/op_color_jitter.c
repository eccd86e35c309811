/* SPDX-License-Identifier: Apache-2.0 */
/* op_color_jitter: torchvision's ColorJitter: brightness, contrast, saturation and hue, each by a
 * random factor, in a random order. */
#include "augment/op_tensor.h"
#include "augment/sampled_ops.h"

#include "base/error.h"

#define N_KINDS 4

/* The adjustments in the order of params.values, which has a smallest and a largest number of each.
 */
static const struct {
    uint32_t kind;
    const char *name;
    double least, most, neutral;
} adjustments[N_KINDS] = {
    {PSTK_OP_BRIGHTNESS, "brightness", 0, 1e6, 1},
    {PSTK_OP_CONTRAST, "contrast", 0, 1e6, 1},
    {PSTK_OP_SATURATION, "saturation", 0, 1e6, 1},
    {PSTK_OP_HUE, "hue", -0.5, 0.5, 0},
};

/* Return the smallest factor of a range given as one number, the reach. */
static double min_of(double reach)
{
    return reach < 1 ? 1 - reach : 0;
}

struct pstk_op pstk_color_jitter(double brightness, double contrast, double saturation, double hue)
{
    struct pstk_op op = {.kind = PSTK_OP_COLOR_JITTER};
    op.params.color_jitter = (struct pstk_color_jitter_params){.min_brightness = min_of(brightness),
                                                               .max_brightness = 1 + brightness,
                                                               .min_contrast = min_of(contrast),
                                                               .max_contrast = 1 + contrast,
                                                               .min_saturation = min_of(saturation),
                                                               .max_saturation = 1 + saturation,
                                                               .min_hue = -hue,
                                                               .max_hue = hue};
    return op;
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    for (int i = 0; i < N_KINDS; i++) {
        const double lo = op->params.values[2 * i], hi = op->params.values[2 * i + 1];
        if (!(lo >= adjustments[i].least && lo <= hi && hi <= adjustments[i].most))
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "%s: value is (%g, %g); must be two numbers in rising order, from %g "
                              "to %g",
                              adjustments[i].name, lo, hi, adjustments[i].least,
                              adjustments[i].most);
    }
    const int rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 8, err);
}

/* Return whether an adjustment is drawn. A range of one neutral number leaves it out, as in
 * torchvision. */
static int is_used(const struct pstk_op *op, uint32_t i)
{
    return op->params.values[2 * i] != adjustments[i].neutral ||
           op->params.values[2 * i + 1] != adjustments[i].neutral;
}

/* Draw as torchvision does: the order first, then the factors in the order of the arguments. */
static void draw(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to)
{
    uint32_t order[N_KINDS];
    double factors[N_KINDS];
    pstk__random_order(r, order, N_KINDS);
    for (uint32_t i = 0; i < N_KINDS; i++)
        factors[i] =
            pstk__random_uniform(r, op->params.values[2 * i], op->params.values[2 * i + 1]);
    for (uint32_t i = 0; i < N_KINDS; i++) {
        const struct pstk_op drawn = pstk_adjust(adjustments[order[i]].kind, factors[order[i]]);
        if (is_used(op, order[i]))
            pstk__sampled_ops_add(to, &drawn);
    }
}

static uint32_t most(const struct pstk_op *op)
{
    (void)op;
    return N_KINDS;
}

const struct pstk__op_entry pstk__op_color_jitter = {
    .kind = PSTK_OP_COLOR_JITTER,
    .effects = PSTK__PICTURES,
    .name = "colour jitter",
    .check = check,
    .draw = draw,
    .max_ops = most,
    .tensor = &pstk__op_tensor_random_colour,
};
