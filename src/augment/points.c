/* SPDX-License-Identifier: Apache-2.0 */
#include "augment/points.h"

#include <math.h>

void pstk__points_resize(struct pstk__point *points, uint32_t n, const struct pstk__box *part,
                         uint32_t width, uint32_t height)
{
    for (uint32_t i = 0; i < n; i++) {
        points[i].x = (points[i].x - part->left) * width / part->width;
        points[i].y = (points[i].y - part->top) * height / part->height;
    }
}

void pstk__points_shift(struct pstk__point *points, uint32_t n, double x, double y)
{
    for (uint32_t i = 0; i < n; i++) {
        points[i].x += x;
        points[i].y += y;
    }
}

/* Apply the adjugate of the 3 x 3 matrix whose last element is 1. The third coordinate, divided by
 * the determinant, is positive in front of the horizon. */
void pstk__points_warp(struct pstk__point *points, uint32_t n, const double *matrix)
{
    const double a = matrix[0], b = matrix[1], c = matrix[2], d = matrix[3], e = matrix[4],
                 f = matrix[5], g = matrix[6], h = matrix[7];
    const double of_w[3] = {d * h - e * g, b * g - a * h, a * e - b * d};
    const double determinant = g * (b * f - c * e) + h * (c * d - a * f) + of_w[2];
    for (uint32_t i = 0; i < n; i++) {
        const double x = points[i].x, y = points[i].y;
        const double w = of_w[0] * x + of_w[1] * y + of_w[2];
        const int is_ahead = w / determinant > 0;
        points[i].x = is_ahead ? ((e - f * h) * x + (c * h - b) * y + (b * f - c * e)) / w : NAN;
        points[i].y = is_ahead ? ((f * g - d) * x + (a - c * g) * y + (c * d - a * f)) / w : NAN;
    }
}
