/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/timeline.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ring_open(struct pstk__ring *ring, uint64_t n_events)
{
    ring->mask = n_events - 1;
    ring->marks =
        calloc(n_events, sizeof *ring->marks); /* the kernel provides pages as events are written */
    return ring->marks ? 0 : PSTK_ENOMEM;
}

static void name_rings(struct pstk__timeline *timeline, uint32_t n_readers)
{
    static const char *const first[] = {"next", "leases", "pstk-upload"};
    for (uint32_t i = 0; i < timeline->n_rings; i++) {
        char *name = timeline->rings[i].name;
        const size_t size = sizeof timeline->rings[i].name;
        const uint32_t k = i - PSTK__RING_FIRST;
        if (i < PSTK__RING_FIRST)
            snprintf(name, size, "%s", first[i]);
        else if (k < n_readers)
            snprintf(name, size, "pstk-reader-%u", k % 100u);
        else
            snprintf(name, size, "pstk-work-%u", (k - n_readers) % 10000u);
    }
}

int pstk__timeline_open(struct pstk__timeline **out, uint32_t n_readers, uint32_t n_workers,
                        uint32_t n_events, const char *path, struct pstk_error *err)
{
    struct pstk__timeline *timeline = calloc(1, sizeof *timeline);
    const uint32_t n_rings = PSTK__RING_FIRST + n_readers + n_workers;
    uint64_t room = 1;
    *out = NULL;
    while (room < (n_events ? n_events : PSTK__TRACE_EVENTS))
        room *= 2;
    int r = timeline ? 0 : PSTK_ENOMEM;
    if (r == 0) {
        pthread_mutex_init(&timeline->lease_lock, NULL);
        pthread_mutex_init(&timeline->file_lock, NULL);
        timeline->rings =
            aligned_alloc(_Alignof(struct pstk__ring), n_rings * sizeof *timeline->rings);
        timeline->path = path ? strdup(path) : NULL;
        r = timeline->rings && (timeline->path || !path) ? 0 : PSTK_ENOMEM;
    }
    if (r == 0)
        memset(timeline->rings, 0, n_rings * sizeof *timeline->rings);
    for (uint32_t i = 0; r == 0 && i < n_rings; i++) {
        timeline->n_rings = i + 1;
        r = ring_open(&timeline->rings[i], room);
    }
    if (r < 0) {
        pstk__timeline_close(timeline);
        return pstk__fail(err, r, PSTK_STAGE_OPEN,
                          "no memory for %llu events of each of %u threads: lower trace_events",
                          (unsigned long long)room, n_rings);
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    timeline->opened_ns = pstk__clock_ns();
    timeline->opened_utc = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    name_rings(timeline, n_readers);
    *out = timeline;
    return 0;
}

void pstk__timeline_close(struct pstk__timeline *timeline)
{
    if (!timeline)
        return;
    for (uint32_t i = 0; i < timeline->n_rings; i++)
        free(timeline->rings[i].marks);
    pthread_mutex_destroy(&timeline->lease_lock);
    pthread_mutex_destroy(&timeline->file_lock);
    free(timeline->rings);
    free(timeline->path);
    free(timeline);
}

struct pstk__ring *pstk__timeline_reader(struct pstk__timeline *timeline, uint32_t number)
{
    return timeline ? &timeline->rings[PSTK__RING_FIRST + number] : NULL;
}

struct pstk__ring *pstk__timeline_worker(struct pstk__timeline *timeline, uint32_t n_readers,
                                         uint32_t number)
{
    return timeline ? &timeline->rings[PSTK__RING_FIRST + n_readers + number] : NULL;
}

void pstk__timeline_lease(struct pstk__timeline *timeline, const struct pstk__event *event)
{
    pthread_mutex_lock(&timeline->lease_lock);
    pstk__ring_add(&timeline->rings[PSTK__RING_LEASES], event);
    pthread_mutex_unlock(&timeline->lease_lock);
}

int pstk__ring_get(const struct pstk__ring *ring, uint64_t n, struct pstk__event *event)
{
    const struct pstk__mark *mark = &ring->marks[n & ring->mask];
    if (atomic_load_explicit(&mark->stamp, memory_order_acquire) != 2 * n + 2)
        return 0;
    /* Acquire: pairs with the stores of pstk__ring_add. */
    event->begin_ns = atomic_load_explicit(&mark->begin_ns, memory_order_acquire);
    event->end_ns =
        event->begin_ns + atomic_load_explicit(&mark->duration_ns, memory_order_acquire);
    event->seq = atomic_load_explicit(&mark->seq, memory_order_acquire);
    event->epoch = atomic_load_explicit(&mark->epoch, memory_order_acquire);
    event->index = atomic_load_explicit(&mark->index, memory_order_acquire);
    const uint64_t kind = atomic_load_explicit(&mark->kind, memory_order_acquire);
    event->kind = (uint32_t)kind;
    event->n_rows = (uint32_t)(kind >> 32);
    return atomic_load_explicit(&mark->stamp, memory_order_relaxed) == 2 * n + 2;
}
