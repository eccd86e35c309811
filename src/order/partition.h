/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition: how positions become batches, and whose rows they are. Pure.
 */
#ifndef PSTK_PARTITION_H
#define PSTK_PARTITION_H

#include <penstock/order.h>

/* How positions become batches: which rows rank `rank` of `world` has in the batch at a position.
 * Rank r has the positions that are r modulo world, so a global batch is the same set of samples
 * for every number of ranks. */
struct pstk__partition {
    uint64_t n;            /* samples */
    uint64_t global_batch; /* samples of all ranks' rows together, at least world */
    uint64_t rank, world;
    uint32_t last_batch;                   /* enum pstk_last_batch */
    const struct pstk__schedule *schedule; /* NULL, or what global_batch follows from: schedule.h
                                              asks it, the functions below do not; borrowed */
};

/* The most rows that a rank has in a batch: global_batch / world, rounded up. */
uint64_t pstk__partition_rows(const struct pstk__partition *partition);
/* Batches of an epoch from `position` on; the same for all ranks. */
uint64_t pstk__partition_n_batches(const struct pstk__partition *partition, uint64_t position);
/* Valid rows of the batch that starts at `position` (a batch that exists). */
uint32_t pstk__partition_n_valid(const struct pstk__partition *partition, uint64_t position);
/* Position of row `row` of that batch, already wrapped under PSTK_LAST_PAD. */
uint64_t pstk__partition_row(const struct pstk__partition *partition, uint64_t position,
                             uint32_t row);

#endif
