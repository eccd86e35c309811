/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/diagnostics.h - statistics, metrics, traces and predictions of a loader.
 *
 *   pstk_get_stats      counts, times, memory, fallbacks, and the bottleneck, since open
 *   pstk_get_metrics    counts and times of a window of time
 *   pstk_trace_write    a trace of its threads
 *   pstk_predict        the rate with more workers, faster storage or other kernels
 *   pstk_status_ask     the same questions to a loader of another process
 */
#ifndef PENSTOCK_DIAGNOSTICS_H
#define PENSTOCK_DIAGNOSTICS_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pstk_loader;

/* ---- statistics: counts, times, memory, fallbacks, and the bottleneck ------------------------ */

/* Time of one kind of thread, summed over its threads, since the first pstk_next began. Work and
 * waits before it do not count; of a span that began before it, only the later part does. Until
 * then the times are 0. A pstk_seek changes nothing. */
struct pstk_stage_stats {
    /* ns at work */
    uint64_t busy_ns;
    /* ns of waiting for the stage before */
    uint64_t starved_ns;
    /* ns of waiting for the stage after, until it has room */
    uint64_t blocked_ns;
    /* ns of CPU time; below busy_ns where threads wait for cores, for pages or for locks. reader:
     * its helper threads are included, the kernel's are not. consumer: 0, its threads are the
     * program's */
    uint64_t cpu_ns;
    /* ns in which threads were ready to run and no core was free: Linux's run delay
     * (/proc/PID/schedstat); 0 on systems without it. consumer: 0 */
    uint64_t core_wait_ns;
    /* since open. reader: reads; workers: rows, also those that a seek discarded; uploader and
     * consumer: batches */
    uint64_t n_items;
    uint32_t n_threads;
    uint32_t reserved;
};

/* The stage that limits the loader's rate. */
enum pstk_bottleneck {
    /* too little time has passed; or no stage spends a tenth of its time on work that could limit,
     * though the consumer waits */
    PSTK_BOTTLENECK_UNKNOWN = 0,
    PSTK_BOTTLENECK_STORAGE = 1,
    PSTK_BOTTLENECK_DECODE = 2,
    PSTK_BOTTLENECK_COPY = 3,
    PSTK_BOTTLENECK_CONSUMER = 4,
    /* the reader thread itself: its cost per record */
    PSTK_BOTTLENECK_READER = 5,
    /* no core is free: the reader would limit, and waits for a core longer than it has one. In a
     * prediction (pstk_predict): more work finds no core */
    PSTK_BOTTLENECK_CORES = 6,
};

/* Bits: features that this machine refused, so that the loader uses a slower fallback. */
enum pstk_fallback {
    /* io_uring, at open or later: threads read */
    PSTK_FALLBACK_NO_IO_URING = 1,
    /* the registration of I/O buffers (RLIMIT_MEMLOCK, seccomp) */
    PSTK_FALLBACK_NO_FIXED_BUFFERS = 2,
    /* the registration of files */
    PSTK_FALLBACK_NO_FIXED_FILES = 4,
    /* O_DIRECT: the file system refuses it */
    PSTK_FALLBACK_NO_DIRECT = 8,
    /* IORING_SETUP_SINGLE_ISSUER (Linux 6.0) or IORING_SETUP_DEFER_TASKRUN (6.1), or both */
    PSTK_FALLBACK_NO_SINGLE_ISSUER = 16,
    /* the pinning of threads to cores */
    PSTK_FALLBACK_NOT_PINNED = 32,
    /* the binding of memory to its NUMA node */
    PSTK_FALLBACK_NOT_BOUND = 64,
    /* the page-locking of slots: copies to the device go through a bounce buffer */
    PSTK_FALLBACK_NOT_PAGE_LOCKED = 128,
    /* the file of settings.observe.trace_path: it could not be written */
    PSTK_FALLBACK_NO_TRACE = 256,
    /* the file of settings.observe.monitor_path: it could not be made */
    PSTK_FALLBACK_NO_MONITOR = 512,
    /* RWF_NOWAIT: nothing shows whether the page cache holds a record, so workers read none */
    PSTK_FALLBACK_NO_NOWAIT = 1024,
};

struct pstk_stats {
    /* sizeof(struct pstk_stats), set by the caller */
    uint32_t size;

    /* Choices of pstk_open, updated when the machine refuses one later. */

