/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pick: the sample at a position of the stream. Order, data set and draws meet only here. Pure,
 * apart from the epochs that a picker caches.
 */
#ifndef PSTK_PICK_H
#define PSTK_PICK_H

#include "order/alias.h"
#include "order/mixture.h"
#include "order/order.h"
#include "order/subset.h"

/* A sample, and the inputs of its random draws. */
struct pstk__pick {
    uint64_t id;    /* in all open data sets, end to end */
    uint64_t first; /* id of the first sample of its data set, in which its own id is id - first */
    uint64_t epoch; /* epoch of its data set */
    uint64_t occurrence; /* number of the draw in the epoch, with replacement; else 0 */
    uint32_t data_set;   /* index in a mixture; else 0 */
};

/* The inputs that fix the stream; constant while a loader is open. */
struct pstk__pick_plan {
    struct pstk__order_shape shape;    /* orders the indices of the subset */
    const struct pstk__subset *subset; /* borrowed; NULL: all samples */
    const struct pstk__alias *alias;   /* draws instead of the order; borrowed; NULL: the order */
    uint64_t seed;
    const struct pstk__mixture *mixture; /* borrowed; its data sets have their own n, not
                                            shape.interleave.n; NULL: one data set */
};

/* The order of one data set of a mixture, in the last epoch that was requested. */
struct pstk__picked_order {
    uint64_t epoch;
    int is_ready; /* 1: `order` is the order of `epoch` */
    struct pstk__order order;
};

/* The state of one thread: a plan, and the orders of the last even and the last odd epoch that it
 * requested. */
struct pstk__picker {
    const struct pstk__pick_plan *plan;
    struct {
        int is_ready; /* 1: `order` is the order of `epoch` */
        uint64_t epoch;
        struct pstk__order order;
    } epochs[2];
    struct pstk__picked_order *of_mixture; /* orders of a mixture's data sets, zeroed at first;
                                              borrowed */
};

/* Return the sample id of an index that the order gives; blocks of a windowed order consist of
 * indices. */
uint64_t pstk__pick_id(const struct pstk__pick_plan *plan, uint64_t index);

void pstk__picker_init(struct pstk__picker *picker, const struct pstk__pick_plan *plan);
/* Find the sample at position k < n of an epoch. */
void pstk__picker_at(struct pstk__picker *picker, uint64_t epoch, uint64_t k,
                     struct pstk__pick *out);
/* Find the sample of an index that a windowed order gives. */
void pstk__picker_index(const struct pstk__picker *picker, uint64_t epoch, uint64_t index,
                        struct pstk__pick *out);
/* Return the order of an epoch; it stays until another epoch of the same parity is requested. */
const struct pstk__order *pstk__picker_order(struct pstk__picker *picker, uint64_t epoch);

#endif
