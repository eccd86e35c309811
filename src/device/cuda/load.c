/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/load: loads host slots into the GPU's slots. Only the uploader's thread calls this, with the
 * device current, and it holds no lock. A slot's uses are the uploader's here: the consumer's
 * threads write them while the slot is leased, and the pool's lock (free list) hands them over.
 */
#include "device/cuda/gpu.h"

#include "base/error.h"
#include "observe/stats.h"

#include <sys/mman.h>

int pstk__gpu_pin(struct pstk__device *device, void *memory, uint64_t size, struct pstk_error *err)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    /* Keep the pages out of children. Otherwise the device may read pages that no longer belong to
     * the parent after a fork: older kernels copy page-locked pages on write. No child may touch a
     * slot anyway. */
    (void)madvise(memory, size, MADV_DONTFORK);
    /* Ask for huge pages. Locking takes every page anyway, so larger ones lose nothing: a batch of
     * 38 MB then locks and maps 19 pages of 2 MiB, not 9400. A kernel without huge pages refuses.
     */
    (void)madvise(memory, size, MADV_HUGEPAGE);
    cudaError_t code = cudaHostRegister(memory, size, cudaHostRegisterDefault);
    if (code == cudaSuccess)
        return 0;
    cudaGetLastError(); /* clears the error, which the next call would return; the thread is ours */
    code = pstk__bounce_open(&d->bounce);
    if (code == cudaSuccess)
        return 1;
    pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
               "CUDA device %d: neither the slots nor a bounce buffer of %u MiB could be "
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

/* Bytes of a piece, which takes some 0.1 ms to copy. A copy engine works off copies one by one,
 * from whatever streams, so the trainer's copies get their turn between the pieces. */
#define PIECE ((uint64_t)4 << 20)

static cudaError_t copy(struct pstk__cuda *d, struct pstk__cuda_load *load, uint8_t *to,
                        const uint8_t *from, uint64_t size)
{
    load->size += size;
    if (d->bounce.memory)
        return pstk__bounce_copy(&d->bounce, to, from, size, d->copies);
    cudaError_t code = cudaSuccess;
    for (uint64_t at = 0; at < size && code == cudaSuccess; at += PIECE)
        code = cudaMemcpyAsync(to + at, from + at, size - at < PIECE ? size - at : PIECE,
                               cudaMemcpyHostToDevice, d->copies);
    return code;
}

static cudaError_t is_over(cudaEvent_t event, int wait)
{
    return wait ? cudaEventSynchronize(event) : cudaEventQuery(event);
}

/* Check the slot's uses. Its last load is over as well, even if nobody used it: its copies were
 * seen done, and kernels run one after another. */
int pstk__gpu_ready(struct pstk__device *device, uint32_t slot, int wait, struct pstk_error *err)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    struct pstk__cuda_slot *s = &d->slots[slot];
    cudaError_t code = is_over(d->loads[d->n_begun % PSTK__LOADS].taken, wait);
    for (uint32_t k = 0; k < s->n_uses && code == cudaSuccess; k++)
        code = is_over(s->uses[k], wait);
    if (code == cudaErrorNotReady)
        return 0;
    if (code != cudaSuccess)
        return pstk__gpu_fail(d, code, "waiting for a slot", err);
    s->n_uses = 0;
    return 1;
}

/* Copy all dense rows, and the offsets: two copies. */
static cudaError_t copy_dense(struct pstk__cuda *d, struct pstk__cuda_load *l,
                              const struct pstk__load *load, uint8_t *slot)
{
    const struct pstk__layout *layout = &d->layout;
    const cudaError_t code =
        copy(d, l, pstk__gpu_arrival(d, d->n_begun), load->memory, layout->arrival_size);
    return code != cudaSuccess ? code
                               : copy(d, l, slot, load->memory + layout->arrival_size,
                                      layout->dense_size - layout->arrival_size);
}

