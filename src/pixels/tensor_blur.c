/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/tensor.h"
#include "pixels/tensor_fma.h"

#include <string.h>

/* Compute torch's exp of floats in AVX2 and AVX-512, Sleef's expf of 1 ulp; v <= 0. */
static float exp_of(float v)
{
    static const float terms[] = {0.000198527617612853646278381f, 0.00139304355252534151077271f,
                                  0.00833336077630519866943359f,  0.0416664853692054748535156f,
                                  0.166666671633720397949219f,    0.5f};
    if (v < -103.9f) /* below half of the smallest float */
        return 0;
    const float halvings =
        (v * 1.442695040888963407359924681001892137426645954152985934f + 0x1.8p23f) - 0x1.8p23f;
    float s = pstk__fma(halvings, -0.693145751953125f, v), u = terms[0];
    s = pstk__fma(halvings, -1.428606765330187045e-06f, s);
    for (uint32_t i = 1; i < sizeof terms / sizeof terms[0]; i++)
        u = pstk__fma(u, s, terms[i]);
    u = 1.0f + pstk__fma(s * s, u, s);
    const uint64_t bits = (uint64_t)(1023 + (int64_t)halvings) << 52; /* the bits of 2^halvings */
    double power;
    memcpy(&power, &bits, sizeof power);
    return (float)((double)u * power);
}

#define LANES 16u /* lanes of an AVX-512 vector; torch adds up their sums last */

/* Compute torch.softmax's sum of n values. */
static float sum_of(const float *values, uint32_t n)
{
    float sums[LANES] = {0};
    if (n < LANES) {
        for (uint32_t i = 1; i < n; i++)
            sums[0] += i > 1 ? values[i] : values[0] + values[1];
        return n > 1 ? sums[0] : values[0];
    }
    for (uint32_t i = 0; i < n; i++)
        sums[i % LANES] += values[i];
    for (uint32_t half = LANES / 2; half > 0; half /= 2)
        for (uint32_t i = 0; i < half; i++)
            sums[i] += sums[i + half];
    return sums[0];
}

/* Compute _get_gaussian_kernel1d: a linspace, and the softmax of its negative squares. */
static void weights_of(float *weights, uint32_t n, double sigma)
{
    const float end = (float)((n - 1) / (2.0 * 1.4142135623730951));
    const float step = (end - -end) / (float)(n > 1 ? n - 1 : 1);
    for (uint32_t i = 0; i < n; i++) {
        const float x =
            i < n / 2 ? pstk__fma((float)i, step, -end) : pstk__fma(-(float)(n - 1 - i), step, end);
        const float part = x / (float)sigma;
        weights[i] = -(part * part);
    }
    const float most = weights[n / 2];
    for (uint32_t i = 0; i < n; i++)
        weights[i] = exp_of(weights[i] - most);
    const float by = 1.0f / sum_of(weights, n);
    for (uint32_t i = 0; i < n; i++)
        weights[i] *= by;
}

/* The parts of the scratch: the products of both axes' weights, and padded rows, which take turns.
 */
struct rooms {
    float *weights;
    float *rows;
    size_t row; /* floats from one row to the next */
};

static size_t aligned(size_t n_floats)
{
    return (n_floats + 15) & ~(size_t)15;
}

static size_t row_of(uint32_t size, uint32_t width, uint32_t channels)
{
    return aligned(((size_t)width + size - 1) * channels + PSTK__TENSOR_LANES);
}

uint64_t pstk__tensor_blur_scratch(const uint32_t size[2], uint32_t width, uint32_t channels)
{
    return sizeof(float) *
           (aligned((size_t)size[0] * size[1]) + size[1] * row_of(size[0], width, channels));
}

static struct rooms rooms_of(const uint32_t size[2], const struct pstk__picture *in, void *scratch)
{
    float *floats = scratch;
    return (struct rooms){.weights = floats,
                          .rows = floats + aligned((size_t)size[0] * size[1]),
                          .row = row_of(size[0], in->width, in->channels)};
}

/* Return a position, mirrored at either end of n when it is past it; the end itself is not
 * repeated.
 */
static uint32_t mirrored(int64_t place, uint32_t n)
{
    const int64_t last = (int64_t)n - 1;
    return (uint32_t)(place < 0 ? -place : place <= last ? place : 2 * last - place);
}

/* Widen a row, and mirror `reach` pixels at both ends. */
static void pad_row(const struct pstk__tensor_kernels *k, float *out,
                    const struct pstk__picture *in, uint32_t y, uint32_t reach)
{
    const uint32_t channels = in->channels;
    const size_t size = channels * sizeof *out;
    float *first = out + (size_t)reach * channels, *end = first + (size_t)in->width * channels;
    k->widen(first, in->pixels + (size_t)y * in->width * channels, in->width * channels);
    for (size_t i = 1; i <= reach; i++) {
        memcpy(first - i * channels, first + i * channels, size);
        memcpy(end + (i - 1) * channels, end - (i + 1) * channels, size);
    }
}

void pstk__tensor_blur(const struct pstk__tensor_kernels *k, const struct pstk__picture *out,
                       const struct pstk__picture *in, const struct pstk__blur_params *params,
                       void *scratch)
{
    const uint32_t *size = params->size, reach = size[1] / 2;
    const struct rooms rooms = rooms_of(size, in, scratch);
    float x[PSTK__BLUR_MAX_KERNEL], y[PSTK__BLUR_MAX_KERNEL];
    const float *rows[PSTK__BLUR_MAX_KERNEL];
    const struct pstk__tensor_taps taps = {.rows = rows,
                                           .weights = rooms.weights,
                                           .size = {size[0], size[1]},
                                           .channels = in->channels};
    weights_of(x, size[0], params->sigma[0]);
    weights_of(y, size[1], params->sigma[1]);
    for (uint32_t i = 0; i < size[0] * size[1]; i++)
        rooms.weights[i] = y[i / size[0]] * x[i % size[0]];
    /* Padded row r lies in slot r modulo size[1]. */
    for (uint32_t r = 0; r + in->height > 0 && r < in->height + size[1] - 1; r++) {
        pad_row(k, rooms.rows + r % size[1] * rooms.row, in,
                mirrored((int64_t)r - reach, in->height), size[0] / 2);
        if (r + 1 < size[1])
            continue;
        const uint32_t top = r + 1 - size[1];
        for (uint32_t i = 0; i < size[1]; i++)
            rows[i] = rooms.rows + (top + i) % size[1] * rooms.row;
        k->blur(out->pixels + (size_t)top * in->width * in->channels, &taps,
                in->width * in->channels);
    }
}
