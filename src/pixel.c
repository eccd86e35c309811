/* SPDX-License-Identifier: Apache-2.0 */
/* pixel: weights, the resize under way, finish tables, and the choice of kernels. */
#include "pixel.h"

#include "cast.h"

#define PRECISION 22
#define CHANNELS 3u
#define ALIGN(size) (((size) + 63) & ~(uint64_t)63) /* what the arena gives */

/* ---- weights ------------------------------------------------------------------------------- */

/* What Pillow's precompute_coeffs (Resample.c) works with, by its names. */
struct filter {
    double scale;       /* inputs per output */
    double support;     /* reach of the filter on each side, in inputs; >= 1 */
    double filterscale; /* 1 / support: Pillow multiplies by it */
    uint32_t in;
};

static struct filter filter_of(uint32_t in, uint32_t out)
{
    const double scale = (double)in / out;
    const double reach = scale < 1.0 ? 1.0 : scale;
    return (struct filter){.scale = scale, .support = reach, .filterscale = 1.0 / reach, .in = in};
}

static double triangle(double x)
{
    if (x < 0.0)
        x = -x;
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double center_of(const struct filter *f, uint32_t i)
{
    return (i + 0.5) * f->scale;
}

static double weight_of(const struct filter *f, double center, uint32_t x)
{
    return triangle((x - center + 0.5) * f->filterscale);
}

/*
 * Inputs [*first, *first + *n) of an output. Those at the end whose weight is exactly 0 are left
 * out: that changes no sum, and makes a resize to the same size read one input for each output.
 * (Pillow's beginning has no such inputs.) The input nearest to the centre has a weight of at least
 * 1/2, so n >= 1. Beyond the centre weights rise with it, so the end never falls from one output to
 * the next; nor does the beginning.
 */
static void span_of(const struct filter *f, uint32_t i, uint32_t *first, uint32_t *n)
{
    const double center = center_of(f, i);
    const double from = center - f->support + 0.5, to = center + f->support + 0.5;
    uint32_t lo = from < 0.0 ? 0 : (uint32_t)from;
    uint32_t hi = to > f->in ? f->in : (uint32_t)to;
    while (lo + 1 < hi && weight_of(f, center, hi - 1) == 0.0)
        hi--;
    *first = lo;
    *n = hi - lo;
}

static void weights_of(const struct filter *f, uint32_t i, uint32_t first, uint32_t n, int32_t *w)
{
    const double center = center_of(f, i);
    double sum = 0.0;
    for (uint32_t k = 0; k < n; k++)
        sum += weight_of(f, center, first + k);
    for (uint32_t k = 0; k < n; k++)
        w[k] = (int32_t)(0.5 + weight_of(f, center, first + k) / sum * (1 << PRECISION));
}

int pstk__axis_init(struct pstk__axis *a, struct pstk__arena *arena, uint32_t in, uint32_t out,
                    uint32_t window, uint32_t n_out)
{
    const struct filter f = filter_of(in, out);
    *a = (struct pstk__axis){.n_out = n_out};
    a->first = pstk__arena_get(arena, (size_t)n_out * sizeof *a->first);
    a->n = pstk__arena_get(arena, (size_t)n_out * sizeof *a->n);
    if (a->first == NULL || a->n == NULL)
        return PSTK_ENOMEM;
    for (uint32_t i = 0; i < n_out; i++) {
        span_of(&f, window + i, &a->first[i], &a->n[i]);
        if (a->n[i] > a->n_taps)
            a->n_taps = a->n[i];
    }
    a->begin = a->first[0];
    a->end = a->first[n_out - 1] + a->n[n_out - 1];
    a->weights = pstk__arena_get(arena, (size_t)n_out * a->n_taps * sizeof *a->weights);
    if (a->weights == NULL)
        return PSTK_ENOMEM;
    for (uint32_t i = 0; i < n_out; i++) {
        int32_t *w = a->weights + (size_t)i * a->n_taps;
        weights_of(&f, window + i, a->first[i], a->n[i], w);
        for (uint32_t k = a->n[i]; k < a->n_taps; k++)
            w[k] = 0;
    }
    return 0;
}

/* ---- resize -------------------------------------------------------------------------------- */

/* Inputs of one output: the interval [center - support, center + support] holds at most
 * 2 * support + 1 of them, support = max(1, in / out). */
static uint64_t taps_bound(uint32_t in, uint32_t out)
{
    const uint64_t reach = in > out ? ((uint64_t)in + out - 1) / out : 1;
    const uint64_t taps = 2 * reach + 1;
    return taps < in ? taps : in;
}

static uint64_t axis_scratch(uint64_t taps, uint32_t n_out)
{
    return 2 * ALIGN((uint64_t)n_out * sizeof(uint32_t)) +
           ALIGN((uint64_t)n_out * taps * sizeof(int32_t));
}

uint64_t pstk__resize_scratch(const struct pstk__resize_bounds *b)
{
    const uint64_t x_taps = taps_bound(b->max_in_width, b->min_out_width);
    const uint64_t y_taps = taps_bound(b->max_in_height, b->min_out_height);
    const uint64_t row = ALIGN((uint64_t)CHANNELS * b->max_window_width);
    return axis_scratch(x_taps, b->max_window_width) + axis_scratch(y_taps, b->max_window_height) +
           2 * ALIGN(y_taps * sizeof(void *)) + (y_taps + 1) * row;
}

int pstk__resize_begin(struct pstk__resize *r, struct pstk__arena *arena,
                       const struct pstk__pixel_kernels *kernels,
                       const struct pstk__resize_config *c)
{
    *r = (struct pstk__resize){
        .kernels = kernels, .finish = c->finish, .out = c->out, .out_stride = c->out_stride};
    const struct pstk__box *w = &c->window;
    int rc = pstk__axis_init(&r->x, arena, c->in_width, c->out_width, w->left, w->width);
    if (rc == 0)
        rc = pstk__axis_init(&r->y, arena, c->in_height, c->out_height, w->top, w->height);
    if (rc < 0)
        return rc;
    r->n_ring = r->y.n_taps;
    r->ring = pstk__arena_get(arena, r->n_ring * sizeof *r->ring);
    r->tap_rows = pstk__arena_get(arena, r->n_ring * sizeof *r->tap_rows);
    r->row = pstk__arena_get(arena, (size_t)CHANNELS * w->width);
    if (r->ring == NULL || r->tap_rows == NULL || r->row == NULL)
        return PSTK_ENOMEM;
    for (uint32_t i = 0; i < r->n_ring; i++) {
        r->ring[i] = pstk__arena_get(arena, (size_t)CHANNELS * w->width);
        if (r->ring[i] == NULL)
            return PSTK_ENOMEM;
    }
    return 0;
}

/* Write output row n_out, all of whose inputs are in the ring. */
static void row_out(struct pstk__resize *r)
{
    const struct pstk__axis *y = &r->y;
    const uint32_t first = y->first[r->n_out] - y->begin, n = y->n[r->n_out];
    const struct pstk__finish *f = &r->finish;
    const int straight = f->dtype == PSTK_U8 && f->layout == PSTK_NHWC && !f->flip;
    uint8_t *out = r->out + r->n_out * r->out_stride;
    uint8_t *row = straight ? out : r->row;
    uint32_t at = first % r->n_ring;
    for (uint32_t k = 0; k < n; k++) {
        r->tap_rows[k] = r->ring[at];
        at = at + 1 < r->n_ring ? at + 1 : 0;
    }
    r->kernels->resize_column(row, r->tap_rows, y->weights + (size_t)r->n_out * y->n_taps, n,
                              CHANNELS * r->x.n_out);
    if (!straight)
        r->kernels->finish_row(out, row, f);
    r->n_out++;
}

/* A row overwrites the one n_ring = n_taps before it: outputs that need that one are finished,
 * since none needs more than n_taps rows and first never falls. */
static void row_in(struct pstk__resize *r, const uint8_t *rgb)
{
    const struct pstk__axis *y = &r->y;
    r->kernels->resize_row(r->ring[r->n_in % r->n_ring], rgb, &r->x);
    r->n_in++;
    while (r->n_out < y->n_out && y->first[r->n_out] + y->n[r->n_out] - y->begin <= r->n_in)
        row_out(r);
}

void pstk__resize_rows(struct pstk__resize *r, const uint8_t *rgb, uint64_t stride, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, rgb += stride)
        row_in(r, rgb);
}

