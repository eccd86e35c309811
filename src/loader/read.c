/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of a lane: claim, list, plan, issue, reap. See pipeline.h for the shape.
 *
 * Everything here runs on the lane's reader thread, which holds no lock. A task is the reader's
 * from pstk__fetch_take_back, which pops it from the idle queue, to push_if_read, which pushes it
 * to the workers; its slot's countdown is set before its first task is pushed. Other threads are
 * reached through the pools alone (slots, queues, pieces of the buffer: each has its own lock or
 * atomic), the reorder buffer (its lock), the handback, the counters and the pipeline's fallbacks
 * (relaxed: they guard nothing).
 */
#include "loader/pipeline.h"

#include "loader/blocks.h"
#include "loader/fetch.h"

#include "base/clock.h"
#include "base/error.h"

#include <stddef.h>
#include <stdio.h>

#define SPAN_GAP 4096u      /* bytes between two records that are cheaper to read than to skip */
#define SPAN_MAX (1u << 20) /* bytes of a coalesced read */
#define READ_MAX (1u << 30) /* bytes of any fast read; larger records take the slow path */
#define REAP_MAX 64

/* ---- claim and list: slots become tasks ------------------------------------------------------ */

/* Return the number of rows to list: enough to keep the queue full while the oldest are read. */
static uint32_t rows_ahead(const struct pstk__pipeline *pipeline)
{
    return 2 * pipeline->depth + pipeline->rows_per_task;
}

/* Take a free slot of the lane and give it the next batch of the stream. Returns 1 if it did. */
static int claim_slot(struct pstk__lane *l)
{
    struct pstk__pipeline *pipeline = l->pipeline;
    if (l->claimed || l->n_listed >= rows_ahead(pipeline))
        return 0;
    const uint64_t begin = pstk__ring_now(l->ring);
    struct pstk__slot *slot = pstk__slot_begin(pipeline->slots, l->number);
    if (!slot)
        return 0;
    pstk__reorder_claim(&pipeline->reorder, slot);
    pstk__slot_shape(slot, pipeline->plan);
    /* Open keeps batches below 2^31 rows: no overflow. */
    uint32_t n_tasks =
        (slot->batch.n_valid + pipeline->rows_per_task - 1) / pipeline->rows_per_task;
    /* Relaxed: the push of each task shows it to the workers. */
    atomic_store_explicit(&slot->n_tasks_left, n_tasks, memory_order_relaxed);
    pstk__slot_trace(slot, l->ring, PSTK__EVENT_CLAIM, begin, slot->batch.n_valid);
    if (n_tasks == 0)
        pstk__pipeline_finish(pipeline, slot, l->ring, &l->finishes);
    else
        l->claimed = slot;
    l->next_row = 0;
    return 1;
}

/* Give the next rows of the claimed slot to a free task. */
static void task_begin(struct pstk__lane *l, struct pstk__task *task, uint32_t n_rows)
{
    task->slot = l->claimed;
    task->lane = l;
    task->first_row = l->next_row;
    task->issued_ns = 0;
    task->fetch = (struct pstk__fetch){
        .rows = task->fetch.rows, .spans = task->fetch.spans, .n_rows = n_rows, .task = task};
    task->piece = NULL;
    task->next = NULL;
    if (l->blocks)
        pstk__blocks_list(l->blocks, task);
}

/* Divide the claimed slot into tasks, and list them in the order in which they are issued. */
static int list_tasks(struct pstk__lane *l)
{
    struct pstk__pipeline *pipeline = l->pipeline;
    int progress = 0;
    while (l->claimed && l->n_listed < rows_ahead(pipeline)) {
        if (l->blocks && !pstk__blocks_have_room(l->blocks))
            break;
        if (!l->free)
            pstk__fetch_take_back(l);
        struct pstk__task *task = l->free;
        if (!task)
            break;
        l->free = task->next;
        uint32_t rest = l->claimed->batch.n_valid - l->next_row;
        task_begin(l, task, rest < pipeline->rows_per_task ? rest : pipeline->rows_per_task);
        if (l->last)
            l->last->next = task;
        else
            l->first = task;
        l->last = task;
        if (!l->plan)
            l->plan = task;
        l->n_listed += task->fetch.n_rows;
        l->next_row += task->fetch.n_rows;
        if (l->next_row == l->claimed->batch.n_valid)
            l->claimed = NULL;
        progress = 1;
    }
    return progress;
}

/* ---- plan: rows become extents -------------------------------------------------------------- */

