/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/snapshots.h"

#include <stdlib.h>
#include <string.h>

struct pstk__snapshots *pstk__snapshots_open(uint64_t now_ns)
{
    struct pstk__snapshots *snapshots = calloc(1, sizeof *snapshots);
    if (!snapshots)
        return NULL;
    pthread_mutex_init(&snapshots->lock, NULL);
    snapshots->opened.at_ns = snapshots->asked.at_ns = now_ns;
    atomic_init(&snapshots->next_ns, now_ns + PSTK__SNAPSHOT_NS);
    return snapshots;
}

void pstk__snapshots_close(struct pstk__snapshots *snapshots)
{
    if (!snapshots)
        return;
    pthread_mutex_destroy(&snapshots->lock);
    free(snapshots);
}

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void pstk__snapshot_measure(struct pstk__snapshot *snapshot, const struct pstk__pipeline *pipeline)
{
    uint64_t *counts = snapshot->counts;
    struct pstk__counted *spreads = snapshot->spreads;
    for (uint32_t i = 0; i < pipeline->n_lanes; i++) {
        const struct pstk__counters *counters = &pipeline->lanes[i].counters;
        counts[PSTK__COUNT_BYTES_READ] += get(&counters->bytes);
        counts[PSTK__COUNT_READS] += get(&counters->n_items);
        counts[PSTK__COUNT_INDEX_HITS] += get(&counters->n_hits);
        counts[PSTK__COUNT_INDEX_MISSES] += get(&counters->n_misses);
        pstk__histogram_sum(&spreads[PSTK__SPREAD_READ], &counters->times);
        pstk__histogram_sum(&spreads[PSTK__SPREAD_FINISH], &pipeline->lanes[i].finishes);
    }
    for (uint32_t i = 0; i < pipeline->n_workers; i++) {
        const struct pstk__worker *worker = &pipeline->workers[i];
        counts[PSTK__COUNT_BYTES_READ] += get(&worker->counters.bytes);
        counts[PSTK__COUNT_READS] += get(&worker->counters.n_reads);
        counts[PSTK__COUNT_SLOW_READS] += get(&worker->counters.n_slow);
        pstk__histogram_sum(&spreads[PSTK__SPREAD_READ], &worker->reads);
        pstk__histogram_sum(&spreads[PSTK__SPREAD_DECODE], &worker->counters.times);
        pstk__histogram_sum(&spreads[PSTK__SPREAD_FINISH], &worker->finishes);
        pstk__histogram_sum(&spreads[PSTK__SPREAD_JOBS], &worker->jobs_left);
    }
    pstk__histogram_sum(&spreads[PSTK__SPREAD_COPY], &pipeline->uploader.counters.times);
    if (!pipeline->delivered->device_ops->has_slots)
        return;
    struct pstk__device_times times = {0};
    pipeline->delivered->device_ops->get_times(pipeline->delivered->device, &times);
    if (times.waits)
        pstk__histogram_sum(&spreads[PSTK__SPREAD_STREAM], times.waits);
}

static void measure_at(struct pstk__snapshot *snapshot, pstk__snapshot_fn measure,
                       const void *loader, uint64_t now_ns)
{
    memset(snapshot, 0, sizeof *snapshot);
    snapshot->at_ns = now_ns;
    measure(loader, snapshot);
}

/* Called by pstk_next, which never waits for this lock: if another thread holds it, it takes no
 * snapshot. */
void pstk__snapshots_take(struct pstk__snapshots *snapshots, pstk__snapshot_fn measure,
                          const void *loader, uint64_t now_ns)
{
    if (pthread_mutex_trylock(&snapshots->lock) != 0)
        return;
    measure_at(&snapshots->taken[snapshots->n_taken++ % PSTK__SNAPSHOTS], measure, loader, now_ns);
    atomic_store_explicit(&snapshots->next_ns, now_ns + PSTK__SNAPSHOT_NS, memory_order_relaxed);
    pthread_mutex_unlock(&snapshots->lock);
}

/* Return the newest snapshot that is a minute old, or that of open. The caller holds the lock. */
static const struct pstk__snapshot *minute_ago(const struct pstk__snapshots *snapshots,
                                               uint64_t now_ns)
{
    const uint64_t n = snapshots->n_taken < PSTK__SNAPSHOTS ? snapshots->n_taken : PSTK__SNAPSHOTS;
    for (uint64_t i = 1; i <= n; i++) {
        const struct pstk__snapshot *snapshot =
            &snapshots->taken[(snapshots->n_taken - i) % PSTK__SNAPSHOTS];
        if (snapshot->at_ns + PSTK__MINUTE_NS <= now_ns)
            return snapshot;
    }
    return &snapshots->opened;
}

void pstk__snapshots_get(struct pstk__snapshots *snapshots, pstk__snapshot_fn measure,
                         const void *loader, uint32_t window, uint64_t now_ns,
                         struct pstk_metrics *metrics)
{
    pthread_mutex_lock(&snapshots->lock);
    struct pstk__snapshot *now = &snapshots->now;
    const struct pstk__snapshot *since = window == PSTK_WINDOW_LOOK ? &snapshots->asked
                                         : window == PSTK_WINDOW_MINUTE
                                             ? minute_ago(snapshots, now_ns)
                                             : &snapshots->opened;
    measure_at(now, measure, loader, now_ns);
    metrics->window = window;
    metrics->duration_ns = now_ns > since->at_ns ? now_ns - since->at_ns : 0;
    uint64_t *const counts[PSTK__COUNTS] = {
        [PSTK__COUNT_BATCHES] = &metrics->n_batches,
        [PSTK__COUNT_SAMPLES] = &metrics->n_samples,
        [PSTK__COUNT_REPLACEMENTS] = &metrics->n_replacements,
        [PSTK__COUNT_BYTES_DELIVERED] = &metrics->bytes_delivered,
        [PSTK__COUNT_BYTES_READ] = &metrics->bytes_read,
        [PSTK__COUNT_READS] = &metrics->n_reads,
        [PSTK__COUNT_SLOW_READS] = &metrics->n_slow_reads,
        [PSTK__COUNT_INDEX_HITS] = &metrics->n_index_hits,
        [PSTK__COUNT_INDEX_MISSES] = &metrics->n_index_misses,
    };
    for (uint32_t i = 0; i < PSTK__COUNTS; i++)
        *counts[i] = now->counts[i] - since->counts[i];
    struct pstk_distribution *const spreads[PSTK__SPREADS] = {
        [PSTK__SPREAD_WAIT] = &metrics->wait,     [PSTK__SPREAD_READ] = &metrics->read,
        [PSTK__SPREAD_DECODE] = &metrics->decode, [PSTK__SPREAD_COPY] = &metrics->copy,
        [PSTK__SPREAD_FINISH] = &metrics->finish, [PSTK__SPREAD_STREAM] = &metrics->stream,
        [PSTK__SPREAD_JOBS] = &metrics->jobs,     [PSTK__SPREAD_READY] = &metrics->ready,
        [PSTK__SPREAD_LEASED] = &metrics->leased, [PSTK__SPREAD_FREE] = &metrics->free,
    };
    for (uint32_t i = 0; i < PSTK__SPREADS; i++)
        pstk__counted_describe(&now->spreads[i], &since->spreads[i], spreads[i]);
    metrics->n_ready =
        now->spreads[PSTK__SPREAD_WAIT].n[0] - since->spreads[PSTK__SPREAD_WAIT].n[0];
    if (window == PSTK_WINDOW_LOOK)
        snapshots->asked = *now;
    pthread_mutex_unlock(&snapshots->lock);
}
