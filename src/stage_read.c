/* SPDX-License-Identifier: Apache-2.0 */
/* The reader thread of a node: claim, list, plan, issue, reap. See stage.h for the shape. */
#include "stage.h"

#include "clock.h"
#include "error.h"

#include <stddef.h>
#include <stdio.h>

#define SPAN_GAP 4096u         /* bytes between two records that are cheaper read than skipped */
#define SPAN_MAX (1u << 20)    /* bytes of a coalesced read */
#define READ_MAX (1u << 30)    /* bytes of any fast read; larger records take the slow path */
#define REAP_MAX 64

enum { READ_SPAN = 0, READ_PAGE = 1 }; /* pstk__read.user */

/* ---- claim and list: slots become jobs ------------------------------------------------------ */

/* Rows to have listed: as many as keep the queue full while the oldest are waited for. */
static uint32_t rows_ahead(const struct pstk__pipeline *p)
{
    return 2 * p->depth + p->rows_per_job;
}

static int claim_slot(struct pstk__node *n)
{
    struct pstk__pipeline *p = n->pipeline;
    if (n->claimed || n->n_listed >= rows_ahead(p))
        return 0;
    struct pstk__slot *s = pstk__slot_begin(p->slots, n->number);
    if (!s)
        return 0;
    pstk__window_claim(&p->window, s);
    uint32_t n_jobs = (s->batch.n_valid + p->rows_per_job - 1) / p->rows_per_job;
    atomic_store_explicit(&s->n_jobs_left, n_jobs, memory_order_relaxed);
    if (n_jobs == 0)
        pstk__stage_finish(p, s);
    else
        n->claimed = s;
    n->next_row = 0;
    return 1;
}

static int list_jobs(struct pstk__node *n)
{
    struct pstk__pipeline *p = n->pipeline;
    int progress = 0;
    while (n->claimed && n->n_listed < rows_ahead(p)) {
        struct pstk__job *j = pstk__queue_try_pop(n->idle);
        if (!j)
            break;
        uint32_t rest = n->claimed->batch.n_valid - n->next_row;
        *j = (struct pstk__job){.slot = n->claimed,
                                .node = n,
                                .first_row = n->next_row,
                                .n_rows = rest < p->rows_per_job ? rest : p->rows_per_job,
                                .rows = j->rows,
                                .spans = j->spans};
        if (n->last)
            n->last->next = j;
        else
            n->first = j;
        n->last = j;
        if (!n->plan)
            n->plan = j;
        n->n_listed += j->n_rows;
        n->next_row += j->n_rows;
        if (n->next_row == n->claimed->batch.n_valid)
            n->claimed = NULL;
        progress = 1;
    }
    return progress;
}

/* ---- plan: rows become extents -------------------------------------------------------------- */

/* Pin the file of a shard for one read. 1: pinned; 0: try later; <0: it cannot be had. */
static int acquire_file(struct pstk__node *n, uint32_t shard, uint32_t *file, int *fd)
{
    struct pstk_error err;
    uint32_t before = n->rungs;
    int r = pstk__files_acquire(n->files, shard, file, fd, &err);
    if (n->rungs != before)
        atomic_fetch_or_explicit(&n->pipeline->rungs, n->rungs, memory_order_relaxed);
    if (r == PSTK_EBUSY)
        return 0;
    if (r < 0)
        return r;
    if (r == 1)
        n->reader->ops->set_file(n->reader, *file, *fd); /* refused: it reads by fd */
    return 1;
}

/* Start reading a page that is EMPTY. As acquire_file. */
static int read_page(struct pstk__node *n, struct pstk__page *page)
{
    if (n->n_in_flight >= n->pipeline->depth)
        return 0;
    int fd = -1, r = acquire_file(n, page->extent.shard, &page->file, &fd);
    if (r <= 0)
        return r;
    page->read = (struct pstk__read){.fd = fd,
                                     .file = page->file,
                                     .offset = page->extent.offset,
                                     .buffer = page->data,
                                     .size = PSTK__PAGE_SIZE,
                                     .fixed = 1,
                                     .user = READ_PAGE};
    page->state = PSTK__PAGE_LOADING;
    n->reader->ops->queue(n->reader, &page->read);
    n->n_in_flight++;
    return 1;
}

