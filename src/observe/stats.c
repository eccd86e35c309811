/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/stats.h"

#include <stddef.h>

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void pstk__stats_add(struct pstk_stage_stats *to, const struct pstk__counters *from)
{
    to->busy_ns += get(&from->busy_ns);
    to->starved_ns += get(&from->starved_ns);
    to->blocked_ns += get(&from->blocked_ns);
    to->n_items += get(&from->n_items);
    to->n_threads++;
}

/* Return the share of a stage's time, in [0, 1]. */
static double share(uint64_t part, const struct pstk_stage_stats *stats)
{
    uint64_t all = stats->busy_ns + stats->starved_ns + stats->blocked_ns;
    return all ? (double)part / (double)all : 0.0;
}

uint64_t pstk__stats_stream_waits(const struct pstk_stats *s)
{
    /* Both may have grown between their reads. */
    return s->stream_starved_ns > s->stream_start_ns ? s->stream_starved_ns - s->stream_start_ns
                                                     : 0;
}

uint32_t pstk__stats_bottleneck(const struct pstk_stats *s)
{
    const struct pstk_stage_stats *c = &s->stage_consumer, *w = &s->stage_workers,
                                  *r = &s->stage_reader;
    if (s->n_batches < 4 || c->busy_ns + c->starved_ns < 100000000u)
        return PSTK_BOTTLENECK_UNKNOWN;
    /* Batches are ready when the consumer asks: the consumer sets the pace. */
    if (share(c->starved_ns, c) < 0.1)
        return PSTK_BOTTLENECK_CONSUMER;
    /* On a device the consumer asks long before it uses a batch. Its stream shows whether it waits,
     * if the stream was timed. If not, an uploader that waits for slots most of the time means that
     * the work on the batches sets the pace. */
    const struct pstk_stage_stats *u = &s->stage_uploader;
    const uint64_t waits = pstk__stats_stream_waits(s);
    const int timed = s->stream_used_ns + waits > 0;
    if (timed ? waits < s->stream_used_ns / 10 : share(u->blocked_ns, u) > 0.5)
        return PSTK_BOTTLENECK_CONSUMER;
    /* A starved stream leaves its slots free, so only our own work on the device can block the
     * uploader. */
    double copy = share(u->busy_ns + (timed ? u->blocked_ns : 0), u);
    /* Otherwise the bottleneck is the stage with the least idle time: workers that work, a reader
     * that works, a reader that waits for storage, or an uploader that copies or waits for copies.
     */
    double decode = share(w->busy_ns, w), reader = share(r->busy_ns, r),
           storage = share(r->starved_ns, r);
    /* The consumer waits, but no stage is busy or waits for as much as the tenth of its time that
     * the consumer must wait. Threads that wake each other up take the time, or the work is over.
     * The largest of these shares would name a stage by chance. */
    if (copy < 0.1 && decode < 0.1 && reader < 0.1 && storage < 0.1)
        return PSTK_BOTTLENECK_UNKNOWN;
    if (copy > decode && copy > reader && copy > storage)
        return PSTK_BOTTLENECK_COPY;
    if (decode >= reader && decode >= storage)
        return PSTK_BOTTLENECK_DECODE;
    if (reader < storage)
        return PSTK_BOTTLENECK_STORAGE;
    /* If the reader waits for a core longer than it has one, its cost per record is not at fault.
     */
    return r->core_wait_ns > r->cpu_ns ? PSTK_BOTTLENECK_CORES : PSTK_BOTTLENECK_READER;
}

uint32_t pstk_find_bottleneck(const struct pstk_stats *stats)
{
    const size_t last = offsetof(struct pstk_stats, stream_start_ns);
    if (!stats || stats->size < last + sizeof stats->stream_start_ns)
        return PSTK_BOTTLENECK_UNKNOWN;
    return pstk__stats_bottleneck(stats);
}
