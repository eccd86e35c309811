/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of a lane: claim, list, plan, issue, reap. See pipeline.h for the shape.
 *
 * Everything here runs on the lane's reader thread, which holds no lock. A task is the reader's
 * from list_tasks, which pops it from the idle queue, to push_if_read, which pushes it to the
 * workers; its slot's countdown is set before its first task is pushed. Other threads are reached
 * through the pools alone (slots, queues, pieces of the buffer: each has its own lock or atomic),
 * the window (its lock), the handback, the counters and the pipeline's fallbacks (relaxed: they
 * guard nothing).
 */
#include "loader/pipeline.h"

#include "base/clock.h"
#include "base/error.h"

#include <stddef.h>
#include <stdio.h>

#define SPAN_GAP 4096u      /* bytes between two records that are cheaper read than skipped */
#define SPAN_MAX (1u << 20) /* bytes of a coalesced read */
#define READ_MAX (1u << 30) /* bytes of any fast read; larger records take the slow path */
#define REAP_MAX 64

enum { READ_SPAN = 0, READ_PAGE = 1 }; /* pstk__read.user */

/* ---- claim and list: slots become tasks ------------------------------------------------------ */

/* Rows to have listed: as many as keep the queue full while the oldest are waited for. */
static uint32_t rows_ahead(const struct pstk__pipeline *pipeline)
{
    return 2 * pipeline->depth + pipeline->rows_per_task;
}

/* Take a free slot of the lane and give it the next batch of the stream. 1: it did. */
static int claim_slot(struct pstk__lane *l)
{
    struct pstk__pipeline *pipeline = l->pipeline;
    if (l->claimed || l->n_listed >= rows_ahead(pipeline))
        return 0;
    struct pstk__slot *slot = pstk__slot_begin(pipeline->slots, l->number);
    if (!slot)
        return 0;
    pstk__window_claim(&pipeline->window, slot);
    pstk__slot_shape(slot, pipeline->plan);
    /* Open keeps batches below 2^31 rows: no overflow. */
    uint32_t n_tasks =
        (slot->batch.n_valid + pipeline->rows_per_task - 1) / pipeline->rows_per_task;
    /* Relaxed: the queue's lock shows it to the workers. */
    atomic_store_explicit(&slot->n_tasks_left, n_tasks, memory_order_relaxed);
    if (n_tasks == 0)
        pstk__pipeline_finish(pipeline, slot);
    else
        l->claimed = slot;
    l->next_row = 0;
    return 1;
}

/* Divide the claimed slot into tasks, and list them in the order in which they are issued. */
static int list_tasks(struct pstk__lane *l)
{
    struct pstk__pipeline *pipeline = l->pipeline;
    int progress = 0;
    while (l->claimed && l->n_listed < rows_ahead(pipeline)) {
        struct pstk__task *task = pstk__queue_try_pop(l->idle);
        if (!task)
            break;
        uint32_t rest = l->claimed->batch.n_valid - l->next_row;
        *task = (struct pstk__task){
            .slot = l->claimed,
            .lane = l,
            .first_row = l->next_row,
            .n_rows = rest < pipeline->rows_per_task ? rest : pipeline->rows_per_task,
            .rows = task->rows,
            .spans = task->spans};
        if (l->last)
            l->last->next = task;
        else
            l->first = task;
        l->last = task;
        if (!l->plan)
            l->plan = task;
        l->n_listed += task->n_rows;
        l->next_row += task->n_rows;
        if (l->next_row == l->claimed->batch.n_valid)
            l->claimed = NULL;
        progress = 1;
    }
    return progress;
}

/* ---- plan: rows become extents -------------------------------------------------------------- */

/* Pin a file for one read. 1: pinned; 0: try later; <0: it cannot be opened. */
static int acquire_file(struct pstk__lane *l, uint32_t number, uint32_t *slot,
                        const struct pstk__file **file)
{
    uint32_t before = l->fallbacks;
    int r = pstk__files_acquire(l->files, number, slot, file, NULL); /* the slow path reports why */
    if (l->fallbacks != before)
        atomic_fetch_or_explicit(&l->pipeline->fallbacks, l->fallbacks, memory_order_relaxed);
    if (r == PSTK_EBUSY)
        return 0;
    if (r < 0)
        return r;
    if (r == 1)
        l->backend->ops->set_file(l->backend, *slot, (*file)->fd); /* refused: it reads by fd */
    return 1;
}

