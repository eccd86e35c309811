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
 */
#include "cuda/gpu.h"

#include "clock.h"
#include "cuda/bounce.h"
#include "cuda/context.h"
#include "cuda/finish.h"
#include "cuda/info.h"
#include "cuda/timing.h"
#include "device.h"
#include "error.h"

#include <pthread.h>
#include <stdlib.h>

#define MAX_USES 8u /* streams that use a batch at once; more are chained, see add_use */
#define MIB (1024.0 * 1024.0)

struct host_slot {
    cudaEvent_t begun, copied; /* owned */
    uint64_t size;             /* bytes of its last load */
    uint32_t is_loading;       /* 1: its last load was not found copied yet */
};

/* Uses: by the lock; by the uploader alone while the slot is free or loading. */
struct device_slot {
    cudaEvent_t loaded;         /* owned */
    cudaEvent_t uses[MAX_USES]; /* owned */
    cudaStream_t users[MAX_USES];
    uint32_t n_uses;
};

struct cuda_device {
    struct pstk__device base; /* first member */
    struct pstk__cuda_context context;
    uint32_t n_slots, n_host_slots, n_outputs, timed;
    struct pstk__layout layout;
    struct pstk__cuda_finish finish;
    uint8_t *memory;              /* slots, layout.device_size apart, then tables; owned */
    cudaStream_t copies, kernels; /* owned */
    cudaEvent_t probe;            /* recorded to learn whether a stream is of this device; owned */
    struct host_slot *host_slots; /* owned; the uploader's */
    struct device_slot *slots;    /* owned */
    struct pstk__bounce bounce;   /* open once pinning was refused */
    uint64_t copy_ns, copy_bytes; /* timed; by the lock */
    struct pstk__timing timing;   /* timed; by the lock */
    pthread_mutex_t lock;
};

static struct cuda_device *cast(struct pstk__device *d)
{
    return (struct cuda_device *)(void *)d;
}

static int fail(const struct cuda_device *d, cudaError_t code, const char *doing,
                struct pstk_error *err)
{
    return pstk__cuda_fail(err, PSTK_STAGE_DEVICE, d->context.index, code, doing);
}

/* ---- open and close -------------------------------------------------------------------------- */

static int cuda_find(int32_t index, char bus_id[PSTK__BUS_ID_SIZE], struct pstk_error *err)
{
    bus_id[0] = '\0';
    const int r = pstk__cuda_find(index, err);
    if (r == 0 && cudaDeviceGetPCIBusId(bus_id, PSTK__BUS_ID_SIZE, index) != cudaSuccess) {
        bus_id[0] = '\0'; /* then its node is not known */
        cudaGetLastError();
    }
    return r;
}

static int get_memory(struct cuda_device *d, const struct pstk__device_config *c,
                      struct pstk_error *err)
{
    const uint64_t slot = d->layout.device_size, tables = pstk__cuda_finish_size(c->plan);
    const uint64_t size = d->n_slots * slot + tables;
    void *memory = NULL;
    cudaError_t code = cudaMalloc(&memory, size);
    d->memory = memory;
    if (code == cudaErrorMemoryAllocation) {
        size_t free_size = 0, total = 0;
        cudaMemGetInfo(&free_size, &total);
        if (err != NULL)
            err->native = (int32_t)code;
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "CUDA device %d: %.1f MiB are needed, %u slots of %.1f MiB, but %.1f of "
                          "its %.1f MiB are free: lower batch_size or n_device_slots",
                          d->context.index, (double)size / MIB, d->n_slots, (double)slot / MIB,
                          (double)free_size / MIB, (double)total / MIB);
    }
    if (code != cudaSuccess)
        return fail(d, code, "getting memory for the slots", err);
    code = pstk__cuda_finish_init(&d->finish, c->plan, &d->layout, d->memory + d->n_slots * slot,
                                  d->copies);
    return code == cudaSuccess ? 0 : fail(d, code, "copying tables", err);
}

