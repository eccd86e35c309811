/* SPDX-License-Identifier: Apache-2.0 */
/* row: the memory of one row of one output, and the facts known once it is written. */
#ifndef PSTK_ROW_H
#define PSTK_ROW_H

#include <penstock/penstock.h>

struct pstk__row {
    void *data;          /* row_size bytes; ragged: the most */
    void *aside;         /* data holds the field's stored bytes: memory for these, if the row is to
                            be made of them; else unused */
    void *input;         /* callbacks of whole batches: the input of this row; else NULL */
    uint64_t size;       /* out, ragged: bytes written */
    uint32_t is_stored;  /* out, image, 1: the row is the field's stored bytes, unchanged */
    uint8_t *flip;       /* out, deferred image, 1: the device must still mirror it; else unused */
    uint32_t is_palette; /* out, image, 1: from a PNG file that has a palette */
    uint32_t is_damaged; /* out, image, 1: from a damaged file that is accepted */
    uint32_t n_dropped;  /* out, boxes: dropped boxes */
    struct pstk_crop *crop; /* out, or NULL */
    uint32_t *label;        /* out, label of dense targets; else NULL */
};

#endif
