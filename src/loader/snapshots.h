/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshots: the counts and histograms at past moments, so that differences give the last minute,
 * or the time since the last question. There is no timer: pstk_next takes a snapshot every 5 s.
 *
 * The snapshots take 430 kB, made at open, whatever the loader's size.
 */
#ifndef PSTK_SNAPSHOTS_H
#define PSTK_SNAPSHOTS_H

#include "loader/pipeline.h"

#define PSTK__SNAPSHOT_NS 5000000000u /* ns between two snapshots of pstk_next */
#define PSTK__MINUTE_NS 60000000000u  /* ns of PSTK_WINDOW_MINUTE */
#define PSTK__SNAPSHOTS 14u           /* snapshots kept: those of a minute, and one before it */

/* The counts of a snapshot. */
enum {
    PSTK__COUNT_BATCHES = 0,
    PSTK__COUNT_SAMPLES = 1,
    PSTK__COUNT_REPLACEMENTS = 2,
    PSTK__COUNT_BYTES_DELIVERED = 3,
    PSTK__COUNT_BYTES_READ = 4,
    PSTK__COUNT_READS = 5,
    PSTK__COUNT_SLOW_READS = 6,
    PSTK__COUNT_INDEX_HITS = 7,
    PSTK__COUNT_INDEX_MISSES = 8,
    PSTK__COUNTS = 9,
};

/* The histograms of a snapshot: see struct pstk_metrics. */
enum {
    PSTK__SPREAD_WAIT = 0,
    PSTK__SPREAD_READ = 1,
    PSTK__SPREAD_DECODE = 2,
    PSTK__SPREAD_COPY = 3,
    PSTK__SPREAD_FINISH = 4,
    PSTK__SPREAD_STREAM = 5,
    PSTK__SPREAD_JOBS = 6,
    PSTK__SPREAD_READY = 7,
    PSTK__SPREAD_LEASED = 8,
    PSTK__SPREAD_FREE = 9,
    PSTK__SPREADS = 10,
};

/* All counts and histograms up to a moment. */
struct pstk__snapshot {
    uint64_t at_ns;
    uint64_t counts[PSTK__COUNTS];
    struct pstk__counted spreads[PSTK__SPREADS];
};

struct pstk__snapshots {
    pthread_mutex_t lock;     /* guards all but next_ns */
    _Atomic uint64_t next_ns; /* time of pstk_next's next snapshot; relaxed: it guards nothing */
    uint64_t n_taken;         /* snapshots that pstk_next ever took */
    struct pstk__snapshot opened, asked, now;
    struct pstk__snapshot taken[PSTK__SNAPSHOTS]; /* snapshot k is taken[k % PSTK__SNAPSHOTS] */
};

/* Measure now, into *snapshot: first the counts of the consumer, then those of the loader's
 * threads. */
typedef void (*pstk__snapshot_fn)(const void *loader, struct pstk__snapshot *snapshot);

/* Add the counts of a pipeline's threads. */
void pstk__snapshot_measure(struct pstk__snapshot *snapshot, const struct pstk__pipeline *pipeline);

/* Open the snapshots. Returns owned, or NULL without memory. */
struct pstk__snapshots *pstk__snapshots_open(uint64_t now_ns);
void pstk__snapshots_close(struct pstk__snapshots *snapshots);
/* Return 1 if 5 s have gone by since the last snapshot. Called by pstk_next. */
static inline int pstk__snapshots_due(const struct pstk__snapshots *snapshots, uint64_t now_ns)
{
    return now_ns >= atomic_load_explicit(&snapshots->next_ns, memory_order_relaxed);
}
/* Take a snapshot, unless another thread is taking one. Called by pstk_next when one is due. */
void pstk__snapshots_take(struct pstk__snapshots *snapshots, pstk__snapshot_fn measure,
                          const void *loader, uint64_t now_ns);
/* Write the metrics of a window to *metrics. Any thread. */
void pstk__snapshots_get(struct pstk__snapshots *snapshots, pstk__snapshot_fn measure,
                         const void *loader, uint32_t window, uint64_t now_ns,
                         struct pstk_metrics *metrics);

#endif
