/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx: named ranges of time for a profiler: Nsight Systems shows the pipeline by name. A domain is
 * the profiler's handle for these ranges. NULL: no profiler listens, and only open and close may be
 * called.
 */
#ifndef PSTK_NVTX_H
#define PSTK_NVTX_H

#include <penstock/types.h>

/* Set *domain, owned; NULL when no profiler listens. ENOTSUP: this build has no NVTX. */
int pstk__nvtx_open(void **domain, struct pstk_error *err);
/* Close a domain, which may be NULL. */
void pstk__nvtx_close(void *domain);

/* Begin a range of the calling thread; `batch` is a batch's number in the stream. Ranges nest. */
void pstk__nvtx_begin(void *domain, const char *name, uint64_t batch);
void pstk__nvtx_end(void *domain);
/* Begin a range that another thread may end. Returns its number. */
uint64_t pstk__nvtx_begin_across(void *domain, const char *name, uint64_t batch);
void pstk__nvtx_end_across(void *domain, uint64_t range);

#endif
