/* SPDX-License-Identifier: Apache-2.0 */
/* fill: how many slots were ready, leased and free when the consumer came for a batch, noted at
 * most every 10 ms: looking at all slots takes microseconds. */
#ifndef PSTK_FILL_H
#define PSTK_FILL_H

#include "loader/looks.h"

#define PSTK__FILL_NS 10000000u

struct pstk__fill {
    uint64_t next_ns; /* when the consumer notes the next one; its own */
    /* The consumer adds, any thread reads. */
    struct pstk__histogram ready, leased, free;
};

/* Count the slots of the pool that batches are delivered from, by their states. Called by the
 * consumer; slots that change meanwhile count as before or after. */
void pstk__fill_note(struct pstk__fill *fill, const struct pstk__slots *slots, uint64_t now_ns);
/* Copy into the look. Any thread. */
void pstk__fill_sum(const struct pstk__fill *fill, struct pstk__look *look);

#endif
