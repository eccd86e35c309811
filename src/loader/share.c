/* SPDX-License-Identifier: Apache-2.0 */
/* Batches with several holders, for languages whose objects have lifetimes of their own. */
#include <penstock/penstock.h>

#include "batch/slot.h"
#include "loader/dlpack.h"
#include "base/error.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct pstk_share {
    _Atomic uint32_t n_refs;
    struct pstk_batch *batch; /* leased; the last holder releases it */
    void *stream;             /* passed to pstk_release */
    int owner;                /* process id: a child after fork gives nothing back */
};

/* A tensor that was handed out. The consumer sees only the first member. */
struct view {
    struct DLManagedTensor managed;
    struct pstk_share *share; /* holds a reference */
    int64_t shape[10], strides[10];
};

int pstk_share_open(struct pstk_share **out, struct pstk_batch **batch, void *stream,
                    struct pstk_error *err)
{
    if (!out || !batch || !*batch)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER, "%s is NULL",
                          out ? "batch" : "out");
    *out = NULL;
    const struct pstk__slots *pool = ((struct pstk__slot *)(void *)*batch)->pool;
    int r = pool->device_ops->check_shared(pool->device, stream, err);
    if (r < 0)
        return r;
    struct pstk_share *share = malloc(sizeof *share);
    if (!share)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_CONSUMER, "no memory to share a batch");
    *share = (struct pstk_share){.batch = *batch, .stream = stream, .owner = (int)getpid()};
    atomic_init(&share->n_refs, 1);
    *batch = NULL;
    *out = share;
    return 0;
}

const struct pstk_batch *pstk_share_batch(const struct pstk_share *share)
{
    return share ? share->batch : NULL;
}

void pstk_share_ref(struct pstk_share *share)
{
    if (share)
        atomic_fetch_add_explicit(&share->n_refs, 1, memory_order_relaxed);
}

int pstk_share_use(struct pstk_share *share, void *stream, struct pstk_error *err)
{
    if (!share)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER, "share is NULL");
    struct pstk__slot *slot = (struct pstk__slot *)(void *)share->batch;
    int r = slot->pool->device_ops->check_shared(slot->pool->device, stream, err);
    if (r == 0)
        r = pstk_batch_wait(share->batch, stream, err);
    return r < 0 || stream == share->stream ? r : pstk__slot_use(slot, stream, err);
}

void pstk_share_unref(struct pstk_share **share)
{
    if (!share || !*share)
        return;
    struct pstk_share *s = *share;
    *share = NULL;
    /* Acquire and release: the last holder releases the batch after all accesses of the others. */
    if (atomic_fetch_sub_explicit(&s->n_refs, 1, memory_order_acq_rel) != 1)
        return;
    if (s->owner == (int)getpid()) {
        pstk__slot_use_current((struct pstk__slot *)(void *)s->batch);
        pstk_release(&s->batch, s->stream);
    }
    free(s);
}

static void view_delete(struct DLManagedTensor *self)
{
    struct view *view = (struct view *)(void *)self;
    pstk_share_unref(&view->share);
    free(view);
}

static uint8_t code_of(uint32_t dtype)
{
    switch (dtype) {
    case PSTK_I8:
    case PSTK_I16:
    case PSTK_I32:
    case PSTK_I64:
        return DL_INT;
    case PSTK_F16:
    case PSTK_F32:
    case PSTK_F64:
        return DL_FLOAT;
    case PSTK_BF16:
        return DL_BFLOAT;
    default:
        return DL_UINT;
    }
}

int pstk_share_tensor(struct pstk_share *share, uint32_t tensor, struct DLManagedTensor **out,
                      struct pstk_error *err)
{
    if (!share || !out)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER, "%s is NULL",
                          share ? "out" : "share");
    *out = NULL;
    if (tensor >= share->batch->n_tensors)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
            "tensor: value is %u; must be below %u, the number of tensors of the batch", tensor,
            share->batch->n_tensors);
    const struct pstk__slot *slot = (const struct pstk__slot *)(const void *)share->batch;
    const struct pstk_tensor *t = &share->batch->tensors[tensor];
    struct view *view = malloc(sizeof *view);
    if (!view)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_CONSUMER, "no memory for a tensor's view");
    for (uint32_t i = 0; i < t->n_dims; i++) {
        view->shape[i] = t->shape[i];
        view->strides[i] = t->strides[i];
    }
    view->managed =
        (struct DLManagedTensor){.tensor = {.data = t->data,
                                            .device_type = slot->pool->on_device ? DL_CUDA : DL_CPU,
                                            .device_id = slot->pool->device_index,
                                            .n_dims = (int32_t)t->n_dims,
                                            .code = code_of(t->dtype),
                                            .bits = (uint8_t)(8 * pstk_dtype_size(t->dtype)),
                                            .lanes = 1,
                                            .shape = view->shape,
                                            .strides = view->strides},
                                 .deleter = view_delete};
    view->share = share;
    pstk_share_ref(share);
    *out = &view->managed;
    return 0;
}
