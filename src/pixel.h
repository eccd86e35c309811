/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pixel: resize as Pillow does, flip, normalise, cast, lay out. L2, pure. Kernels stand in a table
 * by variant; the C entry is the reference for every other. SEMANTICS: Pillow's Resample.c.
 */
#ifndef PSTK_PIXEL_H
#define PSTK_PIXEL_H

#include "arena.h"
#include "image.h"
#include <penstock/penstock.h>

/*
 * Weights of one axis: output i reads input [first[i], first[i] + n[i]) with weights[i * n_taps].
 * first and first + n never fall; 1 <= n[i] <= n_taps, some n[i] = n_taps; the weights of an output
 * are >= 0, sum to 2^22 but for rounding, and are 0 from n[i] to n_taps.
 */
struct pstk__axis {
    uint32_t n_out;   /* outputs of the window */
    uint32_t n_taps;  /* row length of weights */
    uint32_t begin;   /* first input needed by the window */
    uint32_t end;     /* one past the last input needed */
    uint32_t *first;  /* n_out, arena */
    uint32_t *n;      /* n_out, arena */
    int32_t *weights; /* n_out * n_taps, 22-bit fixed point, arena */
};

/* Weights for `in` pixels resized to `out`, for outputs [window, window + n_out) only. 0 or ENOMEM.
 */
int pstk__axis_init(struct pstk__axis *a, struct pstk__arena *arena, uint32_t in, uint32_t out,
                    uint32_t window, uint32_t n_out);

/* How a finished u8 RGB row becomes output elements: out = table[channel][value], 3 x 256 entries
 * of the dtype (u8: unused). */
struct pstk__finish {
    uint32_t dtype;    /* PSTK_U8, F16, BF16, F32 */
    uint32_t layout;   /* enum pstk_layout */
    uint32_t flip;     /* 1: right to left */
    uint32_t width;    /* pixels of the output row */
    uint64_t plane;    /* elements between channels (NCHW) */
    const void *table; /* 3 x 256 elements of dtype */
};

/* The kernels of one variant. */
struct pstk__pixel_kernels {
    uint32_t variant; /* enum pstk_variant */
    /* One row: RGB in (pixel 0 is input axis->begin) -> RGB out, n_out pixels, rounded to u8. */
    void (*resize_row)(uint8_t *out, const uint8_t *in, const struct pstk__axis *axis);
    /* One output row from n rows of `size` bytes each with n weights. */
    void (*resize_column)(uint8_t *out, const uint8_t *const *rows, const int32_t *weights,
                          uint32_t n, uint32_t size);
    /* One row of u8 RGB to its place: out is the first element of the row (NCHW: of its red plane).
     */
    void (*finish_row)(void *out, const uint8_t *rgb, const struct pstk__finish *f);
};

/* The kernels asked for (AUTO: the best this CPU runs), NULL when this build or CPU lacks them. */
const struct pstk__pixel_kernels *pstk__pixel_kernels(uint32_t variant);

/* Fill a 3 x 256 table: normalised (mean, deviation: 3 floats) or, with NULL, x / 255. Float32
 * steps x/255, minus mean, divided by deviation, each rounded; then cast round-to-nearest-even. */
void pstk__finish_table(void *table, uint32_t dtype, const float *mean, const float *deviation);

/* A resize under way: rows go in, finished rows come out into `out`. All memory from an arena. */
struct pstk__resize {
    const struct pstk__pixel_kernels *kernels;
    struct pstk__axis x, y;
    uint32_t n_ring;          /* rows kept: y.n_taps */
    uint32_t n_in;            /* input rows taken, counted from y.begin */
    uint32_t n_out;           /* output rows finished */
    uint8_t **ring;           /* n_ring rows of x.n_out * 3 bytes */
    const uint8_t **tap_rows; /* y.n_taps pointers */
    uint8_t *row;             /* one u8 output row */
    struct pstk__finish finish;
    uint8_t *out;        /* first output row */
    uint64_t out_stride; /* bytes between output rows */
};

/* Resize an image of in_width x in_height to out_width x out_height and keep the window of it. Rows
 * to be given: [y.begin, y.end), each of pixels [x.begin, x.end). 0 or ENOMEM. */
struct pstk__resize_config {
    uint32_t in_width, in_height, out_width, out_height;
    struct pstk__box window; /* of the output */
    struct pstk__finish finish;
    void *out;
    uint64_t out_stride;
};
int pstk__resize_begin(struct pstk__resize *r, struct pstk__arena *arena,
                       const struct pstk__pixel_kernels *kernels,
                       const struct pstk__resize_config *c);
/* The next n input rows, `stride` bytes apart; nothing is read beyond their pixels. */
void pstk__resize_rows(struct pstk__resize *r, const uint8_t *rgb, uint64_t stride, uint32_t n);
/* What bounds the resizes of an output: no image is larger than max_in, none is resized to less
 * than min_out, no window is larger than max_window. */
struct pstk__resize_bounds {
    uint32_t max_in_width, max_in_height;
    uint32_t min_out_width, min_out_height;
    uint32_t max_window_width, max_window_height;
};
/* Bytes of arena that begin takes at most within these bounds. */
uint64_t pstk__resize_scratch(const struct pstk__resize_bounds *b);

/* The entries, for pixel.c alone. */
extern const struct pstk__pixel_kernels pstk__pixel_c;

#endif
