/* SPDX-License-Identifier: Apache-2.0 */
/*
 * residency: reads that the page cache answers, made by the thread that uses the bytes. That thread
 * copies them into its own processor cache, and a lane's reader does not pay for their size.
 *
 * The lane's reader asks for each read whether the page cache likely holds it. If so, it hands the
 * read to a worker, who runs it with RWF_NOWAIT; what is gone by then the worker reads with a plain
 * read, and counts. Reads that are not resident start early and many at once, in the backend.
 *
 * Whether a read is resident is found by a probe, a read of one byte with RWF_NOWAIT. Probes cost
 * some 0.4 us, and may cost the storage a page, so few reads are probed after the begin. Reads are
 * handed over while nearly all are resident; of a half-resident file the backend makes all. Files
 * of tmpfs, which knows no RWF_NOWAIT, are resident: workers make all their reads.
 */
#ifndef PSTK_RESIDENCY_H
#define PSTK_RESIDENCY_H

#include "reader/reader.h"

#include <stdatomic.h>
#include <sys/uio.h>

/* What one lane knows of the page cache. */
struct pstk__residency {
    int off;        /* 1: nothing is handed to workers */
    int refused;    /* 1: off, because the kernel or the file system does not say what it holds */
    uint32_t share; /* of hits, PSTK__RESIDENT_ALL for all; a mean in which the last ones count */
    uint32_t n_asked;
    uint32_t n_seen;         /* of n_gone: those that `share` has counted */
    _Atomic uint32_t n_gone; /* reads whose bytes were gone; workers add */
};

#define PSTK__RESIDENT_ALL 65536u

/* off: 1 where reads bypass the page cache, or have no descriptors. */
void pstk__residency_init(struct pstk__residency *residency, int off);
/* Return 1 if the page cache likely holds all that the read reads, so that a worker is to run it.
 * read: queued nowhere; `from` is set. Sets off where the kernel or the file system cannot say. */
int pstk__residency_holds(struct pstk__residency *residency, const struct pstk__read *read);

#define PSTK__READ_PARTS 160u /* at most */

/* Run a read on the calling thread, and set its result. The bytes go to n_parts pieces of memory,
 * none empty, whose sizes add up to the read's. They are filled in their order; the read's buffer
 * counts for nothing. Returns 0 if it had to wait for storage. */
int pstk__read_resident(struct pstk__read *read, const struct iovec *parts, uint32_t n_parts);

#endif
