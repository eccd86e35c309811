/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace: named ranges of time for a profiler, by NVTX: Nsight Systems shows the pipeline by name.
 * While tracing is off, a range costs the test of one pointer, and the profiler's library is not
 * loaded.
 */
#ifndef PSTK_TRACE_H
#define PSTK_TRACE_H

#include <penstock/types.h>

struct pstk__trace {
    void *domain; /* owned; NULL: tracing is off */
};

/* Start tracing. ENOTSUP: this build has no NVTX. */
int pstk__trace_open(struct pstk__trace *trace, struct pstk_error *err);
void pstk__trace_close(struct pstk__trace *trace);

/* The functions below that end in _on require that tracing is on. */
void pstk__trace_begin_on(const struct pstk__trace *trace, const char *name, uint64_t batch);
void pstk__trace_end_on(const struct pstk__trace *trace);
uint64_t pstk__trace_begin_across_on(const struct pstk__trace *trace, const char *name,
                                     uint64_t batch);
void pstk__trace_end_across_on(const struct pstk__trace *trace, uint64_t range);

/* Begin a range of the calling thread, for a batch's number in the stream. Ranges nest. */
static inline void pstk__trace_begin(const struct pstk__trace *trace, const char *name,
                                     uint64_t batch)
{
    if (trace->domain)
        pstk__trace_begin_on(trace, name, batch);
}

static inline void pstk__trace_end(const struct pstk__trace *trace)
{
    if (trace->domain)
        pstk__trace_end_on(trace);
}

/* Begin a range that another thread may end. Returns its number. */
static inline uint64_t pstk__trace_begin_across(const struct pstk__trace *trace, const char *name,
                                                uint64_t batch)
{
    return trace->domain ? pstk__trace_begin_across_on(trace, name, batch) : 0;
}

static inline void pstk__trace_end_across(const struct pstk__trace *trace, uint64_t range)
{
    if (trace->domain)
        pstk__trace_end_across_on(trace, range);
}

#endif
