/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pixel: resize as Pillow does, flip, normalise, cast, lay out. L2, pure. Kernels stand in a table
 * by variant; the C entry is the reference for every other. SEMANTICS: Pillow's Resample.c.
 */
#ifndef PSTK_PIXEL_H
#define PSTK_PIXEL_H

#include "base/arena.h"
#include "image/image.h"
#include <penstock/penstock.h>

/* A triangle filter over one axis, by the names of Pillow's precompute_coeffs. */
struct pstk__filter {
    double scale;       /* inputs per output */
    double support;     /* reach of the filter on each side, in inputs; >= 1 */
    double filterscale; /* 1 / support: Pillow multiplies by it */
    uint32_t in;        /* inputs */
    uint32_t n_rows;    /* rows of weights to be filled: no output has more taps */
};

/*
 * Weights of one axis. Output i reads inputs [first[i], first[i] + n[i]), the k-th of them with
 * weights[k * n_out + i]. first and first + n never fall; 1 <= n[i] <= n_taps, some n[i] = n_taps;
 * the weights of an output are >= 0, sum to 2^22 but for rounding, and are 0 from n[i] to n_taps
 * rounded up to 4.
 */
struct pstk__axis {
    uint32_t n_out;   /* outputs of the window */
    uint32_t n_taps;  /* taps of the output that has most */
    uint32_t begin;   /* first input needed by the window */
    uint32_t end;     /* one past the last input needed */
    uint32_t *first;  /* n_out, arena */
    uint32_t *n;      /* n_out, arena */
    int32_t *weights; /* rows of n_out, 22-bit fixed point, arena */
};

struct pstk__pixel_kernels;

/* Weights for `in` pixels resized to `out`, for outputs [window, window + n_out) only. 0 or
 * ENOMEM. */
int pstk__axis_init(struct pstk__axis *a, struct pstk__arena *arena,
                    const struct pstk__pixel_kernels *kernels, uint32_t in, uint32_t out,
                    uint32_t window, uint32_t n_out);

/* A line that gives all elements of a table: element(c, v) = fma(v, scale[c], offset[c]) in
 * float32, rounded once, then cast to nearest, ties to even. */
struct pstk__affine {
    uint32_t exact; /* 0: there is none, or none was found */
    float scale[3], offset[3];
};

/* How a finished u8 RGB row becomes output elements: out = table[channel][value], 3 x 256 entries
 * of the dtype (u8: unused). */
struct pstk__finish {
    uint32_t dtype;    /* PSTK_U8, F16, BF16, F32 */
    uint32_t layout;   /* enum pstk_layout */
    uint32_t flip;     /* 1: right to left */
    uint32_t width;    /* pixels of the output row */
    uint64_t plane;    /* elements between channels (NCHW) */
    const void *table; /* 3 x 256 elements of dtype */
    /* Of the table, or NULL; with it, rows are finished faster. */
    const struct pstk__affine *affine;
    /* What the kernels' lookup_init made of the table, or NULL: finish_row makes it for itself. */
    const void *lookup;
};
#define PSTK__LOOKUP_SIZE 3072u /* bytes of a lookup, 64-byte aligned; no variant needs more */

/* One row of bytes from the slots that hold its taps. */
struct pstk__column {
    const uint8_t *const *slots; /* in order */
    uint32_t n_slots;
    uint32_t lead;          /* rows of the first slot before the first tap */
    uint32_t n_taps;        /* lead + n_taps <= n_slots * slot_rows */
    uint32_t stride;        /* elements from one tap's weight to the next */
    const int32_t *weights; /* first tap's; to a multiple of 4 behind the last, 0s are readable */
    uint32_t size;          /* bytes of the row */
    int32_t *scratch;       /* n_slots * slot_rows elements, contents lost */
};

/*
 * The kernels of one variant. Rows go through the horizontal pass `slot_rows` at a time into a
 * *slot*, which holds them interleaved, `slot_unit` bytes for each byte of a row, as the vertical
 * pass of the variant wants them; slots are PSTK__SLOT_PAD row bytes longer than a row.
 */
