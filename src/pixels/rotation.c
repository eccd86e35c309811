/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/rotation.h"

#include "base/sine.h"

/* Return 1, and set the turn, when the angle is an exact turn. */
static int exact_turn(struct pstk__rotation *rotation, double angle, int may_swap)
{
    if (angle != 0 && angle != 180 && !(may_swap && (angle == 90 || angle == 270)))
        return 0;
    rotation->exact = 1;
    rotation->turn = (uint32_t)(angle / 90);
    return 1;
}

static double x_of(const double m[6], double x, double y)
{
    return m[0] * x + m[1] * y + m[2];
}

static double y_of(const double m[6], double x, double y)
{
    return m[3] * x + m[4] * y + m[5];
}

static void matrix_of(double m[6], double angle, const double center[2], const double translate[2])
{
    const double turn = -pstk__radians(angle);
    const double sine = pstk__sin(turn), cosine = pstk__cos(turn);
    m[0] = m[4] = pstk__round_15(cosine);
    m[1] = pstk__round_15(sine);
    m[3] = pstk__round_15(-sine);
    m[2] = m[5] = 0;
    const double x = -center[0] - translate[0], y = -center[1] - translate[1];
    m[2] = x_of(m, x, y);
    m[5] = y_of(m, x, y);
    m[2] += center[0];
    m[5] += center[1];
}

static double floor_of(double v)
{
    const double toward_zero = (double)(int64_t)v;
    return toward_zero - (toward_zero > v);
}

/* Return the pixels from the smallest, rounded down, to the largest, rounded up, of four corners.
 * Distances that no picture has become 2^31. */
static uint32_t extent(const double v[4])
{
    double least = v[0], greatest = v[0];
    for (uint32_t i = 1; i < 4; i++) {
        least = v[i] < least ? v[i] : least;
        greatest = v[i] > greatest ? v[i] : greatest;
    }
    const double length =
        greatest - least < 0x1p31 ? -floor_of(-greatest) - floor_of(least) : 0x1p31;
    return (uint32_t)length;
}

/* Enlarge the output to the whole picture, and move the picture to its middle. */
static void expand(struct pstk__rotation *rotation)
{
    double *m = rotation->m;
    const double w = rotation->width, h = rotation->height;
    const double x[4] = {x_of(m, 0, 0), x_of(m, w, 0), x_of(m, w, h), x_of(m, 0, h)};
    const double y[4] = {y_of(m, 0, 0), y_of(m, w, 0), y_of(m, w, h), y_of(m, 0, h)};
    rotation->width = extent(x);
    rotation->height = extent(y);
    const double left = -(rotation->width - w) / 2.0, top = -(rotation->height - h) / 2.0;
    const double moved[2] = {x_of(m, left, top), y_of(m, left, top)};
    m[2] = moved[0];
    m[5] = moved[1];
}

void pstk__rotation_init(struct pstk__rotation *rotation,
                         const struct pstk__rotation_params *params, uint32_t width,
                         uint32_t height)
{
    static const double nowhere[2] = {0, 0};
    const double angle = pstk__degrees_modulo(params->angle),
                 middle[2] = {width / 2.0, height / 2.0};
    *rotation = (struct pstk__rotation){.width = width, .height = height};
    if (!params->center && !params->translate &&
        exact_turn(rotation, angle, params->expand || width == height)) {
        if (rotation->turn & 1) {
            rotation->width = height;
            rotation->height = width;
        }
        return;
    }
    matrix_of(rotation->m, angle, params->center ? params->center : middle,
              params->translate ? params->translate : nowhere);
    if (params->expand)
        expand(rotation);
}

void pstk__warp_rotation(const struct pstk__warp_kernels *kernels, const struct pstk__picture *out,
                         const struct pstk__picture *in, const struct pstk__rotation *rotation,
                         uint32_t filter, const uint8_t fill[4])
{
    if (rotation->exact)
        pstk__copy_turn(kernels, out, in, rotation->turn);
    else
        pstk__warp_affine(kernels, out, in, rotation->m, filter, fill);
}
