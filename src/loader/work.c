/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: records become rows of a batch. See pipeline.h for the shape. */
#include "loader/pipeline.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

/* Is it the sample that is bad, or the machine? Only the former may be replaced: batches would
 * depend on open files and free memory otherwise. Outside of decoding, `native` is the errno of a
 * system call: EMFILE gives EFBIG, ESTALE gives EIO. An unreadable sector counts as the sample's.
 */
static int sample_is_bad(const struct pstk_error *err)
{
    if (err->stage == PSTK_STAGE_DECODE)
        return err->code != PSTK_ENOMEM;
    switch (err->code) {
    case PSTK_EBADMSG:
        return 1;
    case PSTK_EFBIG:
    case PSTK_ENOTSUP:
        return err->native == 0;
    case PSTK_EIO:
        return err->native == 0 || err->native == EIO;
    default:
        return 0;
    }
}

/* The samples tried in place of one: others of its shard, pure functions of its id. */
struct tries {
    uint64_t id, record, first, n_others; /* the shard is [first, first + n_others] */
    uint64_t steps[PSTK__ATTEMPTS];       /* from the record on, in [1, n_others], all different */
    uint32_t n, most;                     /* tried so far; to be tried */
};

static void tries_init(struct tries *t, const struct pstk__source *source, uint64_t id)
{
    uint32_t shard;
    uint64_t n;
    t->id = id;
    t->n = 0;
    source->format->locate(source, id, &shard, &t->record);
    source->format->range(source, shard, &t->first, &n);
    t->n_others = n - 1;
    t->most = t->n_others < PSTK__ATTEMPTS ? (uint32_t)t->n_others : PSTK__ATTEMPTS;
}

static int was_tried(const struct tries *t, uint64_t step)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->steps[i] == step)
            return 1;
    return 0;
}

/* The next to be tried; n < most. */
static uint64_t tries_next(struct tries *t)
{
    uint64_t step = 1 + pstk__mix64(pstk__mix64(t->id) + t->n) % t->n_others;
    while (was_tried(t, step)) /* ends: there are more steps than were tried */
        step = step % t->n_others + 1;
    t->steps[t->n++] = step;
    return t->first + (t->record + step) % (t->n_others + 1);
}

/* Add to the error of a bad sample why no other replaced it. */
static int none_replaces(const struct tries *t, struct pstk_error *bad)
{
    char why[128];
    if (t->n_others == 0)
        snprintf(why, sizeof why, "its shard has no other sample");
    else if (t->n_others == 1)
        snprintf(why, sizeof why, "the only other sample of its shard is bad too");
    else if (t->most == t->n_others)
        snprintf(why, sizeof why, "all %u other samples of its shard are bad too", t->most);
    else
        snprintf(why, sizeof why, "%u other samples of its shard were tried, and are bad too",
                 t->most);
    const size_t n = strlen(bad->message);
    snprintf(bad->message + n, sizeof bad->message - n, "; no sample can replace it: %s", why);
    return bad->code;
}

/* Write another sample of the shard in place of a bad one. 0, or the result of *bad, which then is
 * the error of the row. */
static int replace(struct pstk__worker *w, const struct pstk__job *j, uint32_t row,
                   struct pstk_error *bad)
{
    struct tries t;
    tries_init(&t, w->pipeline->source, j->slot->sample_ids[row]);
    while (t.n < t.most) {
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        const uint64_t other = tries_next(&t);
        if (write_slow(w, j, row, other, &err) == 0) {
            pstk__slot_replace(j->slot, row, bad, other);
            return 0;
        }
        if (!sample_is_bad(&err)) {
            err.epoch = bad->epoch;
            err.position = bad->position;
            *bad = err;
            return bad->code;
        }
    }
    return none_replaces(&t, bad);
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
        replace(w, j, row, &err) == 0)
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