/* ---- finish tables, kernels ----------------------------------------------------------------- */

void pstk__finish_table(void *table, uint32_t dtype, const float *mean, const float *deviation)
{
    for (uint32_t i = 0; i < CHANNELS * 256; i++) {
        const uint32_t channel = i / 256;
        float v = (float)(i % 256) / 255.0f;
        if (mean != NULL) {
            v = v - mean[channel];
            v = v / deviation[channel];
        }
        if (dtype == PSTK_F16)
            ((uint16_t *)table)[i] = pstk__f16_from_f32(v);
        else if (dtype == PSTK_BF16)
            ((uint16_t *)table)[i] = pstk__bf16_from_f32(v);
        else
            ((float *)table)[i] = v;
    }
}

const struct pstk__pixel_kernels *pstk__pixel_kernels(uint32_t variant)
{
    /* Best last; an entry for another instruction set also asks pstk__cpu_variant. */
    static const struct pstk__pixel_kernels *const entries[] = {&pstk__pixel_c};
    const uint32_t n = sizeof entries / sizeof entries[0];
    if (variant == PSTK_VARIANT_AUTO)
        return entries[n - 1];
    for (uint32_t i = 0; i < n; i++)
        if (entries[i]->variant == variant)
            return entries[i];
    return NULL;
}
