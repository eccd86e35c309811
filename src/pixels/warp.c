/* SPDX-License-Identifier: Apache-2.0 */
/* warp: chooses among Pillow's methods of a transform, and lists the kernels. */
#include "pixels/warp.h"

#include "base/kernels.h"
#include "pixels/alpha.h"
#include "pixels/fill.h"

#include <string.h>

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* A transform in progress. */
struct job {
    const struct pstk__warp_kernels *kernels;
    const struct pstk__picture *out, *in;
    const double *m;
    uint8_t fill[4];
};

static uint8_t *row_of(const struct pstk__picture *picture, uint32_t row)
{
    return picture->pixels + (size_t)row * picture->width * picture->channels;
}

static void fill_pixels(const struct job *job, uint8_t *out, uint32_t n)
{
    pstk__fill_pixels(out, n, job->fill, job->out->channels);
}

static int is_in(double v, uint32_t n)
{
    return v >= 0.0 && v < n;
}

/* ---- nearest, scale and translation -------------------------------------------------------- */

#define COLUMNS 256u /* columns whose positions are computed at a time */

/* Inputs of the columns [begin, end) of a block; the other columns lie outside. */
struct columns {
    uint32_t begin, end;
    uint32_t is_run; /* 1: the inputs follow one another */
    uint32_t input[COLUMNS];
};

/* Find the inputs of n columns. `x` is the position of the block's first column, and becomes the
 * next block's. */
static void columns_of(struct columns *columns, const struct job *job, uint32_t n, double *x)
{
    columns->begin = columns->end = 0;
    columns->is_run = 1;
    for (uint32_t i = 0; i < n; i++, *x += job->m[0]) {
        if (!is_in(*x, job->in->width))
            continue;
        const uint32_t input = (uint32_t)*x, is_first = columns->end == 0;
        columns->begin = is_first ? i : columns->begin;
        columns->is_run &= is_first || input == columns->input[i - 1] + 1;
        columns->input[i] = input;
        columns->end = i + 1;
    }
}

static void copy_columns(const struct job *job, uint8_t *out, const uint8_t *in,
                         const struct columns *columns)
{
    const uint32_t size = job->out->channels, n = columns->end - columns->begin;
    const uint32_t *input = columns->input + columns->begin;
    out += (size_t)columns->begin * size;
    if (columns->is_run)
        memcpy(out, in + (size_t)input[0] * size, (size_t)n * size);
    else
        job->kernels->gather(out, in, input, n, size);
}

static void scale_block(const struct job *job, uint32_t column, uint32_t n,
                        const struct columns *columns)
{
    const uint32_t size = job->out->channels;
    double y = job->m[5] + job->m[4] * 0.5;
    for (uint32_t row = 0; row < job->out->height; row++, y += job->m[4]) {
        uint8_t *out = row_of(job->out, row) + (size_t)column * size;
        const int is_row = columns->end > 0 && is_in(y, job->in->height);
        fill_pixels(job, out, is_row ? columns->begin : n);
        if (!is_row)
            continue;
        copy_columns(job, out, row_of(job->in, (uint32_t)y), columns);
        fill_pixels(job, out + (size_t)columns->end * size, n - columns->end);
    }
}

/* Run Pillow's ImagingScaleAffine: each position is the one before it plus a step. */
static void scale(const struct job *job)
{
    double x = job->m[2] + job->m[0] * 0.5;
    for (uint32_t column = 0; column < job->out->width; column += COLUMNS) {
        struct columns columns;
        const uint32_t n = min_u32(COLUMNS, job->out->width - column);
        columns_of(&columns, job, n, &x);
        scale_block(job, column, n, &columns);
    }
}

/* ---- nearest, fixed point ------------------------------------------------------------------ */