#define PSTK__MAX_SLOT_ROWS 4u
#define PSTK__SLOT_PAD 64u
struct pstk__pixel_kernels {
    uint32_t variant;   /* enum pstk_variant */
    uint32_t slot_rows; /* a power of 2, <= PSTK__MAX_SLOT_ROWS */
    uint32_t slot_unit;
    /* Fill first, n and f->n_rows rows of weights for the outputs from `window` on. */
    void (*axis_weights)(struct pstk__axis *a, const struct pstk__filter *f, uint32_t window);
    /* Bytes of an axis packed for resize_rows; never less for more outputs or taps. */
    uint64_t (*across_size)(uint32_t n_out, uint32_t n_taps);
    /* Pack an axis, with `flip` the outputs right to left; keeps the pointer to it. Returns the
     * flip that is left for finish_row to do. */
    uint32_t (*across_init)(void *across, const struct pstk__axis *axis, uint32_t flip);
    /* slot_rows rows of RGB (pixel 0 is input axis->begin) to a slot of n_out pixels, rounded to
     * u8. Nothing beyond the rows' last pixel is read. */
    void (*resize_rows)(uint8_t *slot, const uint8_t *const *rows, const void *across);
    void (*resize_column)(uint8_t *out, const struct pstk__column *c);
    /* What finish_row wants of a table; not for u8, which has none. */
    void (*lookup_init)(void *lookup, const struct pstk__finish *f);
    /* One row of u8 RGB to its place: out is the row's first element (NCHW: of its red plane). */
    void (*finish_row)(void *out, const uint8_t *rgb, const struct pstk__finish *f);
};

/* The kernels asked for (AUTO: the best this CPU runs), NULL when this build or CPU lacks them. */
const struct pstk__pixel_kernels *pstk__pixel_kernels(uint32_t variant);

/* Fill a 3 x 256 table: normalised (mean, deviation: 3 floats) or, with NULL, x / 255. Float32
 * steps x/255, minus mean, divided by deviation, each rounded; then cast round-to-nearest-even. */
void pstk__finish_table(void *table, uint32_t dtype, const float *mean, const float *deviation);

/* Find the line of a table, 16-bit dtypes only. Takes a fraction of a millisecond. */
void pstk__affine_init(struct pstk__affine *a, const void *table, uint32_t dtype);

/* A resize under way: rows go in, finished rows come out into `out`. All memory from an arena. */
struct pstk__resize {
    const struct pstk__pixel_kernels *kernels;
    struct pstk__axis x, y;
    uint32_t identity;   /* 1: rows only go through finish_row; from `across` on all is unset */
    uint32_t direct;     /* 1: the vertical pass writes finished rows */
    uint32_t slot_shift; /* slot_rows = 1 << slot_shift */
    uint32_t n_in;       /* input rows in slots, counted from y.begin */
    uint32_t n_held;     /* rows that wait for a slot's others, < slot_rows */
    uint32_t n_out;      /* output rows finished */
    struct pstk__finish finish;
    uint8_t *out;          /* first output row */
    uint64_t out_stride;   /* bytes between output rows */
    void *across;          /* x as the kernels want it */
    uint32_t n_ring;       /* slots kept: what the taps of one output may reach over */
    uint8_t **ring;        /* n_ring slots */
    const uint8_t **slots; /* room for n_ring pointers: struct pstk__column */
    int32_t *scratch;      /* likewise */
    uint8_t *held;         /* slot_rows - 1 input rows, held_stride bytes apart */
    uint64_t held_stride;
    uint8_t *row; /* one u8 output row */
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

/* ---- between resize.c and the variants ------------------------------------------------------ */

extern const struct pstk__pixel_kernels pstk__pixel_c;
#if defined(__x86_64__)
extern const struct pstk__pixel_kernels pstk__pixel_avx2;
extern const struct pstk__pixel_kernels pstk__pixel_avx512;
void pstk__lookup_init_avx2(void *lookup, const struct pstk__finish *f);
void pstk__finish_row_avx2(void *out, const uint8_t *rgb, const struct pstk__finish *f);
void pstk__lookup_init_avx512(void *lookup, const struct pstk__finish *f);
void pstk__finish_row_avx512(void *out, const uint8_t *rgb, const struct pstk__finish *f);
#endif

#endif
