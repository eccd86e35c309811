/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_policy: torchvision's TrivialAugmentWide, RandAugment, AutoAugment and AugMix. Each draws
 * operations from a set, with magnitudes from tables. Source: torchvision 0.29,
 * transforms/autoaugment.py.
 */
#include "augment/chains.h"
#include "augment/op_tensor.h"
#include "augment/sampled_ops.h"

#include "base/error.h"

#define MAX_OPS 32u /* maximum operations of RandAugment for one image */
#define MAX_BINS 256u
#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

struct pstk_op pstk_trivial_augment_wide(uint32_t bins, uint32_t filter)
{
    struct pstk_op op = {.kind = PSTK_OP_TRIVIAL_AUGMENT_WIDE, .filter = filter};
    op.params.trivial_augment_wide = (struct pstk_trivial_augment_wide_params){bins};
    return op;
}

struct pstk_op pstk_rand_augment(uint32_t n_ops, uint32_t magnitude, uint32_t bins, uint32_t filter)
{
    struct pstk_op op = {.kind = PSTK_OP_RAND_AUGMENT, .filter = filter};
    op.params.rand_augment = (struct pstk_rand_augment_params){n_ops, magnitude, bins};
    return op;
}

struct pstk_op pstk_auto_augment(uint32_t policy, uint32_t filter)
{
    struct pstk_op op = {.kind = PSTK_OP_AUTO_AUGMENT, .filter = filter};
    op.params.auto_augment = (struct pstk_auto_augment_params){policy};
    return op;
}

struct pstk_op pstk_aug_mix(uint32_t severity, uint32_t n_chains, uint32_t depth, double alpha)
{
    struct pstk_op op = {.kind = PSTK_OP_AUG_MIX, .filter = PSTK_FILTER_BILINEAR};
    op.params.aug_mix = (struct pstk_aug_mix_params){severity, n_chains, depth, alpha, 1};
    return op;
}

/* ---- the set of operations ------------------------------------------------------------------- */

/* The members in torchvision's order for TrivialAugmentWide and RandAugment; AutoAugment has
 * Invert, too. */
enum member {
    IDENTITY,
    SHEAR_X,
    SHEAR_Y,
    TRANSLATE_X,
    TRANSLATE_Y,
    ROTATE,
    BRIGHTNESS,
    COLOR,
    CONTRAST,
    SHARPNESS,
    POSTERIZE,
    SOLARIZE,
    AUTOCONTRAST,
    EQUALIZE,
    N_DRAWN, /* number of members that TrivialAugmentWide and RandAugment draw from */
    INVERT = N_DRAWN,
};

static int is_signed(enum member member)
{
    return member >= SHEAR_X && member <= SHARPNESS;
}

/* The greatest magnitudes of a policy. */
struct space {
    float shear, degrees, factor;
    float translate[2];           /* pixels in x and y */
    uint32_t all_bits, lost_bits; /* posterize: bits kept at magnitude 0, and lost at the largest */
    uint32_t n_bins;
};

static struct space space_wide(uint32_t n_bins)
{
    return (struct space){.shear = 0.99f,
                          .degrees = 135.0f,
                          .factor = 0.99f,
                          .translate = {32.0f, 32.0f},
                          .all_bits = 8,
                          .lost_bits = 6,
                          .n_bins = n_bins};
}

/* Return the magnitudes of RandAugment and AutoAugment for an image of this size. */
static struct space space_of(const struct pstk__view *view, uint32_t n_bins)
{
    return (struct space){
        .shear = 0.3f,
        .degrees = 30.0f,
        .factor = 0.9f,
        .translate = {(float)(150.0 / 331.0 * view->width), (float)(150.0 / 331.0 * view->height)},
        .all_bits = 8,
        .lost_bits = 4,
        .n_bins = n_bins};
}

/* Return torch.linspace(from, to, n)[i] in float32, counted from the nearer end. torch uses a fused
 * multiply-add if the CPU has one; a double holds the product exactly. */
