/* SPDX-License-Identifier: Apache-2.0 */
#include "augment/timm.h"

#include "base/error.h"
#include "base/normal.h"

#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)
#define SCALE 10.0 /* timm's _LEVEL_DENOM: the magnitude of the greatest change */

/* ---- levels ---------------------------------------------------------------------------------- */

static double negated(double value, struct pstk__random *r)
{
    return pstk__random_unit(r) > 0.5 ? -value : value;
}

static double at_least(double value, double least)
{
    return value > least ? value : least;
}

static double at_most(double value, double most)
{
    return value < most ? value : most;
}

/* Interpolate between two values, in the order of timm's arithmetic. */
static double between(double least, double most, double magnitude)
{
    return at_least(least, at_most(least + (most - least) * (magnitude / SCALE), most));
}

/* Return int(magnitude / 10 * most). */
static int32_t whole_part(double magnitude, double most)
{
    return (int32_t)(magnitude / SCALE * most);
}

static int32_t threshold_of(double magnitude)
{
    const int32_t threshold = whole_part(magnitude, 256);
    return threshold < 256 ? threshold : 256;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static double factor_of(double magnitude)
{
    return magnitude / SCALE * 1.8 + 0.1;
}

/* Return a factor that differs more from 1, which changes nothing, the larger the magnitude. r
 * chooses the direction. */
static double factor_increasing(double magnitude, struct pstk__random *r)
{
    return at_least(1.0 + negated(magnitude / SCALE * .9, r), 0.1);
}

/* Return a posterize. Pillow takes a negative number of bits as 0, and timm posterizes only below 8
 * bits. */
static struct pstk_op posterize(int32_t bits)
{
    return pstk_adjust(PSTK_OP_POSTERIZE, bits < 0 ? 0 : bits < 8 ? bits : 8);
}

static struct pstk_op solarize_add(double magnitude)
{
    const int32_t add = whole_part(magnitude, 110);
    struct pstk_op op = pstk_adjust(PSTK_OP_SOLARIZE_ADD, add < 128 ? add : 128);
    op.params.solarize_add.threshold = 128;
    return op;
}

/* Return an affine operation from the shear and the translation in x and in y. */
static struct pstk_op moved(double shear_x, double shear_y, double x, double y)
{
    return pstk_affine((const double[6]){1, shear_x, x, shear_y, 1, y}, 0);
}

static struct pstk_op warp_of(enum pstk__timm_member member, double magnitude,
                              struct pstk__random *r, const struct pstk__view *view)
{
    switch (member) {
    case PSTK__TIMM_ROTATE:
        return pstk_rotate(negated(magnitude / SCALE * 30., r), 0, 0);
    case PSTK__TIMM_SHEAR_X:
        return moved(negated(magnitude / SCALE * 0.3, r), 0, 0, 0);
    case PSTK__TIMM_SHEAR_Y:
        return moved(0, negated(magnitude / SCALE * 0.3, r), 0, 0);
    case PSTK__TIMM_TRANSLATE_X_REL:
        return moved(0, 0, negated(magnitude / SCALE * 0.45, r) * view->width, 0);
    default:
        return moved(0, 0, 0, negated(magnitude / SCALE * 0.45, r) * view->height);
    }
}

static struct pstk_op enhanced(enum pstk__timm_member member, double magnitude,
                               struct pstk__random *r)
{
    switch (member) {
    case PSTK__TIMM_COLOR:
        return pstk_adjust(PSTK_OP_SATURATION, factor_of(magnitude));
    case PSTK__TIMM_COLOR_INCREASING:
        return pstk_adjust(PSTK_OP_SATURATION, factor_increasing(magnitude, r));
    case PSTK__TIMM_CONTRAST:
        return pstk_adjust(PSTK_OP_CONTRAST, factor_of(magnitude));
    case PSTK__TIMM_CONTRAST_INCREASING:
        return pstk_adjust(PSTK_OP_CONTRAST, factor_increasing(magnitude, r));
    case PSTK__TIMM_BRIGHTNESS:
        return pstk_adjust(PSTK_OP_BRIGHTNESS, factor_of(magnitude));
    case PSTK__TIMM_BRIGHTNESS_INCREASING:
        return pstk_adjust(PSTK_OP_BRIGHTNESS, factor_increasing(magnitude, r));
    case PSTK__TIMM_SHARPNESS:
        return pstk_adjust(PSTK_OP_SHARPNESS, factor_of(magnitude));
    case PSTK__TIMM_SHARPNESS_INCREASING:
        return pstk_adjust(PSTK_OP_SHARPNESS, factor_increasing(magnitude, r));
    case PSTK__TIMM_DESATURATE:
        return pstk_adjust(PSTK_OP_SATURATION, 1. - between(0.5, 1., magnitude));
    case PSTK__TIMM_GAUSSIAN_BLUR:
        return pstk_box_blur(between(0.1, 2., magnitude));
    default:
        return pstk_box_blur(pstk__random_uniform(r, 0.1, 2. * between(0., 1., magnitude)));
    }
}

static int is_warp(enum pstk__timm_member member)
{
    return member == PSTK__TIMM_ROTATE ||
           (member >= PSTK__TIMM_SHEAR_X && member <= PSTK__TIMM_TRANSLATE_Y_REL);
}

static struct pstk_op op_of(enum pstk__timm_member member, double magnitude, struct pstk__random *r,
                            const struct pstk__view *view)
{
    switch (member) {
    case PSTK__TIMM_AUTO_CONTRAST:
        return pstk_adjust(PSTK_OP_AUTOCONTRAST, 0);
    case PSTK__TIMM_EQUALIZE:
        return pstk_adjust(PSTK_OP_EQUALIZE, 0);
    case PSTK__TIMM_INVERT:
        return pstk_adjust(PSTK_OP_INVERT, 0);
    case PSTK__TIMM_POSTERIZE:
        return posterize(whole_part(magnitude, 4));
    case PSTK__TIMM_POSTERIZE_INCREASING:
        return posterize(4 - whole_part(magnitude, 4));
    case PSTK__TIMM_POSTERIZE_ORIGINAL:
        return posterize(whole_part(magnitude, 4) + 4);
    case PSTK__TIMM_SOLARIZE:
        return pstk_adjust(PSTK_OP_SOLARIZE, threshold_of(magnitude));
    case PSTK__TIMM_SOLARIZE_INCREASING:
        return pstk_adjust(PSTK_OP_SOLARIZE, 256 - threshold_of(magnitude));
    case PSTK__TIMM_SOLARIZE_ADD:
        return solarize_add(magnitude);
    default:
        return is_warp(member) ? warp_of(member, magnitude, r, view)
                               : enhanced(member, magnitude, r);
    }
}

static double magnitude_drawn(const struct pstk__timm_level *level, struct pstk__random *r)
{
    double magnitude = level->magnitude;
    if (level->is_uniform)
        magnitude = pstk__random_uniform(r, 0, magnitude);
    else if (level->deviation > 0)
        magnitude += level->deviation * pstk__normal(pstk__random_u32(r));
    return at_least(at_most(magnitude, level->most), 0);
}

/* Draw the change, then the filter: timm draws the filter after the sign. */
void pstk__timm_draw(struct pstk__sampled_ops *to, struct pstk__random *r,
                     const struct pstk_op *policy, enum pstk__timm_member member,
                     const struct pstk__timm_level *level)
{
    if (level->probability < 1 && pstk__random_unit(r) > level->probability)
        return;
    struct pstk_op op = op_of(member, magnitude_drawn(level, r), r, &to->view);
    if (is_warp(member)) {
        op.filter = pstk__filter_draw(policy->filter, r);
        for (int c = 0; c < 4; c++)
            op.fill[c] = policy->fill[c];
    }
    pstk__sampled_ops_add(to, &op);
}

/* ---- checks ---------------------------------------------------------------------------------- */

int pstk__timm_check_number(const char *what, double value, double least, double most,
                            struct pstk_error *err)
{
    if (!(value >= least && value <= most))
        return FAIL("%s: value is %g; must be from %g to %g", what, value, least, most);
    return 0;
}

int pstk__timm_check_whole(const char *what, double value, uint32_t least, uint32_t most,
                           struct pstk_error *err)
{
    if (!(value >= least && value <= most && value == (uint32_t)value))
        return FAIL("%s: value is %g; must be a whole number from %u to %u", what, value, least,
                    most);
    return 0;
}

int pstk__timm_check_rest(const struct pstk_op *op, uint32_t n_used, struct pstk_error *err)
{
    int rc = op->filter == PSTK_FILTER_RANDOM ? 0 : pstk__op_check_warp_filter(op, err);
    if (rc == 0)
        rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, n_used, err);
}

int pstk__timm_no_alpha(const struct pstk_op *op, uint32_t channels, struct pstk_error *err)
{
    (void)op;
    if (channels == 4)
        return FAIL("it takes 1 or 3 channels, and the image has 4, as Pillow lacks some of its "
                    "operations on RGBA");
    return (int)channels;
}
