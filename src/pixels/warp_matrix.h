/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warp_matrix: the matrices that torchvision 0.29 passes to Image.transform (source:
 * transforms/functional.py). Angles are degrees. Pure; no libm: see base/sine.h.
 */
#ifndef PSTK_PIXELS_WARP_MATRIX_H
#define PSTK_PIXELS_WARP_MATRIX_H

/* The parameters of torchvision's functional.affine: turn, shear and scale about the centre, then
 * translate, in pixels. */
struct pstk__affine_params {
    double angle;        /* clockwise; |angle| < 3600 */
    double translate[2]; /* x, y */
    double scale;        /* > 0 */
    double shear[2];     /* |shear| < 3600 */
    double center[2];    /* torchvision's default: half the width, half the height */
};

/* Compute torchvision's _get_inverse_affine_matrix, with its order of operations. */
void pstk__warp_affine_matrix(const struct pstk__affine_params *params, double m[6]);

/*
 * Compute the perspective that maps the corners `end` of the output to the corners `start` of the
 * input; x, y of the top left, top right, bottom right, bottom left. Elements are rounded to
 * float32, as in torchvision's _get_perspective_coeffs. That function solves with LAPACK's gels,
 * whose result depends on the machine, before the rounding: an element may differ by one place of
 * float32, and where the exact element is 0 torchvision has some 1e-17. Returns 0, or -1, without
 * setting m, when the equations have no unique solution, as with three corners of a side on one
 * line.
 */
int pstk__warp_perspective_matrix(const double start[8], const double end[8], double m[8]);

#endif
