/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/gpu: slots in a GPU's memory. Two streams of the library:
 *
 *   copies    [begun] copies -> [copied]
 *   kernels   kernels of deferred outputs -> [taken] -> [loaded]
 *
 * so that the next batch is copied while kernels finish this one. `begun`, `copied` and `taken`
 * belong to the load, `loaded` and the uses to the device slot. A consumer's stream waits for
 * `loaded`; a use is an event recorded on a consumer's stream.
 *
 * It is the uploader that waits: for the uses of a slot and for `taken` of the arrival buffer
 * before it queues copies, for `copied` before it queues kernels. The library's streams wait for
 * nothing. A waiting stream would stop all others if they share a hardware queue
 * (CUDA_DEVICE_MAX_CONNECTIONS=1): a queue runs in the order of the calls, so a later kernel or
 * copy of the trainer would wait with it.
 *
 * gpu.c opens and closes, load.c is the uploader's, lease.c the consumer's.
 */
#ifndef PSTK_CUDA_GPU_H
#define PSTK_CUDA_GPU_H

#include "device/cuda/bounce.h"
#include "device/cuda/context.h"
#include "device/cuda/finish.h"
#include "device/cuda/timing.h"
#include "device/device.h"

#include <pthread.h>
#include <stdatomic.h>

/* Streams that use a batch at once: a share's streams, and two of its release (batch/slot.h).
 * pstk_batch_use_stream may name more; one event then covers several of them. */
#define PSTK__CUDA_USES (PSTK__MAX_USERS + 2u)

/* A load under way, or none. Its arrival buffer goes with it. */
struct pstk__cuda_load {
    cudaEvent_t begun, copied, taken; /* owned */
    uint64_t size;                    /* bytes copied */
};

/* The uses belong to the device's lock; while the slot is free or loading, to the uploader alone.
 */
struct pstk__cuda_slot {
    cudaEvent_t loaded;                /* owned */
    cudaEvent_t uses[PSTK__CUDA_USES]; /* owned */
    cudaStream_t users[PSTK__CUDA_USES];
    uint32_t n_uses;
};

/* A stream that stream_open returned and that is not closed yet. */
struct pstk__cuda_stream {
    struct pstk__cuda_stream *next;
    cudaStream_t stream;
};

struct pstk__cuda {
    struct pstk__device base; /* first member */
    struct pstk__cuda_context context;
    uint32_t n_slots, n_outputs, timed;
    struct pstk__layout layout;
    struct pstk__cuda_module module;
    struct pstk__cuda_finish *finish; /* n_sizes elements, owned */
    uint32_t n_sizes;                 /* sizes of the plan, at least 1 */
    uint8_t *memory;                  /* slots, layout.device_size apart, then arrival buffers,
                                         layout.arrival_size apart, then tables; owned */
    cudaStream_t copies, kernels;     /* owned */
    cudaEvent_t probe;             /* recorded to learn which device a stream belongs to; owned */
    struct pstk__cuda_slot *slots; /* n_slots elements, owned */
    struct pstk__cuda_load loads[PSTK__LOADS]; /* loads under way; only the uploader uses them */
    uint64_t n_begun, n_finished; /* loads so far; only the uploader uses these; load k is loads[k %
                                     PSTK__LOADS] */
    struct pstk__bounce bounce;   /* opened when the system has refused to page-lock memory */
    _Atomic uint64_t copy_ns, copy_bytes; /* when timed; only the uploader writes */
    struct pstk__timing timing;           /* when timed; guarded by the lock, except its counters */
    struct pstk__cuda_stream *opened;     /* guarded by the lock; owned */
    pthread_mutex_t lock;                 /* guards uses, probe, timing, opened */
    uint32_t is_lost; /* guarded by the lock; 1: work that uses the memory cannot be waited for (it
                         is unknown, or in a stream that is being captured): memory and module are
                         never freed */
};

static inline struct pstk__cuda *pstk__cuda_of(struct pstk__device *d)
{
    return (struct pstk__cuda *)(void *)d;
}

/* Return the arrival buffer of load k, an address in the device's memory even when no output needs
 * a buffer. */
static inline uint8_t *pstk__gpu_arrival(const struct pstk__cuda *d, uint64_t k)
{
    return d->memory + d->n_slots * d->layout.device_size +
           k % PSTK__LOADS * d->layout.arrival_size;
}

/* Fail as pstk__cuda_fail does, in a call that moves batches. */
int pstk__gpu_fail(const struct pstk__cuda *d, cudaError_t code, const char *doing,
                   struct pstk_error *err);
/* Members of the table: see device.h. */
uint8_t *pstk__gpu_memory(struct pstk__device *device, uint32_t slot);
int pstk__gpu_pin(struct pstk__device *device, void *memory, uint64_t size, struct pstk_error *err);
void pstk__gpu_unpin(struct pstk__device *device, void *memory);
int pstk__gpu_ready(struct pstk__device *device, uint32_t slot, int wait, struct pstk_error *err);
int pstk__gpu_load(struct pstk__device *device, const struct pstk__load *load,
                   struct pstk_error *err);
int pstk__gpu_finish(struct pstk__device *device, const struct pstk__load_end *end,
                     struct pstk_error *err);
void pstk__gpu_ask(struct pstk__device *device, void *stream, int again, int quick);
int pstk__gpu_acquire(struct pstk__device *device, uint32_t slot, void *stream, int quick,
                      struct pstk_error *err);
int pstk__gpu_wait(struct pstk__device *device, uint32_t slot, void *stream,
                   struct pstk_error *err);
int pstk__gpu_record(struct pstk__device *device, uint32_t slot, void *stream,
                     struct pstk_error *err);
int pstk__gpu_check_shared(struct pstk__device *device, void *stream, struct pstk_error *err);
int pstk__gpu_release(struct pstk__device *device, const struct pstk__lease_end *end,
                      struct pstk_error *err);
void pstk__gpu_abandon(struct pstk__device *device);
int pstk__gpu_read(struct pstk__device *device, void *to, const void *from, uint64_t size,
                   void *stream, struct pstk_error *err);
int pstk__gpu_stream_open(struct pstk__device *device, void **stream, struct pstk_error *err);
void pstk__gpu_stream_close(struct pstk__device *device, void *stream);
/* Close the streams that are left, or only forget them when the device could not be entered; no
 * other thread has the device. */
void pstk__gpu_streams_close(struct pstk__cuda *d, int is_entered);
int pstk__gpu_stream_spin(struct pstk__device *device, void *stream, uint64_t ns,
                          struct pstk_error *err);

#endif