static void resolve_row(struct pstk__node *n, struct pstk__row_io *io, const void *page)
{
    const struct pstk__source *s = n->pipeline->source;
    struct pstk__extent e;
    int r = s->format->extent(s, io->extent.shard, io->extent.record, page,
                              (int)n->pipeline->plan->head_only, &e, NULL);
    if (r < 0)
        io->slow = 1;
    else
        io->extent = e;
}

/* Which sample a row of a slot is. */
static uint64_t row_sample(struct pstk__node *n, const struct pstk__slot *s, uint32_t row)
{
    const struct pstk__pipeline *p = n->pipeline;
    if (!n->order_ready || n->order_epoch != s->batch.epoch) {
        pstk__order_init(&n->order, p->settings.order, p->partition.n, p->settings.seed,
                         s->batch.epoch);
        n->order_epoch = s->batch.epoch;
        n->order_ready = 1;
    }
    uint64_t k = pstk__partition_row(&p->partition, s->batch.position, row);
    return pstk__order_at(&n->order, k);
}

/* 1: the row's extent is known, or its page is on its way; 0: try later. */
static int plan_row(struct pstk__node *n, struct pstk__job *j, uint32_t i)
{
    const struct pstk__source *source = n->pipeline->source;
    struct pstk__row_io *io = &j->rows[i];
    struct pstk__extent at;
    uint32_t row = j->first_row + i;
    uint64_t id = row_sample(n, j->slot, row);
    *io = (struct pstk__row_io){0};
    j->slot->sample_ids[row] = id;
    j->slot->substitute_ids[row] = PSTK_NONE;
    source->format->locate(source, id, &io->extent.shard, &io->extent.record);
    source->format->page(source, io->extent.shard, io->extent.record, &at);
    if (at.size == 0) {
        resolve_row(n, io, NULL);
        return 1;
    }
    struct pstk__page *page = pstk__index_get(n->index, &at);
    if (!page)
        return 0;
    if (page->state == PSTK__PAGE_READY) {
        resolve_row(n, io, page->data);
        pstk__index_unpin(n->index, page);
        pstk__count(&n->counters.n_hits, 1);
        return 1;
    }
    int r = page->state == PSTK__PAGE_EMPTY ? read_page(n, page) : 2;
    if (r <= 0) {
        if (r < 0)
            io->slow = 1;
        pstk__index_drop(n->index, page);
        pstk__index_unpin(n->index, page);
        return r < 0;
    }
    pstk__count(r == 1 ? &n->counters.n_misses : &n->counters.n_hits, 1);
    io->page = page;
    return 1;
}

static int plan_jobs(struct pstk__node *n)
{
    int progress = 0;
    for (; n->plan; n->plan = n->plan->next) {
        struct pstk__job *j = n->plan;
        int stale = pstk__window_stale(&n->pipeline->window, j->slot);
        for (; j->n_planned < j->n_rows; j->n_planned++) {
            if (stale)
                j->rows[j->n_planned] = (struct pstk__row_io){.slow = 1};
            else if (!plan_row(n, j, j->n_planned))
                return progress;
            progress = 1;
        }
    }
    return progress;
}

/* ---- issue: extents become reads ------------------------------------------------------------- */

/* Turn pages into extents. 0: one is still being read. */
static int resolve_job(struct pstk__node *n, struct pstk__job *j)
{
    for (uint32_t i = 0; i < j->n_rows; i++) {
        struct pstk__row_io *io = &j->rows[i];
        if (!io->page)
            continue;
        if (io->page->state == PSTK__PAGE_LOADING)
            return 0;
        if (io->page->state == PSTK__PAGE_READY)
            resolve_row(n, io, io->page->data);
        else
            io->slow = 1;
        pstk__index_unpin(n->index, io->page);
        io->page = NULL;
    }
    return 1;
}