/* Start reading a page that is EMPTY. As acquire_file. */
static int read_page(struct pstk__lane *l, struct pstk__page *page)
{
    if (l->n_in_flight >= l->pipeline->depth)
        return 0;
    const struct pstk__file *from;
    int r = acquire_file(l, page->extent.file, &page->file, &from);
    if (r <= 0)
        return r;
    page->read = (struct pstk__read){.from = from,
                                     .file = page->file,
                                     .offset = page->extent.offset,
                                     .buffer = page->data,
                                     .size = PSTK__PAGE_SIZE,
                                     .fixed = 1,
                                     .user = READ_PAGE};
    page->state = PSTK__PAGE_LOADING;
    l->backend->ops->queue(l->backend, &page->read);
    l->n_in_flight++;
    return 1;
}

/* The result of planning a row. */
enum row_plan {
    ROW_KNOWN, /* its extent is known */
    ROW_WAITS, /* its page is pinned and being read */
    ROW_SLOW,  /* it is left to the slow path */
    ROW_LATER, /* no page frame, read or file is free: it is planned again */
};

/* Ask the format for a row's extent, which follows from its page or, where that is NULL, from its
 * number. */
static enum row_plan resolve_row(struct pstk__lane *l, struct pstk__row_io *io, const void *page)
{
    const struct pstk__source *source = l->pipeline->source;
    const int r =
        source->format->extent(source, &io->at, l->pipeline->fields, page, io->extents, NULL);
    io->slow = r < 0;
    return r < 0 ? ROW_SLOW : ROW_KNOWN;
}

static enum row_plan plan_row(struct pstk__lane *l, struct pstk__task *task, uint32_t i)
{
    const struct pstk__source *source = l->pipeline->source;
    struct pstk__row_io *io = &task->rows[i];
    struct pstk__extent at;
    uint32_t row = task->first_row + i;
    struct pstk__slot *slot = task->slot;
    pstk__picker_at(&l->picker, slot->batch.epoch,
                    pstk__partition_row(&l->pipeline->partition, slot->batch.position, row),
                    &io->pick);
    io->page = NULL;
    io->slow = 0;
    slot->sample_ids[row] = io->pick.id;
    slot->replacement_ids[row] = PSTK_NONE;
    source->format->locate(source, io->pick.id, &io->at);
    pstk__source_page(source, &io->at, &at);
    if (at.size == 0)
        return resolve_row(l, io, NULL);
    struct pstk__page *page = pstk__index_get(l->index, &at);
    if (!page)
        return ROW_LATER;
    if (page->state == PSTK__PAGE_READY) {
        const enum row_plan plan = resolve_row(l, io, page->data);
        pstk__index_unpin(l->index, page);
        pstk__count(&l->counters.n_hits, 1);
        return plan;
    }
    const int is_new = page->state == PSTK__PAGE_EMPTY;
    const int r = is_new ? read_page(l, page) : 1;
    if (r <= 0) {
        io->slow = r < 0;
        pstk__index_drop(l->index, page);
        pstk__index_unpin(l->index, page);
        return r < 0 ? ROW_SLOW : ROW_LATER;
    }
    pstk__count(is_new ? &l->counters.n_misses : &l->counters.n_hits, 1);
    io->page = page;
    return ROW_WAITS;
}

static int plan_tasks(struct pstk__lane *l)
{
    int progress = 0;
    for (; l->plan; l->plan = l->plan->next) {
        struct pstk__task *task = l->plan;
        int stale = pstk__window_stale(&l->pipeline->window, task->slot);
        for (; task->n_planned < task->n_rows; task->n_planned++) {
            if (stale)
                task->rows[task->n_planned].slow = 1; /* its page is NULL: nobody waits for one */
            else if (plan_row(l, task, task->n_planned) == ROW_LATER)
                return progress;
            progress = 1;
        }
    }
    return progress;
}

/* ---- issue: extents become reads ------------------------------------------------------------- */

