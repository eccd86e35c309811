/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/timing: how long the consumer's stream had a batch, and how long it went without, by the
 * device's clock. A ring of event pairs; a program that runs further ahead of the device than the
 * ring is long goes unmeasured for a while. The caller has the lock and has entered the device.
 */
#ifndef PSTK_CUDA_TIMING_H
#define PSTK_CUDA_TIMING_H

#include <cuda_runtime_api.h>

#include <stdatomic.h>
#include <stdint.h>

#define PSTK__TIMING_PAIRS 64u

/* One lease. */
struct pstk__timing_pair {
    cudaEvent_t arrived, released; /* on the consumer's stream; owned */
    uint32_t slot;
    uint32_t is_released; /* 1: `released` was recorded */
    uint32_t after_gap;   /* 1: leases before it went unmeasured */
};

struct pstk__timing {
    struct pstk__timing_pair pairs[PSTK__TIMING_PAIRS];
    uint32_t first, n; /* of the ring: leases that were not read yet */
    cudaEvent_t last;  /* released event of the lease read last; of its pair */
    uint32_t gap;      /* 1: the lease before the next one went unmeasured, or there is none */
    _Atomic uint64_t used_ns, starved_ns; /* any thread reads */
};

cudaError_t pstk__timing_open(struct pstk__timing *t);
void pstk__timing_close(struct pstk__timing *t);
/* The stream has been made to wait for the slot's load. */
void pstk__timing_arrive(struct pstk__timing *t, uint32_t slot, cudaStream_t stream);
/* The slot's lease is over, behind what is in the stream. */
void pstk__timing_release(struct pstk__timing *t, uint32_t slot, cudaStream_t stream);

#endif
