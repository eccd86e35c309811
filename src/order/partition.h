/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition: divides positions into batches, and rows among ranks. Pure.
 */
#ifndef PSTK_PARTITION_H
#define PSTK_PARTITION_H

#include <penstock/order.h>

/* The partition of positions into batches, and of a batch's rows among ranks. Rank r has the
 * positions that are r modulo world, so a global batch is the same set of samples for every number
 * of ranks. */
struct pstk__partition {
    uint64_t n;            /* samples */
    uint64_t global_batch; /* rows of all ranks together, at least world */
    uint64_t rank, world;
    uint32_t last_batch;                   /* enum pstk_last_batch */
    const struct pstk__schedule *schedule; /* gives global_batch at each step, or NULL; only
                                              schedule.h asks it; borrowed */
};

/* Return the largest number of rows that a rank has in a batch: global_batch / world, rounded up.
 */
uint64_t pstk__partition_rows(const struct pstk__partition *partition);
/* Return the batches of an epoch from `position` on; the same for all ranks. */
uint64_t pstk__partition_n_batches(const struct pstk__partition *partition, uint64_t position);
/* Return this rank's valid rows of the batch that begins at `position`, which exists. */
uint32_t pstk__partition_n_valid(const struct pstk__partition *partition, uint64_t position);
/* Return the position of row `row` of that batch, already wrapped under PSTK_LAST_PAD. */
uint64_t pstk__partition_row(const struct pstk__partition *partition, uint64_t position,
                             uint32_t row);

#endif
