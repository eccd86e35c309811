/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine: what streams of a device share. A copy engine each way does one copy at a time, in the
 * order in which streams come to it; a stream comes with its next copy once the one before is done.
 *
 * With config.one_queue all kernels go through one hardware queue, and all copies to devices
 * through another, as with CUDA_DEVICE_MAX_CONNECTIONS=1: in the order of the calls, whatever
 * streams they were for. A kernel or copy leaves its queue when it begins, a wait or record when it
 * is over, so that a wait stops what was called after it, in every stream. Which queue a wait or
 * record goes through CUDA does not document; here it is that of what its stream did before.
 */
#include "state.h"

#include <time.h>

void cuda_fake__queue_put(struct CUstream_st *s, struct cuda_fake__op *op)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    if (op->kind == CUDA_FAKE__COPY)
        s->queue = op->engine;
    if (op->kind == CUDA_FAKE__KERNEL || op->kind == CUDA_FAKE__MEMSET)
        s->queue = CUDA_FAKE__NO_ENGINE;
    if (!f->config.one_queue)
        return;
    op->queue = &f->devices[s->device].queues[s->queue];
    op->place = ++op->queue->n_come;
}

void cuda_fake__queue_reach(const struct cuda_fake__op *op)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    while (op->queue && op->queue->n_gone + 1 < op->place)
        pthread_cond_wait(&f->progress, &f->lock);
}

void cuda_fake__queue_leave(struct cuda_fake__op *op)
{
    if (!op->queue)
        return;
    op->queue->n_gone++;
    op->queue = NULL;
    pthread_cond_broadcast(&cuda_fake__state.progress);
}

/* A copy takes its time: of the machine, or of the clock that is moved by hand. */
static void take_time(const struct cuda_fake__op *op)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    const uint64_t ns = op->size * f->config.copy_ns_per_kib / 1024;
    const struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    if (f->config.clock_by_hand) {
        f->clock_ns += ns;
        return;
    }
    if (ns == 0 || op->engine == CUDA_FAKE__NO_ENGINE)
        return;
    pthread_mutex_unlock(&f->lock);
    nanosleep(&t, NULL);
    pthread_mutex_lock(&f->lock);
}

void cuda_fake__engine_enter(const struct CUstream_st *s, const struct cuda_fake__op *op)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    if (op->engine == CUDA_FAKE__NO_ENGINE) {
        if (op->kind == CUDA_FAKE__COPY)
            take_time(op);
        return;
    }
    struct cuda_fake__engine *e = &f->devices[s->device].engines[op->engine];
    const uint64_t place = e->n_come++;
    if (f->counts.max_ahead < e->n_bytes)
        f->counts.max_ahead = e->n_bytes;
    e->n_bytes += op->size;
    while ((f->hold_copies && op->engine == CUDA_FAKE__TO_DEVICE) || e->n_gone < place)
        pthread_cond_wait(&f->progress, &f->lock);
    take_time(op);
}

void cuda_fake__engine_leave(const struct CUstream_st *s, const struct cuda_fake__op *op)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    if (op->engine == CUDA_FAKE__NO_ENGINE)
        return;
    struct cuda_fake__engine *e = &f->devices[s->device].engines[op->engine];
    e->n_bytes -= op->size;
    e->n_gone++;
    pthread_cond_broadcast(&f->progress);
}

void cuda_fake_hold_copies(int hold)
{
    cuda_fake__enter();
    cuda_fake__state.hold_copies = hold;
    pthread_cond_broadcast(&cuda_fake__state.progress);
    cuda_fake__leave();
}
