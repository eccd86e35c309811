/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bucketing: batches by a budget. One walk over the order of an epoch gives its stream: positions
 * of the order, batch after batch. Pure; memory is the caller's.
 *
 * A position in the stream counts its samples, as a position of the order does. Batches begin at
 * begins[0] = 0, begins[1], ...; with R ranks, step t is the batches t * R to t * R + R - 1. A step
 * may begin anywhere: after a resume with another number of ranks, or after a seek. If it begins
 * inside a batch, its first batch is the rest of that batch.
 */
#ifndef PSTK_BUCKETING_H
#define PSTK_BUCKETING_H

#include "order/partition.h"
#include "order/pick.h"

#include <penstock/budget.h>

#define PSTK__BUDGET_MAX ((uint64_t)1 << 62)
#define PSTK__BUDGET_ROWS ((uint64_t)1 << 30) /* largest number of rows of a batch */

/* The inputs that fix the streams of all epochs; constant. */
struct pstk__bucketing {
    const struct pstk__pick_plan *picks; /* one data set, no windowed order; borrowed */
    const uint32_t *costs;               /* cost of each sample id; borrowed */
    uint64_t n;                          /* positions of the order in an epoch */
    uint64_t n_kept;                     /* positions of the stream: n without dropped samples */
    uint64_t total;
    uint64_t max_rows; /* at least 1 */
    uint32_t padded;
    uint32_t too_long;                /* enum pstk_too_long */
    uint32_t n_buckets;               /* at least 1 */
    uint32_t edges[PSTK_MAX_BUCKETS]; /* n_buckets - 1 */
    uint64_t rooms[PSTK_MAX_BUCKETS]; /* largest number of rows of an open batch, for each bucket */
    uint64_t n_room;                  /* sum of `rooms` */
    uint64_t largest_batch,
        max_batches; /* rows of the largest batch; largest number of batches of an epoch */
};

/* The stream of an epoch. */
struct pstk__bucketed {
    uint64_t n_batches;
    uint64_t *begins; /* max_batches + 1 */
    void *positions;  /* n_kept uint32_t, or uint64_t where pstk__bucketing_is_wide */
};

/* The batch that a walk fills for one bucket. */
struct pstk__open_batch {
    uint64_t room; /* first of its rows in the work's `rows` */
    uint64_t n_rows, sum;
    uint64_t first; /* position in the stream of the batch's first sample */
    uint32_t longest;
};

/* The memory of a walk. */
struct pstk__bucketing_work {
    struct pstk__open_batch *open; /* n_buckets */
    uint32_t *sorted;              /* n_buckets */
    void *rows;                    /* n_room, of the type of pstk__bucketed's positions */
};

/* One rank's part of a step. */
struct pstk__cut {
    uint64_t index;         /* index of the step */
    uint64_t next_position; /* position in the stream of the next step */
    uint64_t first;         /* position in the stream of the rank's first row */
    uint32_t n_rows;
    int is_last; /* 1: the last step of the epoch */
};

/* Check the members of a budget alone. Returns 0, EINVAL or ENOTSUP. */
int pstk__budget_check(const struct pstk_budget *budget, struct pstk_error *err);
/* Measure the costs of all samples of the picks, n positions an epoch. budget: checked; it has
 * costs for all ids. EINVAL: samples cost too much, or no sample is left. */
int pstk__bucketing_init(struct pstk__bucketing *bucketing, const struct pstk__pick_plan *picks,
                         uint64_t n_samples, uint64_t n, const struct pstk_budget *budget,
                         struct pstk_error *err);
int pstk__bucketing_is_wide(const struct pstk__bucketing *bucketing);
/* Return the bucket of a cost. */
uint32_t pstk__bucketing_of(const struct pstk__bucketing *bucketing, uint32_t cost);
/* Walk an epoch, and write its stream. picker: of bucketing->picks. O(n). */
void pstk__bucketing_walk(const struct pstk__bucketing *bucketing, struct pstk__picker *picker,
                          uint64_t epoch, struct pstk__bucketing_work *work,
                          struct pstk__bucketed *out);

/* Return the steps from a position of the stream on, the same for every rank. Under PSTK_LAST_DROP
 * a last step in which some ranks have no batch is dropped, unless it is the first step of its
 * epoch, which then is short. So every epoch has a step. */
uint64_t pstk__bucketed_n_steps(const struct pstk__bucketing *bucketing,
                                const struct pstk__bucketed *bucketed,
                                const struct pstk__partition *partition, uint64_t place);
/* Find the step at a position of the stream, which has one. */
void pstk__bucketed_cut(const struct pstk__bucketing *bucketing,
                        const struct pstk__bucketed *bucketed,
                        const struct pstk__partition *partition, uint64_t place,
                        struct pstk__cut *out);
/* Return the position in the order of a position in the stream. */
uint64_t pstk__bucketed_position(const struct pstk__bucketing *bucketing,
                                 const struct pstk__bucketed *bucketed, uint64_t place);

#endif