static double linspace(float from, float to, uint32_t n, uint32_t i)
{
    const float step = (to - from) / (float)(n - 1);
    return i < n / 2 ? (float)(from + (double)step * i) : (float)(to - (double)step * (n - 1 - i));
}

/* Return the bits that posterize keeps: all - round(i / ((n - 1) / lost)), in float32 as torch. */
static double bits_of(const struct space *space, uint32_t i)
{
    const float divisor = (float)((double)(space->n_bins - 1) / space->lost_bits);
    return space->all_bits - pstk__rint_even((float)i / divisor);
}

/* Return the magnitude of bin i; 0 for members without one. */
static double magnitude_of(const struct space *space, enum member member, uint32_t i)
{
    switch (member) {
    case SHEAR_X:
    case SHEAR_Y:
        return linspace(0, space->shear, space->n_bins, i);
    case TRANSLATE_X:
    case TRANSLATE_Y:
        return linspace(0, space->translate[member == TRANSLATE_Y], space->n_bins, i);
    case ROTATE:
        return linspace(0, space->degrees, space->n_bins, i);
    case BRIGHTNESS:
    case COLOR:
    case CONTRAST:
    case SHARPNESS:
        return linspace(0, space->factor, space->n_bins, i);
    case POSTERIZE:
        return bits_of(space, i);
    case SOLARIZE:
        return linspace(255, 0, space->n_bins, i);
    default:
        return 0;
    }
}

/* Return an affine op without rotation: x grows by `shear_x` a row, y by `shear_y` a column. */
static struct pstk_op moved(double shear_x, double shear_y, double x, double y)
{
    return pstk_affine((const double[6]){1, shear_x, x, shear_y, 1, y}, 0);
}

/* Append a member as torchvision's _apply_op. Its shear is tan(atan(magnitude)), here the magnitude
 * itself; translations are cut to whole pixels. */
static void add(struct pstk__sampled_ops *to, const struct pstk_op *policy, enum member member,
                double magnitude)
{
    static const uint32_t adjusted[] = {[BRIGHTNESS] = PSTK_OP_BRIGHTNESS,
                                        [COLOR] = PSTK_OP_SATURATION,
                                        [CONTRAST] = PSTK_OP_CONTRAST,
                                        [SHARPNESS] = PSTK_OP_SHARPNESS,
                                        [POSTERIZE] = PSTK_OP_POSTERIZE,
                                        [SOLARIZE] = PSTK_OP_SOLARIZE,
                                        [AUTOCONTRAST] = PSTK_OP_AUTOCONTRAST,
                                        [EQUALIZE] = PSTK_OP_EQUALIZE,
                                        [INVERT] = PSTK_OP_INVERT};
    struct pstk_op op;
    switch (member) {
    case IDENTITY:
        return;
    case SHEAR_X:
        op = moved(magnitude, 0, 0, 0);
        break;
    case SHEAR_Y:
        op = moved(0, magnitude, 0, 0);
        break;
    case TRANSLATE_X:
        op = moved(0, 0, -(double)(int32_t)magnitude, 0);
        break;
    case TRANSLATE_Y:
        op = moved(0, 0, 0, -(double)(int32_t)magnitude);
        break;
    case ROTATE:
        op = pstk_rotate(magnitude, 0, 0);
        break;
    case BRIGHTNESS:
    case COLOR:
    case CONTRAST:
    case SHARPNESS:
        op = pstk_adjust(adjusted[member], 1.0 + magnitude);
        break;
    default:
        op = pstk_adjust(adjusted[member], magnitude);
        break;
    }
    if (member <= ROTATE) {
        op.filter = policy->filter;
        for (int c = 0; c < 4; c++)
            op.fill[c] = policy->fill[c];
    }
    pstk__sampled_ops_add(to, &op);
}

/* ---- TrivialAugmentWide and RandAugment ------------------------------------------------------ */

