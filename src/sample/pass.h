/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass: one step from a field's bytes to the rows that are handed out. An output is a list of
 * passes, made once at open: a worker does the first ones, the device of the batches does the rest.
 * Everyone reads the same list: the memory of a worker is the sum over its passes, a slot holds the
 * result of the last of them, and the device does the remaining passes.
 */
#ifndef PSTK_PASS_H
#define PSTK_PASS_H

#include <penstock/types.h>

enum pstk__pass_kind {
    PSTK__PASS_PLAIN = 1, /* the field's bytes checked and decompressed: once for all its outputs */
    PSTK__PASS_DECODE,    /* a coded image to rows of pixels: once for all its outputs */
    PSTK__PASS_TURN,      /* those rows upright, by EXIF orientation */
    PSTK__PASS_CONVERT,   /* to other channels, as Pillow's convert */
    PSTK__PASS_COLOUR,    /* by an op, pixel by pixel */
    PSTK__PASS_RESIZE,    /* geometry: cut, resized, cut and padded */
    PSTK__PASS_PICTURE,   /* a whole picture changed by an op */
    PSTK__PASS_FINISH, /* mirrored, then elements of the output's dtype and layout; boxes erased */
    PSTK__PASS_CAST,   /* elements to another dtype */
    PSTK__PASS_COPY,   /* bytes as they are */
    PSTK__PASS_CALLBACK, /* a row by the program's function */
    PSTK__PASS_LABEL,    /* a label of a mix, checked; its row, unless the last worker makes it */
};

/* The layout of the rows between two passes. */
struct pstk__row_layout {
    uint32_t dtype;    /* enum pstk_dtype; 0: bytes of the field */
    uint32_t layout;   /* enum pstk_layout, of images */
    uint32_t channels; /* of images */
    uint64_t row_size; /* bytes of one row of a batch; ragged: the most; 0: each sample's differs */
};

struct pstk__pass {
    uint32_t what;      /* enum pstk__pass_kind */
    uint32_t on_device; /* 1: done there; else by a worker */
    struct pstk__row_layout in, out;
    const struct pstk_op *op; /* COLOUR, PICTURE; borrowed from the output */
    uint64_t held;            /* bytes of a worker's arena, kept until the sample's field is done */
    uint64_t scratch;         /* more of them, given back after the pass */
};

#endif
