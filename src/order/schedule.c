/* SPDX-License-Identifier: Apache-2.0 */
#include "order/schedule.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>

/* Batches of one size that follow one another in an epoch. */
struct stretch {
    uint32_t segment;
    uint64_t begin, end; /* positions of the first batch, and past the last */
    uint64_t step;       /* step of the first batch */
    uint64_t index;      /* number of the first batch in the epoch */
    int is_last;         /* 1: the last stretch of the epoch */
};

static struct pstk__partition sized(const struct pstk__partition *partition, uint32_t segment)
{
    struct pstk__partition one = *partition;
    one.global_batch = partition->schedule->segments[segment].rows;
    one.schedule = NULL;
    return one;
}

/* Return the steps of a segment from `step` on. */
static uint64_t steps_left(const struct pstk__schedule *schedule, uint32_t segment, uint64_t step)
{
    return segment + 1 < schedule->n_segments ? schedule->segments[segment + 1].from - step
                                              : UINT64_MAX;
}

/* Set the end of a stretch whose beginning is set. */
static void measure(const struct pstk__partition *partition, struct stretch *stretch)
{
    const struct pstk__partition one = sized(partition, stretch->segment);
    const uint64_t steps = steps_left(partition->schedule, stretch->segment, stretch->step);
    const uint64_t left = partition->n - stretch->begin;
    stretch->is_last = steps > left / one.global_batch || steps * one.global_batch == left;
    stretch->end = stretch->is_last ? partition->n : stretch->begin + steps * one.global_batch;
}

/* Return the first stretch that begins at a step, at the start of an epoch. */
static struct stretch first_of(const struct pstk__partition *partition, uint32_t segment,
                               uint64_t step)
{
    struct stretch stretch = {.segment = segment, .step = step};
    while (steps_left(partition->schedule, stretch.segment, step) == 0)
        stretch.segment++;
    measure(partition, &stretch);
    return stretch;
}

/* Return the stretch after one that is not the last. */
static struct stretch next_of(const struct pstk__partition *partition, const struct stretch *before)
{
    const uint64_t steps = steps_left(partition->schedule, before->segment, before->step);
    struct stretch stretch = {.segment = before->segment + 1,
                              .begin = before->end,
                              .step = before->step + steps,
                              .index = before->index + steps};
    measure(partition, &stretch);
    return stretch;
}

/* Return the first stretch of an epoch. Epochs within a segment have equally many batches and are
 * skipped at once; each epoch that is walked through ends a segment, so this is O(segments). */
static struct stretch start_of(const struct pstk__partition *partition, uint64_t epoch)
{
    struct stretch stretch = first_of(partition, 0, 0);
    for (uint64_t at = 0; at < epoch;) {
        const struct pstk__partition one = sized(partition, stretch.segment);
        const uint64_t n = pstk__partition_n_batches(&one, 0);
        const uint64_t steps = steps_left(partition->schedule, stretch.segment, stretch.step);
        uint64_t step;
        if (stretch.segment + 1 == partition->schedule->n_segments)
            break;       /* the last segment: its steps need no further counting */
        if (steps > n) { /* the segment's last epoch is walked: rows that it drops may hold smaller
                            batches */
            const uint64_t most = (steps - 1) / n, whole = most < epoch - at ? most : epoch - at;
            step = stretch.step + whole * n;
            at += whole;
        } else {
            while (!stretch.is_last)
                stretch = next_of(partition, &stretch);
            const struct pstk__partition last = sized(partition, stretch.segment);
            step = stretch.step + pstk__partition_n_batches(&last, stretch.begin);
            at++;
        }
        stretch = first_of(partition, stretch.segment, step);
    }
    return stretch;
}

static struct stretch stretch_at(const struct pstk__partition *partition, struct stretch stretch,
                                 uint64_t position)
{
    while (!stretch.is_last && stretch.end <= position)
        stretch = next_of(partition, &stretch);
    return stretch;
}

struct pstk__partition pstk__schedule_at(const struct pstk__partition *partition, uint64_t epoch,
                                         uint64_t position, uint64_t *index)
{
    struct pstk__partition one = *partition;
    struct stretch stretch = {0};
    if (partition->schedule) {
        stretch = stretch_at(partition, start_of(partition, epoch), position);
        one = sized(partition, stretch.segment);
    }
    if (index)
        *index = stretch.index + (position - stretch.begin) / one.global_batch;
    return one;
}

/* A batch that began off the grid of its epoch, and crosses the border of two stretches, ends
 * within the second. */
