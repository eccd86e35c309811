/* SPDX-License-Identifier: Apache-2.0 */
/* op_timm: timm's RandAugment, AutoAugment and AugMix. Source: timm 1.0, data/auto_augment.py. */
#include "augment/chains.h"
#include "augment/op_tensor.h"
#include "augment/timm.h"

#include "base/error.h"
#include "pixels/blur.h"

#define MAX_OPS 32u /* maximum operations of RandAugment for one image */
#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

struct pstk_op pstk_timm_rand_augment(uint32_t n_ops, double magnitude, double deviation,
                                      uint32_t set)
{
    struct pstk_op op = {.kind = PSTK_OP_TIMM_RAND_AUGMENT,
                         .filter = PSTK_FILTER_RANDOM,
                         .fill = {128, 128, 128, 128}};
    op.params.timm_rand_augment =
        (struct pstk_timm_rand_augment_params){n_ops, magnitude, 0.5, deviation, 0, 10, set};
    return op;
}

struct pstk_op pstk_timm_auto_augment(uint32_t policy, double deviation)
{
    struct pstk_op op = {.kind = PSTK_OP_TIMM_AUTO_AUGMENT,
                         .filter = PSTK_FILTER_RANDOM,
                         .fill = {128, 128, 128, 128}};
    op.params.timm_auto_augment = (struct pstk_timm_auto_augment_params){policy, deviation};
    return op;
}

struct pstk_op pstk_timm_aug_mix(double magnitude, uint32_t n_chains, uint32_t depth, double alpha)
{
    struct pstk_op op = {
        .kind = PSTK_OP_TIMM_AUG_MIX, .filter = PSTK_FILTER_RANDOM, .fill = {128, 128, 128, 128}};
    op.params.timm_aug_mix =
        (struct pstk_timm_aug_mix_params){magnitude, n_chains, depth, alpha, 0, 0, 1};
    return op;
}

/* ---- RandAugment ----------------------------------------------------------------------------- */

#define M(name) PSTK__TIMM_##name
#define MAX_MEMBERS 15

/* The sets of RandAugment. Weights are twentieths; all 0: members are equally likely, and may be
 * drawn again. */
static const struct {
    uint32_t n;
    uint8_t members[MAX_MEMBERS], weights[MAX_MEMBERS];
} sets[] = {
    [PSTK_TIMM_SET_DEFAULT] = {15,
                               {M(AUTO_CONTRAST), M(EQUALIZE), M(INVERT), M(ROTATE), M(POSTERIZE),
                                M(SOLARIZE), M(SOLARIZE_ADD), M(COLOR), M(CONTRAST), M(BRIGHTNESS),
                                M(SHARPNESS), M(SHEAR_X), M(SHEAR_Y), M(TRANSLATE_X_REL),
                                M(TRANSLATE_Y_REL)},
                               {0}},
    [PSTK_TIMM_SET_INCREASING] = {15,
                                  {M(AUTO_CONTRAST), M(EQUALIZE), M(INVERT), M(ROTATE),
                                   M(POSTERIZE_INCREASING), M(SOLARIZE_INCREASING), M(SOLARIZE_ADD),
                                   M(COLOR_INCREASING), M(CONTRAST_INCREASING),
                                   M(BRIGHTNESS_INCREASING), M(SHARPNESS_INCREASING), M(SHEAR_X),
                                   M(SHEAR_Y), M(TRANSLATE_X_REL), M(TRANSLATE_Y_REL)},
                                  {0}},
    [PSTK_TIMM_SET_WEIGHTS] = {15,
                               {M(ROTATE), M(SHEAR_X), M(SHEAR_Y), M(TRANSLATE_X_REL),
                                M(TRANSLATE_Y_REL), M(COLOR_INCREASING), M(SHARPNESS_INCREASING),
                                M(AUTO_CONTRAST), M(SOLARIZE_INCREASING), M(SOLARIZE_ADD),
                                M(CONTRAST_INCREASING), M(BRIGHTNESS_INCREASING), M(EQUALIZE),
                                M(POSTERIZE_INCREASING), M(INVERT)},
                               {60, 40, 40, 20, 20, 5, 5, 5, 1, 1, 1, 1, 1, 1, 1}},
    [PSTK_TIMM_SET_3A] = {3, {M(SOLARIZE_INCREASING), M(DESATURATE), M(GAUSSIAN_BLUR)}, {0}},
    [PSTK_TIMM_SET_3A_WEIGHTS] = {14,
                                  {M(SOLARIZE_INCREASING), M(DESATURATE), M(GAUSSIAN_BLUR),
                                   M(ROTATE), M(SHEAR_X), M(SHEAR_Y), M(POSTERIZE_INCREASING),
                                   M(AUTO_CONTRAST), M(COLOR_INCREASING), M(SHARPNESS_INCREASING),
                                   M(CONTRAST_INCREASING), M(BRIGHTNESS_INCREASING), M(EQUALIZE),
                                   M(INVERT)},
                                  {120, 120, 120, 60, 40, 40, 20, 20, 20, 20, 20, 20, 20, 20}},
};

