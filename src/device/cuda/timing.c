/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/timing.h"

#include "metrics/stats.h"

cudaError_t pstk__timing_open(struct pstk__timing *t)
{
    cudaError_t code = cudaSuccess;
    for (uint32_t i = 0; code == cudaSuccess && i < PSTK__TIMING_LEASES; i++) {
        code = cudaEventCreateWithFlags(&t->leases[i].asked, cudaEventDefault);
        if (code == cudaSuccess)
            code = cudaEventCreateWithFlags(&t->leases[i].arrived, cudaEventDefault);
    }
    for (uint32_t i = 0; code == cudaSuccess && i < PSTK__TIMING_STREAMS; i++)
        code = cudaEventCreateWithFlags(&t->streams[i].arrived, cudaEventDefault);
    return code;
}

void pstk__timing_close(struct pstk__timing *t)
{
    for (uint32_t i = 0; i < PSTK__TIMING_LEASES; i++) {
        if (t->leases[i].asked)
            cudaEventDestroy(t->leases[i].asked);
        if (t->leases[i].arrived)
            cudaEventDestroy(t->leases[i].arrived);
    }
    for (uint32_t i = 0; i < PSTK__TIMING_STREAMS; i++)
        if (t->streams[i].arrived)
            cudaEventDestroy(t->streams[i].arrived);
    t->n = 0;
}

static void count(_Atomic uint64_t *counter, cudaEvent_t from, cudaEvent_t to)
{
    float ms = 0;
    if (cudaEventElapsedTime(&ms, from, to) == cudaSuccess && ms > 0)
        pstk__count(counter, (uint64_t)((double)ms * 1e6));
}

static struct pstk__timing_stream *place_of(struct pstk__timing *t, cudaStream_t stream)
{
    for (uint32_t i = 0; i < PSTK__TIMING_STREAMS; i++)
        if (t->streams[i].is_known && t->streams[i].stream == stream)
            return &t->streams[i];
    struct pstk__timing_stream *s = &t->streams[t->next_stream];
    t->next_stream = (t->next_stream + 1) % PSTK__TIMING_STREAMS;
    s->is_known = 0;
    return s;
}

static void read_lease(struct pstk__timing *t, struct pstk__timing_lease *l)
{
    for (uint32_t i = 0; i < PSTK__TIMING_STREAMS && l->after_gap; i++)
        t->streams[i].is_known = 0;
    struct pstk__timing_stream *s = place_of(t, l->stream);
    const cudaEvent_t arrived = l->arrived;
    count(&t->starved_ns, l->asked, arrived);
    if (s->is_known)
        count(&t->used_ns, s->arrived, l->asked);
    l->arrived = s->arrived;
    *s = (struct pstk__timing_stream){.arrived = arrived, .stream = l->stream, .is_known = 1};
}

/* Read the batches that have arrived on the device, oldest first. */
static void collect(struct pstk__timing *t)
{
    while (t->n > 0 && cudaEventQuery(t->leases[t->first].arrived) == cudaSuccess) {
        read_lease(t, &t->leases[t->first]);
        t->first = (t->first + 1) % PSTK__TIMING_LEASES;
        t->n--;
    }
}

void pstk__timing_ask(struct pstk__timing *t, cudaStream_t stream, int again)
{
    collect(t); /* the place past the last one moves with nothing that is read */
    struct pstk__timing_lease *l = &t->leases[(t->first + t->n) % PSTK__TIMING_LEASES];
    if (again && t->is_asking && l->stream == stream)
        return;
    t->is_asking = t->n < PSTK__TIMING_LEASES && cudaEventRecord(l->asked, stream) == cudaSuccess;
    if (t->is_asking)
        l->stream = stream;
}

void pstk__timing_arrive(struct pstk__timing *t, cudaStream_t stream)
{
    struct pstk__timing_lease *l = &t->leases[(t->first + t->n) % PSTK__TIMING_LEASES];
    const int measured =
        t->is_asking && l->stream == stream && cudaEventRecord(l->arrived, stream) == cudaSuccess;
    t->is_asking = 0;
    if (measured) {
        l->after_gap = t->gap;
        t->n++;
    }
    t->gap = !measured;
}
