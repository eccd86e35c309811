/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timm: the operations that the policies of timm (PyTorch Image Models) draw, and the arguments
 * that it computes from magnitudes. Source: timm 1.0, data/auto_augment.py. Pure.
 */
#ifndef PSTK_TIMM_H
#define PSTK_TIMM_H

#include "augment/sampled_ops.h"

/* The members, with timm's names. INCREASING: the change grows with the magnitude, where it
 * otherwise shrinks. */
enum pstk__timm_member {
    PSTK__TIMM_AUTO_CONTRAST,
    PSTK__TIMM_EQUALIZE,
    PSTK__TIMM_INVERT,
    PSTK__TIMM_ROTATE,
    PSTK__TIMM_POSTERIZE,
    PSTK__TIMM_POSTERIZE_INCREASING,
    PSTK__TIMM_POSTERIZE_ORIGINAL,
    PSTK__TIMM_SOLARIZE,
    PSTK__TIMM_SOLARIZE_INCREASING,
    PSTK__TIMM_SOLARIZE_ADD,
    PSTK__TIMM_COLOR,
    PSTK__TIMM_COLOR_INCREASING,
    PSTK__TIMM_CONTRAST,
    PSTK__TIMM_CONTRAST_INCREASING,
    PSTK__TIMM_BRIGHTNESS,
    PSTK__TIMM_BRIGHTNESS_INCREASING,
    PSTK__TIMM_SHARPNESS,
    PSTK__TIMM_SHARPNESS_INCREASING,
    PSTK__TIMM_SHEAR_X,
    PSTK__TIMM_SHEAR_Y,
    PSTK__TIMM_TRANSLATE_X_REL,
    PSTK__TIMM_TRANSLATE_Y_REL,
    PSTK__TIMM_DESATURATE,
    PSTK__TIMM_GAUSSIAN_BLUR,
    PSTK__TIMM_GAUSSIAN_BLUR_RAND,
};

#define PSTK__TIMM_MAX 1000.0 /* maximum of a magnitude and of its deviation */

/* The arguments of timm's AugmentOp. */
struct pstk__timm_level {
    double probability;
    double magnitude;    /* 0 to PSTK__TIMM_MAX */
    double deviation;    /* standard deviation of a normal distribution */
    uint32_t is_uniform; /* 1: the magnitude is uniform from 0 to `magnitude`; no deviation */
    double most;         /* upper limit of the magnitude, at most PSTK__TIMM_MAX */
};

/* Append the op of timm's AugmentOp for a member, or nothing. policy: the op that gives warps their
 * filter and fill; the filter may be RANDOM. */
void pstk__timm_draw(struct pstk__sampled_ops *to, struct pstk__random *r,
                     const struct pstk_op *policy, enum pstk__timm_member member,
                     const struct pstk__timm_level *level);

/* ---- checks that the policies share: 0, or EINVAL naming the member -------------------------- */

/* Check that a parameter is a number from least to most. */
int pstk__timm_check_number(const char *what, double value, double least, double most,
                            struct pstk_error *err);
/* Check that a parameter is a whole number from least to most. */
int pstk__timm_check_whole(const char *what, double value, uint32_t least, uint32_t most,
                           struct pstk_error *err);
/* Check the filter, which may be RANDOM, that there is no size, and that params.values from n_used
 * on are not used. */
int pstk__timm_check_rest(const struct pstk_op *op, uint32_t n_used, struct pstk_error *err);
/* Refuse RGBA: a pstk__op_entry.channels. */
int pstk__timm_no_alpha(const struct pstk_op *op, uint32_t channels, struct pstk_error *err);

#endif