static int check_rand(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_timm_rand_augment_params *p = &op->params.timm_rand_augment;
    int rc = pstk__timm_check_whole("n_ops", p->n_ops, 1, MAX_OPS, err);
    if (rc == 0)
        rc = pstk__timm_check_number("magnitude", p->magnitude, 0, PSTK__TIMM_MAX, err);
    if (rc == 0)
        rc = pstk__timm_check_number("probability", p->probability, 0, 1, err);
    if (rc == 0)
        rc = pstk__timm_check_number("deviation", p->deviation, 0, PSTK__TIMM_MAX, err);
    if (rc == 0)
        rc = pstk__timm_check_whole("is_uniform", p->is_uniform, 0, 1, err);
    if (rc == 0)
        rc = pstk__timm_check_number("most", p->max_magnitude, 0, PSTK__TIMM_MAX, err);
    if (rc == 0)
        rc = pstk__timm_check_whole("set", p->set, 0, PSTK_TIMM_SET_3A_WEIGHTS, err);
    if (rc < 0)
        return rc;
    const uint32_t set = (uint32_t)p->set;
    if (sets[set].weights[0] > 0 && p->n_ops > sets[set].n)
        return FAIL("n_ops: value is %g; must be at most %u, as an image gets each operation of "
                    "this set once",
                    p->n_ops, sets[set].n);
    return pstk__timm_check_rest(op, 7, err);
}

/* Draw a member by its weight in `left`, which becomes 0. */
static uint32_t draw_weighted(struct pstk__random *r, uint8_t *left, uint32_t n)
{
    uint32_t sum = 0, i = 0;
    for (uint32_t k = 0; k < n; k++)
        sum += left[k];
    uint64_t at = pstk__random_below(r, sum);
    for (; at >= left[i]; i++)
        at -= left[i];
    left[i] = 0;
    return i;
}

/* Draw RandAugment. timm draws all members first. */
static void draw_rand(const struct pstk_op *op, struct pstk__random *r,
                      struct pstk__sampled_ops *to)
{
    const struct pstk_timm_rand_augment_params *p = &op->params.timm_rand_augment;
    const struct pstk__timm_level level = {.probability = p->probability,
                                           .magnitude = p->magnitude,
                                           .deviation = p->deviation,
                                           .is_uniform = p->is_uniform == 1,
                                           .most = p->max_magnitude};
    const uint32_t set = (uint32_t)p->set, n = (uint32_t)p->n_ops;
    uint32_t chosen[MAX_OPS];
    uint8_t left[MAX_MEMBERS];
    for (uint32_t i = 0; i < MAX_MEMBERS; i++)
        left[i] = sets[set].weights[i];
    for (uint32_t i = 0; i < n; i++)
        chosen[i] = sets[set].weights[0] > 0 ? draw_weighted(r, left, sets[set].n)
                                             : (uint32_t)pstk__random_below(r, sets[set].n);
    for (uint32_t i = 0; i < n; i++)
        pstk__timm_draw(to, r, op, (enum pstk__timm_member)sets[set].members[chosen[i]], &level);
}

static uint32_t max_rand(const struct pstk_op *op)
{
    return (uint32_t)op->params.timm_rand_augment.n_ops;
}

/* ---- AutoAugment ----------------------------------------------------------------------------- */

#define N_PAIRS 25
#define N_SINGLE 3 /* operations of policy 3a, which applies one */

/* A member, ten times its probability, and its magnitude. */
struct part {
    uint8_t member, tenths, magnitude;
};