/* Copy the used part of each output, for a batch whose rows are smaller than the slot's. */
static cudaError_t copy_sized(struct pstk__cuda *d, struct pstk__cuda_load *l,
                              const struct pstk__load *load, uint8_t *slot)
{
    const struct pstk__layout *layout = &d->layout;
    uint8_t *arrival = pstk__gpu_arrival(d, d->n_begun);
    uint64_t flips = layout->arrival_size;
    cudaError_t code = cudaSuccess;
    for (uint32_t i = 0; i < d->n_outputs && code == cudaSuccess; i++) {
        const uint64_t rows = layout->rows[i];
        if (layout->flips[i] > 0 && layout->flips[i] < flips)
            flips = layout->flips[i];
        if (load->dense_size[i] > 0)
            code = copy(d, l,
                        rows < layout->arrival_size ? arrival + rows
                                                    : slot + pstk__layout_mirrored(layout, rows),
                        load->memory + rows, load->dense_size[i]);
    }
    if (code == cudaSuccess)
        code = copy(d, l, arrival + flips, load->memory + flips, layout->arrival_size - flips);
    return code != cudaSuccess
               ? code
               : copy(d, l, slot + pstk__layout_mirrored(layout, layout->about),
                      load->memory + layout->about, layout->dense_size - layout->about);
}

static cudaError_t queue_copies(struct pstk__cuda *d, const struct pstk__load *load,
                                struct pstk__cuda_load *l)
{
    const struct pstk__layout *layout = &d->layout;
    uint8_t *slot = pstk__gpu_memory(&d->base, load->slot);
    cudaError_t code = cudaEventRecord(l->begun, d->copies);
    l->size = 0;
    if (code == cudaSuccess)
        code = (load->dense_size ? copy_sized : copy_dense)(d, l, load, slot);
    for (uint32_t i = 0; i < d->n_outputs && code == cudaSuccess; i++)
        code = copy(d, l, slot + layout->final[i], load->memory + layout->rows[i],
                    load->ragged_size[i]);
    return code == cudaSuccess ? cudaEventRecord(l->copied, d->copies) : code;
}

int pstk__gpu_load(struct pstk__device *device, const struct pstk__load *load,
                   struct pstk_error *err)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    const cudaError_t code = queue_copies(d, load, &d->loads[d->n_begun % PSTK__LOADS]);
    d->n_begun++;
    return code == cudaSuccess ? 0 : pstk__gpu_fail(d, code, "copying a batch", err);
}

static void count_copy(struct pstk__cuda *d, const struct pstk__cuda_load *load)
{
    float ms = 0;
    if (!d->timed || cudaEventElapsedTime(&ms, load->begun, load->copied) != cudaSuccess)
        return;
    pstk__count(&d->copy_ns, ms > 0 ? (uint64_t)((double)ms * 1e6) : 0);
    pstk__count(&d->copy_bytes, load->size);
}

/* Queue the kernels. Nothing has to wait for the copies, because they are over. `loaded` is
 * recorded on the kernels' stream even when there are no kernels: the copies' stream may already
 * have the next load's copies. */
static cudaError_t queue_kernels(struct pstk__cuda *d, const struct pstk__cuda_load *load,
                                 const struct pstk__load_end *end)
{
    cudaError_t code = cudaSuccess;
    if (d->finish->n_outputs > 0) {
        code = pstk__cuda_finish_launch(
            &d->finish[end->size_index], pstk__gpu_arrival(d, d->n_finished),
            pstk__gpu_memory(&d->base, end->slot), end->n_valid, d->kernels);
        if (code == cudaSuccess)
            code = cudaEventRecord(load->taken, d->kernels);
    }
    return code == cudaSuccess ? cudaEventRecord(d->slots[end->slot].loaded, d->kernels) : code;
}

int pstk__gpu_finish(struct pstk__device *device, const struct pstk__load_end *end,
                     struct pstk_error *err)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    struct pstk__cuda_load *load = &d->loads[d->n_finished % PSTK__LOADS];
    cudaError_t code = is_over(load->copied, end->wait);
    if (code == cudaErrorNotReady)
        return 0;
    if (code != cudaSuccess)
        return pstk__gpu_fail(d, code, "copying a batch", err);
    count_copy(d, load);
    code = queue_kernels(d, load, end);
    d->n_finished++;
    return code == cudaSuccess ? 1 : pstk__gpu_fail(d, code, "finishing a batch", err);
}
