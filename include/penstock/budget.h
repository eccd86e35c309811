/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/budget.h - batches by what their samples cost, in place of a number of rows: so many
 * tokens, pixels or bytes.
 *
 * Every sample has a cost, a whole number: its length, say. The order of an epoch is walked from
 * its start. Each sample goes to the open batch of its bucket, which has samples of like cost. If
 * that batch would exceed the budget, it is complete and comes next in the stream of batches, and
 * the sample begins another one. At the end of the epoch the open batches follow, in the order of
 * their first samples. So every sample comes once, and the stream depends on the data set, the
 * order and the budget, but not on the number of ranks: in step t of R ranks, rank r has the batch
 * t * R + r of the stream. ORDER.md defines it by numbers.
 */
#ifndef PENSTOCK_BUDGET_H
#define PENSTOCK_BUDGET_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the loader treats a sample that alone costs more than the budget. */
enum pstk_too_long {
    /* pstk_open returns EINVAL */
    PSTK_TOO_LONG_ERROR = 0,
    /* it never comes; not together with draws by weight (subset.h) */
    PSTK_TOO_LONG_DROP = 1,
    /* it has a batch of its own, which exceeds the budget */
    PSTK_TOO_LONG_ALONE = 2,
};

/* Changes whenever the same settings would give other batches. */
#define PSTK_BUDGET_VERSION 1

/* The most buckets. */
#define PSTK_MAX_BUCKETS 1024

/*
 * A budget: pstk_settings.budget. Zero it and set size, total, costs and n_costs.
 *
 * Memory of a loader: 4 bytes for each sample of the data set, the costs; for each of two epochs 4
 * bytes for each position of an epoch (8 where it has 2^32 or more) and 8 for each batch that there
 * may be; and 4 (8) bytes for each row of open batches, one for each bucket. It counts in
 * max_memory. Time: pstk_open walks the epoch that it begins with. A reader walks each further
 * epoch before it reads the first batch of it, while batches of the epoch before are used.
 * pstk_seek walks an epoch if it goes past its start and the loader does not know it yet.
 */
struct pstk_budget {
    /* sizeof(struct pstk_budget), set by the caller */
    uint32_t size;
    /* the most rows of a batch; 0: as many as the budget allows */
    uint32_t max_rows;
    /* limit on what the samples of a batch cost together; 1 to 2^62 */
    uint64_t total;
    /* n_costs of them, one for each sample of the data set, by id; copies */
    const uint32_t *costs;
    uint64_t n_costs;
    /* n_edges rising numbers; copies. Bucket i has the costs from edges[i - 1] to edges[i] - 1.
     * NULL: the first is the smallest cost, at least 1, of the samples that the loader has; each
     * further one is 5/4 of the one before, rounded down, and at least 1 above it, up to the
     * largest cost */
    const uint32_t *edges;
    /* below PSTK_MAX_BUCKETS; 0 with edges: one bucket */
    uint32_t n_edges;
    /* 1: a batch costs its rows times the cost of the dearest one, as after padding. 0: the sum */
    uint32_t padded;
    /* enum pstk_too_long */
    uint32_t too_long;
    /* must be 0 */
    uint32_t reserved;
};

/* Write 128 bits, digest[2], that two budgets share only if they are equal, their costs too. Not a
 * cryptographic digest. borrows. 0; EINVAL: a member is wrong; ENOTSUP: reserved. Thread: any. */
PSTK_API int pstk_budget_digest(const struct pstk_budget *budget, uint64_t *digest);

#ifdef __cplusplus
}
#endif
#endif
