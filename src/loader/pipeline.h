/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline: the threads, and the only place where the stages of different threads meet.
 *
 *   reader thread, one per lane            workers of the lane, pinned to its node
 *   claim -> plan -> issue -> reap  --tasks-->  parse -> sample -> last one: slot done -> reorder
 *     ^ slots free, I/O memory free, tasks free ------------------'                        |
 *     ^ copied ---------------------------------------------  uploader, one a device  <---'
 *                                                             load -> finish -> reorder
 *
 * A lane is a reader and the workers that it feeds. A NUMA node has one lane. It has one for each
 * worker where reading a record costs as much as the rest of its path: there one reader per node
 * would be the bottleneck. Lanes claim whole batches, each when it has a free slot.
 *
 * A task is a run of rows of one batch. Planning finds each row's extent (index pages are read
 * ahead, many in flight); issuing takes I/O memory and starts the reads, tasks strictly in claim
 * order, so the oldest task always makes progress. Back-pressure comes from the pools alone: slots,
 * I/O memory, tasks. While reads are in flight and nothing else can be done, the reader waits only
 * for them: it sees resources that become free meanwhile when one read has finished.
 *
 * The reader does not make the reads that the page cache likely holds (residency.h): it pins their
 * file and leaves them to the worker of the task, who makes each just before the row that needs it.
 * So the reader's cost does not grow with the size of such records. It unpins the files when the
 * task comes back. Rows of blocks and index pages stay with the reader. The worker reads rows that
 * are the bytes of a field straight into the slot (scatter.h).
 *
 * A row whose fast read failed (I/O error, damaged index page, missing shard, larger than the I/O
 * memory) is read again by the worker on the slow path, which either gets it or reports the reason.
 */
#ifndef PSTK_PIPELINE_H
#define PSTK_PIPELINE_H

#include "dataset/dataset.h"
#include "format/files.h"
#include "loader/handback.h"
#include "loader/stream.h"
#include "reader/pages.h"
#include "machine/numa.h"
#include "base/cpu_times.h"
#include "base/queue.h"
#include "reader/reader.h"
#include "reader/buffer.h"
#include "reader/coalesce.h"
#include "reader/residency.h"
#include "observe/stats.h"
#include "batch/reorder.h"
#include "order/pick.h"
#include "loader/footprint.h"

#define PSTK__ATTEMPTS 8u /* other samples of the shard that are tried in place of a bad one */

struct pstk__block;
struct pstk__blocks;
struct pstk__scatter;

/* One row of a task or block, between plan and sample. */
struct pstk__row_io {
    struct pstk__pick pick;
    struct pstk__sample_location at;
    struct pstk__extent *extents; /* n_extents of the pipeline, in the lane's memory; once read,
                                     their data lie in the task's piece of the buffer */
    struct pstk__page *page;      /* pinned until the extents are known */
    uint32_t slow;                /* 1: the row takes the slow path */
    uint32_t row;                 /* row in its block */
    uint32_t scattered; /* set of the worker's places (scatter.h) whose bytes of this row lie in the
                           slot, not with the other bytes of their extent */
    struct pstk__block *block; /* block that holds the bytes of the row; NULL: the row is read by
                                  itself */
};

struct pstk__task;
struct pstk__fetch;

/* One read: rows of a fetch that lie close together in a file. */
struct pstk__span_io {
    struct pstk__read read;
    struct pstk__fetch *fetch;
    struct pstk__span span; /* rows of the fetch; span.file: number of the file */
    uint32_t extent;        /* index of the extent that is read, in each row */
    uint32_t file_slot;     /* slot of the file table, pinned until the read is done */
    uint32_t by_worker; /* 1: the task's worker runs the read; the reader unpins the slot when the
                           task comes back */
};

/* Rows that are read together: those of a task, or of a block. Only the reader uses it, until it
 * pushes the task. */
struct pstk__fetch {
    struct pstk__row_io *rows;
    struct pstk__span_io *spans; /* n_rows times n_extents */
    uint32_t n_rows;
    uint32_t n_planned;          /* rows planned: page pinned, extent known or block found */
    uint32_t n_resolved;         /* task: rows whose extents are known */
    uint32_t n_spans, next_span; /* number of spans; the next one to queue; 0 until laid out */
    uint32_t n_left;             /* spans that are not reaped */
    uint32_t laid_out;           /* 1: spans and memory_size are known */
    uint32_t n_by_worker;        /* spans that are left to the task's worker */
    uint32_t has_slow;           /* block: 1 if any of its rows takes the slow path */
    uint64_t memory_size;        /* bytes of all spans; 0: no row is read fast */
    uint64_t n_bytes;            /* task: bytes read for its rows */
    struct pstk__task *task;     /* task whose rows these are; NULL: a block's rows */
};