static int check_whole(const char *what, double value, double least, double most,
                       struct pstk_error *err)
{
    if (!(value >= least && value <= most && value == (uint32_t)value))
        return FAIL("%s: value is %g; must be a whole number from %g to %g", what, value, least,
                    most);
    return 0;
}

static int check_rest(const struct pstk_op *op, uint32_t n_used, struct pstk_error *err)
{
    int rc = pstk__op_check_warp_filter(op, err);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, n_used, err);
}

static int check_wide(const struct pstk_op *op, struct pstk_error *err)
{
    const int rc = check_whole("bins", op->params.trivial_augment_wide.bins, 2, MAX_BINS, err);
    return rc < 0 ? rc : check_rest(op, 1, err);
}

static int check_rand(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_rand_augment_params *p = &op->params.rand_augment;
    int rc = check_whole("n_ops", p->n_ops, 1, MAX_OPS, err);
    if (rc == 0)
        rc = check_whole("bins", p->bins, 2, MAX_BINS, err);
    if (rc == 0)
        rc = check_whole("magnitude", p->magnitude, 0, p->bins - 1, err);
    return rc < 0 ? rc : check_rest(op, 3, err);
}

/* Refuse RGBA: Pillow lacks some operations of the policies for it. */
static int no_alpha(const struct pstk_op *op, uint32_t channels, struct pstk_error *err)
{
    (void)op;
    if (channels == 4)
        return FAIL("it takes 1 or 3 channels, and the image has 4, as Pillow lacks some of its "
                    "operations on RGBA");
    return (int)channels;
}

static double with_sign(struct pstk__random *r, enum member member, double magnitude)
{
    return is_signed(member) && pstk__random_below(r, 2) ? -magnitude : magnitude;
}

static void draw_wide(const struct pstk_op *op, struct pstk__random *r,
                      struct pstk__sampled_ops *to)
{
    const struct space space = space_wide((uint32_t)op->params.trivial_augment_wide.bins);
    const enum member member = (enum member)pstk__random_below(r, N_DRAWN);
    const double magnitude =
        magnitude_of(&space, member, (uint32_t)pstk__random_below(r, space.n_bins));
    add(to, op, member, with_sign(r, member, magnitude));
}

static void draw_rand(const struct pstk_op *op, struct pstk__random *r,
                      struct pstk__sampled_ops *to)
{
    const struct space space = space_of(&to->view, (uint32_t)op->params.rand_augment.bins);
    for (uint32_t i = 0; i < (uint32_t)op->params.rand_augment.n_ops; i++) {
        const enum member member = (enum member)pstk__random_below(r, N_DRAWN);
        const double magnitude =
            magnitude_of(&space, member, (uint32_t)op->params.rand_augment.magnitude);
        add(to, op, member, with_sign(r, member, magnitude));
    }
}

static uint32_t max_rand(const struct pstk_op *op)
{
    return (uint32_t)op->params.rand_augment.n_ops;
}

/* ---- AutoAugment ----------------------------------------------------------------------------- */

#define N_PAIRS 25
#define N_BINS 10

/* A member, ten times its probability, and its bin. */
struct half {
    uint8_t member, tenths, bin;
};

