/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pick: what stands at a position of the stream of samples: the one place where order, data set and
 * draws meet. Pure, apart from the epochs that a picker keeps ready.
 */
#ifndef PSTK_PICK_H
#define PSTK_PICK_H

#include "order/alias.h"
#include "order/mixture.h"
#include "order/order.h"
#include "order/subset.h"

/* A sample, and what its random draws depend on. */
struct pstk__pick {
    uint64_t id;         /* in all data sets that are open, end to end */
    uint64_t first;      /* id of the first sample of its data set: id - first is its own there */
    uint64_t epoch;      /* of its data set */
    uint64_t occurrence; /* 0, or for draws with replacement which draw of the epoch */
    uint32_t data_set;   /* of a mixture; 0 */
};

/* Everything that fixes the stream; constant while a loader is open. */
struct pstk__pick_plan {
    struct pstk__order_shape shape;    /* of the indices of the subset */
    const struct pstk__subset *subset; /* borrowed; NULL: all samples */
    const struct pstk__alias *alias;   /* borrowed; draws in place of the order; NULL: none */
    uint64_t seed;
    const struct pstk__mixture *mixture; /* NULL: one data set; else shape.interleave.n is not used
                                          */
};

/* The order of one data set of a mixture, in the epoch that was looked at last. */
struct pstk__picked_order {
    uint64_t epoch;
    int is_ready; /* order is that of epoch */
    struct pstk__order order;
};

/* For one thread: a plan, and the orders of an even and an odd epoch that it looked at last. */
struct pstk__picker {
    const struct pstk__pick_plan *plan;
    struct {
        int is_ready; /* order is that of epoch */
        uint64_t epoch;
        struct pstk__order order;
    } epochs[2];
    struct pstk__picked_order *of_mixture; /* of each data set, zeros at first; its owner's */
};

/* Sample id of an index that the order gives; blocks of a windowed order are of indices. */
uint64_t pstk__pick_id(const struct pstk__pick_plan *plan, uint64_t index);

void pstk__picker_init(struct pstk__picker *picker, const struct pstk__pick_plan *plan);
/* What stands at position k < n of an epoch. */
void pstk__picker_at(struct pstk__picker *picker, uint64_t epoch, uint64_t k,
                     struct pstk__pick *out);
/* The sample of an index that a windowed order gives. */
void pstk__picker_index(const struct pstk__picker *picker, uint64_t epoch, uint64_t index,
                        struct pstk__pick *out);
/* The order of an epoch; it stays until another epoch of the same parity is looked at. */
const struct pstk__order *pstk__picker_order(struct pstk__picker *picker, uint64_t epoch);

#endif