/* Policies v0 and original. v0r and originalr have POSTERIZE_INCREASING in place of the others. */
static const struct part twos[2][N_PAIRS][2] = {
    {
        {{M(EQUALIZE), 8, 1}, {M(SHEAR_Y), 8, 4}},
        {{M(COLOR), 4, 9}, {M(EQUALIZE), 6, 3}},
        {{M(COLOR), 4, 1}, {M(ROTATE), 6, 8}},
        {{M(SOLARIZE), 8, 3}, {M(EQUALIZE), 4, 7}},
        {{M(SOLARIZE), 4, 2}, {M(SOLARIZE), 6, 2}},
        {{M(COLOR), 2, 0}, {M(EQUALIZE), 8, 8}},
        {{M(EQUALIZE), 4, 8}, {M(SOLARIZE_ADD), 8, 3}},
        {{M(SHEAR_X), 2, 9}, {M(ROTATE), 6, 8}},
        {{M(COLOR), 6, 1}, {M(EQUALIZE), 10, 2}},
        {{M(INVERT), 4, 9}, {M(ROTATE), 6, 0}},
        {{M(EQUALIZE), 10, 9}, {M(SHEAR_Y), 6, 3}},
        {{M(COLOR), 4, 7}, {M(EQUALIZE), 6, 0}},
        {{M(POSTERIZE), 4, 6}, {M(AUTO_CONTRAST), 4, 7}},
        {{M(SOLARIZE), 6, 8}, {M(COLOR), 6, 9}},
        {{M(SOLARIZE), 2, 4}, {M(ROTATE), 8, 9}},
        {{M(ROTATE), 10, 7}, {M(TRANSLATE_Y_REL), 8, 9}},
        {{M(SHEAR_X), 0, 0}, {M(SOLARIZE), 8, 4}},
        {{M(SHEAR_Y), 8, 0}, {M(COLOR), 6, 4}},
        {{M(COLOR), 10, 0}, {M(ROTATE), 6, 2}},
        {{M(EQUALIZE), 8, 4}, {M(EQUALIZE), 0, 8}},
        {{M(EQUALIZE), 10, 4}, {M(AUTO_CONTRAST), 6, 2}},
        {{M(SHEAR_Y), 4, 7}, {M(SOLARIZE_ADD), 6, 7}},
        {{M(POSTERIZE), 8, 2}, {M(SOLARIZE), 6, 10}},
        {{M(SOLARIZE), 6, 8}, {M(EQUALIZE), 6, 1}},
        {{M(COLOR), 8, 6}, {M(ROTATE), 4, 5}},
    },
    {
        {{M(POSTERIZE_ORIGINAL), 4, 8}, {M(ROTATE), 6, 9}},
        {{M(SOLARIZE), 6, 5}, {M(AUTO_CONTRAST), 6, 5}},
        {{M(EQUALIZE), 8, 8}, {M(EQUALIZE), 6, 3}},
        {{M(POSTERIZE_ORIGINAL), 6, 7}, {M(POSTERIZE_ORIGINAL), 6, 6}},
        {{M(EQUALIZE), 4, 7}, {M(SOLARIZE), 2, 4}},
        {{M(EQUALIZE), 4, 4}, {M(ROTATE), 8, 8}},
        {{M(SOLARIZE), 6, 3}, {M(EQUALIZE), 6, 7}},
        {{M(POSTERIZE_ORIGINAL), 8, 5}, {M(EQUALIZE), 10, 2}},
        {{M(ROTATE), 2, 3}, {M(SOLARIZE), 6, 8}},
        {{M(EQUALIZE), 6, 8}, {M(POSTERIZE_ORIGINAL), 4, 6}},
        {{M(ROTATE), 8, 8}, {M(COLOR), 4, 0}},
        {{M(ROTATE), 4, 9}, {M(EQUALIZE), 6, 2}},
        {{M(EQUALIZE), 0, 7}, {M(EQUALIZE), 8, 8}},
        {{M(INVERT), 6, 4}, {M(EQUALIZE), 10, 8}},
        {{M(COLOR), 6, 4}, {M(CONTRAST), 10, 8}},
        {{M(ROTATE), 8, 8}, {M(COLOR), 10, 2}},
        {{M(COLOR), 8, 8}, {M(SOLARIZE), 8, 7}},
        {{M(SHARPNESS), 4, 7}, {M(INVERT), 6, 8}},
        {{M(SHEAR_X), 6, 5}, {M(EQUALIZE), 10, 9}},
        {{M(COLOR), 4, 0}, {M(EQUALIZE), 6, 3}},
        {{M(EQUALIZE), 4, 7}, {M(SOLARIZE), 2, 4}},
        {{M(SOLARIZE), 6, 5}, {M(AUTO_CONTRAST), 6, 5}},
        {{M(INVERT), 6, 4}, {M(EQUALIZE), 10, 8}},
        {{M(COLOR), 6, 4}, {M(CONTRAST), 10, 8}},
        {{M(EQUALIZE), 8, 8}, {M(EQUALIZE), 6, 3}},
    },
};