/* Turn pages into extents. 0: one is still being read. */
static int resolve_task(struct pstk__lane *l, struct pstk__task *task)
{
    for (uint32_t i = 0; i < task->n_rows; i++) {
        struct pstk__row_io *io = &task->rows[i];
        if (!io->page)
            continue;
        if (io->page->state == PSTK__PAGE_LOADING)
            return 0;
        if (io->page->state == PSTK__PAGE_READY)
            resolve_row(l, io, io->page->data);
        else
            io->slow = 1;
        pstk__index_unpin(l->index, io->page);
        io->page = NULL;
    }
    return 1;
}

/* Lay extent number k of a task's rows out as spans; rows that do not fit take the slow path. */
static void lay_out(struct pstk__lane *l, struct pstk__task *task, uint32_t k)
{
    const uint32_t n_before = task->n_spans;
    for (uint32_t i = 0; i < task->n_rows; i++) {
        struct pstk__row_io *io = &task->rows[i];
        if (io->slow)
            continue;
        const struct pstk__extent *extent = &io->extents[k];
        struct pstk__span *last =
            task->n_spans > n_before ? &task->spans[task->n_spans - 1].span : NULL;
        struct pstk__span row = {.file = extent->file,
                                 .first = i,
                                 .n = 1,
                                 .begin = extent->offset,
                                 .end = extent->offset + extent->size};
        switch (pstk__span_join(&l->span_limits, last, &row, &task->memory_size)) {
        case PSTK__SPAN_JOINED:
            break;
        case PSTK__SPAN_BEGUN:
            task->spans[task->n_spans].task = task;
            task->spans[task->n_spans].extent = k;
            task->spans[task->n_spans++].span = row;
            break;
        case PSTK__SPAN_REFUSED:
            io->slow = 1;
        }
    }
}

/* Lay a task's rows out as spans, of at most half the buffer in all. Rows that lie next to each
 * other do so in each of their files: one extent of all rows comes before the next. */
static void lay_out_all(struct pstk__lane *l, struct pstk__task *task)
{
    for (uint32_t k = 0; k < l->pipeline->n_extents; k++)
        lay_out(l, task, k);
    task->n_left = task->n_spans;
    task->laid_out = 1;
}

/* Give spans and rows their places in the task's piece. */
static void place_spans(const struct pstk__lane *l, struct pstk__task *task)
{
    uint8_t *to = task->piece->data;
    for (uint32_t k = 0; k < task->n_spans; k++) {
        const struct pstk__span *span = &task->spans[k].span;
        const uint64_t start = pstk__span_offset(&l->span_limits, span);
        task->spans[k].read =
            (struct pstk__read){.offset = start,
                                .buffer = to,
                                .size = (uint32_t)pstk__span_size(&l->span_limits, span),
                                .fixed = 1,
                                .user = READ_SPAN};
        for (uint32_t i = span->first; i < span->first + span->n; i++) {
            struct pstk__extent *extent = &task->rows[i].extents[task->spans[k].extent];
            extent->data = to + (extent->offset - start);
        }
        to += span->memory;
    }
}

static void fail_span(struct pstk__span_io *span_io)
{
    for (uint32_t i = 0; i < span_io->span.n; i++)
        span_io->task->rows[span_io->span.first + i].slow = 1;
}

/* Queue the task's reads. 0: not all yet. */
static int queue_spans(struct pstk__lane *l, struct pstk__task *task)
{
    for (; task->next_span < task->n_spans; task->next_span++) {
        struct pstk__span_io *span_io = &task->spans[task->next_span];
        if (l->n_in_flight >= l->pipeline->depth)
            return 0;
        int r = acquire_file(l, span_io->span.file, &span_io->file_slot, &span_io->read.from);
        if (r == 0)
            return 0;
        if (r < 0) {
            fail_span(span_io);
            task->n_left--;
            continue;
        }
        span_io->read.file = span_io->file_slot;
        l->backend->ops->queue(l->backend, &span_io->read);
        l->n_in_flight++;
    }
    return 1;
}

/* Tasks whose reads are all done go to the workers. */
static void push_if_read(struct pstk__lane *l, struct pstk__task *task)
{
    if (task->next_span == task->n_spans && task->n_left == 0)
        pstk__queue_push(l->work, task);
}