/* Return 1 when the position of a corner of the output is small enough: Pillow's check_fixed. */
static int fits(const double m[6], double x, double y)
{
    return __builtin_fabs(x * m[0] + y * m[1] + m[2]) < 32768.0 &&
           __builtin_fabs(x * m[3] + y * m[4] + m[5]) < 32768.0;
}

/* Convert to 65536ths, rounded. Values outside of int32_t become its smallest number, as x86
 * converts. */
static int32_t fixed(double v)
{
    const double scaled = v * 65536.0 + 0.5;
    if (!(scaled >= -0x1p31 && scaled < 0x1p31))
        return INT32_MIN;
    const int32_t toward_zero = (int32_t)scaled;
    return toward_zero - (toward_zero > scaled);
}

/* Columns [begin, end) of a row. */
struct span {
    uint32_t begin, end;
};

static uint32_t column_of(int64_t i, uint32_t n)
{
    return i < 0 ? 0 : i < n ? (uint32_t)i : n;
}

/* Return the i of [0, n) with 0 <= start + i step < limit; one past each end is a quotient rounded
 * up. */
static struct span span_of(int64_t start, int64_t step, int64_t limit, uint32_t n)
{
    if (step == 0)
        return (struct span){0, start >= 0 && start < limit ? n : 0};
    if (step < 0) { /* the same positions, mirrored */
        start = limit - 1 - start;
        step = -step;
    }
    const int64_t begin = start < 0 ? (-start + step - 1) / step : 0;
    const int64_t end = start < limit ? (limit - start + step - 1) / step : 0;
    return (struct span){column_of(begin, n), column_of(end, n)};
}

static struct span common(struct span a, struct span b)
{
    const struct span both = {a.begin > b.begin ? a.begin : b.begin, min_u32(a.end, b.end)};
    return both.begin < both.end ? both : (struct span){0, 0};
}

static int64_t limit_of(uint32_t n)
{
    return (int64_t)min_u32(n, 32768) << 16;
}

static void fixed_row(const struct job *job, uint8_t *out, const struct pstk__warp_walk *walk)
{
    const uint32_t n = job->out->width, size = job->out->channels;
    const struct span span =
        common(span_of((int32_t)walk->x, (int32_t)walk->x_step, limit_of(job->in->width), n),
               span_of((int32_t)walk->y, (int32_t)walk->y_step, limit_of(job->in->height), n));
    const struct pstk__warp_walk from = {walk->x + span.begin * walk->x_step,
                                         walk->y + span.begin * walk->y_step, walk->x_step,
                                         walk->y_step};
    fill_pixels(job, out, span.begin);
    if (span.begin < span.end)
        job->kernels->walk(out + (size_t)span.begin * size, job->in, &from, span.end - span.begin);
    fill_pixels(job, out + (size_t)span.end * size, n - span.end);
}

/* Run Pillow's affine_fixed. Sums are modulo 2^32; the header says where that differs. */
static void fixed_rows(const struct job *job)
{
    const double *m = job->m;
    const uint32_t x_down = (uint32_t)fixed(m[1]), y_down = (uint32_t)fixed(m[4]);
    struct pstk__warp_walk walk = {
        .x = (uint32_t)fixed(m[2] + m[0] * 0.5 + m[1] * 0.5),
        .y = (uint32_t)fixed(m[5] + m[3] * 0.5 + m[4] * 0.5),
        .x_step = (uint32_t)fixed(m[0]),
        .y_step = (uint32_t)fixed(m[3]),
    };
    for (uint32_t row = 0; row < job->out->height; row++) {
        fixed_row(job, row_of(job->out, row), &walk);
        walk.x += x_down;
        walk.y += y_down;
    }
}

/* ---- nearest, large numbers ---------------------------------------------------------------- */

static void large_row(const struct job *job, uint8_t *out, double x, double y)
{
    const size_t size = job->out->channels;
    for (uint32_t i = 0; i < job->out->width; i++, out += size) {
        if (is_in(x, job->in->width) && is_in(y, job->in->height))
            memcpy(out, row_of(job->in, (uint32_t)y) + (size_t)(uint32_t)x * size, size);
        else
            memcpy(out, job->fill, size);
        x += job->m[0];
        y += job->m[3];
    }
}

