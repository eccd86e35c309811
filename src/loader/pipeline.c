/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline.h"

#include "base/clock.h"
#include "base/error.h"
#include "sample/multi_size.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Called by the worker that brought slot->n_tasks_left to 0, on its thread, or by the lane's reader
 * for a slot without rows. The caller holds no lock, and no other thread uses the slot: the acquire
 * of the countdown makes all workers' rows visible to it. */
void pstk__pipeline_finish(struct pstk__pipeline *pipeline, struct pstk__slot *slot,
                           struct pstk__ring *ring, struct pstk__histogram *finishes)
{
    const uint64_t begin = pstk__clock_ns();
    /* A worker that skipped a row saw the slot stale before its countdown, so this thread sees it
     * stale too: a slot with unwritten rows is never delivered. */
    if (pstk__reorder_stale(&pipeline->reorder, slot)) {
        pstk__slot_drop(slot);
        return;
    }
    const struct pstk__plan *plan = pstk__plan_of_size(pipeline->plan, slot->batch.size_index);
    if (plan->n_batched > 0)
        pstk__slot_run_callbacks(slot, plan, pipeline->settings.ranks.rank);
    if (pstk__plan_mixes(plan))
        pstk__slot_mix(slot, plan, pipeline->settings.ranks.rank);
    if (pstk__plan_has_mosaic(plan))
        pstk__slot_combine(slot, plan, pipeline->settings.ranks.rank);
    pstk__slot_done(slot);
    pstk__histogram_add(finishes, pstk__clock_ns() - begin); /* before the batch can be delivered */
    pstk__slot_trace(slot, ring, PSTK__EVENT_FINISH, begin, slot->batch.n_valid);
    pstk__reorder_put(&pipeline->reorder, slot);
}

/* ---- pools ----------------------------------------------------------------------------------- */

static int lane_init(struct pstk__pipeline *pipeline, struct pstk__lane *l, struct pstk_error *err)
{
    /* Slots are dealt round robin to the lanes. */
    const uint64_t n_slots = pipeline->slots->n_slots / pipeline->n_lanes +
                             (l->number < pipeline->slots->n_slots % pipeline->n_lanes);
    uint64_t per_batch =
        (pipeline->plan->batch_size + pipeline->rows_per_task - 1) / pipeline->rows_per_task;
    /* rows_ahead bounds the listed rows, and the slots bound the issued ones: never more tasks are
     * in use at once than both together. */
    uint64_t n_tasks = n_slots * per_batch;
    uint64_t n_rows = n_tasks * pipeline->rows_per_task, n_extents = n_rows * pipeline->n_extents;
    int bound = 1;
    if (n_tasks > UINT32_MAX / 2)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "%s: %u rows in %u slots are too many tasks: lower it or n_slots",
                          pipeline->plan->rows_setting, pipeline->plan->batch_size,
                          pipeline->slots->n_slots);
    l->n_tasks = (uint32_t)n_tasks;
    l->tasks = calloc(n_tasks, sizeof *l->tasks);
    l->rows = calloc(n_rows, sizeof *l->rows);
    l->extents = calloc(n_extents, sizeof *l->extents);
    l->spans = calloc(n_extents, sizeof *l->spans);
    const uint32_t n_orders = pipeline->stream.mixture ? pipeline->stream.mixture->n_data_sets : 0;
    l->orders = calloc(n_orders + 1, sizeof *l->orders); /* + 1: never of size 0 */
    l->work = pstk__queue_open(l->n_tasks);
    l->idle = pstk__queue_open(l->n_tasks);
    l->io_memory = pstk__numa_map(pipeline->numa, l->buffer_size + l->index_size, l->node, &bound);
    if (l->blocks_need.memory)
        l->block_memory = pstk__numa_map(pipeline->numa, l->blocks_need.memory, l->node, &bound);
    /* Rows of a batch lie anywhere in it: huge pages need fewer faults and entries of the TLB. */
    if (l->block_memory) /* if refused, pages stay small */
        (void)madvise(l->block_memory, l->blocks_need.memory, MADV_HUGEPAGE);
    if (!bound)
        atomic_fetch_or_explicit(&pipeline->fallbacks, PSTK_FALLBACK_NOT_BOUND,
                                 memory_order_relaxed);
    if (!l->tasks || !l->rows || !l->extents || !l->spans || !l->orders || !l->work || !l->idle ||
        !l->io_memory || (l->blocks_need.memory && !l->block_memory))
        return pstk__fail(
            err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
            "no memory for %llu tasks and %llu bytes of I/O memory", (unsigned long long)n_tasks,
            (unsigned long long)(l->buffer_size + l->index_size + l->blocks_need.memory));
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        l->tasks[i].fetch.rows = l->rows + (uint64_t)i * pipeline->rows_per_task;
        l->tasks[i].fetch.spans =
            l->spans + (uint64_t)i * pipeline->rows_per_task * pipeline->n_extents;
        pstk__queue_push(l->idle, &l->tasks[i]);
    }
    for (uint64_t i = 0; i < n_rows; i++)
        l->rows[i].extents = l->extents + i * pipeline->n_extents;
    return 0;
}

