/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/order.h - which samples a batch has, without a loader.
 *
 * An order is a permutation of the sample ids of one epoch: it maps position k to a sample id. A
 * global batch takes the next G = batch_size * world positions; rank r gets those that are r modulo
 * world. The functions are pure: they read no data set and any number of threads may call them.
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
    /* a new random order of blocks of samples in every epoch, mixed inside windows of blocks: the
     * loader reads whole blocks, each once */
    PSTK_ORDER_WINDOWED = 2,
};

/* What becomes of the last n modulo G samples of an order. */
enum pstk_last_batch {
    /* the epoch leaves them out */
    PSTK_LAST_DROP = 0,
    /* samples from the start of the epoch's order fill the last batch; n_valid counts them */
    PSTK_LAST_PAD = 1,
    /* the last batch has fewer valid rows, on some ranks perhaps none */
    PSTK_LAST_SHORT = 2,
};

/* Changes whenever the same settings would give another full or sequential order. */
#define PSTK_ORDER_VERSION 1
/* Changes whenever the same settings would give another windowed order. */
#define PSTK_WINDOWED_VERSION 1

/* The most strands, samples of a block and blocks of a window of a windowed order. */
#define PSTK_MAX_STRANDS 65536
#define PSTK_MAX_BLOCK 1048576
#define PSTK_MAX_WINDOW 4096

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
    uint32_t rank;
    /* 0: 1 */
    uint32_t world;
    /* enum pstk_last_batch */
    uint32_t last_batch;
    /* rows of all ranks' batches together, at least world; 0: batch_size * world. World need not
     * divide it: see pstk_settings.uneven */
    uint32_t global_batch_size;
    /* must be 0 */
    uint32_t reserved;
    /* of a windowed order, else 0: pieces of the data set that are woven together, at most
     * PSTK_MAX_STRANDS. 0: 48, 12, 4 or 1, a function of n_samples */
    uint32_t strands;
    /* of a windowed order, else 0: samples of a block, at most PSTK_MAX_BLOCK. 0: 64 */
    uint32_t block;
    /* of a windowed order, else 0: blocks whose samples are mixed, at most PSTK_MAX_WINDOW.
     * 0: 4 */
    uint32_t window;
    /* must be 0 */
    uint32_t reserved2;
};

/* Fill in what is 0 of strands, block and window of a windowed order. 0; EINVAL. borrows. */
PSTK_API int pstk_order_settle(struct pstk_order_settings *s);

/* Return the number of batches of an epoch from `position` on; the same for every rank. borrows. */
PSTK_API uint64_t pstk_order_n_batches(const struct pstk_order_settings *s, uint64_t position);
/* Write the ids of the batch at `position` to ids[batch_size], or with global_batch_size to
 * ids[global_batch_size / world, rounded up]. Return the number of valid ids; 0:
 * past the end of the epoch; <0: EINVAL. borrows. */
PSTK_API int64_t pstk_order_batch(const struct pstk_order_settings *s, uint64_t position,
                                  uint64_t *ids);

#ifdef __cplusplus
}
#endif
#endif
