/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline: records events of each thread, with their times, for a trace file.
 *
 * A timeline has one ring of events for each thread. Only that thread writes to the ring, which
 * keeps the newest events; any thread may write the file meanwhile. The ring of leases is the
 * exception: several threads may end leases, so a lock orders them.
 *
 * Each event has a stamp. It is odd while the event is being written, and 2 * n + 2 after the
 * ring's event n was written. A reader takes event n only if the stamp is 2 * n + 2 both before and
 * after it copies the event. The members are atomic: stores release, loads acquire. So a reader
 * that loads a member of a newer event also sees the newer stamp.
 */
#ifndef PSTK_TIMELINE_H
#define PSTK_TIMELINE_H

#include "base/clock.h"

#include <penstock/types.h>

#include <pthread.h>
#include <stdatomic.h>

#define PSTK__TRACE_EVENTS                                                                         \
    16384u /* events of a thread's ring, unless settings.observe.trace_events is set */
#define PSTK__TRACE_EVENTS_MAX (1u << 20) /* 64 MiB for each thread */
#define PSTK__TRACE_UNKNOWN UINT64_MAX    /* seq of an event without a batch */

/* Kinds of events; see the table in timeline_file.c. */
enum pstk__event_kind {
    PSTK__EVENT_CLAIM = 0,
    PSTK__EVENT_READ = 1,
    PSTK__EVENT_DECODE = 2,
    PSTK__EVENT_FINISH = 3,
    PSTK__EVENT_COPY = 4,
    PSTK__EVENT_NEXT = 5,
    PSTK__EVENT_LEASE = 6,
    PSTK__EVENT_BLOCK = 7, /* index: the block's number in its epoch's sequence of blocks */
};

struct pstk__event {
    uint64_t begin_ns, end_ns; /* ns, by pstk__clock_ns */
    uint64_t seq;              /* number of the batch in the loader's stream, or _UNKNOWN */
    uint64_t epoch, index;     /* the batch's epoch, and its index there */
    uint32_t kind, n_rows;
};

/* An event in a ring. */
struct pstk__mark {
    _Atomic uint64_t stamp;
    _Atomic uint64_t begin_ns, duration_ns, seq, epoch, index;
    _Atomic uint64_t kind; /* kind in the lower half, number of rows in the upper half */
    uint64_t reserved;     /* fills up to 64 bytes */
};

struct pstk__ring {
    _Alignas(128) _Atomic uint64_t n; /* events ever added */
    struct pstk__mark *marks;         /* mask + 1, owned */
    uint64_t mask;
    char name[16]; /* name of the thread */
};

struct pstk__timeline {
    struct pstk__ring *rings; /* n_rings, owned */
    uint32_t n_rings;
    char *path;                 /* trace_path, owned; NULL: only written on demand */
    uint64_t opened_ns;         /* start of the file's time axis, pstk__clock_ns */
    uint64_t opened_utc;        /* the same moment by CLOCK_REALTIME, ns since 1970 */
    pthread_mutex_t lease_lock; /* orders the threads that write to the ring of leases */
    pthread_mutex_t file_lock;  /* one file at a time; guards n_written */
    uint64_t n_written;         /* events that existed when `path` was last written */
};

/* The first rings; those of readers and workers follow. */
enum {
    PSTK__RING_NEXT = 0,
    PSTK__RING_LEASES = 1,
    PSTK__RING_UPLOAD = 2,
    PSTK__RING_FIRST = 3,
};

/* Create the rings of the given numbers of readers and workers, with room for n_events each,
 * rounded up to a power of 2; 0: PSTK__TRACE_EVENTS. Copies path, which may be NULL. Returns owned.
 */
int pstk__timeline_open(struct pstk__timeline **out, uint32_t n_readers, uint32_t n_workers,
                        uint32_t n_events, const char *path, struct pstk_error *err);
/* Free a timeline, which may be NULL. No thread may write to it any more. */
void pstk__timeline_close(struct pstk__timeline *timeline);
/* Return the ring of a reader or worker; NULL when timeline is NULL. */
struct pstk__ring *pstk__timeline_reader(struct pstk__timeline *timeline, uint32_t number);
struct pstk__ring *pstk__timeline_worker(struct pstk__timeline *timeline, uint32_t n_readers,
                                         uint32_t number);
/* Add an event to the ring of leases. Any thread may call this. */
void pstk__timeline_lease(struct pstk__timeline *timeline, const struct pstk__event *event);
/* Write a file with all events that the rings hold; path NULL: the timeline's own. Any thread may
 * call this. */
int pstk__timeline_write(struct pstk__timeline *timeline, const char *path, struct pstk_error *err);
/* Refuse a path that is empty, or whose name is that of a compressed file. NULL is no path, and is
 * fine. setting: name of the setting, for the message. */
int pstk__timeline_check_path(const char *setting, const char *path, enum pstk_stage stage,
                              struct pstk_error *err);
/* Return 1 when this native errno means that the path is wrong on any machine, 0 when only this
 * machine refuses it now. */
int pstk__timeline_path_is_wrong(int native);
/* Write the timeline's own file. Do nothing without a path, or when nothing happened since the file
 * was last written or could not be written. */
void pstk__timeline_end(struct pstk__timeline *timeline);

/* Copy event n of a ring. Returns 0 when it is being overwritten, or was. */
int pstk__ring_get(const struct pstk__ring *ring, uint64_t n, struct pstk__event *event);

/* Return the time when tracing is on, else 0. */
static inline uint64_t pstk__ring_now(const struct pstk__ring *ring)
{
    return ring ? pstk__clock_ns() : 0;
}

/* Add an event. Only the ring's own thread calls this. */
static inline void pstk__ring_add(struct pstk__ring *ring, const struct pstk__event *event)
{
    const uint64_t n = atomic_load_explicit(&ring->n, memory_order_relaxed);
    struct pstk__mark *mark = &ring->marks[n & ring->mask];
    atomic_store_explicit(&mark->stamp, 2 * n + 1, memory_order_relaxed);
    /* Release: a thread that loads one of these also sees the odd stamp. */
    atomic_store_explicit(&mark->begin_ns, event->begin_ns, memory_order_release);
    atomic_store_explicit(&mark->duration_ns, event->end_ns - event->begin_ns,
                          memory_order_release);
    atomic_store_explicit(&mark->seq, event->seq, memory_order_release);
    atomic_store_explicit(&mark->epoch, event->epoch, memory_order_release);
    atomic_store_explicit(&mark->index, event->index, memory_order_release);
    atomic_store_explicit(&mark->kind, (uint64_t)event->n_rows << 32 | event->kind,
                          memory_order_release);
    atomic_store_explicit(&mark->stamp, 2 * n + 2, memory_order_release);
    atomic_store_explicit(&ring->n, n + 1, memory_order_release);
}

#endif
