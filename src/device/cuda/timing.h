/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/timing: measures the times for which the consumer's streams had batches, and waited for
 * them, by the device's clock. Two events a batch, in the stream that asks for it:
 *
 *   ... work ... [asked] wait for the load [arrived] ... work ... [asked] ...
 *                |------- starved -------|--------- used ---------|
 *
 * `asked` is recorded before the host itself waits for the batch: a stream that is empty by then
 * reaches it at once. Each stream's time is measured by itself. Events lie in a ring; a program
 * that runs further ahead of the device than the ring is long is unmeasured for a while. The caller
 * has the lock and has entered the device.
 */
#ifndef PSTK_CUDA_TIMING_H
#define PSTK_CUDA_TIMING_H

#include "observe/histogram.h"

#include <cuda_runtime_api.h>

#include <stdatomic.h>
#include <stdint.h>

#define PSTK__TIMING_LEASES 64u
#define PSTK__TIMING_STREAMS 4u /* streams distinguished at a time */

/* One lease, or, after the last lease, a request for one. */
struct pstk__timing_lease {
    cudaEvent_t asked, arrived; /* owned */
    cudaStream_t stream;
    uint32_t after_gap; /* 1: leases before this one went unmeasured */
};

/* A stream's last lease that was read. */
struct pstk__timing_stream {
    cudaEvent_t arrived; /* owned; swapped with the lease's event */
    cudaStream_t stream;
    uint32_t is_known; /* 1: stream and arrived are valid */
};

struct pstk__timing {
    struct pstk__timing_lease leases[PSTK__TIMING_LEASES];
    struct pstk__timing_stream streams[PSTK__TIMING_STREAMS];
    uint32_t first, n;    /* leases of the ring that were not read yet */
    uint32_t is_asking;   /* 1: the entry after them has its stream, and `asked` is recorded */
    uint32_t gap;         /* 1: the lease before the next one went unmeasured */
    uint32_t next_stream; /* entry that the next new stream replaces */
    uint32_t is_started;  /* 1: start_ns is set */
    _Atomic uint64_t used_ns, starved_ns; /* ns; any thread reads */
    _Atomic uint64_t start_ns;            /* of starved_ns: the first lease that was measured */
    struct pstk__histogram waits;         /* the waits that starved_ns sums up; any thread reads */
};

cudaError_t pstk__timing_open(struct pstk__timing *timing);
void pstk__timing_close(struct pstk__timing *timing);
/* Begin a request by the stream, from now on; with `again`, from its first call on. */
void pstk__timing_ask(struct pstk__timing *timing, cudaStream_t stream, int again);
/* End the stream's request: the stream now waits for the batch's load. */
void pstk__timing_arrive(struct pstk__timing *timing, cudaStream_t stream);

#endif
