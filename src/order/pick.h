/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pick: what stands at a position of the stream of samples: the one place where order, data set and
 * draws meet. Pure, apart from the epochs that a picker keeps ready.
 */
#ifndef PSTK_PICK_H
#define PSTK_PICK_H

#include "order/order.h"

/* A sample, and what its random draws depend on. */
struct pstk__pick {
    uint64_t id;         /* in the data set that is open */
    uint64_t epoch;      /* of its data set */
    uint64_t occurrence; /* 0, or for draws with replacement which draw of the epoch */
    uint32_t data_set;   /* of a mixture; 0 */
};

/* Everything that fixes the stream; constant while a loader is open. */
struct pstk__pick_plan {
    struct pstk__order_shape shape;
    uint64_t seed;
};

/* For one thread: a plan, and the order of the epoch that it looked at last. */
struct pstk__picker {
    const struct pstk__pick_plan *plan;
    uint64_t epoch;
    int is_ready; /* order is that of epoch */
    struct pstk__order order;
};

void pstk__picker_init(struct pstk__picker *picker, const struct pstk__pick_plan *plan);
/* What stands at position k < n of an epoch. */
void pstk__picker_at(struct pstk__picker *picker, uint64_t epoch, uint64_t k,
                     struct pstk__pick *out);

#endif
