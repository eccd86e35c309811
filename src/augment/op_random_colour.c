/* SPDX-License-Identifier: Apache-2.0 */
/* op_random_colour: torchvision's RandomGrayscale, RandomChannelPermutation and
 * RandomPhotometricDistort. Source: torchvision 0.29, transforms/v2/_color.py. */
#include "augment/sampled_ops.h"

#include "base/error.h"

#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

/* The adjustments of a photometric distortion, in the order of params.values, which has the
 * smallest and the largest number of each. */
enum {
    BRIGHTNESS,
    CONTRAST,
    SATURATION,
    HUE,
    N_ADJUSTMENTS,
};

static const struct {
    uint32_t kind;
    const char *name;
    double least, most;
} adjustments[N_ADJUSTMENTS] = {
    [BRIGHTNESS] = {PSTK_OP_BRIGHTNESS, "brightness", 0, 1e6},
    [CONTRAST] = {PSTK_OP_CONTRAST, "contrast", 0, 1e6},
    [SATURATION] = {PSTK_OP_SATURATION, "saturation", 0, 1e6},
    [HUE] = {PSTK_OP_HUE, "hue", -0.5, 0.5},
};

struct pstk_op pstk_random_grayscale(double probability)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_GRAYSCALE};
    op.params.random_grayscale = (struct pstk_probability_params){probability};
    return op;
}

struct pstk_op pstk_random_channel_permutation(void)
{
    return (struct pstk_op){.kind = PSTK_OP_RANDOM_CHANNEL_PERMUTATION};
}

struct pstk_op pstk_random_photometric_distort(double probability)
{
    struct pstk_op op = {.kind = PSTK_OP_RANDOM_PHOTOMETRIC_DISTORT};
    op.params.random_photometric_distort = (struct pstk_random_photometric_distort_params){
        0.875, 1.125, 0.5, 1.5, 0.5, 1.5, -0.05, 0.05, probability};
    return op;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Check a probability, which is the last parameter. */
static int check_probability(const struct pstk_op *op, double probability, uint32_t n_used,
                             struct pstk_error *err)
{
    if (!(probability >= 0 && probability <= 1))
        return FAIL("probability: value is %g; must be from 0 to 1", probability);
    const int rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, n_used, err);
}

static int check_grayscale(const struct pstk_op *op, struct pstk_error *err)
{
    return check_probability(op, op->params.random_grayscale.probability, 1, err);
}

static int check_distort(const struct pstk_op *op, struct pstk_error *err)
{
    for (int i = 0; i < N_ADJUSTMENTS; i++) {
        const double lo = op->params.values[2 * i], hi = op->params.values[2 * i + 1];
        if (!(lo >= adjustments[i].least && lo <= hi && hi <= adjustments[i].most))
            return FAIL("%s: value is (%g, %g); must be two numbers in rising order, from %g to %g",
                        adjustments[i].name, lo, hi, adjustments[i].least, adjustments[i].most);
    }
    return check_probability(op, op->params.random_photometric_distort.probability,
                             2 * N_ADJUSTMENTS + 1, err);
}

static int no_alpha(const struct pstk_op *op, uint32_t channels, struct pstk_error *err)
{
    (void)op;
    if (channels == 4)
        return FAIL("it takes 1 or 3 channels, and the image has 4, whose alpha is no colour");
    return (int)channels;
}

/* ---- draws ----------------------------------------------------------------------------------- */

/* Draw nothing for an image of one channel: it is gray. */
static void draw_grayscale(const struct pstk_op *op, struct pstk__random *r,
                           struct pstk__sampled_ops *to)
{
    const struct pstk_op drawn = pstk_grayscale(3);
    if (pstk__random_unit(r) < op->params.random_grayscale.probability && to->view.channels == 3)
        pstk__sampled_ops_add(to, &drawn);
}

/* Draw nothing for one channel: it has one order. */
static void draw_permutation(const struct pstk_op *op, struct pstk__random *r,
                             struct pstk__sampled_ops *to)
{
    uint32_t order[3];
    struct pstk_op drawn = pstk_adjust(PSTK_OP_PERMUTE_CHANNELS, 0);
    (void)op;
    if (to->view.channels != 3)
        return;
    pstk__random_order(r, order, 3);
    for (int c = 0; c < 3; c++)
        drawn.params.permute_channels.order[c] = order[c];
    pstk__sampled_ops_add(to, &drawn);
}

static void adjust(struct pstk__sampled_ops *to, int i, double factor, int is_on)
{
    const struct pstk_op drawn = pstk_adjust(adjustments[i].kind, factor);
    if (is_on)
        pstk__sampled_ops_add(to, &drawn);
}

/* Draw a distortion as torchvision does: all numbers before any is applied. */
static void draw_distort(const struct pstk_op *op, struct pstk__random *r,
                         struct pstk__sampled_ops *to)
{
    const double *ranges = op->params.values;
    const double probability = op->params.random_photometric_distort.probability;
    double factors[N_ADJUSTMENTS] = {0};
    int is_on[N_ADJUSTMENTS];
    for (int i = 0; i < N_ADJUSTMENTS; i++) {
        is_on[i] = pstk__random_unit(r) < probability;
        if (is_on[i])
            factors[i] = pstk__random_uniform(r, ranges[2 * i], ranges[2 * i + 1]);
    }
    const int is_first = pstk__random_unit(r) < 0.5;
    adjust(to, BRIGHTNESS, factors[BRIGHTNESS], is_on[BRIGHTNESS]);
    adjust(to, CONTRAST, factors[CONTRAST], is_on[CONTRAST] && is_first);
    adjust(to, SATURATION, factors[SATURATION], is_on[SATURATION]);
    adjust(to, HUE, factors[HUE], is_on[HUE]);
    adjust(to, CONTRAST, factors[CONTRAST], is_on[CONTRAST] && !is_first);
    if (pstk__random_unit(r) < probability)
        draw_permutation(op, r, to);
}

static uint32_t max_distort(const struct pstk_op *op)
{
    (void)op;
    return N_ADJUSTMENTS + 1;
}

#define ENTRY(member, number, words, ...)                                                          \
    const struct pstk__op_entry pstk__op_random_##member = {.kind = number,                        \
                                                            .effects = PSTK__PICTURES,             \
                                                            .name = words,                         \
                                                            .channels = no_alpha,                  \
                                                            __VA_ARGS__}

ENTRY(grayscale, PSTK_OP_RANDOM_GRAYSCALE, "random grayscale", .check = check_grayscale,
      .draw = draw_grayscale);
ENTRY(channel_permutation, PSTK_OP_RANDOM_CHANNEL_PERMUTATION, "random channel permutation",
      .check = pstk__op_check_plain, .draw = draw_permutation);
ENTRY(photometric_distort, PSTK_OP_RANDOM_PHOTOMETRIC_DISTORT, "random photometric distort",
      .check = check_distort, .draw = draw_distort, .max_ops = max_distort);
