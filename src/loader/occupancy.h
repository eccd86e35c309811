/* SPDX-License-Identifier: Apache-2.0 */
/* occupancy: the numbers of slots that were ready, leased and free when the consumer came for a
 * batch, noted at most every 10 ms: checking all slots takes microseconds. */
#ifndef PSTK_OCCUPANCY_H
#define PSTK_OCCUPANCY_H

#include "loader/snapshots.h"

#define PSTK__OCCUPANCY_NS 10000000u

struct pstk__occupancy {
    uint64_t next_ns; /* time of the next note; only the consumer uses it */
    /* Histograms: the consumer adds, any thread reads. */
    struct pstk__histogram ready, leased, free;
};

/* Count the delivered pool's slots by their states. Called by the consumer; a slot that changes
 * meanwhile counts in its old or new state. */
void pstk__occupancy_note(struct pstk__occupancy *occupancy, const struct pstk__slots *slots,
                          uint64_t now_ns);
/* Copy the histograms into the snapshot. Any thread. */
void pstk__occupancy_sum(const struct pstk__occupancy *occupancy, struct pstk__snapshot *snapshot);

#endif
