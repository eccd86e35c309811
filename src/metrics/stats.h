/* SPDX-License-Identifier: Apache-2.0 */
/* stats: counters that one thread writes and any reads, and the verdict drawn from them. */
#ifndef PSTK_STATS_H
#define PSTK_STATS_H

#include <penstock/penstock.h>

#include <stdatomic.h>

/* One thread's counters, on cache lines of its own. Writer: relaxed load, add, store. */
struct pstk__counters {
    _Alignas(128) _Atomic uint64_t busy_ns;
    _Atomic uint64_t starved_ns;
    _Atomic uint64_t blocked_ns;
    _Atomic uint64_t n_items;
    _Atomic uint64_t bytes;
    _Atomic uint64_t n_hits;
    _Atomic uint64_t n_misses;
    _Atomic uint64_t n_slow; /* rows read by the slow path, once the fast one had failed */
};

static inline void pstk__count(_Atomic uint64_t *counter, uint64_t n)
{
    uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, old + n, memory_order_relaxed);
}

/* Add one thread's counters to a stage's. */
void pstk__stats_add(struct pstk_stage_stats *to, const struct pstk__counters *from);
/* What limits: from the shares of time in s's stages (filled). enum pstk_bottleneck. */
uint32_t pstk__stats_bottleneck(const struct pstk_stats *stats);

#endif
