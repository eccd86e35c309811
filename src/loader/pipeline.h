/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage: the threads, and the only place where the hops of different threads meet. L3.
 *
 *   reader thread, one per lane            workers of the lane, pinned to its node
 *   claim -> plan -> issue -> reap  --jobs-->  parse -> sample -> last one: slot done -> window
 *     ^ slots free, I/O memory free, jobs free ------------------'                        |
 *     ^ copied ---------------------------------------------  uploader, one a device  <---'
 *                                                             load -> finish -> window
 *
 * A lane is a reader and the workers that it feeds. A NUMA node has one lane; it has one for each
 * worker where reading a record costs as much as the rest of its way: then one
 * reader a node would be what limits. Lanes claim whole batches, whoever has a slot free comes
 * next.
 *
 * A job is a run of rows of one batch. Planning finds each row's extent (index pages are read
 * ahead, many in flight); issuing takes I/O memory and starts the reads, jobs strictly in claim
 * order, so the oldest job always gets on. Back-pressure comes from the pools alone: slots, I/O
 * memory, jobs. While reads are in flight and nothing else can be done, the reader waits for them
 * alone: what becomes free meanwhile is seen when one has come.
 *
 * A row whose fast read failed (I/O error, damaged index page, missing shard, larger than the I/O
 * memory) is read again by the worker on the slow path, which either gets it or says what is wrong.
 */
#ifndef PSTK_STAGE_H
#define PSTK_STAGE_H

#include "dataset/dataset.h"
#include "format/files.h"
#include "reader/pages.h"
#include "machine/numa.h"
#include "base/queue.h"
#include "reader/reader.h"
#include "reader/buffer.h"
#include "metrics/stats.h"
#include "batch/window.h"

#define PSTK__ATTEMPTS 8u /* other samples of its shard tried in place of a bad one */

/* One row of a job, between plan and sample. */
struct pstk__row_io {
    struct pstk__extent extent;
    struct pstk__page *page; /* pinned while the extent is not known yet */
    const uint8_t *data;     /* in the job's piece of the ring, once read */
    uint32_t slow;           /* 1: leave it to the slow path */
};

struct pstk__job;

/* One read: a run of rows of a job that lie close together in a shard. */
struct pstk__span {
    struct pstk__read read;
    struct pstk__job *job;
    uint32_t shard;
    uint32_t first, n;   /* rows of the job */
    uint32_t file;       /* pinned slot of the file table, while in flight */
    uint64_t begin, end; /* bytes of the shard that the rows need */
};

/* Owned by: the reader (planned, in flight), then a worker, then the free list. */
struct pstk__job {
    struct pstk__slot *slot;
    struct pstk__lane *lane;
    uint32_t first_row, n_rows;
    uint32_t n_planned;          /* rows whose page is pinned or extent known */
    uint32_t n_spans, next_span; /* all, and the next to be queued; 0 until issued */
    uint32_t n_left;             /* spans not reaped */
    uint32_t laid_out;           /* 1: spans and memory_size are known */
    uint64_t memory_size;        /* bytes of the ring that its spans take; 0 = none is read fast */
    struct pstk__piece *piece;   /* NULL when no row is read fast */
    struct pstk__row_io *rows;   /* rows_per_job */
    struct pstk__span *spans;    /* rows_per_job */
    struct pstk__job *next;      /* planned list */
};

/* A reader thread and the workers that it feeds. */
struct pstk__lane {
    struct pstk__pipeline *pipeline;
    uint32_t number;
    uint32_t node; /* NUMA node that it lies on */
    pthread_t thread;
    int running;         /* the thread was started and not joined */
    _Atomic int started; /* 0: not yet; 1: runs; <0: failed, see start_error */
    struct pstk_error start_error;
    struct pstk__gate room;        /* slots, I/O memory or jobs became free; closing */
    _Atomic uint32_t wants_memory; /* 1: knock also when a job gives its memory back */
    struct pstk__queue *work;      /* to the workers */
    struct pstk__queue *idle;      /* free jobs */
    struct pstk__job *jobs;        /* n_jobs, owned */
    uint32_t n_jobs;
    struct pstk__row_io *rows;      /* of all jobs, owned */
    struct pstk__span *spans;       /* of all jobs, owned */
    void *io_memory;                /* ring, then index pages; owned mapping */
    uint64_t ring_size, index_size; /* bytes */
    int keeps_memory;               /* 1: the kernel may still write to io_memory after close */
    uint32_t reader_kind;           /* enum pstk_reader_kind that open got; constant once started */
    struct pstk__counters counters;

