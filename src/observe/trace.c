/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/trace.h"

#include <stdlib.h>

struct pstk__trace *pstk__trace_open(void)
{
    struct pstk__trace *trace = calloc(1, sizeof *trace);
    if (trace)
        atomic_init(&trace->n_refs, 1);
    return trace;
}

struct pstk__trace *pstk__trace_ref(struct pstk__trace *trace)
{
    if (trace)
        atomic_fetch_add_explicit(&trace->n_refs, 1, memory_order_relaxed);
    return trace;
}

/* Release: this thread's writes happen before the free. Acquire: so do the other threads' writes.
 */
void pstk__trace_unref(struct pstk__trace *trace)
{
    if (!trace || atomic_fetch_sub_explicit(&trace->n_refs, 1, memory_order_acq_rel) > 1)
        return;
    pstk__nvtx_close(trace->domain);
    pstk__timeline_close(trace->timeline);
    free(trace);
}
