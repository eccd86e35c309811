/* SPDX-License-Identifier: Apache-2.0 */
/* weights_c: computes the weights of an axis in plain C, the reference for the other ISAs. */
#include "pixels/resize_kernels_c.h"

#include <string.h>

#define ONE (1u << PSTK__WEIGHT_BITS)
#define INLINE static inline __attribute__((always_inline))

static double magnitude(double x)
{
    return x < 0.0 ? -x : x;
}

/* Return sin(pi x), |x| <= 2^50, from x less the nearest integer, which changes the sign if it is
 * odd. */
static double sin_pi(double x)
{
    const double shifted = x + PSTK__ROUNDER, rest = x - (shifted - PSTK__ROUNDER);
    const double square = rest * rest;
    double sum = pstk__sin_terms[PSTK__N_SIN_TERMS - 1];
    uint64_t odd;
    for (uint32_t k = PSTK__N_SIN_TERMS - 1; k-- > 0;)
        sum = sum * square + pstk__sin_terms[k];
    memcpy(&odd, &shifted, sizeof odd);
    return odd & 1 ? -(sum * rest) : sum * rest;
}

static double sinc(double x)
{
    return x == 0.0 ? 1.0 : sin_pi(x) / (x * PSTK__PI);
}

/* ---- the filters, at a distance from the centre ---------------------------------------------- */

static double box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static double triangle(double x)
{
    x = magnitude(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

/* Return Pillow's Hamming filter, whose constants are floats. cos(pi x) = sin(pi (1/2 - x)). */
static double hamming(double x)
{
    x = magnitude(x);
    return x < 1.0 ? sinc(x) * ((double)0.54f + (double)0.46f * sin_pi(0.5 - x)) : 0.0;
}

/* Return Keys' cubic convolution, a = -1/2. */
static double cubic(double x)
{
    x = magnitude(x);
    if (x < 1.0)
        return (1.5 * x - 2.5) * x * x + 1.0;
    return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5 : 0.0;
}

static double lanczos(double x)
{
    return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
}

INLINE double value(uint32_t kind, double x)
{
    return kind == PSTK_FILTER_BOX       ? box(x)
           : kind == PSTK_FILTER_HAMMING ? hamming(x)
           : kind == PSTK_FILTER_BICUBIC ? cubic(x)
           : kind == PSTK_FILTER_LANCZOS ? lanczos(x)
                                         : triangle(x);
}

/* Return 1 when the filter is 0 from x on. */
INLINE int is_past(uint32_t kind, double x)
{
    return kind == PSTK_FILTER_BOX       ? x > 0.5
           : kind == PSTK_FILTER_BICUBIC ? x >= 2.0
           : kind == PSTK_FILTER_LANCZOS ? x >= 3.0
                                         : x >= 1.0;
}

/* ---- the weights ----------------------------------------------------------------------------- */

static double distance(const struct pstk__filter *filter, double center, uint32_t x)
{
    return (x - center + 0.5) * filter->filterscale;
}

/* Round to the nearest, halves away from 0. */
static int32_t fixed(double weight)
{
    return (int32_t)((weight < 0.0 ? -0.5 : 0.5) + weight * ONE);
}

/*
 * Compute weights as Pillow's precompute_coeffs (Resample.c) does, but leave out inputs at the end
 * that the filter does not reach. That changes no sum. (Pillow's beginning has no such inputs.)
 *
 * The input nearest to the centre has a weight above 0, so n >= 1. As the centre moves on, no input
 * gets further past it, so the end never falls from one output to the next; nor does the beginning.
 */
INLINE void weights(struct pstk__axis *axis, const struct pstk__filter *filter, uint32_t first_out,
                    uint32_t kind)
{
    for (uint32_t i = 0; i < axis->n_out; i++) {
        const double center = (first_out + i + 0.5) * filter->scale;
        const double from = center - filter->support + 0.5, to = center + filter->support + 0.5;
        const uint32_t lo = from < 0.0 ? 0 : (uint32_t)from;
        uint32_t hi = to > filter->in ? filter->in : (uint32_t)to;
        while (lo + 1 < hi && is_past(kind, distance(filter, center, hi - 1)))
            hi--;
        double sum = 0.0;
        for (uint32_t x = lo; x < hi; x++)
            sum += value(kind, distance(filter, center, x));
        int32_t *w = axis->weights + i;
        for (uint32_t k = 0; k < filter->n_rows; k++, w += axis->n_out)
            *w = lo + k < hi ? fixed(value(kind, distance(filter, center, lo + k)) / sum) : 0;
        axis->first[i] = lo;
        axis->n[i] = hi - lo;
    }
}

void pstk__axis_weights_c(struct pstk__axis *axis, const struct pstk__filter *filter,
                          uint32_t first_out)
{
    if (filter->kind == PSTK_FILTER_BOX)
        weights(axis, filter, first_out, PSTK_FILTER_BOX);
    else if (filter->kind == PSTK_FILTER_HAMMING)
        weights(axis, filter, first_out, PSTK_FILTER_HAMMING);
    else if (filter->kind == PSTK_FILTER_BICUBIC)
        weights(axis, filter, first_out, PSTK_FILTER_BICUBIC);
    else if (filter->kind == PSTK_FILTER_LANCZOS)
        weights(axis, filter, first_out, PSTK_FILTER_LANCZOS);
    else
        weights(axis, filter, first_out, PSTK_FILTER_BILINEAR);
}
