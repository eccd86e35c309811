/* SPDX-License-Identifier: Apache-2.0 */
/* The reader thread of a lane: claim, list, plan, issue, reap. See pipeline.h for the shape. */
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

/* ---- claim and list: slots become jobs ------------------------------------------------------ */

/* Rows to have listed: as many as keep the queue full while the oldest are waited for. */
static uint32_t rows_ahead(const struct pstk__pipeline *p)
{
    return 2 * p->depth + p->rows_per_job;
}

static int claim_slot(struct pstk__lane *l)
{
    struct pstk__pipeline *p = l->pipeline;
    if (l->claimed || l->n_listed >= rows_ahead(p))
        return 0;
    struct pstk__slot *s = pstk__slot_begin(p->slots, l->number);
    if (!s)
        return 0;
    pstk__window_claim(&p->window, s);
    /* Open keeps batches below 2^31 rows: no overflow. */
    uint32_t n_jobs = (s->batch.n_valid + p->rows_per_job - 1) / p->rows_per_job;
    atomic_store_explicit(&s->n_jobs_left, n_jobs, memory_order_relaxed);
    if (n_jobs == 0)
        pstk__stage_finish(p, s);
    else
        l->claimed = s;
    l->next_row = 0;
    return 1;
}

static int list_jobs(struct pstk__lane *l)
{
    struct pstk__pipeline *p = l->pipeline;
    int progress = 0;
    while (l->claimed && l->n_listed < rows_ahead(p)) {
        struct pstk__job *j = pstk__queue_try_pop(l->idle);
        if (!j)
            break;
        uint32_t rest = l->claimed->batch.n_valid - l->next_row;
        *j = (struct pstk__job){.slot = l->claimed,
                                .lane = l,
                                .first_row = l->next_row,
                                .n_rows = rest < p->rows_per_job ? rest : p->rows_per_job,
                                .rows = j->rows,
                                .spans = j->spans};
        if (l->last)
            l->last->next = j;
        else
            l->first = j;
        l->last = j;
        if (!l->plan)
            l->plan = j;
        l->n_listed += j->n_rows;
        l->next_row += j->n_rows;
        if (l->next_row == l->claimed->batch.n_valid)
            l->claimed = NULL;
        progress = 1;
    }
    return progress;
}

/* ---- plan: rows become extents -------------------------------------------------------------- */

/* Pin the file of a shard for one read. 1: pinned; 0: try later; <0: it cannot be had. */
static int acquire_file(struct pstk__lane *l, uint32_t shard, uint32_t *file, int *fd)
{
    uint32_t before = l->rungs;
    int r = pstk__files_acquire(l->files, shard, file, fd, NULL); /* the slow path says why */
    if (l->rungs != before)
        atomic_fetch_or_explicit(&l->pipeline->rungs, l->rungs, memory_order_relaxed);
    if (r == PSTK_EBUSY)
        return 0;
    if (r < 0)
        return r;
    if (r == 1)
        l->reader->ops->set_file(l->reader, *file, *fd); /* refused: it reads by fd */
    return 1;
}

/* Start reading a page that is EMPTY. As acquire_file. */
static int read_page(struct pstk__lane *l, struct pstk__page *page)
{
    if (l->n_in_flight >= l->pipeline->depth)
        return 0;
    int fd = -1, r = acquire_file(l, page->extent.shard, &page->file, &fd);
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
    l->reader->ops->queue(l->reader, &page->read);
    l->n_in_flight++;
    return 1;
}

static void resolve_row(struct pstk__lane *l, struct pstk__row_io *io, const void *page)
{
    const struct pstk__source *s = l->pipeline->source;
    struct pstk__extent e;
    int r = s->format->extent(s, io->extent.shard, io->extent.record, page,
                              (int)l->pipeline->plan->head_only, &e, NULL);
    if (r < 0)
        io->slow = 1;
    else
        io->extent = e;
}

/* Which sample a row of a slot is. */
static uint64_t row_sample(struct pstk__lane *l, const struct pstk__slot *s, uint32_t row)
{
    const struct pstk__pipeline *p = l->pipeline;
    if (!l->order_ready || l->order_epoch != s->batch.epoch) {
        pstk__order_init(&l->order, p->settings.order, p->partition.n, p->settings.seed,
                         s->batch.epoch);
        l->order_epoch = s->batch.epoch;
        l->order_ready = 1;
    }
    uint64_t k = pstk__partition_row(&p->partition, s->batch.position, row);
    return pstk__order_at(&l->order, k);
}

