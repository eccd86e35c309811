/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/order.h - the sample ids of each batch, computed without a loader.
 *
 * An order is a permutation of the sample ids of one epoch: it maps position k to a sample id. A
 * global batch takes the next G = batch_size * world positions; rank r gets those that are r modulo
 * world. The functions are pure: they read no data set and any number of threads may call them.
 * With a schedule of batch sizes, each call checks the schedule, in memory that it frees again.
 */
#ifndef PENSTOCK_ORDER_H
#define PENSTOCK_ORDER_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum pstk_order {
    /* a new random permutation in every epoch */
    PSTK_ORDER_FULL = 0,
    /* by sample id */
    PSTK_ORDER_SEQUENTIAL = 1,
    /* a new random order of blocks of samples in every epoch, with the samples mixed inside windows
     * of blocks: the loader reads whole blocks, each once */
    PSTK_ORDER_WINDOWED = 2,
};

/* Treatment of the last n modulo G samples of an order. */
enum pstk_last_batch {
    /* the epoch leaves them out */
    PSTK_LAST_DROP = 0,
    /* samples from the start of the epoch's order fill the last batch; n_valid counts them */
    PSTK_LAST_PAD = 1,
    /* the last batch has fewer valid rows, on some ranks perhaps none */
    PSTK_LAST_SHORT = 2,
};

/* Version of the rules of full and sequential orders: it changes whenever the same settings would
 * give another order. */
#define PSTK_ORDER_VERSION 1
/* Version of the rule of windowed orders: it changes whenever the same settings would give another
 * order. */
#define PSTK_WINDOWED_VERSION 1

/* Largest numbers of ways, of samples of a block and of blocks of a window, in a windowed order. */
#define PSTK_MAX_WAYS 65536
#define PSTK_MAX_BLOCK 1048576
#define PSTK_MAX_WINDOW 4096

/* A change of the size of batches in a run. A step is a batch of all ranks together; steps count
 * from 0, the first batch of epoch 0. */
struct pstk_batch_step {
    /* first step that has this size; above that of the change before, at least 1, below 2^62 */
    uint64_t from;
    /* rows of a batch, in place of batch_size or, if that is given, of global_batch_size */
    uint32_t rows;
    /* must be 0 */
    uint32_t reserved;
};

/* Largest number of changes in a schedule. */
#define PSTK_MAX_BATCH_STEPS 1024

/* The order of a data set of n_samples samples. A loader with the same values delivers it. */
struct pstk_order_settings {
    /* sizeof(struct pstk_order_settings), set by the caller */
    uint32_t size;
    /* enum pstk_order */
    uint32_t order;
    uint64_t n_samples;
    uint64_t seed;
    uint64_t epoch;
    /* rows of one rank's batch; 0 with global_batch_size */
    uint32_t batch_size;
    /* number of this process, below `world` */
    uint32_t rank;
    /* processes that share the data set, at least 1 */
    uint32_t world;
    /* enum pstk_last_batch */
    uint32_t last_batch;
    /* rows of all ranks' batches together, at least world; 0: batch_size * world. It need not be a
     * multiple of world: see pstk_settings.order.uneven */
    uint32_t global_batch_size;
    /* must be 0 */
    uint32_t reserved;
    /* windowed order, else 0: pieces of the data set that are interleaved, at most PSTK_MAX_WAYS.
     * 0: 48, 12, 4 or 1, a function of n_samples */
    uint32_t ways;
    /* windowed order, else 0: samples of a block, at most PSTK_MAX_BLOCK. 0: 64 */
    uint32_t block;
    /* windowed order, else 0: blocks whose samples are mixed, at most PSTK_MAX_WINDOW. 0: 4 */
    uint32_t window;
    /* changes of the size of batches in the run, at most PSTK_MAX_BATCH_STEPS */
    uint32_t n_batch_steps;
    /* the changes; NULL: none. borrows, for each call */
    const struct pstk_batch_step *batch_schedule;
};

/* Replace each 0 among ways, block and window of a windowed order by its automatic value. 0;
 * EINVAL. borrows. */
PSTK_API int pstk_order_settle(struct pstk_order_settings *s);

/* The properties of an order for one rank. All members are 0 if there are no samples. */
struct pstk_order_explanation {
    /* sizeof(struct pstk_order_explanation), set by the caller */
    uint32_t size;
    /* windowed order: settled values; other orders: 0 */
    uint32_t ways, block, window;
    /* windowed order: advised number of ways for this number of ranks, near 48. It is a multiple of
     * world, so that each rank has ways of its own; unless it is world itself, each way has at
     * least 1024 samples. Past PSTK_MAX_WAYS ranks: the largest divisor of world */
    uint32_t advised_ways;
    /* valid rows of this rank's last batch */
    uint32_t last_rows;
    /* batches of an epoch, the same for every rank */
    uint64_t n_batches;
    /* samples, of all ranks together, from which the next one is drawn; 1: sequential */
    uint64_t n_mixed;
    /* blocks of an epoch of a windowed order; other orders: 0 */
    uint64_t n_blocks;
    /* ways of a windowed order whose samples this rank has: ways / gcd(ways, world) */
    uint64_t ways_of_rank;
    /* ranks that have samples of the same way: world / gcd(ways, world) */
    uint64_t ranks_of_way;
    /* largest number of blocks that this rank's windows cover at a time */
    uint64_t blocks_of_rank;
    /* ranks that need a sample of a block, mean over all blocks: how often all ranks together read
     * a byte. An estimate, within 4 % if window is above 1. 1 for other orders */
    double n_readings;
};

/* Explain an order: fill *out, up to its size. borrows. 0; EINVAL. */
PSTK_API int pstk_order_explain(const struct pstk_order_settings *s,
                                struct pstk_order_explanation *out);

/* Return the number of batches of an epoch from `position` on; the same for every rank. borrows. */
PSTK_API uint64_t pstk_order_n_batches(const struct pstk_order_settings *s, uint64_t position);
/* Return the rows of the batch at `position`, of all ranks together; 0: EINVAL. borrows. */
PSTK_API uint64_t pstk_order_rows(const struct pstk_order_settings *s, uint64_t position);
/* Write the ids of the batch at `position` to ids[batch_size], or with global_batch_size to
 * ids[global_batch_size / world, rounded up], with the largest size of a schedule. Return the
 * number of valid ids; 0: past the end of the epoch; <0: EINVAL. borrows. */
PSTK_API int64_t pstk_order_batch(const struct pstk_order_settings *s, uint64_t position,
                                  uint64_t *ids);

#ifdef __cplusplus
}
#endif
#endif
