/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/gpu.h"

#include "device/cuda/info.h"
#include "device/cuda/table.h"
#include "base/error.h"
#include "sample/multi_size.h"

#include <stdlib.h>

#define MIB (1024.0 * 1024.0)

int pstk__gpu_fail(const struct pstk__cuda *d, cudaError_t code, const char *doing,
                   struct pstk_error *err)
{
    return pstk__cuda_fail(err, PSTK_STAGE_DEVICE, d->context.index, code, doing);
}

static int cuda_find(int32_t index, char bus_id[PSTK__BUS_ID_SIZE], struct pstk_error *err)
{
    bus_id[0] = '\0';
    const int r = pstk__cuda_find(index, err);
    const int was_clean = cudaPeekAtLastError() == cudaSuccess;
    if (r == 0 && cudaDeviceGetPCIBusId(bus_id, PSTK__BUS_ID_SIZE, index) != cudaSuccess) {
        bus_id[0] = '\0'; /* the device's node is then unknown */
        if (was_clean)
            cudaGetLastError();
    }
    return r;
}

static int open_memory(struct pstk__cuda *d, const struct pstk__device_config *c,
                       struct pstk_error *err)
{
    const struct pstk__layout *layout = &d->layout;
    const uint64_t buffers = pstk__layout_device_memory(layout, d->n_slots);
    uint64_t size = buffers;
    for (uint32_t v = 0; v < d->n_sizes; v++)
        size += pstk__cuda_finish_size(pstk__plan_of_size(c->plan, v));
    void *memory = NULL;
    cudaError_t code = cudaMalloc(&memory, size);
    d->memory = memory;
    if (code == cudaErrorMemoryAllocation) {
        size_t free_size = 0, total = 0;
        cudaMemGetInfo(&free_size, &total);
        pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                   "CUDA device %d: %.1f MiB are needed for %u slots of %.1f MiB and %u arrival "
                   "buffers of %.1f MiB, but only %.1f of its %.1f MiB are free: lower %s or "
                   "n_device_slots",
                   d->context.index, (double)size / MIB, d->n_slots,
                   (double)layout->device_size / MIB, PSTK__LOADS,
                   (double)layout->arrival_size / MIB, (double)free_size / MIB, (double)total / MIB,
                   c->plan->rows_setting);
        return pstk__cuda_native(err, code, PSTK_ENOMEM);
    }
    if (code != cudaSuccess)
        return pstk__gpu_fail(d, code, "getting memory for the slots", err);
    uint8_t *tables = d->memory + buffers;
    for (uint32_t v = 0; v < d->n_sizes && code == cudaSuccess; v++) {
        const struct pstk__plan *plan = pstk__plan_of_size(c->plan, v);
        code = pstk__cuda_finish_init(&d->finish[v], plan, layout, tables, d->copies);
        d->finish[v].module = &d->module;
        tables += pstk__cuda_finish_size(plan);
    }
    return code == cudaSuccess ? 0 : pstk__gpu_fail(d, code, "copying tables", err);
}

/* Open both streams with the highest priority: a late batch holds up more work than other kernels
 * do. */
static cudaError_t open_streams(struct pstk__cuda *d)
{
    int least = 0, greatest = 0;
    cudaError_t code = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithPriority(&d->copies, cudaStreamNonBlocking, greatest);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithPriority(&d->kernels, cudaStreamNonBlocking, greatest);
    return code;
}

static cudaError_t open_events(struct pstk__cuda *d)
{
    const unsigned int plain = cudaEventDisableTiming, waited = plain | cudaEventBlockingSync;
    const unsigned int timed = cudaEventBlockingSync | (d->timed ? 0 : cudaEventDisableTiming);
    cudaError_t code = cudaEventCreateWithFlags(&d->probe, plain);
    for (uint32_t i = 0; i < PSTK__LOADS && code == cudaSuccess; i++) {
        code = cudaEventCreateWithFlags(&d->loads[i].begun, timed);
        if (code == cudaSuccess)
            code = cudaEventCreateWithFlags(&d->loads[i].copied, timed);
        if (code == cudaSuccess)
            code = cudaEventCreateWithFlags(&d->loads[i].taken, waited);
    }
    for (uint32_t i = 0; i < d->n_slots && code == cudaSuccess; i++) {
        code = cudaEventCreateWithFlags(&d->slots[i].loaded, plain);
        for (uint32_t k = 0; k < PSTK__CUDA_USES && code == cudaSuccess; k++)
            code = cudaEventCreateWithFlags(&d->slots[i].uses[k], waited);
    }
    return code == cudaSuccess && d->timed ? pstk__timing_open(&d->timing) : code;
}

/* Launch each kernel once, on zeros: the first launch may wait for the whole device, so it happens
 * now. */
static int try_kernels(struct pstk__cuda *d, struct pstk_error *err)
{
    uint8_t *arrival = pstk__gpu_arrival(d, 0);
    cudaError_t code = cudaMemsetAsync(arrival, 0, d->layout.arrival_size, d->kernels);
    for (uint32_t v = 0; v < d->n_sizes && code == cudaSuccess; v++)
        code = pstk__cuda_finish_launch(&d->finish[v], arrival, d->memory, 0, d->kernels);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(d->kernels);
    return code == cudaSuccess ? 0 : pstk__gpu_fail(d, code, "trying the kernels", err);
}

