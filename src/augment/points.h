/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points: positions in an image, moved as operations move pixels. (0, 0) is the outer corner of the
 * top left pixel, and pixel centres lie at .5. Pure.
 */
#ifndef PSTK_POINTS_H
#define PSTK_POINTS_H

#include "image/decoder.h"

struct pstk__point {
    double x, y; /* pixels; NaN: no position */
};

/* Move n points with a part of an image that is resized to this size. */
void pstk__points_resize(struct pstk__point *points, uint32_t n, const struct pstk__box *part,
                         uint32_t width, uint32_t height);
void pstk__points_shift(struct pstk__point *points, uint32_t n, double x, double y);
/* Move points with a warp by a matrix of 8, which maps positions of the result to positions of the
 * source. Points at its horizon or beyond become NaN. */
void pstk__points_warp(struct pstk__point *points, uint32_t n, const double *matrix);

#endif