/* Kernels before all others: a batch that is late holds up more than they do. */
static cudaError_t open_streams(struct cuda_device *d)
{
    int least = 0, greatest = 0;
    cudaError_t code = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithPriority(&d->copies, cudaStreamNonBlocking, greatest);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithPriority(&d->kernels, cudaStreamNonBlocking, greatest);
    return code;
}

static cudaError_t open_events(struct cuda_device *d)
{
    const unsigned int plain = cudaEventDisableTiming;
    const unsigned int waited = cudaEventBlockingSync | (d->timed ? 0 : cudaEventDisableTiming);
    cudaError_t code = cudaEventCreateWithFlags(&d->probe, plain);
    for (uint32_t i = 0; i < d->n_host_slots && code == cudaSuccess; i++) {
        code = cudaEventCreateWithFlags(&d->host_slots[i].begun, waited);
        if (code == cudaSuccess)
            code = cudaEventCreateWithFlags(&d->host_slots[i].copied, waited);
    }
    for (uint32_t i = 0; i < d->n_slots && code == cudaSuccess; i++) {
        code = cudaEventCreateWithFlags(&d->slots[i].loaded, plain);
        for (uint32_t k = 0; k < MAX_USES && code == cudaSuccess; k++)
            code = cudaEventCreateWithFlags(&d->slots[i].uses[k], plain);
    }
    return code == cudaSuccess && d->timed ? pstk__timing_open(&d->timing) : code;
}

/* Kernels are loaded by their first launch, which may wait for the whole device: that is now, on
 * zeros. A device that the kernels were not built for is found here, too. */
static int load_kernels(struct cuda_device *d, struct pstk_error *err)
{
    cudaError_t code = cudaMemsetAsync(d->memory, 0, d->layout.device_size, d->kernels);
    if (code == cudaSuccess)
        code = pstk__cuda_finish_launch(&d->finish, d->memory, 0, d->kernels);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(d->kernels);
    return code == cudaSuccess ? 0 : fail(d, code, "trying the kernels", err);
}

static int cuda_build(struct cuda_device *d, const struct pstk__device_config *c,
                      struct pstk_error *err)
{
    int r = pstk__cuda_context_open(&d->context, c->index, err);
    if (r < 0)
        return r;
    cudaError_t code = open_streams(d);
    if (code == cudaSuccess)
        code = open_events(d);
    if (code != cudaSuccess)
        return pstk__cuda_fail(err, PSTK_STAGE_OPEN, c->index, code, "making streams and events");
    r = get_memory(d, c, err);
    return r == 0 && d->finish.n_outputs > 0 ? load_kernels(d, err) : r;
}

static void destroy_events(struct cuda_device *d)
{
    for (uint32_t i = 0; i < d->n_host_slots; i++) {
        if (d->host_slots[i].begun)
            cudaEventDestroy(d->host_slots[i].begun);
        if (d->host_slots[i].copied)
            cudaEventDestroy(d->host_slots[i].copied);
    }
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct device_slot *s = &d->slots[i];
        if (s->loaded)
            cudaEventDestroy(s->loaded);
        for (uint32_t k = 0; k < MAX_USES; k++)
            if (s->uses[k])
                cudaEventDestroy(s->uses[k]);
    }
    if (d->probe)
        cudaEventDestroy(d->probe);
    if (d->timed)
        pstk__timing_close(&d->timing);
}

static void drain(struct cuda_device *d)
{
    if (d->copies)
        cudaStreamSynchronize(d->copies);
    if (d->kernels)
        cudaStreamSynchronize(d->kernels);
}

/* What the device has; it is entered, or current. Half-built is fine. What a call answers is of no
 * use here: after a fault all of them fail, and the process keeps nothing of the device. */
