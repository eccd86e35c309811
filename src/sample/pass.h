/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass: one step from a field's bytes to the rows that are handed out. An output is a list of
 * passes, made once at open: a worker does the first ones, the device of the batches does the rest.
 * All users read the same list. A worker's memory is the sum over its passes, a slot holds the
 * result of the worker's last pass, and the device does the remaining passes.
 */
#ifndef PSTK_PASS_H
#define PSTK_PASS_H

#include <penstock/types.h>

enum pstk__pass_kind {
    PSTK__PASS_PLAIN = 1, /* check and decompress the field's bytes, once for all its outputs */
    PSTK__PASS_DECODE,    /* decode a coded image to rows of pixels, once for all its outputs */
    PSTK__PASS_TURN,      /* turn the decoded rows upright, by EXIF orientation */
    PSTK__PASS_CONVERT,   /* convert to other channels, as Pillow's convert */
    PSTK__PASS_COLOUR,    /* apply an op pixel by pixel */
    PSTK__PASS_RESIZE,    /* geometry: cut, resize, cut and pad */
    PSTK__PASS_PICTURE,   /* change a whole picture by an op */
    PSTK__PASS_FINISH,    /* mirror, make elements of the output's dtype and layout, erase boxes */
    PSTK__PASS_CAST,      /* cast elements to another dtype */
    PSTK__PASS_COPY,      /* copy bytes unchanged */
    PSTK__PASS_CALLBACK,  /* call the program's function to make the row */
    PSTK__PASS_LABEL, /* check a label of a mix, and write its row unless the last worker does */
};

/* The layout of the rows between two passes. */
struct pstk__row_layout {
    uint32_t dtype;    /* enum pstk_dtype; 0: bytes of the field */
    uint32_t layout;   /* enum pstk_layout, of images */
    uint32_t channels; /* images only */
    uint64_t row_size; /* bytes of one row of a batch; ragged: the maximum; 0: it differs from
                          sample to sample */
};

struct pstk__pass {
    uint32_t what;      /* enum pstk__pass_kind */
    uint32_t on_device; /* 1: the device does the pass; 0: a worker does */
    struct pstk__row_layout in, out;
    const struct pstk_op *op; /* COLOUR, PICTURE; borrowed from the output */
    uint64_t held;            /* bytes of a worker's arena, held until the sample's field is done */
    uint64_t scratch;         /* further bytes, given back after the pass */
};

#endif