/* A task belongs to the reader (planned, in flight), then to a worker, then to the idle queue. */
struct pstk__task {
    struct pstk__slot *slot;
    struct pstk__lane *lane;
    uint32_t first_row;
    uint64_t issued_ns;        /* time at which its first read was queued; 0: not yet */
    struct pstk__fetch fetch;  /* rows_per_task rows at most */
    struct pstk__piece *piece; /* NULL if no row is read fast */
    struct pstk__task *next;   /* next in the list of planned tasks, or of free ones */
    uint64_t number; /* number among the lane's tasks, in the order in which they were listed */
    _Atomic uint64_t finished; /* number + 1 of the last run of this task that a worker finished */
};

/* A reader thread and the workers that it feeds. */
struct pstk__lane {
    struct pstk__pipeline *pipeline;
    uint32_t number;
    uint32_t node; /* NUMA node of its thread and memory */
    pthread_t thread;
    int running;         /* the thread was started and not joined */
    _Atomic int started; /* 0: not yet; 1: runs; <0: failed, see start_error */
    struct pstk_error start_error;
    struct pstk__queue *work; /* to the workers */
    struct pstk__queue *idle; /* tasks that workers gave back */
    struct pstk__task *tasks; /* n_tasks, owned */
    uint32_t n_tasks;
    struct pstk__row_io *rows;         /* rows of all tasks, owned */
    struct pstk__extent *extents;      /* extents of all rows, owned */
    struct pstk__span_io *spans;       /* spans of all tasks, owned */
    struct pstk__picked_order *orders; /* orders of a mixture's data sets, owned */
    void *io_memory;                   /* buffer, then index pages; owned mapping */
    uint64_t buffer_size, index_size;  /* bytes */
    void *block_memory;                /* memory of `blocks`; owned mapping */
    struct pstk__blocks_footprint blocks_need;
    int keeps_memory;      /* 1: the kernel may still write to io_memory after close */
    uint32_t backend_kind; /* enum pstk_reader_kind that open chose; constant once started */
    /* Wakes the reader for slots, I/O memory and tasks; closing notifies it too. Workers write to
     * it with every task: it and the counters lie on cache lines of their own. */
    _Alignas(128) struct pstk__handback handback;
    struct pstk__counters counters;
    struct pstk__histogram finishes; /* ns of batches without rows */
    struct pstk__ring *ring;         /* ring of the trace, borrowed; NULL without a trace */

    /* the reader thread's own */
    struct pstk__reader *backend;
    struct pstk__files *files;
    struct pstk__pages *pages;
    struct pstk__buffer buffer;
    struct pstk__span_limits span_limits; /* constant once open */
    struct pstk__residency residency;     /* workers add to its n_gone */
    struct pstk__task *free;              /* tasks that came back from `idle` */
    struct pstk__picker picker;
    struct pstk__blocks *blocks;     /* blocks of a windowed order; else NULL */
    struct pstk__slot *claimed;      /* slot whose rows are being made into tasks */
    uint32_t next_row;               /* next row of `claimed` */
    struct pstk__task *first, *last; /* listed tasks, in claim order */
    struct pstk__task *plan;         /* first listed task that is not fully planned, or NULL */
    uint32_t n_listed;               /* rows in the list */
    uint32_t n_in_flight;
    uint32_t fallbacks; /* taken by this lane; published to the pipeline */
};

struct pstk__worker {
    struct pstk__pipeline *pipeline;
    struct pstk__lane *lane;
    uint32_t number;
    pthread_t thread;
    int running;
    struct pstk__sampler *sampler;
    uint8_t *spare; /* slow path, and reads of one row: bytes for the largest record; mapped,
                       touched when used */
    struct pstk__scatter *scatter; /* memory of the reads that this thread makes; on its stack */
    struct pstk__counters counters;
    struct pstk__histogram reads;     /* ns of each read from the page cache */
    uint64_t waited_ns;               /* ns in which the task under way waited for storage */
    struct pstk__histogram finishes;  /* ns of each completion of a batch by this worker */
    struct pstk__histogram jobs_left; /* tasks left in the queue after the worker took one */
    struct pstk__ring *ring;          /* ring of the trace, borrowed; NULL without a trace */
};

/* The thread that loads finished batches into slots of a device, if the device has slots. */
struct pstk__uploader {
    struct pstk__pipeline *pipeline;
    pthread_t thread;
    int running;         /* the thread was started and not joined */
    _Atomic int started; /* 0: not yet; 1: runs; <0: failed, see start_error */
    struct pstk_error start_error;
    struct pstk__counters counters;
    struct pstk__ring *ring; /* ring of the trace, borrowed; NULL without a trace */