static void release_all(struct cuda_device *d)
{
    drain(d);
    for (uint32_t i = 0; i < d->n_slots; i++)
        for (uint32_t k = 0; k < d->slots[i].n_uses; k++)
            cudaEventSynchronize(d->slots[i].uses[k]);
    pstk__bounce_close(&d->bounce);
    destroy_events(d);
    if (d->memory)
        cudaFree(d->memory);
    if (d->kernels)
        cudaStreamDestroy(d->kernels);
    if (d->copies)
        cudaStreamDestroy(d->copies);
}

static void cuda_close(struct pstk__device *device)
{
    struct cuda_device *d = cast(device);
    struct pstk__cuda_entry e;
    if (pstk__cuda_enter(&e, &d->context, NULL) == 0) {
        release_all(d);
        pstk__cuda_leave(&e);
    }
    pthread_mutex_destroy(&d->lock);
    free(d->host_slots);
    free(d->slots);
    free(d);
}

static int cuda_open(struct pstk__device **out, const struct pstk__device_config *c,
                     struct pstk_error *err)
{
    *out = NULL;
    struct cuda_device *d = calloc(1, sizeof *d);
    struct host_slot *host_slots = calloc(c->n_host_slots, sizeof *host_slots);
    struct device_slot *slots = calloc(c->n_slots, sizeof *slots);
    if (!d || !host_slots || !slots || pthread_mutex_init(&d->lock, NULL) != 0) {
        free(slots);
        free(host_slots);
        free(d);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the device");
    }
    d->base.ops = &pstk__cuda_ops;
    d->n_slots = c->n_slots;
    d->n_host_slots = c->n_host_slots;
    d->n_outputs = c->plan->n_outputs;
    d->timed = c->timed;
    d->layout = *c->layout;
    d->host_slots = host_slots;
    d->slots = slots;
    const int r = cuda_build(d, c, err);
    if (r < 0) {
        release_all(d);
        cudaGetLastError(); /* the thread is ours */
        pthread_mutex_destroy(&d->lock);
        free(slots);
        free(host_slots);
        free(d);
        return r;
    }
    *out = &d->base;
    return 0;
}

/* ---- the uploader's -------------------------------------------------------------------------- */

static int cuda_pin(struct pstk__device *device, void *memory, uint64_t size,
                    struct pstk_error *err)
{
    struct cuda_device *d = cast(device);
    cudaError_t code = cudaHostRegister(memory, size, cudaHostRegisterDefault);
    if (code == cudaSuccess)
        return 0;
    cudaGetLastError(); /* it would be taken for the next call's */
    code = pstk__bounce_open(&d->bounce);
    if (code == cudaSuccess)
        return 1;
    if (err != NULL)
        err->native = (int32_t)code;
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                      "CUDA device %d: neither the slots nor %u MiB beside them could be "
                      "page-locked (%s): free page-locked memory, or raise the container's limit",
                      d->context.index, PSTK__BOUNCE_PIECES * PSTK__BOUNCE_SIZE >> 20,
                      cudaGetErrorName(code));
}

static void cuda_unpin(struct pstk__device *device, void *memory)
{
    (void)device;
    cudaHostUnregister(memory);
}

static uint8_t *cuda_memory(struct pstk__device *device, uint32_t slot)
{
    const struct cuda_device *d = cast(device);
    return d->memory + slot * d->layout.device_size;
}

static cudaError_t copy(struct cuda_device *d, struct host_slot *from, void *to, const void *memory,
                        uint64_t size)
{
    if (size == 0)
        return cudaSuccess;
    from->size += size;
    if (d->bounce.memory)
        return pstk__bounce_copy(&d->bounce, to, memory, size, d->copies);
    return cudaMemcpyAsync(to, memory, size, cudaMemcpyHostToDevice, d->copies);
}