/* 1: the row's extent is known, or its page is on its way; 0: try later. */
static int plan_row(struct pstk__lane *l, struct pstk__job *j, uint32_t i)
{
    const struct pstk__source *source = l->pipeline->source;
    struct pstk__row_io *io = &j->rows[i];
    struct pstk__extent at;
    uint32_t row = j->first_row + i;
    uint64_t id = row_sample(l, j->slot, row);
    *io = (struct pstk__row_io){0};
    j->slot->sample_ids[row] = id;
    j->slot->substitute_ids[row] = PSTK_NONE;
    source->format->locate(source, id, &io->extent.shard, &io->extent.record);
    source->format->page(source, io->extent.shard, io->extent.record, &at);
    if (at.size == 0) {
        resolve_row(l, io, NULL);
        return 1;
    }
    struct pstk__page *page = pstk__index_get(l->index, &at);
    if (!page)
        return 0;
    if (page->state == PSTK__PAGE_READY) {
        resolve_row(l, io, page->data);
        pstk__index_unpin(l->index, page);
        pstk__count(&l->counters.n_hits, 1);
        return 1;
    }
    int r = page->state == PSTK__PAGE_EMPTY ? read_page(l, page) : 2;
    if (r <= 0) {
        if (r < 0)
            io->slow = 1;
        pstk__index_drop(l->index, page);
        pstk__index_unpin(l->index, page);
        return r < 0;
    }
    pstk__count(r == 1 ? &l->counters.n_misses : &l->counters.n_hits, 1);
    io->page = page;
    return 1;
}

static int plan_jobs(struct pstk__lane *l)
{
    int progress = 0;
    for (; l->plan; l->plan = l->plan->next) {
        struct pstk__job *j = l->plan;
        int stale = pstk__window_stale(&l->pipeline->window, j->slot);
        for (; j->n_planned < j->n_rows; j->n_planned++) {
            if (stale)
                j->rows[j->n_planned] = (struct pstk__row_io){.slow = 1};
            else if (!plan_row(l, j, j->n_planned))
                return progress;
            progress = 1;
        }
    }
    return progress;
}

/* ---- issue: extents become reads ------------------------------------------------------------- */

