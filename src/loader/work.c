/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker: records become rows of a batch. See pipeline.h for the shape.
 *
 * Everything here runs on a worker's thread, which holds no lock. The worker owns the task that it
 * popped, and with it the rows of the slot that the task names; other workers write other rows of
 * the same slot at the same time. They reach shared data only through slot.h: pstk__slot_note
 * (atomics, and offsets of the row), pstk__slot_replace and pstk__slot_fail (the slot's lock).
 * Plan, data set and settings are constant by now.
 */
#include "loader/pipeline.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "loader/fetch.h"
#include "loader/mixture.h"
#include "loader/scatter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CACHE_LINE 64u
#define PREFETCH_ROWS 4u   /* rows ahead of the one that is written */
#define PREFETCH_MAX 4096u /* bytes of a row; the processor prefetches the rest by itself */

static uint64_t row_position(const struct pstk__pipeline *pipeline, const struct pstk__slot *slot,
                             uint32_t row)
{
    if (slot->places)
        return slot->first + row;
    return pstk__partition_row(&pipeline->stream.partition, slot->batch.position, row);
}

/* Write row i of a task from a parsed record, of its sample or of a replacement. */
static int write_record(struct pstk__worker *worker, const struct pstk__task *task, uint32_t i,
                        uint64_t sample_id, struct pstk__record *record, uint32_t shard,
                        struct pstk_error *err)
{
    struct pstk__row rows[PSTK__MAX_OUTPUTS];
    struct pstk__slot *slot = task->slot;
    const uint32_t row = task->first_row + i;
    const struct pstk__row_io *io = &task->fetch.rows[i];
    const struct pstk__pick *pick = &io->pick;
    struct pstk__sample_key key = {.sample_id = sample_id - pick->first,
                                   .epoch = pick->epoch,
                                   .position = row_position(worker->pipeline, slot, row),
                                   .size_index = slot->batch.size_index,
                                   .occurrence = pick->occurrence,
                                   .data_set = pick->data_set};
    pstk__slot_rows(slot, row, rows);
    pstk__scatter_settle(worker->scatter, io, record, rows);
    int r = pstk__sample_write(worker->sampler, record, shard, &key, rows, err);
    if (r < 0)
        return r;
    pstk__scatter_learn(worker->scatter, io, worker->pipeline->n_extents, record, rows);
    pstk__slot_note(slot, row, rows);
    return 0;
}

static int write_fast(struct pstk__worker *worker, const struct pstk__task *task, uint32_t i,
                      struct pstk_error *err)
{
    const struct pstk__source *source = worker->pipeline->source;
    const struct pstk__row_io *io = &task->fetch.rows[i];
    struct pstk__record record;
    int r = source->format->parse(source, &io->at, worker->pipeline->fields, io->extents,
                                  worker->pipeline->n_extents, &record, err);
    if (r < 0)
        return r;
    return write_record(worker, task, i, io->pick.id, &record, io->at.shard, err);
}

static int write_slow(struct pstk__worker *worker, const struct pstk__task *task, uint32_t i,
                      uint64_t sample_id, struct pstk_error *err)
{
    struct pstk__pipeline *pipeline = worker->pipeline;
    const struct pstk__room spare = {worker->spare, pipeline->spare_size};
    struct pstk__record record;
    uint32_t shard;
    task->fetch.rows[i].scattered = 0; /* no byte of the fast read is used */
    int r = pstk__dataset_read(pipeline->dataset, sample_id, pipeline->fields, &spare, &record,
                               &shard, err);
    if (r < 0)
        return r;
    return write_record(worker, task, i, sample_id, &record, shard, err);
}

/* Return 1 if the sample is bad, 0 if the machine is. Only a bad sample may be replaced: otherwise
 * batches would depend on open files and free memory. Outside decoding, `native` is the errno of a
 * system call: EMFILE gives EFBIG, ESTALE gives EIO. An unreadable sector counts as a bad sample.
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

#define DRAWS                                                                                      \
    (8 *                                                                                           \
     PSTK__ATTEMPTS) /* draws by weight, enough to find as many different samples as are tried */

/* The samples tried in place of a bad one: others of its shard, or of its subset. They are pure
 * functions of its id and of the subset. */
struct tries {
    uint64_t id, record, first, n_others; /* the shard is [first, first + n_others] */
    uint64_t steps[PSTK__ATTEMPTS];    /* steps from the record, in [1, n_others], all different; or
                                          indices in the subset */
    const struct pstk__subset *subset; /* subset of the sample's data set; or NULL */
    const struct pstk__alias *alias;   /* draws from the subset; or NULL */
    uint64_t base;     /* id of the first sample of its data set, in a mixture; else 0 */
    uint32_t n, most;  /* samples tried so far; samples to try */
    uint32_t n_draws;  /* draws by weight so far */
    uint64_t n_shards; /* shards of the data set */
};

static void tries_init(struct tries *tries, const struct pstk__pipeline *pipeline,
                       const struct pstk__pick *pick)
{
    const struct pstk__source *source = pipeline->source;
    const struct pstk__mixture *mixture = pipeline->stream.mixture;
    const uint64_t id = pick->id;
    struct pstk__sample_location at;
    uint64_t n;
    tries->id = id;
    tries->n = tries->n_draws = 0;
    tries->subset = mixture ? mixture->subsets[pick->data_set] : pipeline->stream.picks.subset;
    tries->alias = mixture ? mixture->aliases[pick->data_set] : pipeline->stream.picks.alias;
    tries->base = pick->first;
    source->format->locate(source, id, &at);
    tries->record = at.record;
    tries->n_shards = source->n_shards;
    pstk__source_range(source, at.shard, &tries->first, &n);
    tries->n_others = (tries->subset ? tries->subset->n : n) - 1;
    tries->most = tries->n_others < PSTK__ATTEMPTS ? (uint32_t)tries->n_others : PSTK__ATTEMPTS;
}

static int was_tried(const struct tries *tries, uint64_t step)
{
    for (uint32_t i = 0; i < tries->n; i++)
        if (tries->steps[i] == step)
            return 1;
    return 0;
}

/* Return the next member of the subset to try. */
static uint64_t tries_next_member(struct tries *tries)
{
    const uint64_t n = tries->n_others + 1;
    uint64_t index = pstk__mix64(pstk__mix64(tries->id - tries->base) + tries->n) % n, other;
    /* The loop ends: there are more other members than were tried. */
    while (other = tries->base + pstk__subset_at(tries->subset, index),
           other == tries->id || was_tried(tries, index))
        index = (index + 1) % n;
    tries->steps[tries->n++] = index;
    return other;
}

/* Draw the next sample by weight, so that none of weight 0 is tried. Returns 0 if the draws only
 * repeat. */
static int tries_draw(struct tries *tries, uint64_t *other)
{
    while (tries->n_draws < DRAWS) {
        const uint64_t index =
            pstk__alias_other(tries->alias, tries->id - tries->base, tries->n_draws++);
        *other = tries->base + pstk__subset_at(tries->subset, index);
        if (*other == tries->id || was_tried(tries, index))
            continue;
        tries->steps[tries->n++] = index;
        return 1;
    }
    return 0;
}

/* Return the next sample of the shard to try. */
static uint64_t tries_next_of_shard(struct tries *tries)
{
    uint64_t step = 1 + pstk__mix64(pstk__mix64(tries->id) + tries->n) % tries->n_others;
    while (was_tried(tries, step)) /* ends: there are more steps than were tried */
        step = step % tries->n_others + 1;
    tries->steps[tries->n++] = step;
    return tries->first + (tries->record + step) % (tries->n_others + 1);
}

/* Find the next sample to try. Returns 0 if there is none. */
static int tries_next(struct tries *tries, uint64_t *other)
{
    if (tries->n == tries->most)
        return 0;
    if (tries->alias)
        return tries_draw(tries, other);
    *other = tries->subset ? tries_next_member(tries) : tries_next_of_shard(tries);
    return 1;
}

/* Add to the error of a bad sample the reason why no other sample replaced it. */
static int none_replaces(const struct tries *tries, struct pstk_error *bad)
{
    char why[128];
    const char *all = tries->subset          ? "the subset"
                      : tries->n_shards == 1 ? "the data set" /* arrays have no shards */
                                             : "its shard";
    if (tries->n_others == 0)
        snprintf(why, sizeof why, "%s has no other sample", all);
    else if (tries->n == 0)
        snprintf(why, sizeof why, "the weights drew no other sample of %s", all);
    else if (tries->n < tries->most)
        snprintf(why, sizeof why, "the weights drew %u other sample%s of %s, %s bad too", tries->n,
                 tries->n == 1 ? "" : "s", all, tries->n == 1 ? "which is" : "which are");
    else if (tries->n_others == 1)
        snprintf(why, sizeof why, "the only other sample of %s is bad too", all);
    else if (tries->most == tries->n_others)
        snprintf(why, sizeof why, "all %u other samples of %s are bad too", tries->most, all);
    else
        snprintf(why, sizeof why, "%u other samples of %s were tried, and are bad too", tries->most,
                 all);
    const size_t n = strlen(bad->message);
    snprintf(bad->message + n, sizeof bad->message - n, "; no sample can replace it: %s", why);
    return bad->code;
}

/* Write another sample of the shard or subset in place of a bad one. Returns 0, or the code of
 * *bad, which then is the error of the row. */
static int replace(struct pstk__worker *worker, const struct pstk__task *task, uint32_t i,
                   struct pstk_error *bad)
{
    struct tries tries;
    tries_init(&tries, worker->pipeline, &task->fetch.rows[i].pick);
    uint64_t other;
    while (tries_next(&tries, &other)) {
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        if (write_slow(worker, task, i, other, &err) == 0) {
            pstk__slot_replace(task->slot, task->first_row + i, bad,
                               other - task->fetch.rows[i].pick.first);
            return 0;
        }
        if (!sample_is_bad(&err)) {
            err.epoch = bad->epoch;
            err.position = bad->position;
            *bad = err;
            return bad->code;
        }
    }
    return none_replaces(&tries, bad);
}

/* Prefetch the bytes of a row that will soon be written. A block's row was read long ago and lies
 * anywhere in the block's memory; other rows are in the cache. */
static void prefetch_row(const struct pstk__task *task, uint32_t i, uint32_t n_extents)
{
    const struct pstk__row_io *io = &task->fetch.rows[i];
    if (!io->block || io->slow)
        return;
    for (uint32_t k = 0; k < n_extents; k++) {
        const uint64_t n = io->extents[k].size < PREFETCH_MAX ? io->extents[k].size : PREFETCH_MAX;
        for (uint64_t at = 0; at < n; at += CACHE_LINE)
            __builtin_prefetch(io->extents[k].data + at);
    }
}

static void write_row(struct pstk__worker *worker, const struct pstk__task *task, uint32_t i)
{
    const struct pstk__pipeline *pipeline = worker->pipeline;
    struct pstk__slot *slot = task->slot;
    struct pstk_error err;
    uint32_t row = task->first_row + i;
    const uint64_t id = task->fetch.rows[i].pick.id;
    err.size = sizeof err; /* the function that fails writes the rest */
    int r;
    if (task->fetch.rows[i].slow) {
        pstk__count(&worker->counters.n_slow, 1);
        r = write_slow(worker, task, i, id, &err);
    } else {
        r = write_fast(worker, task, i, &err);
    }
    if (r == 0)
        return;
    err.sample_id = id - task->fetch.rows[i].pick.first;
    err.epoch = slot->batch.epoch;
    pstk__mixture_name(pipeline->stream.mixture, pipeline->source, &task->fetch.rows[i].pick, &err);
    err.position = row_position(pipeline, slot, row);
    if (pipeline->settings.bad_sample == PSTK_BAD_REPLACE && sample_is_bad(&err) &&
        replace(worker, task, i, &err) == 0)
        return;
    pstk__slot_fail(slot, row, &err);
}

/* Read what the reader left to this thread: a span that the page cache holds. */
static void read_span(struct pstk__worker *worker, const struct pstk__task *task,
                      struct pstk__span_io *span_io)
{
    struct iovec parts[PSTK__READ_PARTS];
    const uint32_t n_parts = pstk__scatter_parts(worker->scatter, task, span_io, parts);
    const uint64_t begin = pstk__clock_ns();
    const int is_resident = pstk__read_resident(&span_io->read, parts, n_parts);
    const uint64_t ns = pstk__clock_ns() - begin;
    if (!is_resident) {
        worker->waited_ns += ns;
        atomic_fetch_add_explicit(&worker->lane->residency.n_gone, 1, memory_order_relaxed);
        pstk__count(&worker->counters.n_evicted, 1);
    }
    pstk__histogram_add(&worker->reads, ns);
    pstk__count(&worker->counters.n_reads, 1);
    if (span_io->read.result > 0)
        pstk__count(&worker->counters.bytes, (uint64_t)span_io->read.result);
    pstk__fetch_span_read(span_io);
}

/* Read the spans that begin with row i, just before it is written: its bytes are then in this
 * core's cache. *next: the first span that may. Spans of one extent follow each other by their
 * first row. */
static void read_row(struct pstk__worker *worker, struct pstk__task *task, uint32_t i,
                     uint32_t *next)
{
    struct pstk__fetch *fetch = &task->fetch;
    uint32_t k = *next;
    pstk__scatter_row(worker->scatter);
    for (; k < fetch->n_spans; k++) {
        struct pstk__span_io *span_io = &fetch->spans[k];
        if (span_io->span.first > i && worker->pipeline->n_extents == 1)
            break;
        if (span_io->span.first == i && span_io->by_worker)
            read_span(worker, task, span_io);
    }
    if (worker->pipeline->n_extents == 1)
        *next = k;
}

/* Give a task back. From here on the reader may use the task and its memory. If it was the slot's
 * last task, the consumer may use the slot. So this thread touches each before it hands it on, not
 * after.
 */
static void finish_task(struct pstk__worker *worker, struct pstk__task *task)
{
    struct pstk__lane *l = task->lane;
    struct pstk__slot *slot = task->slot;
    /* Relaxed: the countdown shows it to who finishes the slot. */
    atomic_fetch_add_explicit(&slot->n_bytes, task->fetch.n_bytes, memory_order_relaxed);
    if (task->piece)
        pstk__buffer_put(task->piece);
    /* Release: the reader may reuse the blocks that the rows were read from. */
    atomic_store_explicit(&task->finished, task->number + 1, memory_order_release);
    pstk__queue_push(l->idle, task);
    pstk__handback_given(&l->handback);
    /* Release makes this task's rows visible; acquire, for the last worker, the rows of all the
     * others. */
    if (atomic_fetch_sub_explicit(&slot->n_tasks_left, 1, memory_order_acq_rel) == 1)
        pstk__pipeline_finish(worker->pipeline, slot, worker->ring, &worker->finishes);
}

void *pstk__pipeline_work(void *worker)
{
    struct pstk__worker *w = worker;
    struct pstk__pipeline *pipeline = w->pipeline;
    struct pstk__scatter scatter;
    char name[16];
    pstk__scatter_init(&scatter, pipeline, w->spare);
    w->scatter = &scatter;
    snprintf(name, sizeof name, "pstk-work-%u", w->number % 1000u);
    pthread_setname_np(pthread_self(), name);
    if (pipeline->settings.reading.pin_threads &&
        pstk__numa_pin_node(pipeline->numa, w->lane->node) != 0)
        atomic_fetch_or_explicit(&pipeline->fallbacks, PSTK_FALLBACK_NOT_PINNED,
                                 memory_order_relaxed);
    pstk__cpu_times_join(pipeline->workers_times);
    uint64_t mark = pstk__clock_ns(), waited = 0;
    struct pstk__task *task;
    uint32_t n_left;
    while ((task = pstk__queue_pop(w->lane->work, &waited, &n_left))) {
        pstk__histogram_add(&w->jobs_left, n_left);
        uint32_t n_rows = task->fetch.n_rows, next_span = 0;
        pstk__scatter_begin(w->scatter);
        const uint64_t begin = pstk__ring_now(w->ring);
        pstk__trace_begin(pipeline->trace, "decode", task->slot->seq);
        for (uint32_t i = 0; i < n_rows && i < PREFETCH_ROWS; i++)
            prefetch_row(task, i, pipeline->n_extents);
        for (uint32_t i = 0; i < n_rows && !pstk__reorder_stale(&pipeline->reorder, task->slot);
             i++) {
            if (i + PREFETCH_ROWS < n_rows)
                prefetch_row(task, i + PREFETCH_ROWS, pipeline->n_extents);
            if (task->fetch.n_by_worker > 0)
                read_row(w, task, i, &next_span);
            write_row(w, task, i);
        }
        pstk__count(&w->counters.n_items, n_rows); /* before the batch can be delivered */
        pstk__slot_trace(task->slot, w->ring, PSTK__EVENT_DECODE, begin, n_rows);
        finish_task(w, task);
        pstk__trace_end(pipeline->trace);
        uint64_t now = pstk__clock_ns();
        waited += w->waited_ns;
        w->waited_ns = 0;
        pstk__histogram_add(&w->counters.times, now - mark - waited);
        pstk__count_span(&w->counters.starved_ns, &pipeline->asked_ns, mark, mark + waited);
        pstk__count_span(&w->counters.busy_ns, &pipeline->asked_ns, mark + waited, now);
        mark = now;
        waited = 0;
    }
    pstk__cpu_times_leave(pipeline->workers_times);
    w->scatter = NULL;
    return NULL;
}