/* Issue the oldest tasks, strictly in order. */
static int issue_tasks(struct pstk__lane *l)
{
    int progress = 0;
    while (l->first && l->first->n_planned == l->first->n_rows) {
        struct pstk__task *task = l->first;
        if (!task->laid_out) {
            if (!resolve_task(l, task))
                break;
            lay_out_all(l, task);
        }
        if (task->memory_size && !task->piece) {
            task->piece = pstk__buffer_get(&l->buffer, task->memory_size);
            if (!task->piece)
                break;
            place_spans(l, task);
        }
        uint32_t before = task->next_span;
        int all = queue_spans(l, task);
        progress |= task->next_span != before;
        if (!all)
            break;
        l->first = task->next;
        if (!l->first)
            l->last = NULL;
        l->n_listed -= task->n_rows;
        progress = 1;
        push_if_read(l, task); /* none of its reads is left: all failed, or all were reaped */
    }
    return progress;
}

/* ---- reap ------------------------------------------------------------------------------------ */

static void page_done(struct pstk__lane *l, struct pstk__page *page)
{
    const struct pstk__source *source = l->pipeline->source;
    pstk__files_release(l->files, page->file);
    if (page->read.result == PSTK__PAGE_SIZE &&
        source->format->page_check(source, &page->extent, page->data, NULL) == 0) {
        page->state = PSTK__PAGE_READY;
        return;
    }
    /* The rows that wait for the page see EMPTY and take the slow path, which reports the reason.
     */
    page->state = PSTK__PAGE_EMPTY;
    pstk__index_drop(l->index, page);
}

static void span_done(struct pstk__lane *l, struct pstk__span_io *span_io)
{
    pstk__files_release(l->files, span_io->file_slot);
    if (span_io->read.result > 0)
        atomic_fetch_add_explicit(&span_io->task->slot->n_bytes, (uint64_t)span_io->read.result,
                                  memory_order_relaxed);
    /* A file may end inside the aligned read, but not before the last row's end. */
    if (span_io->read.result < 0 ||
        (uint64_t)span_io->read.result < span_io->span.end - span_io->read.offset)
        fail_span(span_io);
    span_io->task->n_left--;
    push_if_read(l, span_io->task);
}

/* Returns the number of reads reaped, or <0. */
static int reap(struct pstk__lane *l, int wait)
{
    struct pstk__read *done[REAP_MAX];
    int n_done = l->backend->ops->reap(l->backend, done, REAP_MAX, wait);
    for (int i = 0; i < n_done; i++) {
        struct pstk__read *request = done[i];
        l->n_in_flight--;
        pstk__count(&l->counters.n_items, 1);
        if (request->result > 0)
            pstk__count(&l->counters.bytes, (uint64_t)request->result);
        char *at = (char *)request;
        if (request->user == READ_PAGE)
            page_done(l, (struct pstk__page *)(void *)(at - offsetof(struct pstk__page, read)));
        else
            span_done(l,
                      (struct pstk__span_io *)(void *)(at - offsetof(struct pstk__span_io, read)));
    }
    return n_done;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* One round. <0: the backend failed. Else how many things it got done. *waited_ns: time in which it
 * waited for storage. */
static int advance(struct pstk__lane *l, uint64_t *waited_ns)
{
    int progress = claim_slot(l);
    progress |= list_tasks(l);
    progress |= plan_tasks(l);
    progress |= issue_tasks(l);
    *waited_ns = 0;
    int r = l->backend->ops->submit(l->backend);
    if (r < 0)
        return r;
    int wait = !progress && l->n_in_flight > 0;
    uint64_t before = wait ? pstk__clock_ns() : 0;
    r = l->n_in_flight > 0 ? reap(l, wait) : 0;
    *waited_ns = wait ? pstk__clock_ns() - before : 0;
    if (l->backend->fallbacks & ~l->fallbacks) { /* taken since it was opened */
        l->fallbacks |= l->backend->fallbacks;
        atomic_fetch_or_explicit(&l->pipeline->fallbacks, l->fallbacks, memory_order_relaxed);
    }
    return r < 0 ? r : progress + r;
}

static void fail(struct pstk__lane *l, int native)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    pstk__fail_errno(&err, native, PSTK_STAGE_READ, "the %s reader failed", l->backend->ops->name);
    pstk__window_fail(&l->pipeline->window, &err);
}

