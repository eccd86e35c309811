/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout: where the arrays of a slot lie, in host memory and in a device's. L2, pure.
 *
 *   host     | dense rows | flips | offsets | ids, substitutes, crops, reports | ragged rows |
 *            '------- mirrored -------------'
 *                                 '------------ told on the host -----------'
 *   device   | dense rows | flips | offsets | ragged rows | what is made of deferred rows |
 *
 * So a batch is copied to a device in one piece and one more for each ragged output, and what a
 * batch tells the host, in one piece from slot to slot.
 */
#ifndef PSTK_LAYOUT_H
#define PSTK_LAYOUT_H

#include "sample.h"

/* Bytes from the start of the slot; every array is 64-byte aligned. */
struct pstk__layout {
    uint64_t rows[PSTK__MAX_OUTPUTS];    /* host: what workers write */
    uint64_t flips[PSTK__MAX_OUTPUTS];   /* both; deferred images: a byte a row */
    uint64_t offsets[PSTK__MAX_OUTPUTS]; /* both; ragged: batch_size + 1 int64 */
    uint64_t told;                       /* host: where the offsets begin */
    uint64_t dense_size;                 /* both: bytes that are mirrored */
    uint64_t ids, substitutes;           /* host: batch_size uint64 each */
    uint64_t crops;                      /* host: n_outputs * batch_size; reports when unwanted */
    uint64_t reports;                    /* host: max_reports; told_end when unwanted */
    uint32_t max_reports;                /* of bad samples that were replaced */
    uint64_t told_end;                   /* host */
    uint64_t size;                       /* host: all of it; UINT64_MAX when it cannot be */
    uint64_t arrival[PSTK__MAX_OUTPUTS]; /* device: where rows arrive; dense: rows[] */
    uint64_t final[PSTK__MAX_OUTPUTS];   /* device: what is handed out; arrival[] but of deferred */
    uint64_t device_size;                /* device: all of it; 0 for a plan of the host */
};

/* Lay out a slot of the plan. with_reports: bad samples are replaced. Overflow-safe: then size is
 * UINT64_MAX, and nothing else counts. */
void pstk__layout_init(struct pstk__layout *l, const struct pstk__plan *plan, uint32_t with_crops,
                       uint32_t with_reports);

#endif
