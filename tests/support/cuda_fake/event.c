/* SPDX-License-Identifier: Apache-2.0 */
/* event: places in streams. What an event stands for is its latest record, the mark. */
#include "state.h"

#include <stdlib.h>

void cuda_fake__mark_drop(struct cuda_fake__mark *m)
{
    if (m && --m->refs == 0)
        free(m);
}

static void event_free(struct CUevent_st *e)
{
    cuda_fake__mark_drop(e->mark);
    free(e);
}

void cuda_fake__events_free(void)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    struct CUevent_st **lists[2] = {&f->events, &f->dead_events};
    for (int i = 0; i < 2; i++) {
        while (*lists[i]) {
            struct CUevent_st *next = (*lists[i])->next;
            event_free(*lists[i]);
            *lists[i] = next;
        }
    }
}

static struct CUevent_st *find(cudaEvent_t handle, const char *name)
{
    struct CUevent_st *e = cuda_fake__state.events;
    while (e && e != handle)
        e = e->next;
    if (!e)
        cuda_fake__hazard(CUDA_FAKE_USE, "%s of an event that is not alive", name);
    return e;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    cudaError_t e = cuda_fake__begin("cudaEventCreateWithFlags", CUDA_FAKE__CONTEXT);
    if (e == cudaSuccess && (!event || flags > 7 ||
                             (flags & cudaEventInterprocess && !(flags & cudaEventDisableTiming))))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess) {
        struct CUevent_st *new = calloc(1, sizeof *new);
        if (!new)
            abort();
        new->device = cuda_fake__current();
        new->flags = flags;
        new->next = f->events;
        f->events = new;
        *event = new;
    }
    return cuda_fake__end(e, 0);
}

/* The work that its record waits for continues, and the mark lives as long. */
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    cudaError_t e = cuda_fake__begin("cudaEventDestroy", CUDA_FAKE__CONTEXT);
    struct CUevent_st **link = &f->events;
    while (*link && *link != event)
        link = &(*link)->next;
    struct CUevent_st *dead = *link;
    if (e == cudaSuccess && !dead) {
        cuda_fake__hazard(CUDA_FAKE_USE, "cudaEventDestroy of an event that is not alive");
        e = cudaErrorInvalidResourceHandle;
    }
    if (e == cudaSuccess) {
        *link = dead->next;
        dead->next = f->dead_events;
        f->dead_events = dead;
    } else if (dead) {
        dead->tried = 1;
    }
    return cuda_fake__end(e, 0);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t e = cuda_fake__begin("cudaEventRecord", CUDA_FAKE__CONTEXT);
    struct CUevent_st *v = e == cudaSuccess ? find(event, "cudaEventRecord") : NULL;
    struct CUstream_st *s = v ? cuda_fake__stream(stream) : NULL;
    if (e == cudaSuccess && (!v || !s || v->device != s->device))
        e = cudaErrorInvalidResourceHandle;
    if (e == cudaSuccess)
        e = cuda_fake__state.devices[s->device].poison;
    if (e == cudaSuccess) {
        cuda_fake__stream_tick(s);
        cuda_fake__mark_drop(v->mark);
        v->mark = cuda_fake__stream_mark(s);
        cuda_fake__state.counts.n_records++;
    }
    return cuda_fake__end(e, 0);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    cudaError_t e = cuda_fake__begin("cudaStreamWaitEvent", CUDA_FAKE__CONTEXT);
    struct CUevent_st *v = e == cudaSuccess ? find(event, "cudaStreamWaitEvent") : NULL;
    struct CUstream_st *s = v ? cuda_fake__stream(stream) : NULL;
    if (e == cudaSuccess && (!v || !s))
        e = cudaErrorInvalidResourceHandle;
    if (e == cudaSuccess && flags != 0)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = cuda_fake__state.devices[s->device].poison;
    if (e == cudaSuccess) {
        cuda_fake__state.counts.n_waits++;
        if (v->mark) { /* an event without a record has nothing to wait for */
            cuda_fake__stream_tick(s);
            cuda_fake__stream_wait(s, v->mark);
        }
    }
    return cuda_fake__end(e, 0);
}

/* The host knows now that it was reached. */
static void reached(struct cuda_fake__mark *m)
{
    cuda_fake__join(cuda_fake__host_clock(), &m->clock);
    cuda_fake__acquire(m);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    cudaError_t e = cuda_fake__begin("cudaEventQuery", CUDA_FAKE__CONTEXT | CUDA_FAKE__UNSAFE);
    const struct CUevent_st *v = e == cudaSuccess ? find(event, "cudaEventQuery") : NULL;
    if (e == cudaSuccess && !v)
        e = cudaErrorInvalidResourceHandle;
    if (e == cudaSuccess)
        e = cuda_fake__state.devices[v->device].poison;
    if (e == cudaSuccess && v->mark && !v->mark->done)
        e = cudaErrorNotReady;
    if (e == cudaSuccess && v->mark)
        reached(v->mark);
    return cuda_fake__end(e, 0);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    cudaError_t e =
        cuda_fake__begin("cudaEventSynchronize", CUDA_FAKE__CONTEXT | CUDA_FAKE__UNSAFE);
    const struct CUevent_st *v = e == cudaSuccess ? find(event, "cudaEventSynchronize") : NULL;
    if (e == cudaSuccess && !v)
        e = cudaErrorInvalidResourceHandle;
    if (e == cudaSuccess)
        e = f->devices[v->device].poison;
    if (e == cudaSuccess && v->mark) {
        const int device = v->device; /* v may be destroyed meanwhile, the mark not */
        struct cuda_fake__mark *m = v->mark;
        m->refs++;
        while (!m->done)
            pthread_cond_wait(&f->progress, &f->lock);
        e = f->devices[device].poison;
        if (e == cudaSuccess)
            reached(m);
        cuda_fake__mark_drop(m);
    }
    return cuda_fake__end(e, 0);
}

static cudaError_t elapsed(const struct CUevent_st *a, const struct CUevent_st *b, float *ms)
{
    if (!a || !b || !a->mark || !b->mark || a->device != b->device ||
        (a->flags | b->flags) & cudaEventDisableTiming)
        return cudaErrorInvalidResourceHandle;
    if (!ms)
        return cudaErrorInvalidValue;
    if (!a->mark->done || !b->mark->done)
        return cudaErrorNotReady;
    *ms = (float)((double)(int64_t)(b->mark->time_ns - a->mark->time_ns) * 1e-6);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    cudaError_t e = cuda_fake__begin("cudaEventElapsedTime", CUDA_FAKE__CONTEXT);
    if (e == cudaSuccess)
        e = elapsed(find(start, "cudaEventElapsedTime"), find(end, "cudaEventElapsedTime"), ms);
    return cuda_fake__end(e, 0);
}
