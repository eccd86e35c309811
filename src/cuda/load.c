/* SPDX-License-Identifier: Apache-2.0 */
/* cuda/load: from host slots to slots of the GPU. The uploader's thread alone. */
#include "cuda/gpu.h"

#include "clock.h"
#include "error.h"
#include "stats.h"

#include <sys/mman.h>

int pstk__gpu_pin(struct pstk__device *device, void *memory, uint64_t size, struct pstk_error *err)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    /* Without this a fork may leave the device reading pages that are no longer the parent's: older
     * kernels copy page-locked pages on write. No child may touch a slot anyway. */
    (void)madvise(memory, size, MADV_DONTFORK);
    cudaError_t code = cudaHostRegister(memory, size, cudaHostRegisterDefault);
    if (code == cudaSuccess)
        return 0;
    cudaGetLastError(); /* it would be taken for the next call's; the thread is ours */
    code = pstk__bounce_open(&d->bounce);
    if (code == cudaSuccess)
        return 1;
    pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
               "CUDA device %d: neither the slots nor %u MiB beside them could be "
               "page-locked (%s): free page-locked memory, or raise the container's limit",
               d->context.index, PSTK__BOUNCE_PIECES * PSTK__BOUNCE_SIZE >> 20,
               cudaGetErrorName(code));
    return pstk__cuda_native(err, code, PSTK_ENOMEM);
}

void pstk__gpu_unpin(struct pstk__device *device, void *memory)
{
    (void)device;
    cudaHostUnregister(memory);
}

uint8_t *pstk__gpu_memory(struct pstk__device *device, uint32_t slot)
{
    const struct pstk__cuda *d = pstk__cuda_of(device);
    return d->memory + slot * d->layout.device_size;
}

static cudaError_t copy(struct pstk__cuda *d, struct pstk__cuda_host_slot *from, void *to,
                        const void *memory, uint64_t size)
{
    if (size == 0)
        return cudaSuccess;
    from->size += size;
    if (d->bounce.memory)
        return pstk__bounce_copy(&d->bounce, to, memory, size, d->copies);
    return cudaMemcpyAsync(to, memory, size, cudaMemcpyHostToDevice, d->copies);
}

/* Copies wait for all uses of the slot, and for its last load, which nobody may have used. */
static cudaError_t queue_waits(struct pstk__cuda *d, struct pstk__cuda_slot *s)
{
    cudaError_t code = cudaStreamWaitEvent(d->copies, s->loaded, 0);
    for (uint32_t k = 0; k < s->n_uses && code == cudaSuccess; k++)
        code = cudaStreamWaitEvent(d->copies, s->uses[k], 0);
    if (code == cudaSuccess)
        s->n_uses = 0;
    return code;
}

/* Bounce buffers are filled as they come free, behind the uses of the slot: what that takes is not
 * our work. */
static cudaError_t wait_begun(struct pstk__cuda_host_slot *s, uint64_t *blocked_ns)
{
    const uint64_t start = pstk__clock_ns();
    const cudaError_t code = cudaEventSynchronize(s->begun);
    *blocked_ns += pstk__clock_ns() - start;
    return code;
}

static cudaError_t queue_copies(struct pstk__cuda *d, const struct pstk__load *load,
                                uint64_t *blocked_ns)
{
    struct pstk__cuda_host_slot *from = &d->host_slots[load->host_slot];
    uint8_t *to = pstk__gpu_memory(&d->base, load->slot);
    cudaError_t code = cudaEventRecord(from->begun, d->copies);
    from->size = 0;
    if (code == cudaSuccess && d->bounce.memory)
        code = wait_begun(from, blocked_ns);
    if (code == cudaSuccess)
        code = copy(d, from, to, load->memory, d->layout.dense_size);
    for (uint32_t i = 0; i < d->n_outputs && code == cudaSuccess; i++)
        code = copy(d, from, to + d->layout.arrival[i], load->memory + d->layout.rows[i],
                    load->ragged_size[i]);
    return code == cudaSuccess ? cudaEventRecord(from->copied, d->copies) : code;
}

static cudaError_t queue_kernels(struct pstk__cuda *d, const struct pstk__load *load)
{
    struct pstk__cuda_slot *s = &d->slots[load->slot];
    if (d->finish.n_outputs == 0)
        return cudaEventRecord(s->loaded, d->copies);
    cudaError_t code = cudaStreamWaitEvent(d->kernels, d->host_slots[load->host_slot].copied, 0);
    if (code == cudaSuccess)
        code =
            pstk__cuda_finish_launch(&d->finish, &d->module, pstk__gpu_memory(&d->base, load->slot),
                                     load->n_valid, d->kernels);
    return code == cudaSuccess ? cudaEventRecord(s->loaded, d->kernels) : code;
}

int pstk__gpu_load(struct pstk__device *device, const struct pstk__load *load, uint64_t *blocked_ns,
                   struct pstk_error *err)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    d->host_slots[load->host_slot].is_loading = 1;
    cudaError_t code = queue_waits(d, &d->slots[load->slot]);
    if (code == cudaSuccess)
        code = queue_copies(d, load, blocked_ns);
    if (code != cudaSuccess)
        return pstk__gpu_fail(d, code, "copying a batch", err);
    code = queue_kernels(d, load);
    return code == cudaSuccess ? 0 : pstk__gpu_fail(d, code, "finishing a batch", err);
}

static void count_copy(struct pstk__cuda *d, struct pstk__cuda_host_slot *s)
{
    float ms = 0;
    if (!d->timed || cudaEventElapsedTime(&ms, s->begun, s->copied) != cudaSuccess)
        return;
    pstk__count(&d->copy_ns, ms > 0 ? (uint64_t)((double)ms * 1e6) : 0);
    pstk__count(&d->copy_bytes, s->size);
}

int pstk__gpu_copied(struct pstk__device *device, uint32_t host_slot, int wait,
                     uint64_t *blocked_ns, struct pstk_error *err)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    struct pstk__cuda_host_slot *s = &d->host_slots[host_slot];
    if (!s->is_loading)
        return 1;
    cudaError_t code;
    if (wait) {
        code = wait_begun(s, blocked_ns);
        if (code == cudaSuccess)
            code = cudaEventSynchronize(s->copied);
    } else {
        code = cudaEventQuery(s->copied);
        if (code == cudaErrorNotReady)
            return 0;
    }
    if (code != cudaSuccess)
        return pstk__gpu_fail(d, code, "copying a batch", err);
    s->is_loading = 0;
    count_copy(d, s);
    return 1;
}
