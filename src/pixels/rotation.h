/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rotation: turns a picture as Pillow 12.1's Image.rotate does: by an exact turn if it can, else by
 * an affine matrix of sine and cosine, rounded to 15 decimal places. Source: Image.py.
 */
#ifndef PSTK_PIXELS_ROTATION_H
#define PSTK_PIXELS_ROTATION_H

#include "pixels/copy.h"
#include "pixels/warp.h"

/* The parameters of Pillow's Image.rotate. */
struct pstk__rotation_params {
    double angle;            /* degrees, counter-clockwise; finite */
    uint32_t expand;         /* 1: the output holds the whole turned picture */
    const double *center;    /* x, y; NULL: the middle */
    const double *translate; /* x, y, after the turn; NULL: none */
};

/* A rotation of pictures of one size. */
struct pstk__rotation {
    uint32_t exact;         /* 1: by `turn`; 0: by `m` */
    uint32_t turn;          /* enum pstk__turn */
    uint32_t width, height; /* size of the output, pixels */
    double m[6];
};

void pstk__rotation_init(struct pstk__rotation *rotation,
                         const struct pstk__rotation_params *params, uint32_t width,
                         uint32_t height);
/* Turn a picture. `out` has the size of the rotation; all else is as for pstk__warp_affine. */
void pstk__warp_rotation(const struct pstk__warp_kernels *kernels, const struct pstk__picture *out,
                         const struct pstk__picture *in, const struct pstk__rotation *rotation,
                         uint32_t filter, const uint8_t fill[4]);

#endif
