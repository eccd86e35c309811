/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order: (seed, epoch, position) -> sample id. Pure, O(1) memory and time.
 *
 * `full` is a keyed bijection on [0, n) for every n >= 1. Small n (<= PSTK__ORDER_TABLE) is a
 * Fisher-Yates table drawn from Philox, so that all permutations are equally likely; larger n is a
 * Feistel network on the next power of two with cycle walking. Its version is PSTK_ORDER_VERSION,
 * held by golden vectors in tests.
 */
#ifndef PSTK_ORDER_H
#define PSTK_ORDER_H

#include <penstock/penstock.h>

#define PSTK__ORDER_TABLE 1024
#define PSTK__ORDER_ROUNDS 8

/* The order of one epoch. Plain data; init is O(min(n, PSTK__ORDER_TABLE)). */
struct pstk__order {
    uint32_t kind;                  /* enum pstk_order */
    uint32_t left_bits, right_bits; /* Feistel halves: 2^(left+right) >= n */
    uint64_t n;
    uint64_t keys[PSTK__ORDER_ROUNDS];
    uint16_t table[PSTK__ORDER_TABLE]; /* n <= PSTK__ORDER_TABLE */
};

void pstk__order_init(struct pstk__order *order, uint32_t kind, uint64_t n, uint64_t seed,
                      uint64_t epoch);
/* Sample id at position k < n. */
uint64_t pstk__order_at(const struct pstk__order *order, uint64_t k);

/* How positions become batches: which rows rank `rank` of `world` has in the batch at a position.
 * Rank r has the positions that are r modulo world, so a global batch is the same set of samples
 * for every number of ranks. */
struct pstk__partition {
    uint64_t n;            /* samples */
    uint64_t global_batch; /* samples of all ranks' rows together, at least world */
    uint64_t rank, world;
    uint32_t last_batch; /* enum pstk_last_batch */
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