static enum pstk__row_plan plan_row(struct pstk__lane *l, struct pstk__task *task, uint32_t i)
{
    struct pstk__row_io *io = &task->fetch.rows[i];
    struct pstk__slot *slot = task->slot;
    const uint32_t row = task->first_row + i;
    const uint64_t k = slot->places ? slot->places[row]
                                    : pstk__partition_row(&l->pipeline->stream.partition,
                                                          slot->batch.position, row);
    io->page = NULL;
    io->block = NULL;
    io->scattered = 0;
    if (l->blocks)
        pstk__blocks_find(l->blocks, task, k, io);
    else
        pstk__picker_at(&l->picker, slot->batch.epoch, k, &io->pick);
    slot->sample_ids[row] = io->pick.id - io->pick.first;
    if (slot->data_sets)
        slot->data_sets[row] = io->pick.data_set;
    slot->replacement_ids[row] = PSTK_NONE;
    return io->block ? PSTK__ROW_WAITS : pstk__fetch_plan_row(l, io, io->pick.id);
}

static int plan_tasks(struct pstk__lane *l)
{
    int progress = 0;
    for (; l->plan; l->plan = l->plan->next) {
        struct pstk__task *task = l->plan;
        struct pstk__fetch *fetch = &task->fetch;
        int stale = pstk__reorder_stale(&l->pipeline->reorder, task->slot);
        for (; fetch->n_planned < fetch->n_rows; fetch->n_planned++) {
            if (stale) { /* nobody will read the row */
                fetch->rows[fetch->n_planned].page = NULL;
                fetch->rows[fetch->n_planned].block = NULL;
                fetch->rows[fetch->n_planned].slow = 1;
            } else if (plan_row(l, task, fetch->n_planned) == PSTK__ROW_LATER) {
                return progress;
            }
            progress = 1;
        }
    }
    return progress;
}

/* ---- issue: extents become reads ------------------------------------------------------------- */

/* Push the task to the workers if all its reads are done. */
static void push_if_read(struct pstk__lane *l, struct pstk__task *task)
{
    if (!pstk__fetch_is_done(&task->fetch))
        return;
    pstk__slot_trace(task->slot, l->ring, PSTK__EVENT_READ, task->issued_ns, task->fetch.n_rows);
    pstk__queue_push(l->work, task);
}

/* Count the rows of a task. Rows from blocks count their bytes as read for their batch; the other
 * rows of a windowed order count as read by themselves. */
static void count_rows(struct pstk__lane *l, struct pstk__task *task)
{
    uint64_t n_bytes = 0, n_lone = 0;
    for (uint32_t i = 0; i < task->fetch.n_rows; i++) {
        const struct pstk__row_io *io = &task->fetch.rows[i];
        for (uint32_t k = 0; io->block && !io->slow && k < l->pipeline->n_extents; k++)
            n_bytes += io->extents[k].size;
        n_lone += !io->block;
    }
    task->fetch.n_bytes += n_bytes;
    pstk__count(&l->counters.n_lone, n_lone);
}

/* Turn pages and blocks into extents. Returns 0 while one is being read. */
static int resolve_task(struct pstk__lane *l, struct pstk__task *task)
{
    struct pstk__fetch *fetch = &task->fetch;
    for (; fetch->n_resolved < fetch->n_rows; fetch->n_resolved++) {
        struct pstk__row_io *io = &fetch->rows[fetch->n_resolved];
        if (!pstk__fetch_resolve_row(l, io) || (io->block && !pstk__blocks_resolve(l->blocks, io)))
            return 0;
    }
    if (l->blocks)
        count_rows(l, task);
    return 1;
}

/* Issue the oldest tasks, strictly in order. */
static int issue_tasks(struct pstk__lane *l)
{
    int progress = 0;
    while (l->first && l->first->fetch.n_planned == l->first->fetch.n_rows) {
        struct pstk__task *task = l->first;
        struct pstk__fetch *fetch = &task->fetch;
        if (!fetch->laid_out) {
            if (!resolve_task(l, task))
                break;
            pstk__fetch_lay_out(l, fetch, &l->span_limits);
        }
        if (fetch->memory_size && !task->piece) {
            task->piece = pstk__buffer_get(&l->buffer, fetch->memory_size);
            if (!task->piece)
                break;
            pstk__fetch_place(l, fetch, task->piece->data, 1);
        }
        if (!task->issued_ns)
            task->issued_ns = pstk__clock_ns();
        uint32_t before = fetch->next_span;
        int all = pstk__fetch_queue(l, fetch);
        progress |= fetch->next_span != before;
        if (!all)
            break;
        l->first = task->next;
        if (!l->first)
            l->last = NULL;
        l->n_listed -= fetch->n_rows;
        progress = 1;
        push_if_read(l, task); /* no read is left: all failed, or all were reaped */
    }
    return progress;
}