/* Copies wait for all uses of the slot, and for its last load, which nobody may have used. */
static cudaError_t queue_waits(struct cuda_device *d, struct device_slot *s)
{
    cudaError_t code = cudaStreamWaitEvent(d->copies, s->loaded, 0);
    for (uint32_t k = 0; k < s->n_uses && code == cudaSuccess; k++)
        code = cudaStreamWaitEvent(d->copies, s->uses[k], 0);
    if (code == cudaSuccess)
        s->n_uses = 0;
    return code;
}

static cudaError_t queue_copies(struct cuda_device *d, const struct pstk__load *load)
{
    struct host_slot *from = &d->host_slots[load->host_slot];
    uint8_t *to = cuda_memory(&d->base, load->slot);
    cudaError_t code = cudaEventRecord(from->begun, d->copies);
    from->size = 0;
    if (code == cudaSuccess)
        code = copy(d, from, to, load->memory, d->layout.dense_size);
    for (uint32_t i = 0; i < d->n_outputs && code == cudaSuccess; i++)
        code = copy(d, from, to + d->layout.arrival[i], load->memory + d->layout.rows[i],
                    load->ragged_size[i]);
    return code == cudaSuccess ? cudaEventRecord(from->copied, d->copies) : code;
}

static cudaError_t queue_kernels(struct cuda_device *d, const struct pstk__load *load)
{
    struct device_slot *s = &d->slots[load->slot];
    if (d->finish.n_outputs == 0)
        return cudaEventRecord(s->loaded, d->copies);
    cudaError_t code = cudaStreamWaitEvent(d->kernels, d->host_slots[load->host_slot].copied, 0);
    if (code == cudaSuccess)
        code = pstk__cuda_finish_launch(&d->finish, cuda_memory(&d->base, load->slot),
                                        load->n_valid, d->kernels);
    return code == cudaSuccess ? cudaEventRecord(s->loaded, d->kernels) : code;
}

static int cuda_load(struct pstk__device *device, const struct pstk__load *load,
                     struct pstk_error *err)
{
    struct cuda_device *d = cast(device);
    d->host_slots[load->host_slot].is_loading = 1;
    cudaError_t code = queue_waits(d, &d->slots[load->slot]);
    if (code == cudaSuccess)
        code = queue_copies(d, load);
    if (code != cudaSuccess)
        return fail(d, code, "copying a batch", err);
    code = queue_kernels(d, load);
    return code == cudaSuccess ? 0 : fail(d, code, "finishing a batch", err);
}

static void count_copy(struct cuda_device *d, struct host_slot *s)
{
    float ms = 0;
    if (!d->timed || cudaEventElapsedTime(&ms, s->begun, s->copied) != cudaSuccess)
        return;
    pthread_mutex_lock(&d->lock);
    d->copy_ns += ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
    d->copy_bytes += s->size;
    pthread_mutex_unlock(&d->lock);
}

static int cuda_copied(struct pstk__device *device, uint32_t host_slot, int wait,
                       uint64_t *blocked_ns, struct pstk_error *err)
{
    struct cuda_device *d = cast(device);
    struct host_slot *s = &d->host_slots[host_slot];
    if (!s->is_loading)
        return 1;
    cudaError_t code;
    if (wait) {
        const uint64_t start = pstk__clock_ns();
        code = cudaEventSynchronize(s->begun);
        *blocked_ns += pstk__clock_ns() - start;
        if (code == cudaSuccess)
            code = cudaEventSynchronize(s->copied);
    } else {
        code = cudaEventQuery(s->copied);
        if (code == cudaErrorNotReady)
            return 0;
    }
    if (code != cudaSuccess)
        return fail(d, code, "copying a batch", err);
    s->is_loading = 0;
    count_copy(d, s);
    return 1;
}

static void cuda_drain(struct pstk__device *device)
{
    drain(cast(device));
}

