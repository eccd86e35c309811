/* SPDX-License-Identifier: Apache-2.0 */
/* stats: counters that one thread writes and any thread reads, and the bottleneck computed from
 * them. */
#ifndef PSTK_STATS_H
#define PSTK_STATS_H

#include "observe/histogram.h"

#include <penstock/penstock.h>

#include <stdatomic.h>

/* Counters of one thread, on cache lines of its own. Only that thread writes, by relaxed load, add
 * and store. Times are in ns. */
struct pstk__counters {
    _Alignas(128) _Atomic uint64_t busy_ns;
    _Atomic uint64_t starved_ns;
    _Atomic uint64_t blocked_ns;
    _Atomic uint64_t n_items;
    _Atomic uint64_t bytes;
    _Atomic uint64_t n_hits;
    _Atomic uint64_t n_misses;
    _Atomic uint64_t n_reads;     /* worker: reads from the page cache */
    _Atomic uint64_t n_evicted;   /* worker: reads of them that waited for storage */
    _Atomic uint64_t n_slow;      /* rows read on the slow path after the fast one failed */
    _Atomic uint64_t n_lone;      /* rows of a windowed order that no block had */
    struct pstk__histogram times; /* ns; reader: times of reads; worker: of runs of rows made;
                                     uploader: of batches copied; consumer: of waits for a batch */
};

static inline void pstk__count(_Atomic uint64_t *counter, uint64_t n)
{
    uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, old + n, memory_order_relaxed);
}

/* Add the span from begin to end to a thread's counter of time, but only the part after *since; 0:
 * counting has not begun, and nothing is added. A wait that began before *since counts from *since
 * on. */
static inline void pstk__count_span(_Atomic uint64_t *counter, const _Atomic uint64_t *since,
                                    uint64_t begin, uint64_t end)
{
    const uint64_t first = atomic_load_explicit(since, memory_order_relaxed);
    if (begin < first)
        begin = first;
    if (first && begin < end)
        pstk__count(counter, end - begin);
}

/* Add one thread's times and items to a stage, and count the thread. */
void pstk__stats_add(struct pstk_stage_stats *to, const struct pstk__counters *from);
/* Return the ns in which the streams waited for batches, except for the first. */
uint64_t pstk__stats_stream_waits(const struct pstk_stats *stats);
/* Return the bottleneck, an enum pstk_bottleneck, from the shares of time in the stages of
 * `stats`. */
uint32_t pstk__stats_bottleneck(const struct pstk_stats *stats);

#endif
