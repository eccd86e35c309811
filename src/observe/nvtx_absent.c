/* SPDX-License-Identifier: Apache-2.0 */
/* nvtx in a build without it: no domain can be opened, so the other functions are never called. */
#include "observe/nvtx.h"

#include "base/error.h"

int pstk__nvtx_open(void **domain, struct pstk_error *err)
{
    *domain = NULL;
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                      "nvtx: this penstock was built without NVTX, which comes with the CUDA "
                      "toolkit");
}

void pstk__nvtx_close(void *domain)
{
    (void)domain;
}

void pstk__nvtx_begin(void *domain, const char *name, uint64_t batch)
{
    (void)domain, (void)name, (void)batch;
}

void pstk__nvtx_end(void *domain)
{
    (void)domain;
}

uint64_t pstk__nvtx_begin_across(void *domain, const char *name, uint64_t batch)
{
    (void)domain, (void)name, (void)batch;
    return 0;
}

void pstk__nvtx_end_across(void *domain, uint64_t range)
{
    (void)domain, (void)range;
}
