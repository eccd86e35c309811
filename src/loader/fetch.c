/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/fetch.h"

#include "base/clock.h"

#include <stddef.h>

uint32_t pstk__fetch_take_back(struct pstk__lane *l)
{
    struct pstk__task *task;
    uint32_t n_unpinned = 0;
    while ((task = pstk__queue_try_pop(l->idle))) {
        struct pstk__fetch *fetch = &task->fetch;
        for (uint32_t k = 0; k < fetch->n_spans && fetch->n_by_worker > 0; k++)
            if (fetch->spans[k].by_worker) {
                pstk__files_release(l->files, fetch->spans[k].file_slot);
                fetch->n_by_worker--;
                n_unpinned++;
            }
        task->next = l->free;
        l->free = task;
    }
    return n_unpinned;
}

/* Pin a file for one read. Returns 1: pinned; 0: try later; <0: it cannot be opened. */
static int acquire_file(struct pstk__lane *l, uint32_t number, uint32_t *slot,
                        const struct pstk__file **file)
{
    uint32_t before = l->fallbacks;
    int r = pstk__files_acquire(l->files, number, slot, file, NULL); /* the slow path reports why */
    if (r == PSTK__FILES_PINNED && pstk__fetch_take_back(l) > 0)
        r = pstk__files_acquire(l->files, number, slot, file, NULL);
    if (l->fallbacks != before)
        atomic_fetch_or_explicit(&l->pipeline->fallbacks, l->fallbacks, memory_order_relaxed);
    if (r == PSTK__FILES_PINNED)
        return 0;
    if (r < 0)
        return r;
    if (r == 1)
        l->backend->ops->set_file(l->backend, *slot,
                                  (*file)->fd); /* if refused, reads use the fd */
    return 1;
}

/* Start reading a page that is EMPTY. Returns as acquire_file. */
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
                                     .user = PSTK__READ_PAGE,
                                     .queued_ns = pstk__clock_ns()};
    page->state = PSTK__PAGE_LOADING;
    l->backend->ops->queue(l->backend, &page->read);
    l->n_in_flight++;
    return 1;
}

/* Ask the format for a row's extents, from its page or, if page is NULL, from its number alone. */
static enum pstk__row_plan resolve_row(struct pstk__lane *l, struct pstk__row_io *io,
                                       const void *page)
{
    const struct pstk__source *source = l->pipeline->source;
    const int r =
        source->format->extent(source, &io->at, l->pipeline->fields, page, io->extents, NULL);
    io->slow = r < 0;
    return r < 0 ? PSTK__ROW_SLOW : PSTK__ROW_KNOWN;
}

enum pstk__row_plan pstk__fetch_plan_row(struct pstk__lane *l, struct pstk__row_io *io, uint64_t id)
{
    const struct pstk__source *source = l->pipeline->source;
    struct pstk__extent at;
    io->page = NULL;
    io->slow = 0;
    source->format->locate(source, id, &io->at);
    pstk__source_page(source, &io->at, &at);
    if (at.size == 0)
        return resolve_row(l, io, NULL);
    struct pstk__page *page = pstk__pages_get(l->pages, &at);
    if (!page)
        return PSTK__ROW_LATER;
    if (page->state == PSTK__PAGE_READY) {
        const enum pstk__row_plan plan = resolve_row(l, io, page->data);
        pstk__pages_unpin(l->pages, page);
        pstk__count(&l->counters.n_hits, 1);
        return plan;
    }
    const int is_new = page->state == PSTK__PAGE_EMPTY;
    const int r = is_new ? read_page(l, page) : 1;
    if (r <= 0) {
        io->slow = r < 0;
        pstk__pages_drop(l->pages, page);
        pstk__pages_unpin(l->pages, page);
        return r < 0 ? PSTK__ROW_SLOW : PSTK__ROW_LATER;
    }
    pstk__count(is_new ? &l->counters.n_misses : &l->counters.n_hits, 1);
    io->page = page;
    return PSTK__ROW_WAITS;
}

int pstk__fetch_resolve_row(struct pstk__lane *l, struct pstk__row_io *io)
{
    struct pstk__page *page = io->page;
    if (!page)
        return 1;
    if (page->state == PSTK__PAGE_LOADING)
        return 0;
    if (page->state == PSTK__PAGE_READY)
        resolve_row(l, io, page->data);
    else
        io->slow = 1;
    pstk__pages_unpin(l->pages, page);
    io->page = NULL;
    return 1;
}