static int cuda_build(struct pstk__cuda *d, const struct pstk__device_config *c,
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
    code = pstk__cuda_kernels_open(&d->module, c->index);
    if (code != cudaSuccess)
        return pstk__cuda_fail(err, PSTK_STAGE_OPEN, c->index, code, "loading the kernels");
    r = open_memory(d, c, err);
    return r == 0 && d->finish->n_outputs > 0 ? try_kernels(d, err) : r;
}

static void close_event(cudaEvent_t event)
{
    if (event)
        cudaEventDestroy(event);
}

static void close_events(struct pstk__cuda *d)
{
    for (uint32_t i = 0; i < PSTK__LOADS; i++) {
        close_event(d->loads[i].begun);
        close_event(d->loads[i].copied);
        close_event(d->loads[i].taken);
    }
    for (uint32_t i = 0; i < d->n_slots; i++) {
        close_event(d->slots[i].loaded);
        for (uint32_t k = 0; k < PSTK__CUDA_USES; k++)
            close_event(d->slots[i].uses[k]);
    }
    close_event(d->probe);
    if (d->timed)
        pstk__timing_close(&d->timing);
}

/* Wait for a stream. A call may return an earlier call's error without waiting; then the call is
 * repeated. */
static void wait_for(cudaStream_t stream)
{
    if (stream && cudaStreamSynchronize(stream) != cudaSuccess)
        cudaStreamSynchronize(stream);
}

static void drain(struct pstk__cuda *d)
{
    wait_for(d->copies);
    wait_for(d->kernels);
}

/* Free all memory and objects of the device, which must be entered, or current; half-built is fine.
 * Results are ignored: after a fault all calls fail, and the process keeps nothing of the device.
 */
static void release_all(struct pstk__cuda *d)
{
    drain(d);
    for (uint32_t i = 0; i < d->n_slots; i++)
        for (uint32_t k = 0; k < d->slots[i].n_uses; k++)
            cudaEventSynchronize(d->slots[i].uses[k]);
    pstk__bounce_close(&d->bounce);
    pstk__gpu_streams_close(d, 1);
    close_events(d);
    if (d->memory && !d->is_lost)
        cudaFree(d->memory); /* waits for the whole device, stream_spin's kernels included */
    if (!d->is_lost)
        pstk__cuda_module_close(&d->module);
    if (d->kernels)
        cudaStreamDestroy(d->kernels);
    if (d->copies)
        cudaStreamDestroy(d->copies);
}

static void cuda_close(struct pstk__device *device)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    struct pstk__cuda_entry e;
    if (pstk__cuda_enter(&e, &d->context, NULL) == 0) {
        release_all(d);
        pstk__cuda_leave(&e);
    }
    pstk__gpu_streams_close(d, 0);
    pthread_mutex_destroy(&d->lock);
    free(d->finish);
    free(d->slots);
    free(d);
}

static int cuda_open(struct pstk__device **out, const struct pstk__device_config *c,
                     struct pstk_error *err)
{
    *out = NULL;
    struct pstk__cuda *d = calloc(1, sizeof *d);
    struct pstk__cuda_slot *slots = calloc(c->n_slots, sizeof *slots);
    const uint32_t n_sizes = c->plan->n_sizes > 1 ? c->plan->n_sizes : 1;
    struct pstk__cuda_finish *finish = calloc(n_sizes, sizeof *finish);
    if (!d || !slots || !finish || pthread_mutex_init(&d->lock, NULL) != 0) {
        free(finish);
        free(slots);
        free(d);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the device");
    }
    d->base.ops = &pstk__cuda_ops;
    d->n_slots = c->n_slots;
    d->n_outputs = c->plan->n_outputs;
    d->timed = c->timed;
    d->layout = *c->layout;
    d->slots = slots;
    d->finish = finish;
    d->n_sizes = n_sizes;
    const int r = cuda_build(d, c, err);
    if (r < 0) {
        release_all(d);
        cudaGetLastError(); /* clears the error; the thread is ours */
        pthread_mutex_destroy(&d->lock);
        free(finish);
        free(slots);
        free(d);
        return r;
    }
    *out = &d->base;
    return 0;
}

static void cuda_drain(struct pstk__device *device)
{
    drain(pstk__cuda_of(device));
}

static void cuda_get_times(struct pstk__device *device, struct pstk__device_times *times)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    *times = (struct pstk__device_times){
        .copy_ns = atomic_load_explicit(&d->copy_ns, memory_order_relaxed),
        .copy_bytes = atomic_load_explicit(&d->copy_bytes, memory_order_relaxed),
        .used_ns = atomic_load_explicit(&d->timing.used_ns, memory_order_relaxed),
        .starved_ns = atomic_load_explicit(&d->timing.starved_ns, memory_order_relaxed),
        .start_ns = atomic_load_explicit(&d->timing.start_ns, memory_order_relaxed),
        .waits = d->timed ? &d->timing.waits : NULL};
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
    .ask = pstk__gpu_ask,
    .acquire = pstk__gpu_acquire,
    .wait = pstk__gpu_wait,
    .record = pstk__gpu_record,
    .check_shared = pstk__gpu_check_shared,
    .release = pstk__gpu_release,
    .abandon = pstk__gpu_abandon,
    .read = pstk__gpu_read,
    .pin = pstk__gpu_pin,
    .unpin = pstk__gpu_unpin,
    .memory = pstk__gpu_memory,
    .ready = pstk__gpu_ready,
    .load = pstk__gpu_load,
    .finish = pstk__gpu_finish,
    .drain = cuda_drain,
    .get_times = cuda_get_times,
    .stream_open = pstk__gpu_stream_open,
    .stream_close = pstk__gpu_stream_close,
    .stream_spin = pstk__gpu_stream_spin,
};
