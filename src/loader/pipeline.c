/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline.h"

#include "base/error.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void pstk__stage_finish(struct pstk__pipeline *p, struct pstk__slot *slot)
{
    /* Who skipped a row saw the slot stale before the countdown, so we see it too: a slot with
     * unwritten rows never gets past here. */
    if (pstk__window_stale(&p->window, slot)) {
        pstk__slot_drop(slot);
        return;
    }
    pstk__slot_done(slot);
    pstk__window_put(&p->window, slot);
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* Slots are dealt round robin to the lanes. */
static uint32_t slots_of_lane(const struct pstk__pipeline *p, uint32_t lane)
{
    return p->slots->n_slots / p->n_lanes + (lane < p->slots->n_slots % p->n_lanes);
}

static int lane_init(struct pstk__pipeline *p, struct pstk__lane *l, struct pstk_error *err)
{
    uint64_t per_batch = (p->plan->batch_size + p->rows_per_job - 1) / p->rows_per_job;
    /* Listed rows are bounded (rows_ahead), and issued ones by the slots: more jobs than both
     * together are never out at once. */
    uint64_t n_jobs = slots_of_lane(p, l->number) * per_batch;
    uint64_t n_rows = n_jobs * p->rows_per_job;
    int bound = 1;
    if (n_jobs > UINT32_MAX / 2)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "batch_size: %u rows in %u slots are too many jobs", p->plan->batch_size,
                          p->slots->n_slots);
    l->n_jobs = (uint32_t)n_jobs;
    l->jobs = calloc(n_jobs, sizeof *l->jobs);
    l->rows = calloc(n_rows, sizeof *l->rows);
    l->spans = calloc(n_rows, sizeof *l->spans);
    l->work = pstk__queue_open(l->n_jobs);
    l->idle = pstk__queue_open(l->n_jobs);
    l->io_memory = pstk__numa_map(p->numa, l->ring_size + l->index_size, l->node, &bound);
    if (!bound)
        atomic_fetch_or_explicit(&p->rungs, PSTK_RUNG_NOT_BOUND, memory_order_relaxed);
    if (!l->jobs || !l->rows || !l->spans || !l->work || !l->idle || !l->io_memory)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for %llu jobs and %llu bytes of I/O memory",
                          (unsigned long long)n_jobs,
                          (unsigned long long)(l->ring_size + l->index_size));
    for (uint32_t i = 0; i < l->n_jobs; i++) {
        l->jobs[i].rows = l->rows + (uint64_t)i * p->rows_per_job;
        l->jobs[i].spans = l->spans + (uint64_t)i * p->rows_per_job;
        pstk__queue_push(l->idle, &l->jobs[i]);
    }
    return 0;
}

static int worker_init(struct pstk__pipeline *p, struct pstk__worker *w, struct pstk_error *err)
{
    void *spare = mmap(NULL, p->spare_size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (spare == MAP_FAILED)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for a record of %llu bytes, the largest there may be",
                          (unsigned long long)p->spare_size);
    w->spare = spare;
    return pstk__sampler_open(&w->sampler, p->plan, err);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Start a thread that takes no signals: they are for the program's own threads. */
static int thread_start(pthread_t *thread, void *(*body)(void *), void *argument,
                        struct pstk_error *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(thread, NULL, body, argument);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r != 0)
        return pstk__fail_errno(err, r, PSTK_STAGE_OPEN, "could not start a thread");
    return 0;
}

/* Wait until a thread runs or has failed. */
static int wait_started(struct pstk__pipeline *p, _Atomic int *thread_started,
                        const struct pstk_error *start_error, struct pstk_error *err)
{
    for (;;) {
        uint32_t ticket = pstk__gate_ticket(&p->started);
        int started = atomic_load_explicit(thread_started, memory_order_acquire);
        if (started > 0)
            return 0;
        if (started < 0)
            return pstk__fail_copy(err, start_error);
        pstk__gate_wait(&p->started, ticket, -1);
    }
}

/* First of all threads: it page-locks memory that the others write to, and says soonest that the
 * device cannot be used. */
static int start_uploader(struct pstk__pipeline *p, struct pstk_error *err)
{
    struct pstk__uploader *u = &p->uploader;
    u->pipeline = p;
    pstk_error_init(&u->start_error, sizeof u->start_error);
    p->delivered->room[0] = &p->window.uploads;
    int r = thread_start(&u->thread, pstk__stage_upload, u, err);
    u->running = r == 0;
    return r == 0 ? wait_started(p, &u->started, &u->start_error, err) : r;
}

