/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/occupancy.h"

void pstk__occupancy_note(struct pstk__occupancy *occupancy, const struct pstk__slots *slots,
                          uint64_t now_ns)
{
    uint32_t n_ready = 0, n_leased = 0, n_free = 0;
    for (uint32_t i = 0; i < slots->n_slots; i++) {
        /* Relaxed: the time guards nothing. */
        const uint32_t state = atomic_load_explicit(&slots->slots[i].state, memory_order_relaxed);
        n_ready += state == PSTK__SLOT_READY || state == PSTK__SLOT_LOADED;
        n_leased += state == PSTK__SLOT_LEASED || state == PSTK__SLOT_PARKED;
        n_free += state == PSTK__SLOT_FREE;
    }
    pstk__histogram_add(&occupancy->ready, n_ready);
    pstk__histogram_add(&occupancy->leased, n_leased);
    pstk__histogram_add(&occupancy->free, n_free);
    occupancy->next_ns = now_ns + PSTK__OCCUPANCY_NS;
}

void pstk__occupancy_sum(const struct pstk__occupancy *occupancy, struct pstk__snapshot *snapshot)
{
    pstk__histogram_sum(&snapshot->spreads[PSTK__SPREAD_READY], &occupancy->ready);
    pstk__histogram_sum(&snapshot->spreads[PSTK__SPREAD_LEASED], &occupancy->leased);
    pstk__histogram_sum(&snapshot->spreads[PSTK__SPREAD_FREE], &occupancy->free);
}
