/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finish: how a row of u8 pixels becomes a row of an output: mirrored, normalised, cast, laid out.
 * Pure. Every value of a channel has its element in a table; a line may give the same ones faster.
 * Pixels have 1, 3 or 4 channels.
 */
#ifndef PSTK_FINISH_H
#define PSTK_FINISH_H

#include <penstock/penstock.h>

#define PSTK__MAX_CHANNELS 4u

/* A line that gives all elements of a table: element(c, v) = fma(v, scale[c], offset[c]) in
 * float32, rounded once, then cast to nearest, ties to even. */
struct pstk__affine {
    uint32_t exact; /* 0: there is none, or none was found */
    float scale[PSTK__MAX_CHANNELS], offset[PSTK__MAX_CHANNELS];
};

/* How a finished row of u8 pixels becomes output elements: out = table[channel][value]. */
struct pstk__finish {
    uint32_t channels; /* 1, 3 or 4: bytes of a pixel, elements of an output pixel */
    uint32_t dtype;    /* PSTK_U8, F16, BF16, F32 */
    uint32_t layout;   /* enum pstk_layout */
    uint32_t flip;     /* 1: right to left */
    uint32_t width;    /* pixels of the output row */
    uint64_t plane;    /* elements between channels (NCHW) */
    const void *table; /* channels x 256 elements of dtype (u8: unused) */
    /* Of the table, or NULL; with it, rows are finished faster. */
    const struct pstk__affine *affine;
    /* What the kernels' lookup_init made of the table, or NULL: finish_row makes it for itself. */
    const void *lookup;
};
#define PSTK__LOOKUP_SIZE 4096u /* bytes of a lookup, 64-byte aligned; no variant needs more */

/* Fill a table of channels x 256 elements: normalised (mean, deviation: a float each channel) or,
 * with NULL, x / 255. Float32 steps x/255, minus mean, divided by deviation, each rounded; then
 * cast round-to-nearest-even. */
void pstk__finish_table(void *table, uint32_t dtype, uint32_t channels, const float *mean,
                        const float *deviation);

/* Find the line of a table, 16-bit dtypes only. Takes a fraction of a millisecond. */
void pstk__affine_init(struct pstk__affine *affine, const void *table, uint32_t dtype,
                       uint32_t channels);

#endif