static int start_all(struct pstk__pipeline *p, struct pstk_error *err)
{
    int r = p->delivered != p->slots ? start_uploader(p, err) : 0;
    for (uint32_t i = 0; r == 0 && i < p->n_lanes; i++)
        r = lane_init(p, &p->lanes[i], err);
    for (uint32_t i = 0; r == 0 && i < p->n_workers; i++)
        r = worker_init(p, &p->workers[i], err);
    for (uint32_t i = 0; r == 0 && i < p->n_workers; i++) {
        r = thread_start(&p->workers[i].thread, pstk__stage_work, &p->workers[i], err);
        p->workers[i].running = r == 0;
    }
    for (uint32_t i = 0; r == 0 && i < p->n_lanes; i++) {
        p->slots->room[i] = &p->lanes[i].room;
        r = thread_start(&p->lanes[i].thread, pstk__stage_read, &p->lanes[i], err);
        p->lanes[i].running = r == 0;
        if (r == 0)
            r = wait_started(p, &p->lanes[i].started, &p->lanes[i].start_error, err);
    }
    return r;
}

/* Lane k lies on node k modulo n_nodes; a node's workers are dealt round robin to its lanes, of
 * which each gets one, since no node has more lanes than workers. */
static struct pstk__lane *worker_lane(struct pstk__pipeline *p, uint32_t *n_of_node,
                                      uint32_t worker)
{
    uint32_t node = pstk__numa_worker_node(p->numa, worker);
    uint32_t n_here = p->n_lanes / p->n_nodes; /* lanes of every node */
    return &p->lanes[node + p->n_nodes * (n_of_node[node]++ % n_here)];
}

int pstk__stage_start(struct pstk__pipeline *p, struct pstk_error *err)
{
    pstk__gate_init(&p->started);
    for (uint32_t i = 0; i < p->n_lanes; i++) {
        struct pstk__lane *l = &p->lanes[i];
        l->pipeline = p;
        l->number = i;
        l->node = i % p->n_nodes;
        pstk__gate_init(&l->room);
        pstk_error_init(&l->start_error, sizeof l->start_error);
    }
    uint32_t n_of_node[PSTK__MAX_NODES] = {0};
    for (uint32_t i = 0; i < p->n_workers; i++) {
        struct pstk__worker *w = &p->workers[i];
        w->pipeline = p;
        w->number = i;
        w->lane = worker_lane(p, n_of_node, i);
    }
    int r = start_all(p, err);
    if (r < 0)
        pstk__stage_stop(p);
    return r;
}

static void lane_close(struct pstk__lane *l)
{
    pstk__queue_close(l->work);
    pstk__queue_close(l->idle);
    pstk__ring_close(&l->ring);
    if (l->io_memory && !l->keeps_memory)
        pstk__numa_unmap(l->io_memory, l->ring_size + l->index_size);
    free(l->spans);
    free(l->rows);
    free(l->jobs);
    l->work = l->idle = NULL;
    l->io_memory = NULL;
    l->spans = NULL;
    l->rows = NULL;
    l->jobs = NULL;
}

/* Leased slots come back without us. */
static void forget_gates(struct pstk__slots *s)
{
    pthread_mutex_lock(&s->lock);
    memset(s->room, 0, sizeof s->room);
    pthread_mutex_unlock(&s->lock);
}

void pstk__stage_stop(struct pstk__pipeline *p)
{
    atomic_store_explicit(&p->closing, 1, memory_order_release);
    pstk__gate_knock(&p->window.uploads);
    if (p->uploader.running)
        pthread_join(p->uploader.thread, NULL);
    p->uploader.running = 0;
    for (uint32_t i = 0; i < p->n_lanes; i++) {
        struct pstk__lane *l = &p->lanes[i];
        pstk__gate_knock(&l->room);
        if (l->running)
            pthread_join(l->thread, NULL);
        l->running = 0;
        if (l->work)
            pstk__queue_shut(l->work);
    }
    for (uint32_t i = 0; i < p->n_workers; i++) {
        struct pstk__worker *w = &p->workers[i];
        if (w->running)
            pthread_join(w->thread, NULL);
        w->running = 0;
        pstk__sampler_close(w->sampler);
        w->sampler = NULL;
        if (w->spare)
            munmap(w->spare, p->spare_size);
        w->spare = NULL;
    }
    forget_gates(p->slots);
    forget_gates(p->delivered);
    for (uint32_t i = 0; i < p->n_lanes; i++)
        lane_close(&p->lanes[i]);
}