    /* the reader thread's own */
    struct pstk__reader *reader;
    struct pstk__files *files;
    struct pstk__index *index;
    struct pstk__ring ring;
    struct pstk__order order;
    uint64_t order_epoch;
    int order_ready;
    struct pstk__slot *claimed;     /* slot whose rows are being made into jobs */
    uint32_t next_row;              /* of it */
    struct pstk__job *first, *last; /* listed jobs, in claim order */
    struct pstk__job *plan;         /* first listed job that is not fully planned, or NULL */
    uint32_t n_listed;              /* rows in the list */
    uint32_t n_in_flight;
    uint32_t rungs; /* that this lane took; published to the pipeline */
};

struct pstk__worker {
    struct pstk__pipeline *pipeline;
    struct pstk__lane *lane;
    uint32_t number;
    pthread_t thread;
    int running;
    struct pstk__sampler *sampler;
    uint8_t *spare; /* slow path: room for the largest record; mapped, untouched */
    struct pstk__counters counters;
};

/* The thread that loads finished batches into slots of a device, where it has some. */
struct pstk__uploader {
    struct pstk__pipeline *pipeline;
    pthread_t thread;
    int running;         /* the thread was started and not joined */
    _Atomic int started; /* 0: not yet; 1: runs; <0: failed, see start_error */
    struct pstk_error start_error;
    struct pstk__counters counters;

    /* the thread's own */
    struct pstk__device *device; /* borrowed from the pool that it was attached to */
    struct pstk__slot *slot;     /* LOADING, for the next batch; or NULL */
    struct {
        struct pstk__slot *from, *to; /* COPYING, LOADING */
    } loads[PSTK__LOADS];             /* under way; load k is loads[k % PSTK__LOADS] */
    uint64_t n_begun, n_finished;     /* loads, ever */
    uint32_t n_pinned;                /* host slots that are page-locked */
    uint64_t blocked_ns;              /* of the round under way */
};

/* All that the threads share. Owned by the loader; read-only while they run, but for the parts with
 * locks or atomics of their own. */
struct pstk__pipeline {
    struct pstk_settings settings; /* defaults filled in; pointers into the plan or NULL */
    struct pstk_dataset *dataset;
    const struct pstk__source *source;
    struct pstk__plan *plan;
    struct pstk__numa *numa;
    struct pstk__slots *slots;     /* that workers fill */
    struct pstk__slots *delivered; /* that are leased: the same, or those of a device */
    struct pstk__window window;
    struct pstk__partition partition;
    uint32_t n_nodes, n_workers;
    uint32_t n_lanes;               /* a multiple of n_nodes, at most n_slots */
    struct pstk__lane *lanes;       /* n_lanes, owned */
    struct pstk__worker *workers;   /* n_workers, owned */
    struct pstk__uploader uploader; /* runs where delivered is not slots */
    uint32_t device_node;           /* NUMA node nearest to the device; UINT32_MAX: not known */
    uint32_t rows_per_job;
    uint32_t depth;                      /* reads in flight per lane */
    int direct;                          /* wish; rungs say what came of it */
    uint32_t memory_align, offset_align; /* of direct reads; 64 and 1 when buffered */
    struct pstk__gate started;           /* knocked by each reader thread once it runs or failed */
    uint64_t spare_size;                 /* bytes of a worker's spare buffer */
    _Atomic uint32_t rungs;              /* enum pstk_rung */
    _Atomic int closing;
};

/* Build pools and start all threads; returns when all run, or after the same teardown that stop
 * does. p's members but for what the threads make are set. */
int pstk__stage_start(struct pstk__pipeline *p, struct pstk_error *err);
/* Stop and join all threads, free what start made. Half-started is fine. */
void pstk__stage_stop(struct pstk__pipeline *p);

/* Thread bodies (read.c, work.c, upload.c). */
void *pstk__stage_read(void *lane);
void *pstk__stage_work(void *worker);
void *pstk__stage_upload(void *uploader);

/* The last job of a slot is done: FILLING -> READY -> window, or dropped when it is stale. */
void pstk__stage_finish(struct pstk__pipeline *p, struct pstk__slot *slot);

#endif
