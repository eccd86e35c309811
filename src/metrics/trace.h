/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace: named ranges of time for a profiler (NVTX: Nsight Systems shows the pipeline by name). L0.
 * Off, a range costs a test of a pointer that is at hand; the profiler's library is not looked for.
 */
#ifndef PSTK_TRACE_H
#define PSTK_TRACE_H

#include <penstock/types.h>

struct pstk__trace {
    void *domain; /* owned; NULL = off */
};

/* Begin to trace. ENOTSUP: this build cannot. */
int pstk__trace_open(struct pstk__trace *t, struct pstk_error *err);
void pstk__trace_close(struct pstk__trace *t);

/* Only while it is on. */
void pstk__trace_push(const struct pstk__trace *t, const char *name, uint64_t batch);
void pstk__trace_pop(const struct pstk__trace *t);
uint64_t pstk__trace_start(const struct pstk__trace *t, const char *name, uint64_t batch);
void pstk__trace_finish(const struct pstk__trace *t, uint64_t range);

/* A range of the calling thread, for a batch's number in the stream; ranges nest. */
static inline void pstk__trace_enter(const struct pstk__trace *t, const char *name, uint64_t batch)
{
    if (t->domain)
        pstk__trace_push(t, name, batch);
}

static inline void pstk__trace_leave(const struct pstk__trace *t)
{
    if (t->domain)
        pstk__trace_pop(t);
}

/* A range that may end in another thread; returns what names it. */
static inline uint64_t pstk__trace_begin(const struct pstk__trace *t, const char *name,
                                         uint64_t batch)
{
    return t->domain ? pstk__trace_start(t, name, batch) : 0;
}

static inline void pstk__trace_end(const struct pstk__trace *t, uint64_t range)
{
    if (t->domain)
        pstk__trace_finish(t, range);
}

#endif