static const struct part singles[N_SINGLE] = {
    {M(SOLARIZE), 10, 5},
    {M(DESATURATE), 10, 10},
    {M(GAUSSIAN_BLUR_RAND), 10, 10},
};

static int check_auto(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_timm_auto_augment_params *p = &op->params.timm_auto_augment;
    int rc = pstk__timm_check_whole("policy", p->policy, 0, PSTK_TIMM_POLICY_3A, err);
    if (rc == 0)
        rc = pstk__timm_check_number("deviation", p->deviation, 0, PSTK__TIMM_MAX, err);
    return rc < 0 ? rc : pstk__timm_check_rest(op, 2, err);
}

static void draw_part(const struct pstk_op *op, struct pstk__random *r,
                      struct pstk__sampled_ops *to, const struct part *part)
{
    const uint32_t policy = (uint32_t)op->params.timm_auto_augment.policy;
    const struct pstk__timm_level level = {.probability = part->tenths / 10.0,
                                           .magnitude = part->magnitude,
                                           .deviation = op->params.timm_auto_augment.deviation,
                                           .most = 10};
    const int is_posterize =
        part->member == PSTK__TIMM_POSTERIZE || part->member == PSTK__TIMM_POSTERIZE_ORIGINAL;
    const int increases = policy == PSTK_TIMM_POLICY_V0R || policy == PSTK_TIMM_POLICY_ORIGINALR;
    const uint32_t member =
        is_posterize && increases ? PSTK__TIMM_POSTERIZE_INCREASING : part->member;
    pstk__timm_draw(to, r, op, (enum pstk__timm_member)member, &level);
}

static void draw_auto(const struct pstk_op *op, struct pstk__random *r,
                      struct pstk__sampled_ops *to)
{
    const uint32_t policy = (uint32_t)op->params.timm_auto_augment.policy;
    if (policy == PSTK_TIMM_POLICY_3A) {
        draw_part(op, r, to, &singles[pstk__random_below(r, N_SINGLE)]);
        return;
    }
    const int is_original =
        policy == PSTK_TIMM_POLICY_ORIGINAL || policy == PSTK_TIMM_POLICY_ORIGINALR;
    const struct part *two = twos[is_original][pstk__random_below(r, N_PAIRS)];
    draw_part(op, r, to, &two[0]);
    draw_part(op, r, to, &two[1]);
}

static uint32_t max_auto(const struct pstk_op *op)
{
    (void)op;
    return 2;
}

/* ---- AugMix ---------------------------------------------------------------------------------- */

static const uint8_t mixed[] = {M(AUTO_CONTRAST),
                                M(COLOR_INCREASING),
                                M(CONTRAST_INCREASING),
                                M(BRIGHTNESS_INCREASING),
                                M(SHARPNESS_INCREASING),
                                M(EQUALIZE),
                                M(ROTATE),
                                M(POSTERIZE_INCREASING),
                                M(SOLARIZE_INCREASING),
                                M(SHEAR_X),
                                M(SHEAR_Y),
                                M(TRANSLATE_X_REL),
                                M(TRANSLATE_Y_REL)};

static int check_mix(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_timm_aug_mix_params *p = &op->params.timm_aug_mix;
    int rc = pstk__timm_check_number("magnitude", p->magnitude, 0, PSTK__TIMM_MAX, err);
    if (rc == 0)
        rc = pstk__timm_check_whole("width", p->n_chains, 1, PSTK__MAX_CHAINS, err);
    if (rc == 0)
        rc = pstk__timm_check_whole("depth", p->depth, 0, PSTK__MAX_CHAIN, err);
    if (rc == 0)
        rc = pstk__timm_check_number("alpha", p->alpha, 0.01, 100, err);
    if (rc == 0)
        rc = pstk__timm_check_whole("blended", p->blended, 0, 1, err);
    if (rc == 0)
        rc = pstk__timm_check_number("deviation", p->deviation, 0, PSTK__TIMM_MAX, err);
    if (rc == 0)
        rc = pstk__timm_check_whole("is_uniform", p->is_uniform, 0, 1, err);
    return rc < 0 ? rc : pstk__timm_check_rest(op, 7, err);
}

