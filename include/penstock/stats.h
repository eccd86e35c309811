/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/stats.h - what a loader did: counts, times, memory, fallbacks, and the bottleneck.
 */
#ifndef PENSTOCK_STATS_H
#define PENSTOCK_STATS_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pstk_loader;

/* Time of one kind of thread, summed over its threads, since the first pstk_next began: what a
 * thread does or waits for before it does not count, nor does the part before it of a span that
 * lies across. Until then the times are 0. A pstk_seek changes nothing. */
struct pstk_stage_stats {
    /* ns at work */
    uint64_t busy_ns;
    /* ns of waiting for the stage before */
    uint64_t starved_ns;
    /* ns of waiting for the stage after, until it has room */
    uint64_t blocked_ns;
    /* since open. reader: reads; workers: rows, also those that a seek discarded; uploader and
     * consumer: batches */
    uint64_t n_items;
    uint32_t n_threads;
    uint32_t reserved;
};

/* What keeps the loader from being faster. */
enum pstk_bottleneck {
    /* too little time has passed, or no stage spends even a tenth of its time on what it would
     * limit by, though the consumer waits */
    PSTK_BOTTLENECK_UNKNOWN = 0,
    PSTK_BOTTLENECK_STORAGE = 1,
    PSTK_BOTTLENECK_DECODE = 2,
    PSTK_BOTTLENECK_COPY = 3,
    PSTK_BOTTLENECK_CONSUMER = 4,
    /* the reader thread itself: its cost per record */
    PSTK_BOTTLENECK_READER = 5,
    /* no core is free for more work; only of predictions (penstock/forecast.h) */
    PSTK_BOTTLENECK_CORES = 6,
};

/* What this machine refused, so that the loader took a slower way: bits. */
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
};

struct pstk_stats {
    /* sizeof(struct pstk_stats), set by the caller */
    uint32_t size;

    /* What pstk_open chose, and what the machine permits by now. */

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

    /* delivered */
    uint64_t n_samples;
    /* bytes read for the delivered batches, without index pages */
    uint64_t bytes_delivered;
    /* delivered */
    uint64_t n_batches;
    /* delivered rows whose sample was bad and has a replacement */
    uint64_t n_replacements;
    /* bytes that the storage read: also for read-ahead, rounding and index pages */
    uint64_t bytes_read;
    uint64_t n_reads;
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
     * when the stream came to that point, until the batch arrived. Calls that ended in ETIMEDOUT or
     * EINTR before it count from the first. The first batch counts, also after a seek. A stream
     * that only takes batches for other streams starves whenever none is ready. */
    uint64_t stream_starved_ns;

    /* delivered rows with an image from a PNG file that has a palette */
    uint64_t n_palette_images;
    /* delivered rows with an image from a JPEG that is marked as damaged, or in place from a
     * damaged file that pstk_foreign.damaged accepts */
    uint64_t n_damaged_images;
    /* boxes of delivered rows that were dropped: nothing of them was left, or too little */
    uint64_t n_dropped_boxes;
    /* rows of a windowed order that were read by themselves, because their block was not there:
     * after open and pstk_seek */
    uint64_t n_lone_rows;
    /* bytes of the blocks of a windowed order; 0 for other orders */
    uint64_t block_memory;
    /* ns of CPU time of all threads of the process since the first pstk_next began; 0 until then */
    uint64_t cpu_ns;
    /* rows, of stage_workers.n_items, that were made before the first pstk_next: the times of the
     * workers leave them out */
    uint64_t n_rows_ahead;
};

/* Copy the statistics to *stats, up to its size; never blocks. borrows. */
PSTK_API int pstk_get_stats(const struct pstk_loader *loader, struct pstk_stats *stats);

/* Return what limited (enum pstk_bottleneck) between two calls of pstk_get_stats: the caller
 * subtracts the earlier stages' times, n_batches and times of streams from the later ones, and
 * leaves stats->size. The rule is that of stats->bottleneck. PSTK_BOTTLENECK_UNKNOWN: stats is
 * NULL, its size leaves one of them out, or too little time has passed. Pure. Thread: any. */
PSTK_API uint32_t pstk_find_bottleneck(const struct pstk_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
