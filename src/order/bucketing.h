/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bucketing: batches by a budget. One walk over the order of an epoch gives its stream: positions
 * of the order, batch after batch. Pure; memory is the caller's.
 *
 * A place in the stream counts its samples, as a position of the order does. Batches begin at
 * begins[0] = 0, begins[1], ...; step t of R ranks has the batches t * R to t * R + R - 1. A step
 * may begin anywhere: after a resume with another number of ranks, or after a seek. Where that is
 * inside of a batch, its first batch is the rest of that one.
 */
#ifndef PSTK_BUCKETING_H
#define PSTK_BUCKETING_H

#include "order/partition.h"
#include "order/pick.h"

#include <penstock/budget.h>

#define PSTK__BUDGET_MAX ((uint64_t)1 << 62)
#define PSTK__BUDGET_ROWS ((uint64_t)1 << 30) /* of a batch */

/* What fixes the streams of all epochs; constant. */
struct pstk__bucketing {
    const struct pstk__pick_plan *picks; /* borrowed; of one data set, no windowed order */
    const uint32_t *costs;               /* by sample id; borrowed */
    uint64_t n;                          /* positions of the order in an epoch */
    uint64_t n_kept;                     /* of the stream: those without dropped samples */
    uint64_t total;
    uint64_t max_rows; /* at least 1 */
    uint32_t padded;
    uint32_t too_long;                   /* enum pstk_too_long */
    uint32_t n_buckets;                  /* at least 1 */
    uint32_t edges[PSTK_MAX_BUCKETS];    /* n_buckets - 1 */
    uint64_t rooms[PSTK_MAX_BUCKETS];    /* rows that an open batch of each may have */
    uint64_t n_room;                     /* their sum */
    uint64_t largest_batch, max_batches; /* of a batch, of an epoch */
};

/* The stream of an epoch. */
struct pstk__bucketed {
    uint64_t n_batches;
    uint64_t *begins; /* max_batches + 1 */
    void *positions;  /* n_kept uint32_t, or uint64_t where pstk__bucketing_is_wide */
};

/* The batch of a bucket that a walk fills. */
struct pstk__open_batch {
    uint64_t room; /* where its rows lie */
    uint64_t n_rows, sum;
    uint64_t first; /* position of its first sample */
    uint32_t longest;
};

/* What a walk needs. */
struct pstk__bucketing_work {
    struct pstk__open_batch *open; /* n_buckets */
    uint32_t *sorted;              /* n_buckets */
    void *rows;                    /* n_room, as positions of struct pstk__bucketed */
};

/* The part of a step that one rank has. */
struct pstk__cut {
    uint64_t index;         /* of the step */
    uint64_t next_position; /* where the next step begins */
    uint64_t first;         /* where the rank's rows begin */
    uint32_t n_rows;
    int is_last; /* of the epoch */
};

/* Check a budget's own members: 0, EINVAL, ENOTSUP. */
int pstk__budget_check(const struct pstk_budget *budget, struct pstk_error *err);
/* Look at the costs of all samples that the picks have, n positions an epoch. budget: checked;
 * costs for all ids. EINVAL: samples that cost too much, or no sample is left. */
int pstk__bucketing_init(struct pstk__bucketing *bucketing, const struct pstk__pick_plan *picks,
                         uint64_t n_samples, uint64_t n, const struct pstk_budget *budget,
                         struct pstk_error *err);
int pstk__bucketing_is_wide(const struct pstk__bucketing *bucketing);
/* Number of the bucket of a cost. */
uint32_t pstk__bucketing_of(const struct pstk__bucketing *bucketing, uint32_t cost);
/* Walk an epoch. The picker is of bucketing->picks. O(n). */
void pstk__bucketing_walk(const struct pstk__bucketing *bucketing, struct pstk__picker *picker,
                          uint64_t epoch, struct pstk__bucketing_work *work,
                          struct pstk__bucketed *out);

/* Steps from a place on, the same for every rank. Under PSTK_LAST_DROP ranks without a batch lose
 * the last step, unless it is the first one of its epoch: that is short. So an epoch has a step. */
uint64_t pstk__bucketed_n_steps(const struct pstk__bucketing *bucketing,
                                const struct pstk__bucketed *bucketed,
                                const struct pstk__partition *partition, uint64_t place);
/* The step at a place, where there is one. */
void pstk__bucketed_cut(const struct pstk__bucketing *bucketing,
                        const struct pstk__bucketed *bucketed,
                        const struct pstk__partition *partition, uint64_t place,
                        struct pstk__cut *out);
/* Position of the order at a place. */
uint64_t pstk__bucketed_position(const struct pstk__bucketing *bucketing,
                                 const struct pstk__bucketed *bucketed, uint64_t place);

#endif
