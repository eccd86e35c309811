/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: records become rows of a batch. See stage.h for the shape. */
#include "stage.h"

#include "clock.h"
#include "error.h"
#include "random.h"

#include <stdio.h>

static uint64_t row_position(const struct pstk__pipeline *p, const struct pstk__slot *s,
                             uint32_t row)
{
    return pstk__partition_row(&p->partition, s->batch.position, row);
}

/* Write one row from a parsed record. */
static int write_record(struct pstk__worker *w, const struct pstk__job *j, uint32_t row,
                        uint64_t sample_id, const struct pstk__record *record, uint32_t shard,
                        struct pstk_error *err)
{
    struct pstk__row rows[PSTK__MAX_OUTPUTS];
    struct pstk__slot *s = j->slot;
    struct pstk__sample_key key = {.sample_id = sample_id,
                                   .epoch = s->batch.epoch,
                                   .position = row_position(w->pipeline, s, row)};
    pstk__slot_rows(s, row, rows);
    int r = pstk__sample_write(w->sampler, record, shard, &key, rows, err);
    if (r == 0)
        pstk__slot_note(s, row, rows);
    return r;
}

static int write_fast(struct pstk__worker *w, const struct pstk__job *j, uint32_t i,
                      struct pstk_error *err)
{
    const struct pstk__source *source = w->pipeline->source;
    const struct pstk__row_io *io = &j->rows[i];
    struct pstk__record record;
    uint32_t row = j->first_row + i;
    int r = source->format->parse(source, &io->extent, io->data, &record, err);
    if (r < 0)
        return r;
    return write_record(w, j, row, j->slot->sample_ids[row], &record, io->extent.shard, err);
}

static int write_slow(struct pstk__worker *w, const struct pstk__job *j, uint32_t row,
                      uint64_t sample_id, struct pstk_error *err)
{
    struct pstk__pipeline *p = w->pipeline;
    struct pstk__record record;
    uint32_t shard;
    int r =
        pstk__dataset_read(p->dataset, sample_id, w->spare, p->spare_size, &record, &shard, err);
    if (r < 0)
        return r;
    return write_record(w, j, row, sample_id, &record, shard, err);
}

/* Another sample of the same shard: a pure function of (id, attempt), never id itself. PSTK_NONE
 * when the shard has no other. */
static uint64_t substitute_id(const struct pstk__source *source, uint64_t id, uint32_t attempt)
{
    uint32_t shard;
    uint64_t record, first, n;
    source->format->locate(source, id, &shard, &record);
    source->format->range(source, shard, &first, &n);
    if (n < 2)
        return PSTK_NONE;
    uint64_t step = 1 + pstk__mix64(pstk__mix64(id) + attempt) % (n - 1);
    return first + (record + step) % n;
}

/* Stand in for a bad sample. 0, or the bad sample's own code when no other would do either. */
static int substitute(struct pstk__worker *w, const struct pstk__job *j, uint32_t row,
                      struct pstk_error *bad)
{
    struct pstk__pipeline *p = w->pipeline;
    uint64_t id = j->slot->sample_ids[row];
    for (uint32_t attempt = 0; attempt < PSTK__ATTEMPTS; attempt++) {
        uint64_t other = substitute_id(p->source, id, attempt);
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        if (other == PSTK_NONE)
            break;
        if (write_slow(w, j, row, other, &err) < 0)
            continue;
        j->slot->substitute_ids[row] = other;
        atomic_fetch_add_explicit(&j->slot->n_substituted, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&p->n_substituted, 1, memory_order_relaxed);
        if (p->settings.on_bad_sample)
            p->settings.on_bad_sample(p->settings.user, bad, other);
        return 0;
    }
    return bad->code;
}

/* Is it the sample that is bad, or the machine? Only the former may be stood in for: batches would
 * depend on open files and free memory otherwise. An unreadable sector counts as the sample's. */
static int sample_is_bad(const struct pstk_error *err)
{
    switch (err->code) {
    case PSTK_EBADMSG:
    case PSTK_EFBIG:
    case PSTK_ENOTSUP:
    case PSTK_EIO:
        return 1;
    default:
        return err->stage == PSTK_STAGE_DECODE && err->code != PSTK_ENOMEM;
    }
}

static void write_row(struct pstk__worker *w, const struct pstk__job *j, uint32_t i)
{
    struct pstk__slot *s = j->slot;
    struct pstk_error err;
    uint32_t row = j->first_row + i;
    uint64_t id = s->sample_ids[row];
    err.size = sizeof err; /* the rest is written by who fails */
    int r;
    if (j->rows[i].slow) {
        pstk__count(&w->counters.n_slow, 1);
        r = write_slow(w, j, row, id, &err);
    } else {
        r = write_fast(w, j, i, &err);
    }
    if (r == 0)
        return;
    err.sample_id = id;
    err.epoch = s->batch.epoch;
    err.position = row_position(w->pipeline, s, row);
    if (w->pipeline->settings.bad_sample == PSTK_BAD_SUBSTITUTE && sample_is_bad(&err) &&
        substitute(w, j, row, &err) == 0)
        return;
    pstk__slot_fail(s, row, &err);
}

static void finish_job(struct pstk__worker *w, struct pstk__job *j)
{
    struct pstk__lane *l = j->lane;
    struct pstk__slot *s = j->slot;
    if (j->piece)
        pstk__ring_put(j->piece);
    pstk__queue_push(l->idle, j);
    /* A read-modify-write, in order with the reader's: it made its wish and then looks for room, we
     * made room and then look for its wish. */
    if (atomic_fetch_add_explicit(&l->wants_memory, 0, memory_order_acq_rel))
        pstk__gate_knock(&l->room);
    /* Release: our rows; acquire, for the last one: those of all the others. */
    if (atomic_fetch_sub_explicit(&s->n_jobs_left, 1, memory_order_acq_rel) == 1)
        pstk__stage_finish(w->pipeline, s);
}

void *pstk__stage_work(void *worker)
{
    struct pstk__worker *w = worker;
    struct pstk__pipeline *p = w->pipeline;
    char name[16];
    snprintf(name, sizeof name, "pstk-work-%u", w->number % 1000u);
    pthread_setname_np(pthread_self(), name);
    if (!p->settings.no_pinning && pstk__numa_pin_worker(p->numa, w->number) != 0)
        atomic_fetch_or_explicit(&p->rungs, PSTK_RUNG_NOT_PINNED, memory_order_relaxed);
    uint64_t mark = pstk__clock_ns(), waited = 0;
    struct pstk__job *j;
    while ((j = pstk__queue_pop(w->lane->work, &waited))) {
        uint32_t n_rows = j->n_rows;
        pstk__trace_enter(&p->delivered->trace, "decode", j->slot->seq);
        for (uint32_t i = 0; i < n_rows && !pstk__window_stale(&p->window, j->slot); i++)
            write_row(w, j, i);
        pstk__count(&w->counters.n_items, n_rows); /* before the batch can be delivered */
        finish_job(w, j);
        pstk__trace_leave(&p->delivered->trace);
        uint64_t now = pstk__clock_ns();
        pstk__count(&w->counters.busy_ns, now - mark - waited);
        pstk__count(&w->counters.starved_ns, waited);
        mark = now;
        waited = 0;
    }
    return NULL;
}
