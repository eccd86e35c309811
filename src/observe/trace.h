/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace: what the threads of a loader note of their time: ranges for a profiler, and events for a
 * file. Its references own it: the loader has one, and the pool of slots that is leased from, which
 * may outlive the loader, another. A trace that is NULL is off: then a range or an event costs the
 * test of one pointer.
 */
#ifndef PSTK_TRACE_H
#define PSTK_TRACE_H

#include "observe/nvtx.h"
#include "observe/timeline.h"

struct pstk__trace {
    _Atomic uint32_t n_refs;
    void *domain;                    /* of ranges for a profiler, owned; NULL: none */
    struct pstk__timeline *timeline; /* owned; NULL: no events */
};

/* Returns owned, with one reference, and with neither domain nor timeline: the caller opens them
 * before any other thread has the trace. NULL: no memory. */
struct pstk__trace *pstk__trace_open(void);
/* Take a reference. NULL is fine, and is returned. */
struct pstk__trace *pstk__trace_ref(struct pstk__trace *trace);
/* Give one up; the last one frees all. NULL is fine. */
void pstk__trace_unref(struct pstk__trace *trace);

/* The events; NULL: there are none. */
static inline struct pstk__timeline *pstk__trace_timeline(const struct pstk__trace *trace)
{
    return trace ? trace->timeline : NULL;
}

/* Begin a range of the calling thread, for a batch's number in the stream. Ranges nest. */
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

/* Begin a range that another thread may end. Returns its number. */
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
