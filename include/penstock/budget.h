/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/budget.h - batches limited by the cost of their samples, in place of a number of rows:
 * so many tokens, pixels or bytes.
 *
 * Every sample has a cost, a whole number: its length, say. The loader walks the order of an epoch
 * from its start. Each sample goes to the open batch of its bucket, which has samples of like cost.
 * If that batch would exceed the budget, it is complete and comes next in the stream of batches,
 * and the sample begins another one. At the end of the epoch the open batches follow, in the order
 * of their first samples. So every sample comes once, and the stream depends on the data set, the
 * order and the budget, but not on the number of ranks: in step t of R ranks, rank r has the batch
 * t * R + r of the stream. ORDER.md defines it by numbers.
 */
#ifndef PENSTOCK_BUDGET_H
#define PENSTOCK_BUDGET_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Treatment of a sample whose cost alone exceeds the budget. */
enum pstk_too_long {
    /* pstk_open returns EINVAL */
    PSTK_TOO_LONG_ERROR = 0,
    /* the sample is left out; not together with draws by weight (subset.h) */
    PSTK_TOO_LONG_DROP = 1,
    /* the sample has a batch of its own, which exceeds the budget */
    PSTK_TOO_LONG_ALONE = 2,
};

/* Version of the rule: it changes whenever the same settings would give other batches. */
#define PSTK_BUDGET_VERSION 1

/* Largest number of buckets. */
#define PSTK_MAX_BUCKETS 1024

/*
 * A budget: pstk_settings.budget. Zero it and set size, total, costs and n_costs.
 *
 * Memory of a loader, which max_memory limits with the rest: 4 bytes for each sample of the data
 * set, the costs. For each of two epochs 4 bytes for each position (8 where an epoch has 2^32 or
 * more) and 8 for each possible batch. And 4 (8) bytes for each row of the open batches, one for
 * each bucket. Time: pstk_open walks the epoch that it begins with. A reader walks each further
 * epoch before it reads the first batch of it, while the program uses batches of the epoch before.
 * pstk_seek walks an epoch if it goes past its start and the loader does not know it yet.
 */
struct pstk_budget {
    /* sizeof(struct pstk_budget), set by the caller */
    uint32_t size;
    /* largest number of rows of a batch; 0: as many as the budget allows */
    uint32_t max_rows;
    /* limit on the cost of a batch; 1 to 2^62 */
    uint64_t total;
    /* n_costs costs, one for each sample of the data set, by id; copies */
    const uint32_t *costs;
    uint64_t n_costs;
    /* n_edges rising numbers; copies. Bucket i has the costs from edges[i - 1] to edges[i] - 1.
     * NULL: the first edge is the smallest cost, at least 1, of the loader's samples; each further
     * one is 5/4 of the one before, rounded down, and at least 1 above it, up to the largest cost
     */
    const uint32_t *edges;
    /* below PSTK_MAX_BUCKETS; 0 with edges: one bucket */
    uint32_t n_edges;
    /* 1: a batch costs its rows times the largest cost in it, as after padding. 0: the sum of the
     * costs */
    uint32_t padded;
    /* enum pstk_too_long */
    uint32_t too_long;
    /* must be 0 */
    uint32_t reserved;
};

/* Write a hash of 128 bits, digest[2], that only equal budgets with equal costs share. It is not
 * cryptographic. borrows. 0; EINVAL: a member is wrong; ENOTSUP: reserved is not 0. Thread: any. */
PSTK_API int pstk_budget_digest(const struct pstk_budget *budget, uint64_t *digest);

#ifdef __cplusplus
}
#endif
#endif