static uint64_t align_down(uint64_t x, uint64_t a)
{
    return x / a * a;
}

static uint64_t align_up(uint64_t x, uint64_t a)
{
    return (x + a - 1) / a * a;
}

/* Bytes of I/O memory for a read of [begin, end) of a shard. Extents end below 2^44: no overflow. */
static uint64_t room(const struct pstk__pipeline *p, uint64_t begin, uint64_t end)
{
    uint64_t size = align_up(end, p->offset_align) - align_down(begin, p->offset_align);
    return align_up(size, p->memory_align);
}

/* Lay a job's rows out as spans, of at most half the ring in all: what does not fit goes slow. */
static void lay_out(struct pstk__node *n, struct pstk__job *j)
{
    const struct pstk__pipeline *p = n->pipeline;
    uint64_t total = 0, most = n->ring.size / 2;
    for (uint32_t i = 0; i < j->n_rows; i++) {
        struct pstk__row_io *io = &j->rows[i];
        if (io->slow)
            continue;
        uint64_t begin = io->extent.offset, end = begin + io->extent.size;
        struct pstk__span *s = j->n_spans ? &j->spans[j->n_spans - 1] : NULL;
        int joins = s && s->shard == io->extent.shard && s->first + s->n == i &&
                    begin >= s->begin && begin <= s->end + SPAN_GAP && end - s->begin <= SPAN_MAX;
        if (joins && end < s->end)
            end = s->end;
        uint64_t before = joins ? room(p, s->begin, s->end) : 0;
        uint64_t after = joins ? room(p, s->begin, end) : room(p, begin, end);
        if (total - before + after > most || after > READ_MAX) {
            io->slow = 1;
            continue;
        }
        total = total - before + after;
        if (joins) {
            s->end = end;
            s->n++;
        } else {
            j->spans[j->n_spans++] = (struct pstk__span){.job = j,
                                                         .shard = io->extent.shard,
                                                         .first = i,
                                                         .n = 1,
                                                         .begin = begin,
                                                         .end = end};
        }
    }
    j->memory_size = total;
    j->n_left = j->n_spans;
    j->laid_out = 1;
}

/* Give spans and rows their places in the job's piece. */
static void place_spans(const struct pstk__pipeline *p, struct pstk__job *j)
{
    uint8_t *to = j->piece->data;
    for (uint32_t k = 0; k < j->n_spans; k++) {
        struct pstk__span *s = &j->spans[k];
        uint64_t start = align_down(s->begin, p->offset_align);
        s->read = (struct pstk__read){
            .offset = start,
            .buffer = to,
            .size = (uint32_t)(align_up(s->end, p->offset_align) - start),
            .fixed = 1,
            .user = READ_SPAN};
        for (uint32_t i = s->first; i < s->first + s->n; i++)
            j->rows[i].data = to + (j->rows[i].extent.offset - start);
        to += room(p, s->begin, s->end);
    }
}

static void fail_span(struct pstk__span *s)
{
    for (uint32_t i = s->first; i < s->first + s->n; i++)
        s->job->rows[i].slow = 1;
}

/* Queue the job's reads. 0: not all yet. */
static int queue_spans(struct pstk__node *n, struct pstk__job *j)
{
    for (; j->next_span < j->n_spans; j->next_span++) {
        struct pstk__span *s = &j->spans[j->next_span];
        if (n->n_in_flight >= n->pipeline->depth)
            return 0;
        int r = acquire_file(n, s->shard, &s->file, &s->read.fd);
        if (r == 0)
            return 0;
        if (r < 0) {
            fail_span(s);
            j->n_left--;
            continue;
        }
        s->read.file = s->file;
        n->reader->ops->queue(n->reader, &s->read);
        n->n_in_flight++;
    }
    return 1;
}