uint64_t pstk__schedule_n_batches(const struct pstk__partition *partition, uint64_t epoch,
                                  uint64_t position)
{
    uint64_t n = 0;
    if (!partition->schedule)
        return pstk__partition_n_batches(partition, position);
    if (position >= partition->n)
        return 0;
    struct stretch stretch = stretch_at(partition, start_of(partition, epoch), position);
    for (;;) {
        const struct pstk__partition one = sized(partition, stretch.segment);
        const uint64_t rows = one.global_batch;
        const uint64_t steps = (stretch.end - position - 1) / rows + 1;
        if (stretch.is_last || steps > (partition->n - position) / rows)
            return n + pstk__partition_n_batches(&one, position);
        n += steps;
        position += steps * rows;
        if (position >= partition->n)
            return n;
        stretch = stretch_at(partition, stretch, position);
    }
}

struct pstk__partition pstk__schedule_last(const struct pstk__partition *partition, uint64_t epoch,
                                           uint64_t *position)
{
    if (!partition->schedule) {
        *position = (pstk__partition_n_batches(partition, 0) - 1) * partition->global_batch;
        return *partition;
    }
    struct stretch stretch = start_of(partition, epoch);
    struct pstk__partition last = sized(partition, stretch.segment);
    for (*position = 0;; stretch = next_of(partition, &stretch)) {
        const struct pstk__partition one = sized(partition, stretch.segment);
        const uint64_t n = stretch.is_last ? pstk__partition_n_batches(&one, stretch.begin)
                                           : (stretch.end - stretch.begin) / one.global_batch;
        if (n > 0) { /* the batches of the last stretch may be dropped */
            *position = stretch.begin + (n - 1) * one.global_batch;
            last = one;
        }
        if (stretch.is_last)
            return last;
    }
}

static int check_step(const struct pstk__partition *partition, const struct pstk_batch_step *steps,
                      uint32_t i, uint64_t scale, struct pstk_error *err)
{
    struct pstk__partition one = *partition;
    char name[64];
    snprintf(name, sizeof name, "batch_schedule[%u].%s", i, steps[i].rows ? "from" : "rows");
    if (steps[i].rows == 0 || steps[i].from <= (i ? steps[i - 1].from : 0))
        return pstk__fail_setting(err, name, steps[i].rows ? steps[i].from : 0,
                                  "at least 1, and above that of the step before");
    if (steps[i].from >= PSTK__MAX_BATCH_FROM || steps[i].reserved)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "batch_schedule[%u]: from must be below 2^62, and reserved 0", i);
    one.global_batch = steps[i].rows * scale;
    one.schedule = NULL;
    if (pstk__partition_n_batches(&one, 0) == 0)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "batch_schedule[%u].rows: %llu rows of all ranks are more than the %llu "
            "samples, so last_batch=drop leaves no batch: lower it, or set last_batch "
            "to pad or short",
            i, (unsigned long long)one.global_batch, (unsigned long long)partition->n);
    return 0;
}

int pstk__schedule_open(struct pstk__schedule **out, const struct pstk__partition *partition,
                        const struct pstk_batch_step *steps, uint32_t n_steps, uint64_t scale,
                        struct pstk_error *err)
{
    *out = NULL;
    if (n_steps == 0)
        return 0;
    if (!steps || n_steps > PSTK_MAX_BATCH_STEPS)
        return pstk__fail_setting(err, "n_batch_steps", n_steps,
                                  "0, or the length of batch_schedule, at most %d",
                                  PSTK_MAX_BATCH_STEPS);
    if (pstk__partition_n_batches(partition, 0) ==
        0) /* epochs of such batches would have no steps */
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "batch_schedule: the rows before its first step, %llu of all ranks, are "
                          "more than the %llu samples, so last_batch=drop leaves no batch",
                          (unsigned long long)partition->global_batch,
                          (unsigned long long)partition->n);
    for (uint32_t i = 0; i < n_steps; i++) {
        const int r = check_step(partition, steps, i, scale, err);
        if (r < 0)
            return r;
    }
    struct pstk__schedule *schedule =
        malloc(sizeof *schedule + (n_steps + 1) * sizeof *schedule->segments);
    if (!schedule)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the batch schedule");
    schedule->n_segments = n_steps + 1;
    schedule->segments[0] = (struct pstk__segment){0, partition->global_batch};
    for (uint32_t i = 0; i < n_steps; i++)
        schedule->segments[i + 1] = (struct pstk__segment){steps[i].from, steps[i].rows * scale};
    *out = schedule;
    return 0;
}