static const struct half pairs[3][N_PAIRS][2] = {
    [PSTK_AUTO_AUGMENT_IMAGENET] =
        {
            {{POSTERIZE, 4, 8}, {ROTATE, 6, 9}},  {{SOLARIZE, 6, 5}, {AUTOCONTRAST, 6, 0}},
            {{EQUALIZE, 8, 0}, {EQUALIZE, 6, 0}}, {{POSTERIZE, 6, 7}, {POSTERIZE, 6, 6}},
            {{EQUALIZE, 4, 0}, {SOLARIZE, 2, 4}}, {{EQUALIZE, 4, 0}, {ROTATE, 8, 8}},
            {{SOLARIZE, 6, 3}, {EQUALIZE, 6, 0}}, {{POSTERIZE, 8, 5}, {EQUALIZE, 10, 0}},
            {{ROTATE, 2, 3}, {SOLARIZE, 6, 8}},   {{EQUALIZE, 6, 0}, {POSTERIZE, 4, 6}},
            {{ROTATE, 8, 8}, {COLOR, 4, 0}},      {{ROTATE, 4, 9}, {EQUALIZE, 6, 0}},
            {{EQUALIZE, 0, 0}, {EQUALIZE, 8, 0}}, {{INVERT, 6, 0}, {EQUALIZE, 10, 0}},
            {{COLOR, 6, 4}, {CONTRAST, 10, 8}},   {{ROTATE, 8, 8}, {COLOR, 10, 2}},
            {{COLOR, 8, 8}, {SOLARIZE, 8, 7}},    {{SHARPNESS, 4, 7}, {INVERT, 6, 0}},
            {{SHEAR_X, 6, 5}, {EQUALIZE, 10, 0}}, {{COLOR, 4, 0}, {EQUALIZE, 6, 0}},
            {{EQUALIZE, 4, 0}, {SOLARIZE, 2, 4}}, {{SOLARIZE, 6, 5}, {AUTOCONTRAST, 6, 0}},
            {{INVERT, 6, 0}, {EQUALIZE, 10, 0}},  {{COLOR, 6, 4}, {CONTRAST, 10, 8}},
            {{EQUALIZE, 8, 0}, {EQUALIZE, 6, 0}},
        },
    [PSTK_AUTO_AUGMENT_CIFAR10] =
        {
            {{INVERT, 1, 0}, {CONTRAST, 2, 6}},          {{ROTATE, 7, 2}, {TRANSLATE_X, 3, 9}},
            {{SHARPNESS, 8, 1}, {SHARPNESS, 9, 3}},      {{SHEAR_Y, 5, 8}, {TRANSLATE_Y, 7, 9}},
            {{AUTOCONTRAST, 5, 0}, {EQUALIZE, 9, 0}},    {{SHEAR_Y, 2, 7}, {POSTERIZE, 3, 7}},
            {{COLOR, 4, 3}, {BRIGHTNESS, 6, 7}},         {{SHARPNESS, 3, 9}, {BRIGHTNESS, 7, 9}},
            {{EQUALIZE, 6, 0}, {EQUALIZE, 5, 0}},        {{CONTRAST, 6, 7}, {SHARPNESS, 6, 5}},
            {{COLOR, 7, 7}, {TRANSLATE_X, 5, 8}},        {{EQUALIZE, 3, 0}, {AUTOCONTRAST, 4, 0}},
            {{TRANSLATE_Y, 4, 3}, {SHARPNESS, 2, 6}},    {{BRIGHTNESS, 9, 6}, {COLOR, 2, 8}},
            {{SOLARIZE, 5, 2}, {INVERT, 0, 0}},          {{EQUALIZE, 2, 0}, {AUTOCONTRAST, 6, 0}},
            {{EQUALIZE, 2, 0}, {EQUALIZE, 6, 0}},        {{COLOR, 9, 9}, {EQUALIZE, 6, 0}},
            {{AUTOCONTRAST, 8, 0}, {SOLARIZE, 2, 8}},    {{BRIGHTNESS, 1, 3}, {COLOR, 7, 0}},
            {{SOLARIZE, 4, 5}, {AUTOCONTRAST, 9, 0}},    {{TRANSLATE_Y, 9, 9}, {TRANSLATE_Y, 7, 9}},
            {{AUTOCONTRAST, 9, 0}, {SOLARIZE, 8, 3}},    {{EQUALIZE, 8, 0}, {INVERT, 1, 0}},
            {{TRANSLATE_Y, 7, 9}, {AUTOCONTRAST, 9, 0}},
        },
    [PSTK_AUTO_AUGMENT_SVHN] =
        {
            {{SHEAR_X, 9, 4}, {INVERT, 2, 0}},       {{SHEAR_Y, 9, 8}, {INVERT, 7, 0}},
            {{EQUALIZE, 6, 0}, {SOLARIZE, 6, 6}},    {{INVERT, 9, 0}, {EQUALIZE, 6, 0}},
            {{EQUALIZE, 6, 0}, {ROTATE, 9, 3}},      {{SHEAR_X, 9, 4}, {AUTOCONTRAST, 8, 0}},
            {{SHEAR_Y, 9, 8}, {INVERT, 4, 0}},       {{SHEAR_Y, 9, 5}, {SOLARIZE, 2, 6}},
            {{INVERT, 9, 0}, {AUTOCONTRAST, 8, 0}},  {{EQUALIZE, 6, 0}, {ROTATE, 9, 3}},
            {{SHEAR_X, 9, 4}, {SOLARIZE, 3, 3}},     {{SHEAR_Y, 8, 8}, {INVERT, 7, 0}},
            {{EQUALIZE, 9, 0}, {TRANSLATE_Y, 6, 6}}, {{INVERT, 9, 0}, {EQUALIZE, 6, 0}},
            {{CONTRAST, 3, 3}, {ROTATE, 8, 4}},      {{INVERT, 8, 0}, {TRANSLATE_Y, 0, 2}},
            {{SHEAR_Y, 7, 6}, {SOLARIZE, 4, 8}},     {{INVERT, 6, 0}, {ROTATE, 8, 4}},
            {{SHEAR_Y, 3, 7}, {TRANSLATE_X, 9, 3}},  {{SHEAR_X, 1, 6}, {INVERT, 6, 0}},
            {{SOLARIZE, 7, 2}, {TRANSLATE_Y, 6, 7}}, {{SHEAR_Y, 8, 4}, {INVERT, 8, 0}},
            {{SHEAR_X, 7, 9}, {TRANSLATE_Y, 8, 3}},  {{SHEAR_Y, 8, 5}, {AUTOCONTRAST, 7, 0}},
            {{SHEAR_X, 7, 2}, {INVERT, 1, 0}},
        },
};

