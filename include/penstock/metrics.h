/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/metrics.h - what a loader is doing while it runs: a trace of its threads, and counts and
 * times of a window of time.
 *
 * A trace is a file in Chrome's Trace Event Format (JSON), which https://ui.perfetto.dev opens. It
 * has an event for each of these:
 *   claim    a reader gave a free slot the next batch
 *   read     rows were read: from when the first of their reads was queued until all had ended
 *   block    a block of a windowed order was read, ahead of the batches: from when it got memory
 *            until its reads had ended
 *   decode   a worker made rows
 *   finish   a worker completed a batch: functions of whole batches, MixUp, ragged rows
 *   copy     a batch was copied to the device, until the loader saw the copy done
 *   next     a call of pstk_next
 *   lease    the program had a batch, from pstk_next until its release; it is in the trace once it
 *            has ended
 *
 * args.batch numbers the batches of the loader from 0, those that a seek dropped included.
 * args.epoch and args.index are those of struct pstk_batch. args.rows are the rows that the event
 * is about. Reads and decodes of a batch come in one event or several, whose rows add up to the
 * batch's; the others come once. A call of pstk_next that gave no batch has no args. args of
 * `block` are the epoch, the number of the block in it, and its rows.
 *
 * Each thread keeps its newest settings.observe.trace_events events, in memory that pstk_open
 * allocates. "ts" counts microseconds since pstk_open; otherData.monotonic_ns is that moment of
 * CLOCK_MONOTONIC, and otherData.realtime_ns that of CLOCK_REALTIME. The args of "thread_name"
 * count the events of the thread, and those that newer ones overwrote.
 */
#ifndef PENSTOCK_METRICS_H
#define PENSTOCK_METRICS_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pstk_loader;

/* Write the trace so far to the file `path`; NULL: to settings.observe.trace_path, where pstk_close
 * then writes it again if more has happened. Threads go on meanwhile. EINVAL: the loader keeps no
 * trace, or has no trace_path, or the name ends in .gz or .GZ; else what the system refused.
 * Thread: any. */
PSTK_API int pstk_trace_write(struct pstk_loader *loader, const char *path, struct pstk_error *err);

/* Which time metrics are of. */
enum pstk_window {
    /* since pstk_open */
    PSTK_WINDOW_OPEN = 0,
    /* since the last call of pstk_get_metrics with this window, or pstk_open; all callers share it
     */
    PSTK_WINDOW_LOOK = 1,
    /* the last 60 s, up to 65 s where pstk_next is called often: pstk_next notes the counts every 5
     * s, and the window begins at the newest note that is 60 s old. While nobody calls pstk_next
     * the window grows; metrics.duration_ns says how long it is */
    PSTK_WINDOW_MINUTE = 2,
};

/* How values spread. A quantile is the largest value of its bucket: there are 8 buckets for each
 * power of 2, so it is at most 1/8 above the true one. Times from 36 minutes on count as that. All
 * 0 without a value. */
struct pstk_distribution {
    /* values */
    uint64_t n;
    uint64_t sum;
    /* half of the values, 95 % and 99 % of them are at most so large, and all of them */
    uint64_t p50, p95, p99, max;
};

/* What happened in a window. */
struct pstk_metrics {
    /* sizeof(struct pstk_metrics), set by the caller */
    uint32_t size;
    /* enum pstk_window */
    uint32_t window;
    /* length of the window */
    uint64_t duration_ns;

    /* as those of struct pstk_stats */
    uint64_t n_batches, n_samples, n_replacements, bytes_delivered;
    uint64_t bytes_read, n_reads, n_slow_reads, n_index_hits, n_index_misses;
    /* delivered batches for which pstk_next did not wait */
    uint64_t n_ready;

    /* ns that pstk_next waited for each delivered batch, on the host; calls that ended in ETIMEDOUT
     * or EINTR before it are part of that */
    struct pstk_distribution wait;
    /* ns of each of n_reads, from when it was queued until a reader saw its end */
    struct pstk_distribution read;
    /* ns of a worker for a run of rows: decoding, operations, and for the last run of a batch its
     * completion */
    struct pstk_distribution decode;
    /* ns from queueing the copies of a batch to the device until they were seen done */
    struct pstk_distribution copy;
    /* bits of enum pstk_fallback, since pstk_open */
    uint32_t fallbacks;
    uint32_t reserved;

    /* ns from when all rows of a batch were made until the batch was complete: functions of whole
     * batches, MixUp, ragged rows; part of `decode`, too */
    struct pstk_distribution finish;
    /* ns that the consumer's stream waited for each batch, on the device; with
     * settings.device.measure, and once the device is past the wait. With 64 waits under way, the
     * next ones are left out */
    struct pstk_distribution stream;
    /* jobs (runs of rows that were read) that a worker left in its queue when it took one */
    struct pstk_distribution jobs;
    /* slots that were ready, leased and free, of those that batches are delivered from, when a call
     * of pstk_next began; the others were being filled. Noted at most every 10 ms */
    struct pstk_distribution ready, leased, free;
};

/* Copy out what happened in a window (enum pstk_window), up to metrics->size. Thread: any;
 * pstk_next never waits for it. EINVAL: the window, the size. */
PSTK_API int pstk_get_metrics(struct pstk_loader *loader, uint32_t window,
                              struct pstk_metrics *metrics);

#ifdef __cplusplus
}
#endif
#endif
