/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics/trace.h"

#include "base/error.h"

#include <nvtx3/nvToolsExt.h>

int pstk__trace_open(struct pstk__trace *t, struct pstk_error *err)
{
    (void)err;
    t->domain = nvtxDomainCreateA("penstock"); /* NULL where no profiler listens: off then */
    return 0;
}

void pstk__trace_close(struct pstk__trace *t)
{
    if (t->domain)
        nvtxDomainDestroy(t->domain);
    t->domain = NULL;
}

static nvtxEventAttributes_t attributes(const char *name, uint64_t batch)
{
    return (nvtxEventAttributes_t){.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
                                   .payload.ullValue = batch,
                                   .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                   .message.ascii = name};
}

void pstk__trace_push(const struct pstk__trace *t, const char *name, uint64_t batch)
{
    const nvtxEventAttributes_t a = attributes(name, batch);
    nvtxDomainRangePushEx(t->domain, &a);
}

void pstk__trace_pop(const struct pstk__trace *t)
{
    nvtxDomainRangePop(t->domain);
}

uint64_t pstk__trace_start(const struct pstk__trace *t, const char *name, uint64_t batch)
{
    const nvtxEventAttributes_t a = attributes(name, batch);
    return nvtxDomainRangeStartEx(t->domain, &a);
}

void pstk__trace_finish(const struct pstk__trace *t, uint64_t range)
{
    nvtxDomainRangeEnd(t->domain, range);
}