static int check_auto(const struct pstk_op *op, struct pstk_error *err)
{
    const int rc = check_whole("policy", op->params.auto_augment.policy, 0, 2, err);
    return rc < 0 ? rc : check_rest(op, 1, err);
}

static void draw_auto(const struct pstk_op *op, struct pstk__random *r,
                      struct pstk__sampled_ops *to)
{
    const struct space space = space_of(&to->view, N_BINS);
    const struct half *pair =
        pairs[(uint32_t)op->params.auto_augment.policy][pstk__random_below(r, N_PAIRS)];
    for (int i = 0; i < 2; i++) {
        const enum member member = (enum member)pair[i].member;
        const double magnitude = magnitude_of(&space, member, pair[i].bin);
        if (pstk__random_unit(r) * 10 < pair[i].tenths)
            add(to, op, member, with_sign(r, member, magnitude));
    }
}

static uint32_t max_auto(const struct pstk_op *op)
{
    (void)op;
    return 2;
}

/* ---- AugMix ---------------------------------------------------------------------------------- */

static const uint8_t mixed[] = {SHEAR_X,   SHEAR_Y,  TRANSLATE_X,  TRANSLATE_Y, ROTATE,
                                POSTERIZE, SOLARIZE, AUTOCONTRAST, EQUALIZE,    BRIGHTNESS,
                                COLOR,     CONTRAST, SHARPNESS};
#define N_MIXED (sizeof mixed)
#define N_COLOURLESS 9 /* number of the first members that are left without those of ALL_OPS */

static int check_mix(const struct pstk_op *op, struct pstk_error *err)
{
    const struct pstk_aug_mix_params *p = &op->params.aug_mix;
    int rc = check_whole("severity", p->severity, 1, N_BINS, err);
    if (rc == 0)
        rc = check_whole("mixture_width", p->n_chains, 1, PSTK__MAX_CHAINS, err);
    if (rc == 0)
        rc = check_whole("chain_depth", p->depth, 0, PSTK__MAX_CHAIN, err);
    if (rc == 0 && !(p->alpha >= 0.01 && p->alpha <= 100))
        rc = FAIL("alpha: value is %g; must be from 0.01 to 100", p->alpha);
    if (rc == 0)
        rc = check_whole("all_ops", p->all_ops, 0, 1, err);
    return rc < 0 ? rc : check_rest(op, 5, err);
}