    /* enum pstk_reader_kind in use */
    uint32_t reader;
    /* 1: reads use O_DIRECT */
    uint32_t direct;
    /* 1: I/O buffers are registered */
    uint32_t registered;
    /* bits of enum pstk_fallback */
    uint32_t fallbacks;
    /* workers */
    uint32_t n_threads;
    uint32_t n_slots;
    /* NUMA nodes in use */
    uint32_t n_nodes;
    /* reads in flight of each reader */
    uint32_t queue_depth;
    /* rows that a worker takes at once */
    uint32_t rows_per_job;
    /* enum pstk_kernels in use */
    uint32_t kernels;
    /* enum pstk_bottleneck */
    uint32_t bottleneck;

    /* Counts since open. A batch that is delivered twice counts twice. */

    /* samples delivered */
    uint64_t n_samples;
    /* bytes read for the delivered batches, without index pages */
    uint64_t bytes_delivered;
    /* batches delivered */
    uint64_t n_batches;
    /* delivered rows whose sample was bad and has a replacement */
    uint64_t n_replacements;
    /* bytes that the storage read, with read-ahead, rounding and index pages */
    uint64_t bytes_read;
    uint64_t n_reads;
    /* part of n_reads: reads by workers, of bytes that the page cache holds */
    uint64_t n_cached_reads;
    /* part of n_cached_reads: reads whose bytes had left the page cache, so that the worker waited
     * for storage */
    uint64_t n_evicted_reads;
    uint64_t n_index_hits;
    uint64_t n_index_misses;
    /* rows whose read-ahead failed, so that the loader read them again, one by one */
    uint64_t n_slow_reads;

    /* Memory. */

    /* bytes on the host, reports of bad samples included */
    uint64_t slot_memory;
    /* bytes */
    uint64_t io_memory;
    /* bytes */
    uint64_t index_memory;
    /* bytes of address space of all workers; images touch only what they need */
    uint64_t scratch_memory;

    /* Stages. */

    struct pstk_stage_stats stage_reader;
    struct pstk_stage_stats stage_workers;
    /* busy: between two calls of pstk_next; starved: inside of them */
    struct pstk_stage_stats stage_consumer;
    /* blocked: no slot of the device was free; all 0 on the host */
    struct pstk_stage_stats stage_uploader;

    /* A device with slots of its own; 0 on the host. */

    uint32_t n_device_slots;
    /* 1: copies run straight from the host slots */
    uint32_t page_locked;
    /* bytes of the device's slots and of the two buffers that they share for rows that kernels
     * finish there */
    uint64_t device_memory;

    /* With settings.device.measure, by the device's clock; else 0. */

    /* ns in which copies to the device ran */
    uint64_t copy_ns;
    /* bytes of those copies */
    uint64_t copy_bytes;
    /* ns in which the consumer's streams used batches, summed over the streams: from a batch's
     * arrival until pstk_next asks for the next one on the same stream, perhaps of the next epoch.
     * The use of a stream's last batch does not count. */
    uint64_t stream_used_ns;
    /* ns in which those streams waited for batches: from the pstk_next that leased a batch, or from
     * the time at which the stream reached that point, until the batch arrived. A wait begins with
     * the first call, even if it and others ended in ETIMEDOUT or EINTR. The first batch counts,
     * also after a seek. A stream that only takes batches for other streams starves whenever none
     * is ready. */
    uint64_t stream_starved_ns;
    /* of stream_starved_ns: the loader's first batch, for which the pipeline fills */
    uint64_t stream_start_ns;

    /* delivered rows with an image from a PNG file that has a palette */
    uint64_t n_palette_images;
    /* delivered rows with an image from a JPEG that is marked as damaged, or in place from a
     * damaged file that pstk_foreign.damaged accepts */
    uint64_t n_damaged_images;
    /* boxes of delivered rows that were dropped: nothing of them was left, or too little */
    uint64_t n_dropped_boxes;
    /* rows of a windowed order that were read by themselves, after open or pstk_seek, because their
     * block was not in memory */
    uint64_t n_lone_rows;
    /* bytes of the blocks of a windowed order; 0 for other orders */
    uint64_t block_memory;
    /* ns of CPU time of all threads of the process since the first pstk_next began; 0 until then */
    uint64_t cpu_ns;
    /* part of stage_workers.n_items: rows made before the first pstk_next; the times of the workers
     * leave them out */
    uint64_t n_rows_ahead;
};

/* Copy the statistics to *stats, up to its size. It waits only for other threads in the same call.
 * It asks the system for cpu_ns and core_wait_ns of the stages at most every 100 ms. borrows. */
PSTK_API int pstk_get_stats(const struct pstk_loader *loader, struct pstk_stats *stats);

