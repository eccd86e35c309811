/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sine.h"
#include "pixels/rotation.h"
#include "pixels/tensor.h"
#include "pixels/warp_matrix.h"

/* Compute _affine_grid: positions in both pictures are counted from the middle. */
static void affine_grid(struct pstk__tensor_grid *grid, const double m[6],
                        const struct pstk__picture *out)
{
    const double middle[2] = {out->width * 0.5, out->height * 0.5};
    const double in_middle[2] = {grid->in_width * 0.5, grid->in_height * 0.5};
    float *const weights[2] = {grid->x, grid->y};
    for (uint32_t i = 0; i < 2; i++) {
        const double *row = m + (size_t)3 * i;
        const double there = row[2] + row[0] * middle[0] + row[1] * middle[1] - in_middle[i];
        weights[i][0] = (float)row[0] / grid->half_side[i];
        weights[i][1] = (float)row[1] / grid->half_side[i];
        weights[i][2] = (float)there / grid->half_side[i];
    }
    grid->first[0] = (float)((1.0 - out->width) * 0.5);
    grid->first[1] = (float)((1.0 - out->height) * 0.5);
}

/* Compute _perspective_grid: positions are counted from the top left. */
static void perspective_grid(struct pstk__tensor_grid *grid, const double m[8])
{
    for (uint32_t i = 0; i < 3; i++) {
        grid->x[i] = (float)m[i] / grid->half_side[0];
        grid->y[i] = (float)m[3 + i] / grid->half_side[1];
        grid->divisor[i] = i < 2 ? (float)m[6 + i] : 1.0f;
    }
    grid->first[0] = grid->first[1] = 0.5f;
}

/* Round to nearest, ties to even; the position is near the input. */
static int64_t nearest(float v)
{
    return (int64_t)((v + 0x1.8p23f) - 0x1.8p23f);
}

static void sample_nearest(uint8_t *out, const struct pstk__picture *in,
                           const struct pstk__tensor_block *block, uint32_t n, const uint8_t *fill)
{
    static const uint8_t black[4] = {0};
    const size_t size = in->channels;
    for (uint32_t i = 0; i < n; i++, out += size) {
        const int64_t x = nearest(block->x[i]), y = nearest(block->y[i]);
        const int is_inside = x >= 0 && x < in->width && y >= 0 && y < in->height;
        const uint8_t *from = fill ? fill : black;
        if (is_inside)
            from = in->pixels + ((size_t)y * in->width + (size_t)x) * size;
        for (size_t c = 0; c < size; c++)
            out[c] = from[c];
    }
}

void pstk__tensor_warp(const struct pstk__tensor_kernels *k, const struct pstk__picture *out,
                       const struct pstk__picture *in, const struct pstk__tensor_warp *warp)
{
    struct pstk__tensor_grid grid = {
        .has_divisor = warp->has_divisor,
        .half_side = {(float)(0.5 * in->width), (float)(0.5 * in->height)},
        .in_width = in->width,
        .in_height = in->height};
    struct pstk__tensor_block block;
    uint8_t *to = out->pixels;
    if (warp->has_divisor)
        perspective_grid(&grid, warp->m);
    else
        affine_grid(&grid, warp->m, out);
    for (uint32_t y = 0; y < out->height; y++)
        for (uint32_t x = 0; x < out->width; x += PSTK__TENSOR_LANES) {
            const uint32_t rest = out->width - x,
                           n = rest < PSTK__TENSOR_LANES ? rest : PSTK__TENSOR_LANES;
            k->places(&block, &grid, x, y);
            if (warp->is_bilinear)
                k->bilinear(to, in, &block, n, warp->fill);
            else
                sample_nearest(to, in, &block, n, warp->fill);
            to += (size_t)n * out->channels;
        }
}

/* Compute one side of _compute_affine_output_size: from the smallest to the largest position of the
 * corners, both cut to 4 decimals. */
static uint32_t extent(const float row[3], float half_width, float half_height, float half)
{
    float least = 0, most = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const float x = i & 1 ? half_width : -half_width, y = i & 2 ? half_height : -half_height;
        const float place = (x * row[0] + y * row[1]) + row[2];
        least = i == 0 || place < least ? place : least;
        most = i == 0 || place > most ? place : most;
    }
    const float low = (float)(int64_t)((least + half) * 1e4f) * 1e-4f,
                high = (float)(int64_t)((most + half) * 1e4f) * 1e-4f;
    const int64_t floor = (int64_t)low - ((float)(int64_t)low > low),
                  ceil = (int64_t)high + ((float)(int64_t)high < high);
    return (uint32_t)(ceil - floor);
}

/* Set the size that rotate with expand gives, from a matrix that has its origin in the middle. */
static void expand(const double m[6], uint32_t *width, uint32_t *height)
{
    const float half_width = (float)(0.5 * *width), half_height = (float)(0.5 * *height);
    const float x[3] = {(float)m[0], (float)m[1], (float)m[2]},
                y[3] = {(float)m[3], (float)m[4], (float)m[5]};
    *width = extent(x, half_width, half_height, half_width);
    *height = extent(y, half_width, half_height, half_height);
}

void pstk__tensor_rotation_init(struct pstk__rotation *rotation,
                                const struct pstk__rotation_params *params, uint32_t width,
                                uint32_t height)
{
    const double w = width, h = height;
    struct pstk__affine_params turn = {.scale = 1};
    pstk__rotation_init(rotation, params, width, height);
    if (rotation->exact)
        return;
    turn.angle = -pstk__degrees_modulo(params->angle);
    if (params->center) {
        turn.center[0] = params->center[0] - w * 0.5;
        turn.center[1] = params->center[1] - h * 0.5;
    }
    double *m = rotation->m;
    pstk__warp_affine_matrix(&turn, m);
    rotation->width = width;
    rotation->height = height;
    if (params->expand)
        expand(m, &rotation->width, &rotation->height);
    const double x = rotation->width * 0.5, y = rotation->height * 0.5;
    m[2] += w * 0.5 - m[0] * x - m[1] * y;
    m[5] += h * 0.5 - m[3] * x - m[4] * y;
}
