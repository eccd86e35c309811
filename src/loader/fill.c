/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/fill.h"

void pstk__fill_note(struct pstk__fill *fill, const struct pstk__slots *slots, uint64_t now_ns)
{
    uint32_t n_ready = 0, n_leased = 0, n_free = 0;
    for (uint32_t i = 0; i < slots->n_slots; i++) {
        /* Relaxed: it guards nothing. */
        const uint32_t state = atomic_load_explicit(&slots->slots[i].state, memory_order_relaxed);
        n_ready += state == PSTK__SLOT_READY || state == PSTK__SLOT_LOADED;
        n_leased += state == PSTK__SLOT_LEASED || state == PSTK__SLOT_PARKED;
        n_free += state == PSTK__SLOT_FREE;
    }
    pstk__histogram_add(&fill->ready, n_ready);
    pstk__histogram_add(&fill->leased, n_leased);
    pstk__histogram_add(&fill->free, n_free);
    fill->next_ns = now_ns + PSTK__FILL_NS;
}

void pstk__fill_sum(const struct pstk__fill *fill, struct pstk__look *look)
{
    pstk__histogram_sum(&look->spreads[PSTK__SPREAD_READY], &fill->ready);
    pstk__histogram_sum(&look->spreads[PSTK__SPREAD_LEASED], &fill->leased);
    pstk__histogram_sum(&look->spreads[PSTK__SPREAD_FREE], &fill->free);
}