    /* the thread's own */
    struct pstk__device *device; /* borrowed from the pool that it is attached to */
    struct pstk__slot *slot;     /* LOADING, for the next batch; or NULL */
    struct {
        struct pstk__slot *from, *to; /* COPYING, LOADING */
        uint64_t queued_ns;
    } loads[PSTK__LOADS];         /* loads under way; load k is loads[k % PSTK__LOADS] */
    uint64_t n_begun, n_finished; /* loads since the start */
    uint32_t n_pinned;            /* host slots that are page-locked */
    uint64_t blocked_ns;          /* ns blocked in the round under way */
};

/* The state that the threads share. Owned by the loader; read-only while they run, except the parts
 * with locks or atomics of their own. */
struct pstk__pipeline {
    struct pstk_settings settings; /* defaults filled in; pointers into the plan or NULL */
    struct pstk_dataset *dataset;
    const struct pstk__source *source;
    struct pstk__plan *plan;
    struct pstk__numa *numa;
    struct pstk__trace *trace;     /* a reference; NULL without a trace */
    struct pstk__slots *slots;     /* filled by workers */
    struct pstk__slots *delivered; /* leased to consumers: `slots`, or the slots of a device */
    struct pstk__reorder_buffer reorder;
    struct pstk__stream stream;
    int reader_reads; /* 1: the readers make all reads themselves. They bypass the page cache, have
                         no descriptors, or are reads of blocks, which count on pins that end with
                         reads in flight */
    uint32_t n_nodes, n_workers;
    uint32_t n_lanes;               /* a multiple of n_nodes, at most n_slots */
    struct pstk__lane *lanes;       /* n_lanes, owned */
    struct pstk__worker *workers;   /* n_workers, owned */
    struct pstk__uploader uploader; /* runs if delivered is not slots */
    /* CPU time of the lanes' threads and their helpers, of the workers and of the uploader. */
    struct pstk__cpu_times *readers_times, *workers_times, *uploader_times; /* owned */
    uint32_t device_node; /* NUMA node nearest to the device; UINT32_MAX: not known */
    uint32_t rows_per_task;
    uint64_t fields;                     /* set of the fields that outputs read */
    uint32_t n_extents;                  /* extents of a sample, for these fields */
    uint32_t depth;                      /* reads in flight per lane */
    int direct;                          /* requested; fallbacks record what was possible */
    uint32_t memory_align, offset_align; /* bytes, of direct reads; 64 and 1 when buffered */
    struct pstk__eventcount started;     /* notified by each reader thread once it runs or failed */
    uint64_t spare_size;                 /* bytes of a worker's spare buffer */
    _Atomic uint64_t asked_ns;           /* start of stage times: the first pstk_next; 0: not yet */
    _Atomic uint64_t asked_cpu_ns;       /* CPU time of the process at asked_ns */
    _Atomic uint64_t n_rows_ahead;       /* rows that workers had made at asked_ns */
    _Atomic uint32_t fallbacks;          /* enum pstk_fallback */
    _Atomic int closing;
};

/* Build pools and start all threads. Returns when all run; if one fails, after pstk__pipeline_stop.
 * The caller has set all members except those that the threads make. */
int pstk__pipeline_start(struct pstk__pipeline *pipeline, struct pstk_error *err);
/* Stop and join all threads, and free all that start made. The pipeline may be half started. */
void pstk__pipeline_stop(struct pstk__pipeline *pipeline);

/* Note that the consumer asks for a batch at time `now`. The first call starts the times of all
 * stages. */
void pstk__pipeline_ask(struct pstk__pipeline *pipeline, uint64_t now);
/* Fill in cpu_ns, the times of the stages and n_rows_ahead. The caller has already counted the rows
 * of the workers. */
void pstk__pipeline_measure(const struct pstk__pipeline *pipeline, struct pstk_stats *stats);

/* Thread bodies (read.c, work.c, upload.c). */
void *pstk__pipeline_read(void *lane);
void *pstk__pipeline_work(void *worker);
void *pstk__pipeline_upload(void *uploader);

/* Finish a slot whose last task is done: FILLING -> READY -> reorder buffer, or dropped when it is
 * stale. ring, finishes: of the calling thread; ring is NULL without a trace. */
void pstk__pipeline_finish(struct pstk__pipeline *pipeline, struct pstk__slot *slot,
                           struct pstk__ring *ring, struct pstk__histogram *finishes);

#endif