/* Rounds until the pipeline closes or the backend fails. The time of a round counts as busy, except
 * its waits: those for storage count as starved, those for resources of other threads as blocked.
 */
static void run(struct pstk__lane *l)
{
    struct pstk__pipeline *pipeline = l->pipeline;
    uint64_t mark = pstk__clock_ns();
    for (;;) {
        pstk__handback_begin(&l->handback); /* before the look at closing and at the pools */
        if (atomic_load_explicit(&pipeline->closing, memory_order_acquire))
            return;
        uint64_t waited = 0;
        pstk__trace_begin(&pipeline->delivered->trace, "read", l->claimed ? l->claimed->seq : 0);
        const int r = advance(l, &waited);
        pstk__trace_end(&pipeline->delivered->trace);
        uint64_t now = pstk__clock_ns();
        pstk__count(&l->counters.busy_ns, now - mark - waited);
        pstk__count(&l->counters.starved_ns, waited);
        mark = now;
        if (r < 0) {
            fail(l, -r);
            return;
        }
        /* With reads in flight the next round waits for one of them instead. */
        if (!pstk__handback_end(&l->handback, r > 0) || l->n_in_flight > 0)
            continue;
        pstk__handback_wait(&l->handback);
        now = pstk__clock_ns();
        pstk__count(&l->counters.blocked_ns, now - mark);
        mark = now;
    }
}

/* Threads of a lane's pread pool: 16 per node, divided among its lanes. */
static uint32_t pread_threads(const struct pstk__pipeline *pipeline)
{
    uint32_t n = 16 * pipeline->n_nodes / pipeline->n_lanes;
    n = n < pipeline->depth ? n : pipeline->depth;
    return n ? n : 1;
}

static int open_lane(struct pstk__lane *l, struct pstk_error *err)
{
    struct pstk__pipeline *pipeline = l->pipeline;
    uint32_t n_files = pstk__files_capacity(pipeline->source->n_files, pipeline->n_lanes);
    uint8_t *pages = (uint8_t *)l->io_memory + l->buffer_size;
    struct pstk__reader_config c = {.kind = pipeline->settings.reader,
                                    .depth = pipeline->depth,
                                    .n_files = n_files,
                                    .n_threads = pread_threads(pipeline),
                                    .no_fds = !pipeline->source->store->has_fds,
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
        r = pstk__index_open(&l->index, pages, l->index_size, err);
    pstk__picker_init(&l->picker, &pipeline->picks);
    l->span_limits = (struct pstk__span_limits){.memory = l->buffer_size / 2,
                                                .single = READ_MAX,
                                                .joined = SPAN_MAX,
                                                .gap = SPAN_GAP,
                                                .offset_align = pipeline->offset_align,
                                                .memory_align = pipeline->memory_align};
    if (r == 0 && pstk__buffer_open(&l->buffer, l->io_memory, l->buffer_size, l->n_tasks) < 0)
        r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the I/O buffer");
    return r;
}

static void close_lane(struct pstk__lane *l)
{
    if (l->backend) {
        l->keeps_memory = l->backend->n_lost > 0;
        l->backend->ops->close(
            l->backend); /* first: close waits for what the kernel still writes */
    }
    l->backend = NULL;
    pstk__index_close(l->index);
    l->index = NULL;
    pstk__files_close(l->files);
    l->files = NULL;
    /* The buffer's pieces stay: workers may hold some. */
}

void *pstk__pipeline_read(void *lane)
{
    struct pstk__lane *l = lane;
    struct pstk__pipeline *pipeline = l->pipeline;
    char name[16];
    snprintf(name, sizeof name, "pstk-reader-%u", l->number % 100u);
    pthread_setname_np(pthread_self(), name);
    if (pipeline->settings.pin_threads && pstk__numa_pin_node(pipeline->numa, l->node) != 0)
        l->fallbacks |= PSTK_FALLBACK_NOT_PINNED;
    int r = open_lane(l, &l->start_error);
    atomic_fetch_or_explicit(&pipeline->fallbacks, l->fallbacks, memory_order_relaxed);
    atomic_store_explicit(&l->started, r < 0 ? r : 1, memory_order_release);
    pstk__gate_notify(&pipeline->started);
    if (r == 0)
        run(l);
    close_lane(l);
    return NULL;
}