/* Lay extent k of every row out. */
static void lay_out(struct pstk__fetch *fetch, const struct pstk__span_limits *limits, uint32_t k)
{
    const uint32_t n_before = fetch->n_spans;
    for (uint32_t i = 0; i < fetch->n_rows; i++) {
        struct pstk__row_io *io = &fetch->rows[i];
        if (io->slow || io->block)
            continue;
        const struct pstk__extent *extent = &io->extents[k];
        if (extent->size ==
            0) /* an extent that the row's data set does not have; others of the mixture do */
            continue;
        struct pstk__span *last =
            fetch->n_spans > n_before ? &fetch->spans[fetch->n_spans - 1].span : NULL;
        struct pstk__span row = {.file = extent->file,
                                 .first = i,
                                 .n = 1,
                                 .begin = extent->offset,
                                 .end = extent->offset + extent->size};
        switch (pstk__span_join(limits, last, &row, &fetch->memory_size)) {
        case PSTK__SPAN_JOINED:
            break;
        case PSTK__SPAN_BEGUN:
            fetch->spans[fetch->n_spans].fetch = fetch;
            fetch->spans[fetch->n_spans].extent = k;
            fetch->spans[fetch->n_spans].by_worker = 0;
            fetch->spans[fetch->n_spans++].span = row;
            break;
        case PSTK__SPAN_REFUSED:
            io->slow = fetch->has_slow = 1;
        }
    }
}

void pstk__fetch_lay_out(struct pstk__lane *l, struct pstk__fetch *fetch,
                         const struct pstk__span_limits *limits)
{
    for (uint32_t k = 0; k < l->pipeline->n_extents; k++)
        lay_out(fetch, limits, k);
    fetch->n_left = fetch->n_spans;
    fetch->laid_out = 1;
}

void pstk__fetch_place(const struct pstk__lane *l, struct pstk__fetch *fetch, uint8_t *memory,
                       int fixed)
{
    uint8_t *to = memory;
    for (uint32_t k = 0; k < fetch->n_spans; k++) {
        const struct pstk__span *span = &fetch->spans[k].span;
        const uint64_t start = pstk__span_offset(&l->span_limits, span);
        fetch->spans[k].read =
            (struct pstk__read){.offset = start,
                                .buffer = to,
                                .size = (uint32_t)pstk__span_size(&l->span_limits, span),
                                .fixed = (uint32_t)fixed,
                                .aside = !fixed && !l->pipeline->direct,
                                .user = PSTK__READ_SPAN};
        for (uint32_t i = span->first; i < span->first + span->n; i++) {
            struct pstk__extent *extent = &fetch->rows[i].extents[fetch->spans[k].extent];
            extent->data = to + (extent->offset - start);
        }
        to += span->memory;
    }
}

static void fail_span(struct pstk__span_io *span_io)
{
    span_io->fetch->has_slow = 1;
    for (uint32_t i = 0; i < span_io->span.n; i++)
        span_io->fetch->rows[span_io->span.first + i].slow = 1;
}

/* Read what was left to the worker of these rows. Its files are pinned until the worker is done,
 * but the worker does not get the rows before all their files were open: these may be too many. */
static void recall(struct pstk__lane *l, struct pstk__fetch *fetch)
{
    for (uint32_t k = 0; k < fetch->next_span && l->n_in_flight < l->pipeline->depth; k++) {
        struct pstk__span_io *span_io = &fetch->spans[k];
        if (!span_io->by_worker)
            continue;
        span_io->by_worker = 0;
        fetch->n_by_worker--;
        fetch->n_left++;
        l->backend->ops->queue(l->backend, &span_io->read);
        l->n_in_flight++;
    }
}

int pstk__fetch_queue(struct pstk__lane *l, struct pstk__fetch *fetch)
{
    const uint64_t now = fetch->next_span < fetch->n_spans ? pstk__clock_ns() : 0;
    for (; fetch->next_span < fetch->n_spans; fetch->next_span++) {
        struct pstk__span_io *span_io = &fetch->spans[fetch->next_span];
        if (l->n_in_flight >= l->pipeline->depth)
            return 0;
        int r = acquire_file(l, span_io->span.file, &span_io->file_slot, &span_io->read.from);
        if (r == 0) {
            recall(l, fetch);
            return 0;
        }
        if (r < 0) {
            fail_span(span_io);
            fetch->n_left--;
            continue;
        }
        span_io->read.file = span_io->file_slot;
        span_io->read.queued_ns = now;
        if (fetch->task && pstk__residency_holds(&l->residency, &span_io->read)) {
            span_io->by_worker = 1;
            fetch->n_by_worker++;
            fetch->n_left--;
            continue;
        }
        l->backend->ops->queue(l->backend, &span_io->read);
        l->n_in_flight++;
    }
    return 1;
}

void pstk__fetch_page_done(struct pstk__lane *l, struct pstk__page *page)
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
    pstk__pages_drop(l->pages, page);
}

void pstk__fetch_span_read(struct pstk__span_io *span_io)
{
    if (span_io->read.result > 0)
        span_io->fetch->n_bytes += (uint64_t)span_io->read.result;
    /* A file may end inside the aligned read, but not before the last row's end. */
    if (span_io->read.result < 0 ||
        (uint64_t)span_io->read.result < span_io->span.end - span_io->read.offset)
        fail_span(span_io);
}

void pstk__fetch_span_done(struct pstk__lane *l, struct pstk__span_io *span_io)
{
    pstk__files_release(l->files, span_io->file_slot);
    pstk__fetch_span_read(span_io);
    span_io->fetch->n_left--;
}