static int worker_init(struct pstk__pipeline *pipeline, struct pstk__worker *worker,
                       struct pstk_error *err)
{
    void *spare = mmap(NULL, pipeline->spare_size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (spare == MAP_FAILED)
        return pstk__fail(
            err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
            "no memory for a record of %llu bytes, the largest that the data set may have",
            (unsigned long long)pipeline->spare_size);
    worker->spare = spare;
    return pstk__sampler_open(&worker->sampler, pipeline->plan, err);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Start a thread that takes no signals: the program's own threads handle them. */
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

/* Wait until a thread runs or has failed. Called by the thread that opens the loader. The acquire
 * pairs with the release of the started thread, which wrote start_error and the lane's members
 * before. */
static int wait_started(struct pstk__pipeline *pipeline, _Atomic int *thread_started,
                        const struct pstk_error *start_error, struct pstk_error *err)
{
    for (;;) {
        uint32_t ticket = pstk__eventcount_ticket(&pipeline->started);
        int started = atomic_load_explicit(thread_started, memory_order_acquire);
        if (started > 0)
            return 0;
        if (started < 0)
            return pstk__fail_copy(err, start_error);
        pstk__eventcount_wait(&pipeline->started, ticket, -1);
    }
}

/* The uploader starts first: it page-locks memory that the others write to, and reports soonest
 * that the device cannot be used. */
static int start_uploader(struct pstk__pipeline *pipeline, struct pstk_error *err)
{
    struct pstk__uploader *uploader = &pipeline->uploader;
    uploader->pipeline = pipeline;
    pstk_error_init(&uploader->start_error, sizeof uploader->start_error);
    pstk__slots_watch(pipeline->delivered, 0, &pipeline->reorder.uploads);
    int r = thread_start(&uploader->thread, pstk__pipeline_upload, uploader, err);
    uploader->running = r == 0;
    return r == 0 ? wait_started(pipeline, &uploader->started, &uploader->start_error, err) : r;
}

static int open_times(struct pstk__pipeline *pipeline, struct pstk_error *err)
{
    pipeline->uploader_times = pstk__cpu_times_open(1);
    pipeline->workers_times = pstk__cpu_times_open(pipeline->n_workers);
    pipeline->readers_times = pstk__cpu_times_open(pipeline->n_lanes * (1 + pipeline->depth));
    if (!pipeline->uploader_times || !pipeline->workers_times || !pipeline->readers_times)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the times of threads");
    return 0;
}

static int start_all(struct pstk__pipeline *pipeline, struct pstk_error *err)
{
    int r = open_times(pipeline, err);
    if (r == 0 && pipeline->delivered != pipeline->slots)
        r = start_uploader(pipeline, err);
    for (uint32_t i = 0; r == 0 && i < pipeline->n_lanes; i++)
        r = lane_init(pipeline, &pipeline->lanes[i], err);
    for (uint32_t i = 0; r == 0 && i < pipeline->n_workers; i++)
        r = worker_init(pipeline, &pipeline->workers[i], err);
    for (uint32_t i = 0; r == 0 && i < pipeline->n_workers; i++) {
        r = thread_start(&pipeline->workers[i].thread, pstk__pipeline_work, &pipeline->workers[i],
                         err);
        pipeline->workers[i].running = r == 0;
    }
    for (uint32_t i = 0; r == 0 && i < pipeline->n_lanes; i++) {
        pstk__slots_watch(pipeline->slots, i, &pipeline->lanes[i].handback.eventcount);
        r = thread_start(&pipeline->lanes[i].thread, pstk__pipeline_read, &pipeline->lanes[i], err);
        pipeline->lanes[i].running = r == 0;
        if (r == 0)
            r = wait_started(pipeline, &pipeline->lanes[i].started, &pipeline->lanes[i].start_error,
                             err);
    }
    return r;
}

/* Return the lane of a worker. Lane k lies on node k modulo n_nodes; a node's workers are dealt
 * round robin to its lanes. Each lane gets one, because no node has more lanes than workers. */
static struct pstk__lane *worker_lane(struct pstk__pipeline *pipeline, uint32_t *n_of_node,
                                      uint32_t worker)
{
    uint32_t node = pstk__numa_worker_node(pipeline->numa, worker);
    uint32_t n_here = pipeline->n_lanes / pipeline->n_nodes; /* lanes of every node */
    return &pipeline->lanes[node + pipeline->n_nodes * (n_of_node[node]++ % n_here)];
}

int pstk__pipeline_start(struct pstk__pipeline *pipeline, struct pstk_error *err)
{
    pstk__eventcount_init(&pipeline->started);
    for (uint32_t i = 0; i < pipeline->n_lanes; i++) {
        struct pstk__lane *l = &pipeline->lanes[i];
        l->pipeline = pipeline;
        l->number = i;
        l->node = i % pipeline->n_nodes;
        pstk__handback_init(&l->handback);
        pstk_error_init(&l->start_error, sizeof l->start_error);
    }
    uint32_t n_of_node[PSTK__MAX_NODES] = {0};
    for (uint32_t i = 0; i < pipeline->n_workers; i++) {
        struct pstk__worker *worker = &pipeline->workers[i];
        worker->pipeline = pipeline;
        worker->number = i;
        worker->lane = worker_lane(pipeline, n_of_node, i);
    }
    int r = start_all(pipeline, err);
    if (r < 0)
        pstk__pipeline_stop(pipeline);
    return r;
}

static void lane_close(struct pstk__lane *l)
{
    pstk__queue_close(l->work);
    pstk__queue_close(l->idle);
    pstk__buffer_close(&l->buffer);
    pstk__files_close(l->files);
    l->files = NULL;
    if (l->io_memory && !l->keeps_memory)
        pstk__numa_unmap(l->io_memory, l->buffer_size + l->index_size);
    if (l->block_memory && !l->keeps_memory)
        pstk__numa_unmap(l->block_memory, l->blocks_need.memory);
    l->block_memory = NULL;
    free(l->orders);
    free(l->spans);
    free(l->extents);
    free(l->rows);
    free(l->tasks);
    l->work = l->idle = NULL;
    l->io_memory = NULL;
    l->spans = NULL;
    l->orders = NULL;
    l->extents = NULL;
    l->rows = NULL;
    l->tasks = NULL;
}

/* Called, holding no lock, by the thread that opens, if open failed, or by the thread that closes.
 * Each thread is woken before it is joined: uploader and readers see `closing`; workers see their
 * queue shut, which happens once its reader is joined. */
void pstk__pipeline_stop(struct pstk__pipeline *pipeline)
{
    atomic_store_explicit(&pipeline->closing, 1, memory_order_release);
    if (pipeline->source)
        pstk__source_stop(pipeline->source); /* else readers would wait for an entry of the cache */
    pstk__eventcount_notify(&pipeline->reorder.uploads);
    if (pipeline->uploader.running)
        pthread_join(pipeline->uploader.thread, NULL);
    pipeline->uploader.running = 0;
    for (uint32_t i = 0; i < pipeline->n_lanes; i++) {
        struct pstk__lane *l = &pipeline->lanes[i];
        pstk__eventcount_notify(&l->handback.eventcount);
        if (l->running)
            pthread_join(l->thread, NULL);
        l->running = 0;
        if (l->work)
            pstk__queue_shut(l->work);
    }
    for (uint32_t i = 0; i < pipeline->n_workers; i++) {
        struct pstk__worker *worker = &pipeline->workers[i];
        if (worker->running)
            pthread_join(worker->thread, NULL);
        worker->running = 0;
        pstk__sampler_close(worker->sampler);
        worker->sampler = NULL;
        if (worker->spare)
            munmap(worker->spare, pipeline->spare_size);
        worker->spare = NULL;
    }
    pstk__cpu_times_close(pipeline->readers_times);
    pstk__cpu_times_close(pipeline->workers_times);
    pstk__cpu_times_close(pipeline->uploader_times);
    pipeline->readers_times = pipeline->workers_times = pipeline->uploader_times = NULL;
    /* All threads of the loader were joined; consumers may still give leased slots back. */
    pstk__slots_unwatch(pipeline->slots);
    pstk__slots_unwatch(pipeline->delivered);
    for (uint32_t i = 0; i < pipeline->n_lanes; i++)
        lane_close(&pipeline->lanes[i]);
}

/* ---- the times of the stages ----------------------------------------------------------------- */

/* asked_ns is stored last: a thread that sees it sees the rest too. */
void pstk__pipeline_ask(struct pstk__pipeline *pipeline, uint64_t now)
{
    if (atomic_load_explicit(&pipeline->asked_ns, memory_order_relaxed))
        return;
    struct pstk_stage_stats made = {0};
    for (uint32_t i = 0; i < pipeline->n_workers; i++)
        pstk__stats_add(&made, &pipeline->workers[i].counters);
    atomic_store_explicit(&pipeline->n_rows_ahead, made.n_items, memory_order_relaxed);
    pstk__cpu_times_begin(pipeline->readers_times);
    pstk__cpu_times_begin(pipeline->workers_times);
    pstk__cpu_times_begin(pipeline->uploader_times);
    atomic_store_explicit(&pipeline->asked_cpu_ns, pstk__clock_cpu_ns(), memory_order_relaxed);
    atomic_store_explicit(&pipeline->asked_ns, now, memory_order_release);
}

static void put_times(struct pstk_stage_stats *stage, struct pstk__cpu_times *times)
{
    const struct pstk__cpu_time used = pstk__cpu_times_read(times);
    stage->cpu_ns = used.cpu_ns;
    stage->core_wait_ns = used.core_wait_ns;
}

void pstk__pipeline_measure(const struct pstk__pipeline *pipeline, struct pstk_stats *stats)
{
    if (!atomic_load_explicit(&pipeline->asked_ns, memory_order_acquire)) {
        stats->n_rows_ahead = stats->stage_workers.n_items;
        return;
    }
    stats->cpu_ns =
        pstk__clock_cpu_ns() - atomic_load_explicit(&pipeline->asked_cpu_ns, memory_order_relaxed);
    put_times(&stats->stage_reader, pipeline->readers_times);
    put_times(&stats->stage_workers, pipeline->workers_times);
    put_times(&stats->stage_uploader, pipeline->uploader_times);
    stats->n_rows_ahead = atomic_load_explicit(&pipeline->n_rows_ahead, memory_order_relaxed);
}