/* Return the bottleneck (enum pstk_bottleneck) between two calls of pstk_get_stats. The caller
 * subtracts the earlier stages' times, n_batches and times of streams from the later ones, and
 * leaves stats->size. The rule is that of stats->bottleneck. PSTK_BOTTLENECK_UNKNOWN: stats is
 * NULL, its size leaves one of them out, or too little time has passed. Pure. Thread: any. */
PSTK_API uint32_t pstk_find_bottleneck(const struct pstk_stats *stats);

/* ---- while it runs: a trace, and counts and times of a window of time ------------------------ */

/*
 * A trace is a file in Chrome's Trace Event Format (JSON), which https://ui.perfetto.dev opens. It
 * has an event for each of these:
 *   claim    a reader gave a free slot the next batch
 *   read     rows were read: from when the first of their reads was queued until all had ended or
 *            were left to a worker
 *   block    a block of a windowed order was read, ahead of the batches: from when it got memory
 *            until its reads had ended
 *   decode   a worker made rows, and read those of them that the page cache has
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

/* Write the trace so far to the file `path`. NULL: to settings.observe.trace_path, which pstk_close
 * then writes again if more has happened. Threads go on meanwhile. EINVAL: the loader keeps no
 * trace, or has no trace_path, or the name ends in .gz or .GZ; other errors are the system's.
 * Thread: any. */
PSTK_API int pstk_trace_write(struct pstk_loader *loader, const char *path, struct pstk_error *err);

/* The time window that metrics cover. */
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

/* A distribution of values. A quantile is the largest value of its bucket: there are 8 buckets for
 * each power of 2, so it is at most 1/8 above the true one. Times of 36 minutes or more count as 36
 * minutes. All members are 0 if there is no value. */
struct pstk_distribution {
    /* values */
    uint64_t n;
    uint64_t sum;
    /* upper bounds of half, of 95 % and of 99 % of the values; and their maximum */
    uint64_t p50, p95, p99, max;
};

/* Counters and distributions of one window. */
struct pstk_metrics {
    /* sizeof(struct pstk_metrics), set by the caller */
    uint32_t size;
    /* enum pstk_window */
    uint32_t window;
    /* length of the window */
    uint64_t duration_ns;

    /* counters with the meaning that they have in struct pstk_stats, for this window */
    uint64_t n_batches, n_samples, n_replacements, bytes_delivered;
    uint64_t bytes_read, n_reads, n_slow_reads, n_index_hits, n_index_misses;
    /* delivered batches for which pstk_next did not wait */
    uint64_t n_ready;

    /* ns that pstk_next waited for each delivered batch, on the host, with earlier calls that ended
     * in ETIMEDOUT or EINTR */
    struct pstk_distribution wait;
    /* ns of each read that n_reads counts, from its queueing until a reader saw its end. A worker's
     * read counts from its begin to its end */
    struct pstk_distribution read;
    /* ns of a worker for a run of rows: its reads from the page cache, decoding and operations; for
     * the last run of a batch also the completion of the batch */
    struct pstk_distribution decode;
    /* ns from queueing the copies of a batch to the device until the loader saw them done */
    struct pstk_distribution copy;
    /* bits of enum pstk_fallback, since pstk_open */
    uint32_t fallbacks;
    uint32_t reserved;

    /* ns from the last row of a batch until the batch was complete: functions of whole batches,
     * MixUp, ragged rows. They are part of `decode`, too */
    struct pstk_distribution finish;
    /* ns that the consumer's stream waited for each batch, on the device, with
     * settings.device.measure; known once the device is past the wait. While 64 waits are under
     * way, further ones are left out */
    struct pstk_distribution stream;
    /* jobs (runs of rows that were read) left in a worker's queue when it took one */
    struct pstk_distribution jobs;
    /* slots that were ready, leased and free when a call of pstk_next began, among those that
     * batches are delivered from; the others were being filled. Noted at most every 10 ms */
    struct pstk_distribution ready, leased, free;
};

/* Copy out the metrics of a window (enum pstk_window), up to metrics->size. Thread: any; pstk_next
 * never waits for it. EINVAL: the window or the size is wrong. */
PSTK_API int pstk_get_metrics(struct pstk_loader *loader, uint32_t window,
                              struct pstk_metrics *metrics);

/* ---- what other workers, storage or kernels would change ------------------------------------- */

/*
 * Each stage has a rate at which it would be busy all the time: the rate of the loader, divided by
 * the part of its time in which the stage is busy (the utilization law). The lowest of these rates
 * limits. A change of the machine changes some of them. The prediction is the rate so far, times
 * the ratio of the new lowest rate to the old one. The cores have such a rate, too: n_cores over
 * the CPU time of a sample.
 *
 * The model leaves out that threads share a core's units, caches and memory, and that the clock
 * falls when more cores are busy.
 */

