/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace: records ranges of the loader's threads for a profiler, and events for a file. A trace is
 * reference-counted: the loader holds one reference, and the pool of slots, which may outlive the
 * loader, another. A NULL trace is off: then a range or an event costs the test of one pointer.
 */
#ifndef PSTK_TRACE_H
#define PSTK_TRACE_H

#include "observe/nvtx.h"
#include "observe/timeline.h"

struct pstk__trace {
    _Atomic uint32_t n_refs;
    void *domain;                    /* the profiler's domain, owned; NULL: none */
    struct pstk__timeline *timeline; /* owned; NULL: no events */
};

/* Create a trace with one reference, and with neither domain nor timeline: the caller opens these
 * before any other thread has the trace. Returns owned. NULL: no memory. */
struct pstk__trace *pstk__trace_open(void);
/* Take a reference. NULL is fine; then NULL is returned. */
struct pstk__trace *pstk__trace_ref(struct pstk__trace *trace);
/* Release a reference; the last one frees the trace. NULL is fine. */
void pstk__trace_unref(struct pstk__trace *trace);

/* Return the timeline; NULL: events are not recorded. */
static inline struct pstk__timeline *pstk__trace_timeline(const struct pstk__trace *trace)
{
    return trace ? trace->timeline : NULL;
}

/* Begin a range of the calling thread; `batch` is a batch's number in the stream. Ranges nest. */
static inline void pstk__trace_begin(const struct pstk__trace *trace, const char *name,
                                     uint64_t batch)
{
    if (trace && trace->domain)
        pstk__nvtx_begin(trace->domain, name, batch);
}

static inline void pstk__trace_end(const struct pstk__trace *trace)
{
    if (trace && trace->domain)
        pstk__nvtx_end(trace->domain);
}

/* Begin a range that another thread may end. Returns the range's number. */
static inline uint64_t pstk__trace_begin_across(const struct pstk__trace *trace, const char *name,
                                                uint64_t batch)
{
    return trace && trace->domain ? pstk__nvtx_begin_across(trace->domain, name, batch) : 0;
}

static inline void pstk__trace_end_across(const struct pstk__trace *trace, uint64_t range)
{
    if (trace && trace->domain)
        pstk__nvtx_end_across(trace->domain, range);
}

#endif
