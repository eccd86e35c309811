/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/warp_matrix.h"

#include "base/sine.h"

#include <stdint.h>

void pstk__warp_affine_matrix(const struct pstk__affine_params *params, double m[6])
{
    const double turn = pstk__radians(params->angle);
    const double x_shear = pstk__radians(params->shear[0]),
                 y_shear = pstk__radians(params->shear[1]);
    const double cosine = pstk__cos(turn - y_shear), sine = pstk__sin(turn - y_shear);
    const double tangent = pstk__tan(x_shear), divisor = pstk__cos(y_shear);
    const double a = cosine / divisor, b = -cosine * tangent / divisor - pstk__sin(turn);
    const double c = sine / divisor, d = -sine * tangent / divisor + pstk__cos(turn);
    const double *center = params->center, *translate = params->translate;
    m[0] = d / params->scale;
    m[1] = -b / params->scale;
    m[3] = -c / params->scale;
    m[4] = a / params->scale;
    m[2] = m[0] * (-center[0] - translate[0]) + m[1] * (-center[1] - translate[1]);
    m[5] = m[3] * (-center[0] - translate[0]) + m[4] * (-center[1] - translate[1]);
    m[2] += center[0];
    m[5] += center[1];
}

/* ---- perspective --------------------------------------------------------------------------- */

#define N 8u /* unknowns */

/* Set two equations for each corner; the last column is the right side. */
static void equations_of(double rows[N][N + 1], const double start[8], const double end[8])
{
    for (uint32_t i = 0; i < 4; i++) {
        const double x = end[2 * i], y = end[2 * i + 1];
        const double u = start[2 * i], v = start[2 * i + 1];
        const double for_x[N + 1] = {x, y, 1, 0, 0, 0, -u * x, -u * y, u};
        const double for_y[N + 1] = {0, 0, 0, x, y, 1, -v * x, -v * y, v};
        for (uint32_t k = 0; k <= N; k++) {
            rows[2 * i][k] = for_x[k];
            rows[2 * i + 1][k] = for_y[k];
        }
    }
}

static void swap_rows(double a[N + 1], double b[N + 1])
{
    for (uint32_t k = 0; k <= N; k++) {
        const double kept = a[k];
        a[k] = b[k];
        b[k] = kept;
    }
}

/* Eliminate by Gauss-Jordan, with the largest pivot of each column. Returns -1 when there is none.
 */
static int eliminate(double rows[N][N + 1])
{
    for (uint32_t i = 0; i < N; i++) {
        uint32_t pivot = i;
        for (uint32_t r = i + 1; r < N; r++)
            if (__builtin_fabs(rows[r][i]) > __builtin_fabs(rows[pivot][i]))
                pivot = r;
        if (rows[pivot][i] == 0)
            return -1;
        swap_rows(rows[i], rows[pivot]);
        for (uint32_t r = 0; r < N; r++) {
            const double factor = r == i ? 0 : rows[r][i] / rows[i][i];
            for (uint32_t k = i; k <= N && factor != 0; k++)
                rows[r][k] -= factor * rows[i][k];
        }
    }
    return 0;
}

int pstk__warp_perspective_matrix(const double start[8], const double end[8], double m[8])
{
    double rows[N][N + 1];
    equations_of(rows, start, end);
    if (eliminate(rows) < 0)
        return -1;
    for (uint32_t i = 0; i < N; i++)
        m[i] = (float)(rows[i][N] / rows[i][i]);
    return 0;
}
