/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/gpu: slots in a GPU's memory. Two streams of our own:
 *
 *   copies    wait: uses of the slot, its last load -> [begun] copies -> [copied]
 *   kernels   wait: copied -> kernels of deferred outputs -> [loaded]
 *
 * so that the next batch is copied while kernels finish this one. `begun` and `copied` belong to
 * the host slot, `loaded` and the uses to the device slot. A consumer's stream waits for `loaded`;
 * a use is an event recorded on a consumer's stream.
 *
 * gpu.c opens and closes, load.c is the uploader's, lease.c the consumer's.
 */
#ifndef PSTK_CUDA_GPU_H
#define PSTK_CUDA_GPU_H

#include "cuda/bounce.h"
#include "cuda/context.h"
#include "cuda/finish.h"
#include "cuda/timing.h"
#include "device.h"

#include <pthread.h>
#include <stdatomic.h>

#define PSTK__CUDA_USES 8u /* streams that use a batch at once; more are chained */

struct pstk__cuda_host_slot {
    cudaEvent_t begun, copied; /* owned */
    uint64_t size;             /* bytes of its last load */
    uint32_t is_loading;       /* 1: its last load was not found copied yet */
};

/* Uses: by the lock; by the uploader alone while the slot is free or loading. */
struct pstk__cuda_slot {
    cudaEvent_t loaded;                /* owned */
    cudaEvent_t uses[PSTK__CUDA_USES]; /* owned */
    cudaStream_t users[PSTK__CUDA_USES];
    uint32_t n_uses;
};

/* A stream that stream_open gave out and nobody has closed. */
struct pstk__cuda_stream {
    struct pstk__cuda_stream *next;
    cudaStream_t stream;
};

struct pstk__cuda {
    struct pstk__device base; /* first member */
    struct pstk__cuda_context context;
    uint32_t n_slots, n_host_slots, n_outputs, timed;
    struct pstk__layout layout;
    struct pstk__cuda_finish finish;
    uint8_t *memory;              /* slots, layout.device_size apart, then tables; owned */
    cudaStream_t copies, kernels; /* owned */
    cudaEvent_t probe;            /* recorded to learn of which device a stream is; owned */
    struct pstk__cuda_host_slot *host_slots; /* owned; the uploader's */
    struct pstk__cuda_slot *slots;           /* owned */
    struct pstk__bounce bounce;              /* open once pinning was refused */
    _Atomic uint64_t copy_ns, copy_bytes;    /* timed; the uploader writes */
    struct pstk__timing timing;              /* timed; by the lock, what it counts apart */
    struct pstk__cuda_stream *opened;        /* by the lock; owned */
    pthread_mutex_t lock;                    /* uses, probe, timing, opened */
    uint32_t
        is_unordered; /* by the lock; 1: a release failed, so that close waits for everything */
    uint32_t is_lost; /* by the lock; 1: what uses the memory cannot be waited for (it is work of
                         another device, or in a stream that is being captured): it stays */
};

static inline struct pstk__cuda *pstk__cuda_of(struct pstk__device *d)
{
    return (struct pstk__cuda *)(void *)d;
}

/* As pstk__cuda_fail, on the way of batches. */
int pstk__gpu_fail(const struct pstk__cuda *d, cudaError_t code, const char *doing,
                   struct pstk_error *err);
/* Entries of the table: see device.h. */
uint8_t *pstk__gpu_memory(struct pstk__device *device, uint32_t slot);
int pstk__gpu_pin(struct pstk__device *device, void *memory, uint64_t size, struct pstk_error *err);
void pstk__gpu_unpin(struct pstk__device *device, void *memory);
int pstk__gpu_load(struct pstk__device *device, const struct pstk__load *load, uint64_t *blocked_ns,
                   struct pstk_error *err);
int pstk__gpu_copied(struct pstk__device *device, uint32_t host_slot, int wait,
                     uint64_t *blocked_ns, struct pstk_error *err);
void pstk__gpu_ask(struct pstk__device *device, void *stream, int again);
int pstk__gpu_acquire(struct pstk__device *device, uint32_t slot, void *stream,
                      struct pstk_error *err);
int pstk__gpu_wait(struct pstk__device *device, uint32_t slot, void *stream,
                   struct pstk_error *err);
int pstk__gpu_record(struct pstk__device *device, uint32_t slot, void *stream,
                     struct pstk_error *err);
int pstk__gpu_check_shared(struct pstk__device *device, void *stream, struct pstk_error *err);
int pstk__gpu_release(struct pstk__device *device, uint32_t slot, void **streams,
                      uint32_t *n_streams, struct pstk_error *err);
void pstk__gpu_abandon(struct pstk__device *device);
int pstk__gpu_read(struct pstk__device *device, void *to, const void *from, uint64_t size,
                   void *stream, struct pstk_error *err);
int pstk__gpu_stream_open(struct pstk__device *device, void **stream, struct pstk_error *err);
void pstk__gpu_stream_close(struct pstk__device *device, void *stream);
/* Close those that are left, or only forget them where the device could not be entered; nobody
 * else has the device. */
void pstk__gpu_streams_close(struct pstk__cuda *d, int is_entered);
int pstk__gpu_stream_spin(struct pstk__device *device, void *stream, uint64_t ns,
                          struct pstk_error *err);

#endif