/* Run the end of Pillow's ImagingTransformAffine: sums of doubles. */
static void large_rows(const struct job *job)
{
    const double *m = job->m;
    double x = m[2] + m[1] * 0.5 + m[0] * 0.5, y = m[5] + m[4] * 0.5 + m[3] * 0.5;
    for (uint32_t row = 0; row < job->out->height; row++, x += m[1], y += m[4])
        large_row(job, row_of(job->out, row), x, y);
}

static void nearest(const struct job *job)
{
    const double *m = job->m, width = job->out->width, height = job->out->height;
    if (m[1] == 0 && m[3] == 0)
        scale(job);
    else if (fits(m, 0, 0) && fits(m, width, height) && fits(m, 0, height) && fits(m, width, 0))
        fixed_rows(job);
    else
        large_rows(job);
}

/* ---- filters ------------------------------------------------------------------------------- */

typedef void places_function(double *x, double *y, const double *m, uint32_t column, uint32_t row);

static void filter_row(const struct job *job, uint32_t row, places_function *places,
                       uint32_t filter)
{
    double x[PSTK__WARP_LANES], y[PSTK__WARP_LANES];
    const struct pstk__picture *out = job->out;
    uint8_t *to = row_of(out, row);
    for (uint32_t column = 0; column < out->width; column += PSTK__WARP_LANES) {
        const uint32_t n = min_u32(PSTK__WARP_LANES, out->width - column);
        places(x, y, job->m, column, row);
        job->kernels->sample[filter](to + (size_t)column * out->channels, job->in, x, y, n);
    }
}

/* Run Pillow's ImagingGenericTransform; RGBA as its Image.transform passes it on. */
static void generic(const struct job *job, places_function *places, uint32_t filter)
{
    const struct pstk__picture *in = job->in, *out = job->out;
    const int has_alpha = in->channels == 4 && filter != PSTK__WARP_NEAREST;
    for (uint32_t row = 0; row < in->height && has_alpha; row++)
        pstk__alpha_multiply(row_of(in, row), row_of(in, row), in->width);
    for (uint32_t row = 0; row < out->height; row++) {
        fill_pixels(job, row_of(out, row), out->width);
        filter_row(job, row, places, filter);
        if (has_alpha)
            pstk__alpha_divide(row_of(out, row), out->width);
    }
}

void pstk__warp_affine(const struct pstk__warp_kernels *kernels, const struct pstk__picture *out,
                       const struct pstk__picture *in, const double m[6], uint32_t filter,
                       const uint8_t fill[4])
{
    const struct job job = {kernels, out, in, m, {fill[0], fill[1], fill[2], fill[3]}};
    if (filter == PSTK__WARP_NEAREST)
        nearest(&job);
    else
        generic(&job, kernels->affine, filter);
}

void pstk__warp_perspective(const struct pstk__warp_kernels *kernels,
                            const struct pstk__picture *out, const struct pstk__picture *in,
                            const double m[8], uint32_t filter, const uint8_t fill[4])
{
    const struct job job = {kernels, out, in, m, {fill[0], fill[1], fill[2], fill[3]}};
    generic(&job, kernels->perspective, filter);
}

/* ---- kernels ------------------------------------------------------------------------------- */

const struct pstk__warp_kernels *pstk__warp_kernels(uint32_t isa)
{
    /* The kernels from worst to best, including those that this CPU does not run. */
    static const void *const entries[] = {
        &pstk__warp_c,
#if defined(__x86_64__)
        &pstk__warp_avx2,
        &pstk__warp_avx512,
#endif
    };
    return pstk__kernels_choose(entries, sizeof entries / sizeof entries[0], isa);
}