/* Jobs whose reads are all done go to the workers. */
static void push_if_read(struct pstk__node *n, struct pstk__job *j)
{
    if (j->next_span == j->n_spans && j->n_left == 0)
        pstk__queue_push(n->work, j);
}

/* Issue the oldest jobs, strictly in order. */
static int issue_jobs(struct pstk__node *n)
{
    int progress = 0;
    while (n->first && n->first->n_planned == n->first->n_rows) {
        struct pstk__job *j = n->first;
        if (!j->laid_out) {
            if (!resolve_job(n, j))
                break;
            lay_out(n, j);
        }
        if (j->memory_size && !j->piece) {
            j->piece = pstk__ring_get(&n->ring, j->memory_size);
            if (!j->piece)
                break;
            place_spans(n->pipeline, j);
        }
        uint32_t before = j->next_span;
        int all = queue_spans(n, j);
        progress |= j->next_span != before;
        if (!all)
            break;
        n->first = j->next;
        if (!n->first)
            n->last = NULL;
        n->n_listed -= j->n_rows;
        progress = 1;
        push_if_read(n, j); /* none of its reads is left: all failed, or all were reaped */
    }
    return progress;
}

/* ---- reap ------------------------------------------------------------------------------------ */

static void page_done(struct pstk__node *n, struct pstk__page *page)
{
    const struct pstk__source *s = n->pipeline->source;
    pstk__files_release(n->files, page->file);
    if (page->read.result == PSTK__PAGE_SIZE &&
        s->format->page_check(s, &page->extent, page->data, NULL) == 0) {
        page->state = PSTK__PAGE_READY;
        return;
    }
    /* The rows that wait for it see EMPTY and go slow; that path says what is wrong. */
    page->state = PSTK__PAGE_EMPTY;
    pstk__index_drop(n->index, page);
}

static void span_done(struct pstk__node *n, struct pstk__span *s)
{
    pstk__files_release(n->files, s->file);
    /* A file may end inside the aligned read, but not before the last row's end. */
    if (s->read.result < 0 || (uint64_t)s->read.result < s->end - s->read.offset)
        fail_span(s);
    s->job->n_left--;
    push_if_read(n, s->job);
}