static void draw_chain(const struct pstk_op *op, struct pstk__random *r,
                       struct pstk__sampled_ops *to)
{
    const struct pstk_aug_mix_params *p = &op->params.aug_mix;
    struct space space = space_of(&to->view, N_BINS);
    space.translate[0] = (float)(to->view.width / 3.0);
    space.translate[1] = (float)(to->view.height / 3.0);
    space.all_bits = 4;
    const uint32_t depth =
        p->depth > 0 ? (uint32_t)p->depth : 1 + (uint32_t)pstk__random_below(r, 3);
    for (uint32_t i = 0; i < depth; i++) {
        const enum member member =
            (enum member)mixed[pstk__random_below(r, p->all_ops == 1 ? N_MIXED : N_COLOURLESS)];
        const double magnitude =
            magnitude_of(&space, member, (uint32_t)pstk__random_below(r, (uint64_t)p->severity));
        add(to, op, member, with_sign(r, member, magnitude));
    }
}

/* Draw AugMix. torchvision draws all weights first. */
static void draw_mix(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to)
{
    const uint32_t n = (uint32_t)op->params.aug_mix.n_chains;
    float shares[2], weights[PSTK__MAX_CHAINS];
    pstk__chains_weights(r, op->params.aug_mix.alpha, 2, shares);
    pstk__chains_weights(r, op->params.aug_mix.alpha, n, weights);
    const uint32_t at = pstk__chains_begin(to, PSTK_CHAIN_SUM, shares[0]);
    for (uint32_t i = 0; i < n; i++) {
        pstk__chains_add(to, weights[i] * shares[1]);
        draw_chain(op, r, to);
    }
    pstk__chains_end(to, at);
}

static uint32_t max_mix(const struct pstk_op *op)
{
    const uint32_t depth = op->params.aug_mix.depth > 0 ? (uint32_t)op->params.aug_mix.depth : 3;
    return 1 + (uint32_t)op->params.aug_mix.n_chains * (1 + depth);
}

static uint64_t scratch_mix(const struct pstk_op *op, const struct pstk__largest *in,
                            uint32_t channels)
{
    (void)op;
    return pstk__chains_scratch(in, channels);
}

/* ---- entries --------------------------------------------------------------------------------- */

#define ENTRY(member, number, words, ...)                                                          \
    const struct pstk__op_entry pstk__op_##member = {.kind = number,                               \
                                                     .effects = PSTK__PICTURES,                    \
                                                     .uses = PSTK__USES_FILTER | PSTK__USES_FILL,  \
                                                     .name = words,                                \
                                                     .channels = no_alpha,                         \
                                                     __VA_ARGS__}

ENTRY(trivial_augment_wide, PSTK_OP_TRIVIAL_AUGMENT_WIDE, "trivial augment", .check = check_wide,
      .draw = draw_wide, .tensor = &pstk__op_tensor_random_warp);
ENTRY(rand_augment, PSTK_OP_RAND_AUGMENT, "rand augment", .check = check_rand, .draw = draw_rand,
      .max_ops = max_rand, .tensor = &pstk__op_tensor_random_warp);
ENTRY(aug_mix, PSTK_OP_AUG_MIX, "aug mix", .check = check_mix, .draw = draw_mix, .max_ops = max_mix,
      .scratch = scratch_mix, .tensor = &pstk__op_tensor_none);
ENTRY(auto_augment, PSTK_OP_AUTO_AUGMENT, "auto augment", .check = check_auto, .draw = draw_auto,
      .max_ops = max_auto, .tensor = &pstk__op_tensor_random_warp);
