/* SPDX-License-Identifier: Apache-2.0 */
/* row: where one row of one output goes, and what is known of it once it is written. */
#ifndef PSTK_ROW_H
#define PSTK_ROW_H

#include <penstock/penstock.h>

struct pstk__row {
    void *data;             /* row_size bytes (ragged: room for that many) */
    void *input;            /* of a whole batch: what its processes get of this row; else NULL */
    uint64_t size;          /* out, ragged: bytes written */
    uint8_t *flip;          /* out, deferred image: 1 = still to be mirrored; else unused */
    uint32_t is_palette;    /* out, image: 1 = from a PNG file that has a palette */
    uint32_t is_damaged;    /* out, image: 1 = from a damaged file that is accepted */
    uint32_t n_dropped;     /* out, boxes: those that are not in the row */
    struct pstk_crop *crop; /* out, or NULL */
    uint32_t *label;        /* out, label of dense targets; NULL where there are none */
};

#endif