static void cuda_get_times(struct pstk__device *device, struct pstk__device_times *times)
{
    struct cuda_device *d = cast(device);
    pthread_mutex_lock(&d->lock);
    *times = (struct pstk__device_times){.copy_ns = d->copy_ns,
                                         .copy_bytes = d->copy_bytes,
                                         .used_ns = d->timing.used_ns,
                                         .starved_ns = d->timing.starved_ns,
                                         .n_used = d->timing.n_used};
    pthread_mutex_unlock(&d->lock);
}

/* ---- the consumer's -------------------------------------------------------------------------- */

/* The default streams have no device of their own but the calling thread's current one. */
static int check_default(const struct cuda_device *d, cudaStream_t stream, struct pstk_error *err)
{
    int current = d->context.index;
    const int is_default =
        stream == NULL || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
    if (!is_default || cudaGetDevice(&current) != cudaSuccess || current == d->context.index)
        return 0;
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
                      "stream: it is the default stream of the calling thread's device, which is "
                      "%d, but the batch is on CUDA device %d: call cudaSetDevice(%d) first, or "
                      "give a stream of that device",
                      current, d->context.index, d->context.index);
}

static int fail_stream(const struct cuda_device *d, cudaError_t code, struct pstk_error *err)
{
    if (code == cudaErrorInvalidResourceHandle)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
                          "stream: it is of another device than the batch, which is on CUDA device "
                          "%d (%s)",
                          d->context.index, cudaGetErrorName(code));
    return fail(d, code, "ordering the consumer's stream", err);
}

/* Begin a call on a stream of the consumer's; the lock is held and the device entered. */
static int stream_enter(struct pstk__cuda_entry *e, struct cuda_device *d, cudaStream_t stream,
                        struct pstk_error *err)
{
    int r = check_default(d, stream, err);
    if (r == 0)
        r = pstk__cuda_enter(e, &d->context, err);
    if (r == 0)
        pthread_mutex_lock(&d->lock);
    return r;
}

static void stream_leave(const struct pstk__cuda_entry *e, struct cuda_device *d)
{
    pthread_mutex_unlock(&d->lock);
    pstk__cuda_leave(e);
}

static int wait_for_load(struct cuda_device *d, uint32_t slot, cudaStream_t stream, int is_lease,
                         struct pstk_error *err)
{
    struct pstk__cuda_entry e;
    int r = stream_enter(&e, d, stream, err);
    if (r < 0)
        return r;
    /* A stream of any device may wait for an event, but only one of its own may record it. */
    cudaError_t code = cudaEventRecord(d->probe, stream);
    if (code == cudaSuccess)
        code = cudaStreamWaitEvent(stream, d->slots[slot].loaded, 0);
    if (code == cudaSuccess && d->timed && is_lease)
        pstk__timing_arrive(&d->timing, slot, stream);
    r = code == cudaSuccess ? 0 : fail_stream(d, code, err);
    stream_leave(&e, d);
    return r;
}

static int cuda_acquire(struct pstk__device *device, uint32_t slot, void *stream,
                        struct pstk_error *err)
{
    return wait_for_load(cast(device), slot, stream, 1, err);
}

static int cuda_wait(struct pstk__device *device, uint32_t slot, void *stream,
                     struct pstk_error *err)
{
    return wait_for_load(cast(device), slot, stream, 0, err);
}

/* A stream that used the slot before uses it for longer. Where there are too many, the last one
 * waits for its predecessor, so that one event stands for both. */
static cudaError_t add_use(struct device_slot *s, cudaStream_t stream)
{
    uint32_t k = 0;
    cudaError_t code = cudaSuccess;
    while (k < s->n_uses && s->users[k] != stream)
        k++;
    if (k == MAX_USES) {
        k = MAX_USES - 1;
        code = cudaStreamWaitEvent(stream, s->uses[k], 0);
    }
    if (code == cudaSuccess)
        code = cudaEventRecord(s->uses[k], stream);
    if (code != cudaSuccess)
        return code;
    s->users[k] = stream;
    s->n_uses = k < s->n_uses ? s->n_uses : k + 1;
    return cudaSuccess;
}

