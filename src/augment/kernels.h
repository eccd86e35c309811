/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels: what a variant does to rows of pixels: the two passes of a resize, alpha, and the
 * finish. Pure. This is the contract; resize.c has the list of the variants and chooses. The C
 * entry is the reference for every other. A pixel has 1, 3 or 4 channels.
 */
#ifndef PSTK_PIXEL_KERNELS_H
#define PSTK_PIXEL_KERNELS_H

#include "augment/finish.h"

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
 * the weights of an output are >= 0, sum to 2^22 except for rounding, and are 0 from n[i] to n_taps
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

/* One row of bytes from the slots that hold its taps. */
struct pstk__column {
    const uint8_t *const *slots; /* in order */
    uint32_t n_slots;
    uint32_t lead;          /* rows of the first slot before the first tap */
    uint32_t n_taps;        /* lead + n_taps <= n_slots * slot_rows */
    uint32_t stride;        /* elements from one tap's weight to the next */
    const int32_t *weights; /* first tap's; to a multiple of 4 past the last, 0s are readable */
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
    uint32_t variant;   /* enum pstk_kernels */
    uint32_t slot_rows; /* a power of 2, <= PSTK__MAX_SLOT_ROWS */
    uint32_t slot_unit;
    /* Fill first, n and f->n_rows rows of weights for the outputs from `window` on. */
    void (*axis_weights)(struct pstk__axis *a, const struct pstk__filter *f, uint32_t window);
    /* Bytes of an axis packed for resize_rows; never less for more outputs or taps. */
    uint64_t (*across_size)(uint32_t n_out, uint32_t n_taps, uint32_t channels);
    /* Pack an axis, with `flip` the outputs right to left; keeps the pointer to it. Returns the
     * flip that is left for finish_row to do. */
    uint32_t (*across_init)(void *across, const struct pstk__axis *axis, uint32_t channels,
                            uint32_t flip);
    /* slot_rows rows of pixels (pixel 0 is input axis->begin) to a slot of n_out pixels, rounded to
     * u8. Nothing past the rows' last pixel is read. */
    void (*resize_rows)(uint8_t *slot, const uint8_t *const *rows, const void *across);
    void (*resize_column)(uint8_t *out, const struct pstk__column *c);
    /* Pillow's RGBA to RGBa: colours times alpha. `out` and `rgba` are apart. */
    void (*premultiply)(uint8_t *out, const uint8_t *rgba, uint32_t n_pixels);
    /* Pillow's RGBa to RGBA, in place: colours by alpha. */
    void (*unpremultiply)(uint8_t *rgba, uint32_t n_pixels);
    /* What finish_row wants of a table; not for u8, which has none. */
    void (*lookup_init)(void *lookup, const struct pstk__finish *f);
    /* One row of u8 pixels to its place: out is the row's first element (NCHW: of the first
     * channel's plane). */
    void (*finish_row)(void *out, const uint8_t *pixels, const struct pstk__finish *f);
};

#endif