/* Percent of the measured rate: a prediction below it is called no faster. */
#define PSTK_FORECAST_NO_CHANGE 102

/* The assumed changes. A member that is 0 assumes no change. */
struct pstk_forecast_settings {
    /* sizeof(struct pstk_forecast_settings), set by the caller */
    uint32_t size;
    /* workers */
    uint32_t n_threads;
    /* factor by which storage is faster, in bytes and in latency */
    double storage_factor;
    /* time of a worker for a sample, as a multiple of that so far; with other kernels a ratio of
     * two kernels_ns of pstk_measure_ceilings */
    double worker_factor;
    /* cores that the process may use, a fraction under a CPU quota; 0: unknown, so that the cores
     * never limit */
    double n_cores;
    /* 1: the consumer takes every batch at once */
    uint32_t no_consumer;
    uint32_t reserved;
};

struct pstk_forecast {
    /* sizeof(struct pstk_forecast), set by the caller */
    uint32_t size;
    /* enum pstk_bottleneck of the prediction */
    uint32_t limit;
    /* rate since the first pstk_next: samples over the time of the consumer */
    double measured;
    /* the prediction; 0 with limit 0 (PSTK_BOTTLENECK_UNKNOWN): nothing shows what limits */
    double samples_per_second;
};

/* Predict the rate of a loader from its statistics. Pure: it measures and changes nothing. EINVAL:
 * a size is wrong; a factor or n_cores is negative or not finite. Thread: any. */
PSTK_API int pstk_predict(const struct pstk_stats *stats,
                          const struct pstk_forecast_settings *settings,
                          struct pstk_forecast *forecast);

/* ---- a loader of another process ------------------------------------------------------------- */

/*
 * A loader with settings.observe.monitor_path has a status file: a small file (4 KiB) at that path,
 * which names the loader's process. pstk_status_ask writes a question to the file. A thread of the
 * loader, which sleeps otherwise, writes the answer. So an answer comes also while the training
 * program computes or hangs. The loader measures and writes nothing while nobody asks. `penstock
 * top` asks all loaders of a user.
 *
 * pstk_close removes the file. A killed process leaves it, and pstk_status_ask reports that.
 */

/* The outcome of a question. */
enum pstk_status_state {
    PSTK_STATUS_ANSWERED = 0,
    /* the process runs, but did not answer in time: it is stopped, or the machine is very busy */
    PSTK_STATUS_SILENT = 1,
    /* the process has ended without pstk_close: the file may be deleted */
    PSTK_STATUS_ENDED = 2,
    /* no answer from a process of another machine or PID namespace: nothing shows whether it runs
     */
    PSTK_STATUS_ELSEWHERE = 3,
};

/* The loader that owns a status file, and its answer. */
struct pstk_status {
    /* sizeof(struct pstk_status), set by the caller */
    uint32_t size;
    /* enum pstk_status_state */
    uint32_t state;
    /* process id, in its own PID namespace */
    uint32_t pid;
    /* 1: pid is of another PID namespace than the caller's, or of another machine */
    uint32_t is_foreign;
    /* rank and world of the loader's settings */
    uint32_t rank, world;
    /* enum pstk_device_kind, and its index */
    uint32_t device;
    int32_t device_index;
    /* time at which the loader was opened, in ns of CLOCK_REALTIME */
    uint64_t opened_ns;
    /* samples of an epoch, of all ranks */
    uint64_t n_samples;

    /* Members of the answer; 0 without one. */

    /* time at which the answer was written, in ns of CLOCK_REALTIME */
    uint64_t answered_ns;
    /* start of the next batch, as pstk_get_cursor returns it */
    uint64_t epoch, position;

    /* name of the machine or container; cut if longer */
    char host[64];
    /* path of the data set, as it was given; of a long path the end, after "..." */
    char path[512];
};

/* Ask the loader whose status file is the file `path`, and wait up to timeout_ns for its answer:
 * about 1 ms where the machine has a free core. stats (since pstk_open) and metrics (of
 * PSTK_WINDOW_MINUTE) may be NULL; the caller sets their sizes, and they are 0 without an answer.
 * Returns 0 if the file is a status file; status->state has the outcome. ENOENT: there is no such
 * file (any more). EACCES: it belongs to another user. ENODATA: it is not a status file, or not
 * complete yet. EBADMSG: damaged. ENOTSUP: of a newer penstock. Thread: any. */
PSTK_API int pstk_status_ask(const char *path, int64_t timeout_ns, struct pstk_status *status,
                             struct pstk_stats *stats, struct pstk_metrics *metrics,
                             struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
