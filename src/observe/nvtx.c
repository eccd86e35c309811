/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/nvtx.h"

#include "base/error.h"

#include <nvtx3/nvToolsExt.h>

int pstk__nvtx_open(void **domain, struct pstk_error *err)
{
    (void)err;
    *domain = nvtxDomainCreateA("penstock");
    return 0;
}

void pstk__nvtx_close(void *domain)
{
    if (domain)
        nvtxDomainDestroy(domain);
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

void pstk__nvtx_begin(void *domain, const char *name, uint64_t batch)
{
    const nvtxEventAttributes_t a = attributes(name, batch);
    nvtxDomainRangePushEx(domain, &a);
}

void pstk__nvtx_end(void *domain)
{
    nvtxDomainRangePop(domain);
}

uint64_t pstk__nvtx_begin_across(void *domain, const char *name, uint64_t batch)
{
    const nvtxEventAttributes_t a = attributes(name, batch);
    return nvtxDomainRangeStartEx(domain, &a);
}

void pstk__nvtx_end_across(void *domain, uint64_t range)
{
    nvtxDomainRangeEnd(domain, range);
}