/* ---- reap ------------------------------------------------------------------------------------ */

static void span_done(struct pstk__lane *l, struct pstk__span_io *span_io)
{
    if (!span_io->fetch->task) {
        pstk__blocks_span_done(l->blocks, span_io);
        return;
    }
    pstk__fetch_span_done(l, span_io);
    push_if_read(l, span_io->fetch->task);
}

/* Returns the number of reads reaped, or <0. */
static int reap(struct pstk__lane *l, int wait)
{
    struct pstk__read *done[REAP_MAX];
    int n_done = l->backend->ops->reap(l->backend, done, REAP_MAX, wait);
    const uint64_t now = n_done > 0 ? pstk__clock_ns() : 0;
    for (int i = 0; i < n_done; i++) {
        struct pstk__read *request = done[i];
        l->n_in_flight--;
        pstk__count(&l->counters.n_items, 1);
        pstk__histogram_add(&l->counters.times, now - request->queued_ns);
        if (request->result > 0)
            pstk__count(&l->counters.bytes, (uint64_t)request->result);
        char *at = (char *)request;
        if (request->user == PSTK__READ_PAGE)
            pstk__fetch_page_done(
                l, (struct pstk__page *)(void *)(at - offsetof(struct pstk__page, read)));
        else
            span_done(l,
                      (struct pstk__span_io *)(void *)(at - offsetof(struct pstk__span_io, read)));
    }
    return n_done;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Run one round. Returns <0 if the backend failed, else how many things got done. *waited_ns: ns in
 * which the round waited for storage. */
static int advance(struct pstk__lane *l, uint64_t *waited_ns)
{
    int progress = claim_slot(l);
    progress |= list_tasks(l);
    progress |= plan_tasks(l);
    progress |= issue_tasks(l);
    if (l->blocks)
        progress |= pstk__blocks_advance(l->blocks);
    *waited_ns = 0;
    int r = l->backend->ops->submit(l->backend);
    if (r < 0)
        return r;
    int wait = !progress && l->n_in_flight > 0;
    uint64_t before = wait ? pstk__clock_ns() : 0;
    r = l->n_in_flight > 0 ? reap(l, wait) : 0;
    *waited_ns = wait ? pstk__clock_ns() - before : 0;
    const uint32_t taken =
        l->backend->fallbacks | (l->residency.refused ? PSTK_FALLBACK_NO_NOWAIT : 0u);
    if (taken & ~l->fallbacks) { /* fallbacks taken since the backend was opened */
        l->fallbacks |= taken;
        atomic_fetch_or_explicit(&l->pipeline->fallbacks, l->fallbacks, memory_order_relaxed);
    }
    return r < 0 ? r : progress + r;
}

static void fail(struct pstk__lane *l, int native)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    pstk__fail_errno(&err, native, PSTK_STAGE_READ, "the %s reader failed", l->backend->ops->name);
    pstk__reorder_fail(&l->pipeline->reorder, &err);
}

/* Run rounds until the pipeline closes or the backend fails. The time of a round counts as busy,
 * except its waits: waits for storage, at its end, count as starved; waits for resources of other
 * threads count as blocked. */
static void run(struct pstk__lane *l)
{
    struct pstk__pipeline *pipeline = l->pipeline;
    uint64_t mark = pstk__clock_ns();
    for (;;) {
        pstk__handback_begin(&l->handback); /* before reading `closing` and the pools */
        if (atomic_load_explicit(&pipeline->closing, memory_order_acquire))
            return;
        uint64_t waited = 0;
        pstk__trace_begin(pipeline->trace, "read", l->claimed ? l->claimed->seq : 0);
        const int r = advance(l, &waited);
        pstk__trace_end(pipeline->trace);
        uint64_t now = pstk__clock_ns();
        pstk__count_span(&l->counters.busy_ns, &pipeline->asked_ns, mark, now - waited);
        pstk__count_span(&l->counters.starved_ns, &pipeline->asked_ns, now - waited, now);
        mark = now;
        if (r < 0) {
            fail(l, -r);
            return;
        }
        /* With reads in flight, the next round waits for one of them instead. */
        if (!pstk__handback_end(&l->handback, r > 0) || l->n_in_flight > 0)
            continue;
        pstk__handback_wait(&l->handback);
        now = pstk__clock_ns();
        pstk__count_span(&l->counters.blocked_ns, &pipeline->asked_ns, mark, now);
        mark = now;
    }
}

