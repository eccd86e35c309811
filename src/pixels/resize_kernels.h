/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_kernels: the contract of the kernels that work on rows of pixels: the two passes of a
 * resize, alpha, and the finish. Each ISA has a table of them; resize.c lists the tables and
 * chooses one. The plain C kernels are the reference for the others. A pixel has 1, 3 or 4
 * channels. Pure.
 */
#ifndef PSTK_PIXELS_RESIZE_KERNELS_H
#define PSTK_PIXELS_RESIZE_KERNELS_H

#include "pixels/filter.h"
#include "pixels/finish.h"

/*
 * The weights of one axis. Output i reads inputs [first[i], first[i] + n[i]), the k-th of them with
 * weights[k * n_out + i].
 *
 * Invariants: first and first + n never fall; 1 <= n[i] <= n_taps, and some n[i] is n_taps. The
 * weights of an output sum to 2^22 except for rounding, and are 0 from n[i] to n_taps rounded up to
 * 4. Their magnitudes sum to less than 2^23, so that a sum of products with bytes fits 32 bits with
 * a sign.
 */
struct pstk__axis {
    uint32_t n_out;     /* wanted outputs */
    uint32_t n_taps;    /* max taps of an output */
    uint32_t is_signed; /* 1: weights may be negative, so that sums leave 0..255 and are clipped */
    uint32_t begin;     /* first input that the outputs read */
    uint32_t end;       /* one past the last input that they read */
    uint32_t *first;    /* n_out, arena */
    uint32_t *n;        /* n_out, arena */
    int32_t *weights;   /* rows of n_out, 22-bit fixed point, arena */
};

/* One output row, and the slots that hold its taps. */
struct pstk__column {
    const uint8_t *const *slots; /* slots in order */
    uint32_t n_slots;
    uint32_t lead;          /* rows of the first slot before the first tap */
    uint32_t n_taps;        /* lead + n_taps <= n_slots * slot_rows */
    uint32_t is_signed;     /* is_signed of struct pstk__axis */
    uint32_t stride;        /* elements from one tap's weight to the next */
    const int32_t *weights; /* first tap's weight; readable, and 0, up to a multiple of 4 taps */
    uint32_t size;          /* bytes of the row */
    int32_t *scratch;       /* n_slots * slot_rows elements, overwritten */
};

/*
 * The kernels of one ISA. The horizontal pass writes `slot_rows` rows at a time into a *slot*.
 * A slot holds them interleaved, as the ISA's vertical pass reads them: `slot_unit` bytes for
 * each byte of a row. A slot is PSTK__SLOT_PAD row bytes longer than a row.
 */
#define PSTK__MAX_SLOT_ROWS 4u
#define PSTK__SLOT_PAD 64u
struct pstk__pixel_kernels {
    uint32_t isa;       /* enum pstk_kernels */
    uint32_t slot_rows; /* a power of 2, <= PSTK__MAX_SLOT_ROWS */
    uint32_t slot_unit;
    /* The kernels whose passes take every filter. This ISA's own passes, the functions from
     * axis_weights to resize_column, take only BILINEAR. */
    const struct pstk__pixel_kernels *general;
    /* Fill in first, n and f->n_rows rows of weights, for the outputs from `first_out` on. */
    void (*axis_weights)(struct pstk__axis *a, const struct pstk__filter *f, uint32_t first_out);
    /* Return the bytes of an axis packed for resize_rows; never falls with more outputs or taps. */
    uint64_t (*across_size)(uint32_t n_out, uint32_t n_taps, uint32_t channels);
    /* Pack an axis for resize_rows; keeps the pointer to it. With `flip` the outputs go right to
     * left. Returns 1 when finish_row still has to flip. */
    uint32_t (*across_init)(void *across, const struct pstk__axis *axis, uint32_t channels,
                            uint32_t flip);
    /* Resize slot_rows rows of pixels (pixel 0 is input axis->begin) to a slot of n_out pixels,
     * rounded to u8. Reads nothing past a row's last pixel. */
    void (*resize_rows)(uint8_t *slot, const uint8_t *const *rows, const void *across);
    void (*resize_column)(uint8_t *out, const struct pstk__column *c);
    /* Multiply colours by alpha: Pillow's RGBA to RGBa. `out` and `rgba` do not overlap. */
    void (*premultiply)(uint8_t *out, const uint8_t *rgba, uint32_t n_pixels);
    /* Divide colours by alpha, in place: Pillow's RGBa to RGBA. */
    void (*unpremultiply)(uint8_t *rgba, uint32_t n_pixels);
    /* 1: finish_row is faster by an affine function than by a table, so folding another table into
     * its table does not pay. */
    uint32_t prefers_affine;
    /* Prepare a table for finish_row. Not for u8, which has no table. */
    void (*lookup_init)(void *lookup, const struct pstk__finish *f);
    /* Finish one row of u8 pixels. out: the row's first element; for NCHW, its first channel's. */
    void (*finish_row)(void *out, const uint8_t *pixels, const struct pstk__finish *f);
};

#endif
