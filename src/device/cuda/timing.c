/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/timing.h"

#include "observe/stats.h"

cudaError_t pstk__timing_open(struct pstk__timing *timing)
{
    cudaError_t code = cudaSuccess;
    for (uint32_t i = 0; code == cudaSuccess && i < PSTK__TIMING_LEASES; i++) {
        code = cudaEventCreateWithFlags(&timing->leases[i].asked, cudaEventDefault);
        if (code == cudaSuccess)
            code = cudaEventCreateWithFlags(&timing->leases[i].arrived, cudaEventDefault);
    }
    for (uint32_t i = 0; code == cudaSuccess && i < PSTK__TIMING_STREAMS; i++)
        code = cudaEventCreateWithFlags(&timing->streams[i].arrived, cudaEventDefault);
    return code;
}

void pstk__timing_close(struct pstk__timing *timing)
{
    for (uint32_t i = 0; i < PSTK__TIMING_LEASES; i++) {
        if (timing->leases[i].asked)
            cudaEventDestroy(timing->leases[i].asked);
        if (timing->leases[i].arrived)
            cudaEventDestroy(timing->leases[i].arrived);
    }
    for (uint32_t i = 0; i < PSTK__TIMING_STREAMS; i++)
        if (timing->streams[i].arrived)
            cudaEventDestroy(timing->streams[i].arrived);
    timing->n = 0;
}

/* Add the time between two events to a counter; each: a histogram that also gets it, or NULL. */
static void count(_Atomic uint64_t *counter, struct pstk__histogram *each, cudaEvent_t from,
                  cudaEvent_t to)
{
    float ms = 0;
    if (cudaEventElapsedTime(&ms, from, to) != cudaSuccess)
        return;
    const uint64_t ns = ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
    pstk__count(counter, ns);
    if (each)
        pstk__histogram_add(each, ns);
}

static struct pstk__timing_stream *stream_entry(struct pstk__timing *timing, cudaStream_t stream)
{
    for (uint32_t i = 0; i < PSTK__TIMING_STREAMS; i++)
        if (timing->streams[i].is_known && timing->streams[i].stream == stream)
            return &timing->streams[i];
    struct pstk__timing_stream *s = &timing->streams[timing->next_stream];
    timing->next_stream = (timing->next_stream + 1) % PSTK__TIMING_STREAMS;
    s->is_known = 0;
    return s;
}

static void read_lease(struct pstk__timing *timing, struct pstk__timing_lease *lease)
{
    for (uint32_t i = 0; i < PSTK__TIMING_STREAMS && lease->after_gap; i++)
        timing->streams[i].is_known = 0;
    struct pstk__timing_stream *stream = stream_entry(timing, lease->stream);
    const cudaEvent_t arrived = lease->arrived;
    count(&timing->starved_ns, &timing->waits, lease->asked, arrived);
    if (!timing->is_started)
        count(&timing->start_ns, NULL, lease->asked, arrived);
    timing->is_started = 1;
    if (stream->is_known)
        count(&timing->used_ns, NULL, stream->arrived, lease->asked);
    lease->arrived = stream->arrived;
    *stream =
        (struct pstk__timing_stream){.arrived = arrived, .stream = lease->stream, .is_known = 1};
}

/* Read the batches that have arrived on the device, oldest first. */
static void collect(struct pstk__timing *timing)
{
    while (timing->n > 0 && cudaEventQuery(timing->leases[timing->first].arrived) == cudaSuccess) {
        read_lease(timing, &timing->leases[timing->first]);
        timing->first = (timing->first + 1) % PSTK__TIMING_LEASES;
        timing->n--;
    }
}

void pstk__timing_ask(struct pstk__timing *timing, cudaStream_t stream, int again)
{
    collect(timing); /* reading does not move the entry after the last lease */
    struct pstk__timing_lease *lease =
        &timing->leases[(timing->first + timing->n) % PSTK__TIMING_LEASES];
    if (again && timing->is_asking && lease->stream == stream)
        return;
    timing->is_asking =
        timing->n < PSTK__TIMING_LEASES && cudaEventRecord(lease->asked, stream) == cudaSuccess;
    if (timing->is_asking)
        lease->stream = stream;
}

void pstk__timing_arrive(struct pstk__timing *timing, cudaStream_t stream)
{
    struct pstk__timing_lease *lease =
        &timing->leases[(timing->first + timing->n) % PSTK__TIMING_LEASES];
    const int measured = timing->is_asking && lease->stream == stream &&
                         cudaEventRecord(lease->arrived, stream) == cudaSuccess;
    timing->is_asking = 0;
    if (measured) {
        lease->after_gap = timing->gap;
        timing->n++;
    }
    timing->gap = !measured;
}
