/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/trace.h"

#include "base/error.h"

#include <nvtx3/nvToolsExt.h>

int pstk__trace_open(struct pstk__trace *trace, struct pstk_error *err)
{
    (void)err;
    trace->domain = nvtxDomainCreateA("penstock"); /* NULL, thus off, if no profiler listens */
    return 0;
}

void pstk__trace_close(struct pstk__trace *trace)
{
    if (trace->domain)
        nvtxDomainDestroy(trace->domain);
    trace->domain = NULL;
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

void pstk__trace_begin_on(const struct pstk__trace *trace, const char *name, uint64_t batch)
{
    const nvtxEventAttributes_t a = attributes(name, batch);
    nvtxDomainRangePushEx(trace->domain, &a);
}

void pstk__trace_end_on(const struct pstk__trace *trace)
{
    nvtxDomainRangePop(trace->domain);
}

uint64_t pstk__trace_begin_across_on(const struct pstk__trace *trace, const char *name,
                                     uint64_t batch)
{
    const nvtxEventAttributes_t a = attributes(name, batch);
    return nvtxDomainRangeStartEx(trace->domain, &a);
}

void pstk__trace_end_across_on(const struct pstk__trace *trace, uint64_t range)
{
    nvtxDomainRangeEnd(trace->domain, range);
}
