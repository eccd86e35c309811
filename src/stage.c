/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include "error.h"

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

/* Slots are dealt round robin to the nodes. */
static uint32_t slots_of_node(const struct pstk__pipeline *p, uint32_t node)
{
    return p->slots->n_slots / p->n_nodes + (node < p->slots->n_slots % p->n_nodes);
}

static int node_init(struct pstk__pipeline *p, struct pstk__node *n, struct pstk_error *err)
{
    uint64_t per_batch = (p->plan->batch_size + p->rows_per_job - 1) / p->rows_per_job;
    /* Listed rows are bounded (rows_ahead), and issued ones by the slots: more jobs than both
     * together are never out at once. */
    uint64_t n_jobs = slots_of_node(p, n->number) * per_batch;
    uint64_t n_rows = n_jobs * p->rows_per_job;
    int bound = 1;
    if (n_jobs > UINT32_MAX / 2)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "batch_size: %u rows in %u slots are too many jobs", p->plan->batch_size,
                          p->slots->n_slots);
    n->n_jobs = (uint32_t)n_jobs;
    n->jobs = calloc(n_jobs, sizeof *n->jobs);
    n->rows = calloc(n_rows, sizeof *n->rows);
    n->spans = calloc(n_rows, sizeof *n->spans);
    n->work = pstk__queue_open(n->n_jobs);
    n->idle = pstk__queue_open(n->n_jobs);
    n->io_memory = pstk__numa_map(p->numa, n->ring_size + n->index_size, n->number, &bound);
    if (!bound)
        atomic_fetch_or_explicit(&p->rungs, PSTK_RUNG_NOT_BOUND, memory_order_relaxed);
    if (!n->jobs || !n->rows || !n->spans || !n->work || !n->idle || !n->io_memory)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for %llu jobs and %llu bytes of I/O memory",
                          (unsigned long long)n_jobs,
                          (unsigned long long)(n->ring_size + n->index_size));
    for (uint32_t i = 0; i < n->n_jobs; i++) {
        n->jobs[i].rows = n->rows + (uint64_t)i * p->rows_per_job;
        n->jobs[i].spans = n->spans + (uint64_t)i * p->rows_per_job;
        pstk__queue_push(n->idle, &n->jobs[i]);
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

/* Wait until a reader thread runs or has failed. */
static int node_started(struct pstk__pipeline *p, struct pstk__node *n, struct pstk_error *err)
{
    for (;;) {
        uint32_t ticket = pstk__gate_ticket(&p->started);
        int started = atomic_load_explicit(&n->started, memory_order_acquire);
        if (started > 0)
            return 0;
        if (started < 0) {
            if (err)
                *err = n->start_error;
            return started;
        }
        pstk__gate_wait(&p->started, ticket, -1);
    }
}

static int start_all(struct pstk__pipeline *p, struct pstk_error *err)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < p->n_nodes; i++)
        r = node_init(p, &p->nodes[i], err);
    for (uint32_t i = 0; r == 0 && i < p->n_workers; i++)
        r = worker_init(p, &p->workers[i], err);
    for (uint32_t i = 0; r == 0 && i < p->n_workers; i++) {
        r = thread_start(&p->workers[i].thread, pstk__stage_work, &p->workers[i], err);
        p->workers[i].running = r == 0;
    }
    for (uint32_t i = 0; r == 0 && i < p->n_nodes; i++) {
        p->slots->room[i] = &p->nodes[i].room;
        r = thread_start(&p->nodes[i].thread, pstk__stage_read, &p->nodes[i], err);
        p->nodes[i].running = r == 0;
        if (r == 0)
            r = node_started(p, &p->nodes[i], err);
    }
    return r;
}

int pstk__stage_start(struct pstk__pipeline *p, struct pstk_error *err)
{
    pstk__gate_init(&p->started);
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        struct pstk__node *n = &p->nodes[i];
        n->pipeline = p;
        n->number = i;
        pstk__gate_init(&n->room);
        pstk_error_init(&n->start_error, sizeof n->start_error);
    }
    for (uint32_t i = 0; i < p->n_workers; i++) {
        struct pstk__worker *w = &p->workers[i];
        w->pipeline = p;
        w->number = i;
        w->node = &p->nodes[pstk__numa_worker_node(p->numa, i)];
    }
    int r = start_all(p, err);
    if (r < 0)
        pstk__stage_stop(p);
    return r;
}

static void node_close(struct pstk__node *n)
{
    pstk__queue_close(n->work);
    pstk__queue_close(n->idle);
    pstk__ring_close(&n->ring);
    if (n->io_memory)
        pstk__numa_unmap(n->io_memory, n->ring_size + n->index_size);
    free(n->spans);
    free(n->rows);
    free(n->jobs);
    n->work = n->idle = NULL;
    n->io_memory = NULL;
    n->spans = NULL;
    n->rows = NULL;
    n->jobs = NULL;
}

void pstk__stage_stop(struct pstk__pipeline *p)
{
    atomic_store_explicit(&p->closing, 1, memory_order_release);
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        struct pstk__node *n = &p->nodes[i];
        pstk__gate_knock(&n->room);
        if (n->running)
            pthread_join(n->thread, NULL);
        n->running = 0;
        if (n->work)
            pstk__queue_shut(n->work);
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
    pthread_mutex_lock(&p->slots->lock);
    memset(p->slots->room, 0, sizeof p->slots->room); /* leased slots come back without us */
    pthread_mutex_unlock(&p->slots->lock);
    for (uint32_t i = 0; i < p->n_nodes; i++)
        node_close(&p->nodes[i]);
}