static int record_use(struct cuda_device *d, uint32_t slot, cudaStream_t stream, int is_last,
                      struct pstk_error *err)
{
    struct pstk__cuda_entry e;
    int r = stream_enter(&e, d, stream, err);
    if (r < 0)
        return r;
    const cudaError_t code = add_use(&d->slots[slot], stream);
    if (code == cudaSuccess && d->timed && is_last)
        pstk__timing_release(&d->timing, slot, stream);
    r = code == cudaSuccess ? 0 : fail_stream(d, code, err);
    stream_leave(&e, d);
    return r;
}

static int cuda_record(struct pstk__device *device, uint32_t slot, void *stream,
                       struct pstk_error *err)
{
    return record_use(cast(device), slot, stream, 0, err);
}

static int cuda_release(struct pstk__device *device, uint32_t slot, void *stream,
                        struct pstk_error *err)
{
    return record_use(cast(device), slot, stream, 1, err);
}

/* ---- streams --------------------------------------------------------------------------------- */

static int cuda_stream_open(struct pstk__device *device, void **stream, struct pstk_error *err)
{
    struct cuda_device *d = cast(device);
    struct pstk__cuda_entry e;
    cudaStream_t s = NULL;
    int r = pstk__cuda_enter(&e, &d->context, err);
    if (r < 0)
        return r;
    const cudaError_t code = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    r = code == cudaSuccess ? 0 : fail(d, code, "making a stream", err);
    *stream = s;
    pstk__cuda_leave(&e);
    return r;
}

static void cuda_stream_close(struct pstk__device *device, void *stream)
{
    struct cuda_device *d = cast(device);
    struct pstk__cuda_entry e;
    if (stream == NULL || pstk__cuda_enter(&e, &d->context, NULL) < 0)
        return;
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    pstk__cuda_leave(&e);
}

static int cuda_stream_spin(struct pstk__device *device, void *stream, uint64_t ns,
                            struct pstk_error *err)
{
    struct cuda_device *d = cast(device);
    struct pstk__cuda_entry e;
    int r = stream_enter(&e, d, stream, err);
    if (r < 0)
        return r;
    const cudaError_t code = pstk__cuda_spin(ns, stream);
    r = code == cudaSuccess ? 0 : fail(d, code, "standing in for a training step", err);
    stream_leave(&e, d);
    return r;
}

static int cuda_read(struct pstk__device *device, void *to, const void *from, uint64_t size,
                     void *stream, struct pstk_error *err)
{
    struct cuda_device *d = cast(device);
    struct pstk__cuda_entry e;
    int r = check_default(d, stream, err);
    if (r == 0)
        r = pstk__cuda_enter(&e, &d->context, err);
    if (r < 0)
        return r;
    cudaError_t code = cudaSuccess;
    if (size > 0)
        code = cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToHost, stream);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(stream);
    r = code == cudaSuccess ? 0 : fail(d, code, "copying to the host", err);
    pstk__cuda_leave(&e);
    return r;
}

const struct pstk__device_ops pstk__cuda_ops = {
    .kind = PSTK_CUDA,
    .has_slots = 1,
    .name = "cuda",
    .find = cuda_find,
    .open = cuda_open,
    .count = pstk__cuda_count,
    .describe = pstk__cuda_describe,
    .measure = pstk__cuda_measure,
    .close = cuda_close,
    .acquire = cuda_acquire,
    .wait = cuda_wait,
    .record = cuda_record,
    .release = cuda_release,
    .read = cuda_read,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .memory = cuda_memory,
    .load = cuda_load,
    .copied = cuda_copied,
    .drain = cuda_drain,
    .get_times = cuda_get_times,
    .stream_open = cuda_stream_open,
    .stream_close = cuda_stream_close,
    .stream_spin = cuda_stream_spin,
};