static void draw_chain(const struct pstk_op *op, struct pstk__random *r,
                       struct pstk__sampled_ops *to)
{
    const struct pstk_timm_aug_mix_params *p = &op->params.timm_aug_mix;
    const struct pstk__timm_level level = {.probability = 1,
                                           .magnitude = p->magnitude,
                                           .deviation = p->deviation,
                                           .is_uniform = p->is_uniform == 1,
                                           .most = 10};
    uint8_t members[PSTK__MAX_CHAIN];
    const uint32_t n = p->depth > 0 ? (uint32_t)p->depth : 1 + (uint32_t)pstk__random_below(r, 3);
    for (uint32_t i = 0; i < n; i++)
        members[i] = mixed[pstk__random_below(r, sizeof mixed)];
    for (uint32_t i = 0; i < n; i++)
        pstk__timm_draw(to, r, op, (enum pstk__timm_member)members[i], &level);
}

/* Convert weights of a sum to alphas of successive blends with nearly the same result: timm's
 * _calc_blended_weights, in float32. */
static void blended_weights(float *weights, uint32_t n, float share)
{
    float left = 1;
    for (uint32_t i = n; i-- > 0;) {
        const float alpha = weights[i] * share / left;
        left *= 1 - alpha;
        weights[i] = alpha > 0 ? alpha < 1 ? alpha : 1 : 0;
    }
}

static void draw_mix(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to)
{
    const uint32_t n = (uint32_t)op->params.timm_aug_mix.n_chains;
    const int blends = op->params.timm_aug_mix.blended == 1;
    float shares[2], weights[PSTK__MAX_CHAINS];
    pstk__chains_weights(r, op->params.timm_aug_mix.alpha, n, weights);
    pstk__chains_weights(r, op->params.timm_aug_mix.alpha, 2, shares);
    if (blends)
        blended_weights(weights, n, shares[0]);
    const uint32_t at = pstk__chains_begin(to, blends ? PSTK_CHAIN_BLENDS : PSTK_CHAIN_BLENDED_SUM,
                                           blends ? 0 : shares[0]);
    for (uint32_t i = 0; i < n; i++) {
        pstk__chains_add(to, weights[i]);
        draw_chain(op, r, to);
    }
    pstk__chains_end(to, at);
}

static uint32_t max_mix(const struct pstk_op *op)
{
    const uint32_t depth =
        op->params.timm_aug_mix.depth > 0 ? (uint32_t)op->params.timm_aug_mix.depth : 3;
    return 1 + (uint32_t)op->params.timm_aug_mix.n_chains * (1 + depth);
}

static uint64_t scratch_mix(const struct pstk_op *op, const struct pstk__largest *in,
                            uint32_t channels)
{
    (void)op;
    return pstk__chains_scratch(in, channels);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Return the scratch of the blur, which some policies draw. */
static uint64_t scratch(const struct pstk_op *op, const struct pstk__largest *in, uint32_t channels)
{
    (void)op;
    return pstk__blur_scratch(in->width, in->height, channels) + 64;
}

#define ENTRY(member, number, words, ...)                                                          \
    const struct pstk__op_entry pstk__op_timm_##member = {.kind = number,                          \
                                                          .effects = PSTK__PICTURES,               \
                                                          .uses =                                  \
                                                              PSTK__USES_FILTER | PSTK__USES_FILL, \
                                                          .name = words,                           \
                                                          .channels = pstk__timm_no_alpha,         \
                                                          __VA_ARGS__}

ENTRY(rand_augment, PSTK_OP_TIMM_RAND_AUGMENT, "timm's rand augment", .check = check_rand,
      .draw = draw_rand, .max_ops = max_rand, .scratch = scratch, .tensor = &pstk__op_tensor_none);
ENTRY(auto_augment, PSTK_OP_TIMM_AUTO_AUGMENT, "timm's auto augment", .check = check_auto,
      .draw = draw_auto, .max_ops = max_auto, .scratch = scratch, .tensor = &pstk__op_tensor_none);
ENTRY(aug_mix, PSTK_OP_TIMM_AUG_MIX, "timm's aug mix", .check = check_mix, .draw = draw_mix,
      .max_ops = max_mix, .scratch = scratch_mix, .tensor = &pstk__op_tensor_none);
