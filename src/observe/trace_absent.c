/* SPDX-License-Identifier: Apache-2.0 */
/* trace in a build without NVTX. Tracing cannot be turned on, so the other functions are never
 * called. */
#include "observe/trace.h"

#include "base/error.h"

int pstk__trace_open(struct pstk__trace *t, struct pstk_error *err)
{
    t->domain = NULL;
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                      "nvtx: this penstock was built without NVTX, which comes with the CUDA "
                      "toolkit");
}

void pstk__trace_close(struct pstk__trace *t)
{
    (void)t;
}

void pstk__trace_begin_on(const struct pstk__trace *t, const char *name, uint64_t batch)
{
    (void)t, (void)name, (void)batch;
}

void pstk__trace_end_on(const struct pstk__trace *t)
{
    (void)t;
}

uint64_t pstk__trace_begin_across_on(const struct pstk__trace *t, const char *name, uint64_t batch)
{
    (void)t, (void)name, (void)batch;
    return 0;
}

void pstk__trace_end_across_on(const struct pstk__trace *t, uint64_t range)
{
    (void)t, (void)range;
}