/* Return the threads of a lane's pread pool: 16 per node, divided among its lanes. Without
 * descriptors they also unpack what they read (unpack/). Then two for each core that this process
 * may use are enough, and the ranks of a machine do not take the cores from one another. */
static uint32_t pread_threads(const struct pstk__pipeline *pipeline)
{
    uint32_t n = 16 * pipeline->n_nodes;
    const uint32_t n_usable = pstk__numa_n_usable(pipeline->numa);
    if (!pipeline->source->store->has_fds && n_usable < n / 2)
        n = 2 * n_usable;
    n /= pipeline->n_lanes;
    n = n < pipeline->depth ? n : pipeline->depth;
    return n ? n : 1;
}

static int open_lane(struct pstk__lane *l, struct pstk_error *err)
{
    struct pstk__pipeline *pipeline = l->pipeline;
    uint32_t n_files = pstk__files_capacity(pipeline->source->n_files, pipeline->n_lanes);
    uint8_t *pages = (uint8_t *)l->io_memory + l->buffer_size;
    struct pstk__reader_config c = {.kind = pipeline->settings.reading.reader,
                                    .depth = pipeline->depth,
                                    .n_files = n_files,
                                    .n_threads = pread_threads(pipeline),
                                    .no_fds = !pipeline->source->store->has_fds,
                                    .times = pipeline->readers_times,
                                    .buffers = l->io_memory,
                                    .buffers_size = l->buffer_size + l->index_size};
    int r = pstk__reader_open(&l->backend, &c, &l->fallbacks, err);
    if (r == 0)
        l->backend_kind = l->backend->ops->kind;
    if (r == 0)
        r = pstk__files_open(&l->files, pipeline->source, n_files,
                             pipeline->direct ? PSTK__FILES_DIRECT : PSTK__FILES_RANDOM,
                             &l->fallbacks, err);
    if (r == 0)
        r = pstk__pages_open(&l->pages, pages, l->index_size, err);
    pstk__residency_init(&l->residency, pipeline->reader_reads);
    pstk__picker_init(&l->picker, &pipeline->stream.picks);
    l->picker.of_mixture = l->orders;
    l->span_limits = (struct pstk__span_limits){.memory = l->buffer_size / 2,
                                                .single = READ_MAX,
                                                .joined = SPAN_MAX,
                                                .gap = SPAN_GAP,
                                                .offset_align = pipeline->offset_align,
                                                .memory_align = pipeline->memory_align};
    if (r == 0 && pstk__buffer_open(&l->buffer, l->io_memory, l->buffer_size, l->n_tasks) < 0)
        r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the I/O buffer");
    if (r == 0 && l->blocks_need.memory)
        r = pstk__blocks_open(&l->blocks, l, &l->blocks_need, l->block_memory, err);
    return r;
}

static void close_lane(struct pstk__lane *l)
{
    if (l->backend) {
        l->keeps_memory = l->backend->n_lost > 0;
        l->backend->ops->close(
            l->backend); /* first: it waits until the kernel no longer writes to the memory below */
    }
    l->backend = NULL;
    pstk__pages_close(l->pages);
    l->pages = NULL;
    /* `files` stay open, and the buffer's pieces stay valid: workers may still read into some. */
    pstk__blocks_close(l->blocks); /* workers may still read the blocks' memory, which stays mapped
                                      until lane_close */
    l->blocks = NULL;
}

void *pstk__pipeline_read(void *lane)
{
    struct pstk__lane *l = lane;
    struct pstk__pipeline *pipeline = l->pipeline;
    char name[16];
    snprintf(name, sizeof name, "pstk-reader-%u", l->number % 100u);
    pthread_setname_np(pthread_self(), name);
    if (pipeline->settings.reading.pin_threads && pstk__numa_pin_node(pipeline->numa, l->node) != 0)
        l->fallbacks |= PSTK_FALLBACK_NOT_PINNED;
    pstk__cpu_times_join(pipeline->readers_times);
    int r = open_lane(l, &l->start_error);
    atomic_fetch_or_explicit(&pipeline->fallbacks, l->fallbacks, memory_order_relaxed);
    atomic_store_explicit(&l->started, r < 0 ? r : 1, memory_order_release);
    pstk__eventcount_notify(&pipeline->started);
    if (r == 0)
        run(l);
    close_lane(l);
    pstk__cpu_times_leave(pipeline->readers_times);
    return NULL;
}