/* Returns the number of reads reaped, or <0. */
static int reap(struct pstk__node *n, int wait)
{
    struct pstk__read *done[REAP_MAX];
    int n_done = n->reader->ops->reap(n->reader, done, REAP_MAX, wait);
    for (int i = 0; i < n_done; i++) {
        struct pstk__read *r = done[i];
        n->n_in_flight--;
        pstk__count(&n->counters.n_items, 1);
        if (r->result > 0)
            pstk__count(&n->counters.bytes, (uint64_t)r->result);
        char *at = (char *)r;
        if (r->user == READ_PAGE)
            page_done(n, (struct pstk__page *)(void *)(at - offsetof(struct pstk__page, read)));
        else
            span_done(n, (struct pstk__span *)(void *)(at - offsetof(struct pstk__span, read)));
    }
    return n_done;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* One round. <0: the backend failed. Else how many things it got done. */
static int advance(struct pstk__node *n, uint64_t *mark)
{
    int progress = claim_slot(n) | list_jobs(n);
    progress |= plan_jobs(n);
    progress |= issue_jobs(n);
    int r = n->reader->ops->submit(n->reader);
    if (r < 0)
        return r;
    int wait = !progress && n->n_in_flight > 0;
    uint64_t before = wait ? pstk__clock_ns() : 0;
    r = n->n_in_flight > 0 ? reap(n, wait) : 0;
    if (wait) {
        uint64_t now = pstk__clock_ns();
        pstk__count(&n->counters.busy_ns, before - *mark);
        pstk__count(&n->counters.starved_ns, now - before);
        *mark = now;
    }
    return r < 0 ? r : progress + r;
}

static void wait_for_room(struct pstk__node *n, uint32_t ticket, uint64_t *mark)
{
    uint64_t before = pstk__clock_ns();
    pstk__gate_wait(&n->room, ticket, -1);
    uint64_t now = pstk__clock_ns();
    pstk__count(&n->counters.busy_ns, before - *mark);
    pstk__count(&n->counters.blocked_ns, now - before);
    *mark = now;
}

static void run(struct pstk__node *n)
{
    struct pstk__pipeline *p = n->pipeline;
    uint64_t mark = pstk__clock_ns();
    int armed = 0; /* workers knock for memory too; only a round begun after that may wait */
    while (!atomic_load_explicit(&p->closing, memory_order_acquire)) {
        uint32_t ticket = pstk__gate_ticket(&n->room);
        int r = advance(n, &mark);
        if (r < 0) {
            struct pstk_error err;
            pstk_error_init(&err, sizeof err);
            pstk__fail_errno(&err, -r, PSTK_STAGE_READ, "the %s reader failed",
                             n->reader->ops->name);
            pstk__window_fail(&p->window, &err);
            return;
        }
        if (r > 0) {
            if (armed)
                atomic_store_explicit(&n->wants_memory, 0, memory_order_relaxed);
            armed = 0;
        } else if (!armed) {
            /* A read-modify-write, as in finish_job: either ours comes later and sees what the
             * worker gave back, or the worker's does and sees ours. */
            atomic_exchange_explicit(&n->wants_memory, 1, memory_order_acq_rel);
            armed = 1;
        } else if (n->n_in_flight == 0) {
            wait_for_room(n, ticket, &mark);
        }
    }
}

static int open_node(struct pstk__node *n, struct pstk_error *err)
{
    struct pstk__pipeline *p = n->pipeline;
    uint32_t n_files = pstk__files_capacity(p->source->n_shards);
    uint8_t *pages = (uint8_t *)n->io_memory + n->ring_size;
    struct pstk__reader_config c = {.kind = p->settings.reader,
                                    .depth = p->depth,
                                    .n_files = n_files,
                                    .buffers = n->io_memory,
                                    .buffers_size = n->ring_size + n->index_size};
    int r = pstk__reader_open(&n->reader, &c, &n->rungs, err);
    if (r == 0)
        n->reader_kind = n->reader->ops->kind;
    if (r == 0)
        r = pstk__files_open(&n->files, p->source, n_files, p->direct, &n->rungs, err);
    if (r == 0)
        r = pstk__index_open(&n->index, pages, n->index_size, err);
    if (r == 0 && pstk__ring_open(&n->ring, n->io_memory, n->ring_size, n->n_jobs) < 0)
        r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the I/O ring");
    return r;
}

static void close_node(struct pstk__node *n)
{
    if (n->reader)
        n->reader->ops->close(n->reader); /* first: waits for what the kernel still writes */
    n->reader = NULL;
    pstk__index_close(n->index);
    n->index = NULL;
    pstk__files_close(n->files);
    n->files = NULL;
    /* The ring's pieces stay: workers may hold some. */
}

void *pstk__stage_read(void *node)
{
    struct pstk__node *n = node;
    struct pstk__pipeline *p = n->pipeline;
    char name[16];
    snprintf(name, sizeof name, "pstk-reader-%u", n->number % 100u);
    pthread_setname_np(pthread_self(), name);
    if (!p->settings.pin_threads && pstk__numa_pin_node(p->numa, n->number) != 0)
        n->rungs |= PSTK_RUNG_NOT_PINNED;
    int r = open_node(n, &n->start_error);
    atomic_fetch_or_explicit(&p->rungs, n->rungs, memory_order_relaxed);
    atomic_store_explicit(&n->started, r < 0 ? r : 1, memory_order_release);
    pstk__gate_knock(&p->started);
    if (r == 0)
        run(n);
    close_node(n);
    return NULL;
}
