/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finish: converts a row of u8 pixels to a row of an output: mirrors, normalises, casts and lays it
 * out. A table holds the element for each value of a channel. An affine function may give the same
 * elements faster. Pixels have 1, 3 or 4 channels. Pure.
 */
#ifndef PSTK_PIXELS_FINISH_H
#define PSTK_PIXELS_FINISH_H

#include <penstock/penstock.h>

#define PSTK__MAX_CHANNELS 4u

/* An affine function that gives every element of a table: element(c, v) = fma(v, scale[c],
 * offset[c]) in float32, rounded once, then cast to nearest, ties to even. */
struct pstk__affine {
    uint32_t exact; /* 1: the function gives every element; 0: there is none, or none was found */
    float scale[PSTK__MAX_CHANNELS], offset[PSTK__MAX_CHANNELS];
};

/* The conversion of a row of u8 pixels to a row of output elements: out = table[channel][value]. */
struct pstk__finish {
    uint32_t channels; /* 1, 3 or 4: bytes of a pixel, elements of an output pixel */
    uint32_t dtype;    /* PSTK_U8, F16, BF16, F32 */
    uint32_t layout;   /* enum pstk_layout */
    uint32_t flip;     /* 1: mirrored, right to left */
    uint32_t width;    /* pixels of the output row */
    uint64_t plane;    /* elements between channels (NCHW) */
    const void *table; /* channels x 256 elements of dtype (u8: unused) */
    /* affine form of the table, which makes finishing faster; NULL: there is none */
    const struct pstk__affine *affine;
    /* result of the kernels' lookup_init for the table; NULL: finish_row computes it */
    const void *lookup;
};
#define PSTK__COLOUR_TABLE_SIZE (PSTK__MAX_CHANNELS * 256 * 4u) /* max bytes of a table */
#define PSTK__LOOKUP_SIZE 4096u /* bytes of a lookup, 64-byte aligned; enough for every ISA */

/* The arithmetic of finishing ops: (x / 255 - mean) / deviation, by channel. */
struct pstk__normalisation {
    uint32_t is_set; /* 0: only x / 255 */
    uint32_t scale;  /* enum pstk_scale: how x / 255 is computed */
    float mean[PSTK__MAX_CHANNELS], deviation[PSTK__MAX_CHANNELS];
};

/* Fill a table of channels x 256 elements. Each step is rounded to float32; the result is cast to
 * nearest, ties to even. */
void pstk__normalisation_table(void *table, uint32_t dtype, uint32_t channels,
                               const struct pstk__normalisation *normalisation);
/* Fold `bytes`, which map each channel's bytes, into a table: an element of `folded` is the table's
 * for the mapped byte. dtype has 2 or 4 bytes. */
void pstk__finish_fold(void *folded, const void *table, uint32_t dtype, uint32_t channels,
                       const uint8_t (*bytes)[256]);

/* Find the affine function of a table. Only 16-bit dtypes have one. This takes a fraction of a
 * millisecond. */
void pstk__affine_init(struct pstk__affine *affine, const void *table, uint32_t dtype,
                       uint32_t channels);

#endif