/* Turn pages into extents. 0: one is still being read. */
static int resolve_job(struct pstk__lane *l, struct pstk__job *j)
{
    for (uint32_t i = 0; i < j->n_rows; i++) {
        struct pstk__row_io *io = &j->rows[i];
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

static uint64_t align_down(uint64_t x, uint64_t a)
{
    return x / a * a;
}

static uint64_t align_up(uint64_t x, uint64_t a)
{
    return (x + a - 1) / a * a;
}

/* Bytes of I/O memory for a read of [begin, end) of a shard. Extents end below 2^44: no overflow.
 */
static uint64_t room(const struct pstk__pipeline *p, uint64_t begin, uint64_t end)
{
    uint64_t size = align_up(end, p->offset_align) - align_down(begin, p->offset_align);
    return align_up(size, p->memory_align);
}

/* Lay a job's rows out as spans, of at most half the ring in all: what does not fit goes slow. */
static void lay_out(struct pstk__lane *l, struct pstk__job *j)
{
    const struct pstk__pipeline *p = l->pipeline;
    uint64_t total = 0, most = l->ring.size / 2;
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
        s->read = (struct pstk__read){.offset = start,
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
static int queue_spans(struct pstk__lane *l, struct pstk__job *j)
{
    for (; j->next_span < j->n_spans; j->next_span++) {
        struct pstk__span *s = &j->spans[j->next_span];
        if (l->n_in_flight >= l->pipeline->depth)
            return 0;
        int r = acquire_file(l, s->shard, &s->file, &s->read.fd);
        if (r == 0)
            return 0;
        if (r < 0) {
            fail_span(s);
            j->n_left--;
            continue;
        }
        s->read.file = s->file;
        l->reader->ops->queue(l->reader, &s->read);
        l->n_in_flight++;
    }
    return 1;
}

/* Jobs whose reads are all done go to the workers. */
static void push_if_read(struct pstk__lane *l, struct pstk__job *j)
{
    if (j->next_span == j->n_spans && j->n_left == 0)
        pstk__queue_push(l->work, j);
}

/* Issue the oldest jobs, strictly in order. */
static int issue_jobs(struct pstk__lane *l)
{
    int progress = 0;
    while (l->first && l->first->n_planned == l->first->n_rows) {
        struct pstk__job *j = l->first;
        if (!j->laid_out) {
            if (!resolve_job(l, j))
                break;
            lay_out(l, j);
        }
        if (j->memory_size && !j->piece) {
            j->piece = pstk__ring_get(&l->ring, j->memory_size);
            if (!j->piece)
                break;
            place_spans(l->pipeline, j);
        }
        uint32_t before = j->next_span;
        int all = queue_spans(l, j);
        progress |= j->next_span != before;
        if (!all)
            break;
        l->first = j->next;
        if (!l->first)
            l->last = NULL;
        l->n_listed -= j->n_rows;
        progress = 1;
        push_if_read(l, j); /* none of its reads is left: all failed, or all were reaped */
    }
    return progress;
}

/* ---- reap ------------------------------------------------------------------------------------ */

static void page_done(struct pstk__lane *l, struct pstk__page *page)
{
    const struct pstk__source *s = l->pipeline->source;
    pstk__files_release(l->files, page->file);
    if (page->read.result == PSTK__PAGE_SIZE &&
        s->format->page_check(s, &page->extent, page->data, NULL) == 0) {
        page->state = PSTK__PAGE_READY;
        return;
    }
    /* The rows that wait for it see EMPTY and go slow; that path says what is wrong. */
    page->state = PSTK__PAGE_EMPTY;
    pstk__index_drop(l->index, page);
}

static void span_done(struct pstk__lane *l, struct pstk__span *s)
{
    pstk__files_release(l->files, s->file);
    if (s->read.result > 0)
        atomic_fetch_add_explicit(&s->job->slot->n_bytes, (uint64_t)s->read.result,
                                  memory_order_relaxed);
    /* A file may end inside the aligned read, but not before the last row's end. */
    if (s->read.result < 0 || (uint64_t)s->read.result < s->end - s->read.offset)
        fail_span(s);
    s->job->n_left--;
    push_if_read(l, s->job);
}

/* Returns the number of reads reaped, or <0. */
static int reap(struct pstk__lane *l, int wait)
{
    struct pstk__read *done[REAP_MAX];
    int n_done = l->reader->ops->reap(l->reader, done, REAP_MAX, wait);
    for (int i = 0; i < n_done; i++) {
        struct pstk__read *r = done[i];
        l->n_in_flight--;
        pstk__count(&l->counters.n_items, 1);
        if (r->result > 0)
            pstk__count(&l->counters.bytes, (uint64_t)r->result);
        char *at = (char *)r;
        if (r->user == READ_PAGE)
            page_done(l, (struct pstk__page *)(void *)(at - offsetof(struct pstk__page, read)));
        else
            span_done(l, (struct pstk__span *)(void *)(at - offsetof(struct pstk__span, read)));
    }
    return n_done;
}

/* What the reader had to step down from since it was opened. */
static void publish_rungs(struct pstk__lane *l)
{
    if ((l->reader->rungs & ~l->rungs) == 0)
        return;
    l->rungs |= l->reader->rungs;
    atomic_fetch_or_explicit(&l->pipeline->rungs, l->rungs, memory_order_relaxed);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* One round. <0: the backend failed. Else how many things it got done. *waited_ns: time in which it
 * waited for storage. */
static int advance(struct pstk__lane *l, uint64_t *waited_ns)
{
    int progress = claim_slot(l);
    progress |= list_jobs(l);
    progress |= plan_jobs(l);
    progress |= issue_jobs(l);
    *waited_ns = 0;
    int r = l->reader->ops->submit(l->reader);
    if (r < 0)
        return r;
    int wait = !progress && l->n_in_flight > 0;
    uint64_t before = wait ? pstk__clock_ns() : 0;
    r = l->n_in_flight > 0 ? reap(l, wait) : 0;
    *waited_ns = wait ? pstk__clock_ns() - before : 0;
    publish_rungs(l);
    return r < 0 ? r : progress + r;
}

static void wait_for_room(struct pstk__lane *l, uint32_t ticket, uint64_t *mark)
{
    pstk__gate_wait(&l->room, ticket, -1);
    uint64_t now = pstk__clock_ns();
    pstk__count(&l->counters.blocked_ns, now - *mark);
    *mark = now;
}

static void run(struct pstk__lane *l)
{
    struct pstk__pipeline *p = l->pipeline;
    uint64_t mark = pstk__clock_ns();
    int armed = 0; /* workers knock for memory too; only a round begun after that may wait */
    for (;;) {
        uint32_t ticket = pstk__gate_ticket(&l->room); /* before any look at what it tells of */
        if (atomic_load_explicit(&p->closing, memory_order_acquire))
            return;
        uint64_t waited = 0;
        pstk__trace_enter(&p->delivered->trace, "read", l->claimed ? l->claimed->seq : 0);
        int r = advance(l, &waited);
        pstk__trace_leave(&p->delivered->trace);
        uint64_t now = pstk__clock_ns();
        pstk__count(&l->counters.busy_ns, now - mark - waited);
        pstk__count(&l->counters.starved_ns, waited);
        mark = now;
        if (r < 0) {
            struct pstk_error err;
            pstk_error_init(&err, sizeof err);
            pstk__fail_errno(&err, -r, PSTK_STAGE_READ, "the %s reader failed",
                             l->reader->ops->name);
            pstk__window_fail(&p->window, &err);
            return;
        }
        if (r > 0) {
            if (armed)
                atomic_store_explicit(&l->wants_memory, 0, memory_order_relaxed);
            armed = 0;
        } else if (!armed) {
            /* A read-modify-write, as in finish_job: either ours comes later and sees what the
             * worker gave back, or the worker's does and sees ours. */
            atomic_exchange_explicit(&l->wants_memory, 1, memory_order_acq_rel);
            armed = 1;
        } else if (l->n_in_flight == 0) {
            wait_for_room(l, ticket, &mark);
        }
    }
}

/* Threads of a lane's pread pool: 16 a node, so that many lanes are not many times as many. */
static uint32_t pread_threads(const struct pstk__pipeline *p)
{
    uint32_t n = 16 * p->n_nodes / p->n_lanes;
    n = n < p->depth ? n : p->depth;
    return n ? n : 1;
}

static int open_lane(struct pstk__lane *l, struct pstk_error *err)
{
    struct pstk__pipeline *p = l->pipeline;
    uint32_t n_files = pstk__files_capacity(p->source->n_shards, p->n_lanes);
    uint8_t *pages = (uint8_t *)l->io_memory + l->ring_size;
    struct pstk__reader_config c = {.kind = p->settings.reader,
                                    .depth = p->depth,
                                    .n_files = n_files,
                                    .n_threads = pread_threads(p),
                                    .buffers = l->io_memory,
                                    .buffers_size = l->ring_size + l->index_size};
    int r = pstk__reader_open(&l->reader, &c, &l->rungs, err);
    if (r == 0)
        l->reader_kind = l->reader->ops->kind;
    if (r == 0)
        r = pstk__files_open(&l->files, p->source, n_files, p->direct, &l->rungs, err);
    if (r == 0)
        r = pstk__index_open(&l->index, pages, l->index_size, err);
    if (r == 0 && pstk__ring_open(&l->ring, l->io_memory, l->ring_size, l->n_jobs) < 0)
        r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the I/O ring");
    return r;
}

static void close_lane(struct pstk__lane *l)
{
    if (l->reader) {
        l->keeps_memory = l->reader->n_lost > 0;
        l->reader->ops->close(l->reader); /* first: waits for what the kernel still writes */
    }
    l->reader = NULL;
    pstk__index_close(l->index);
    l->index = NULL;
    pstk__files_close(l->files);
    l->files = NULL;
    /* The ring's pieces stay: workers may hold some. */
}

void *pstk__stage_read(void *lane)
{
    struct pstk__lane *l = lane;
    struct pstk__pipeline *p = l->pipeline;
    char name[16];
    snprintf(name, sizeof name, "pstk-reader-%u", l->number % 100u);
    pthread_setname_np(pthread_self(), name);
    if (!p->settings.no_pinning && pstk__numa_pin_node(p->numa, l->node) != 0)
        l->rungs |= PSTK_RUNG_NOT_PINNED;
    int r = open_lane(l, &l->start_error);
    atomic_fetch_or_explicit(&p->rungs, l->rungs, memory_order_relaxed);
    atomic_store_explicit(&l->started, r < 0 ? r : 1, memory_order_release);
    pstk__gate_knock(&p->started);
    if (r == 0)
        run(l);
    close_lane(l);
    return NULL;
}
