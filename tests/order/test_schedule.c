/* SPDX-License-Identifier: Apache-2.0 */
/* Batches whose sizes follow from the step: against a walk from the first batch of the run on. */
#include "order/schedule.h"
#include "support/test.h"

#include <penstock/order.h>

#include <stdlib.h>

#define N_STEPS 4
#define N_WALKED 400

static uint64_t random_state;

static uint64_t below(uint64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % n;
}

static struct pstk_order_settings drawn(struct pstk_batch_step *steps)
{
    struct pstk_order_settings s = {.size = sizeof s,
                                    .order = below(2) ? PSTK_ORDER_FULL : PSTK_ORDER_SEQUENTIAL,
                                    .n_samples = 1 + below(60),
                                    .seed = below(100),
                                    .world = 1 + (uint32_t)below(4),
                                    .last_batch = (uint32_t)below(3),
                                    .n_batch_steps = (uint32_t)below(N_STEPS + 1),
                                    .batch_schedule = steps};
    uint64_t from = 0, most = s.last_batch == PSTK_LAST_DROP ? s.n_samples / s.world : 20;
    if (most == 0) {
        s.world = 1;
        most = s.n_samples;
    }
    s.rank = (uint32_t)below(s.world);
    const int is_global = (int)below(2);
    if (is_global)
        s.global_batch_size = s.world + (uint32_t)below(most * s.world - s.world + 1);
    else
        s.batch_size = 1 + (uint32_t)below(most);
    for (uint32_t i = 0; i < s.n_batch_steps; i++) {
        from += 1 + below(below(2) ? 5 : 60);
        steps[i] = (struct pstk_batch_step){
            .from = from,
            .rows = is_global ? s.world + (uint32_t)below(most * s.world - s.world + 1)
                              : 1 + (uint32_t)below(most)};
    }
    return s;
}

/* The rows of step k, of all ranks. */
static uint64_t rows_of(const struct pstk_order_settings *s, uint64_t step)
{
    uint64_t rows = s->global_batch_size ? s->global_batch_size : s->batch_size;
    for (uint32_t i = 0; i < s->n_batch_steps && s->batch_schedule[i].from <= step; i++)
        rows = s->batch_schedule[i].rows;
    return s->global_batch_size ? rows : rows * s->world;
}

struct walked {
    uint64_t epoch, position, rows, index;
};

/* The first steps of a run. */
static void walk(const struct pstk_order_settings *s, struct walked *walked)
{
    struct walked at = {0};
    for (uint64_t step = 0; step < N_WALKED; step++) {
        at.rows = rows_of(s, step);
        const uint64_t left = s->n_samples - at.position;
        if (left == 0 || (left < at.rows && s->last_batch == PSTK_LAST_DROP))
            at = (struct walked){.epoch = at.epoch + 1, .rows = at.rows};
        walked[step] = at;
        at.position += s->n_samples - at.position < at.rows ? s->n_samples - at.position : at.rows;
        at.index++;
    }
}

static int partition_of(const struct pstk_order_settings *s, struct pstk__partition *p,
                        struct pstk__schedule **schedule)
{
    *p = (struct pstk__partition){.n = s->n_samples,
                                  .global_batch = rows_of(s, 0),
                                  .rank = s->rank,
                                  .world = s->world,
                                  .last_batch = s->last_batch};
    const int r = pstk__schedule_open(schedule, p, s->batch_schedule, s->n_batch_steps,
                                      s->global_batch_size ? 1 : s->world, NULL);
    p->schedule = *schedule;
    return r;
}

TEST(any_place_has_the_batch_of_a_walk_from_the_first_step)
{
    static struct walked walked[N_WALKED];
    for (uint32_t k = 0; k < 3000; k++) {
        struct pstk_batch_step steps[N_STEPS];
        struct pstk__schedule *schedule;
        struct pstk__partition p;
        struct pstk_order_settings s = drawn(steps);
        walk(&s, walked);
        CHECK_EQ(partition_of(&s, &p, &schedule), 0);
        for (uint64_t step = 0; step < N_WALKED; step++) {
            const struct walked *w = &walked[step];
            uint64_t index = 0, n_left = 1;
            const struct pstk__partition at = pstk__schedule_at(&p, w->epoch, w->position, &index);
            while (step + n_left < N_WALKED && walked[step + n_left].epoch == w->epoch)
                n_left++;
            CHECK(at.global_batch == w->rows && index == w->index);
            s.epoch = w->epoch;
            if (step + n_left < N_WALKED) {
                CHECK_EQ(pstk__schedule_n_batches(&p, w->epoch, w->position), n_left);
                CHECK_EQ(pstk_order_n_batches(&s, w->position), n_left);
            }
            CHECK_EQ(pstk_order_rows(&s, w->position), w->rows);
        }
        free(schedule);
    }
}

/* Off the grid, too, the count is that of the batches that come. */
TEST(the_batches_from_any_position_are_as_many_as_are_counted)
{
    for (uint32_t k = 0; k < 3000; k++) {
        struct pstk_batch_step steps[N_STEPS];
        struct pstk__schedule *schedule;
        struct pstk__partition p;
        const struct pstk_order_settings s = drawn(steps);
        const uint64_t epoch = below(20), start = below(s.n_samples + 1);
        CHECK_EQ(partition_of(&s, &p, &schedule), 0);
        uint64_t n = 0;
        for (uint64_t at = start; at < s.n_samples; n++) {
            const uint64_t rows = pstk__schedule_at(&p, epoch, at, NULL).global_batch;
            if (s.n_samples - at < rows && s.last_batch == PSTK_LAST_DROP)
                break;
            at += s.n_samples - at < rows ? s.n_samples - at : rows;
        }
        CHECK_EQ(pstk__schedule_n_batches(&p, epoch, start), n);
        free(schedule);
    }
}

/* The ids of a run are those of its epochs' orders, cut by the walk. */
TEST(ids_are_those_of_batches_of_one_row)
{
    static struct walked walked[N_WALKED];
    for (uint32_t k = 0; k < 200; k++) {
        struct pstk_batch_step steps[N_STEPS];
        struct pstk_order_settings s = drawn(steps);
        uint64_t ids[256], id;
        walk(&s, walked);
        for (uint64_t step = 0; step < N_WALKED; step += 7) {
            const struct walked *w = &walked[step];
            s.epoch = w->epoch;
            const int64_t n = pstk_order_batch(&s, w->position, ids);
            int64_t wanted = 0;
            for (uint64_t i = 0; i < w->rows; i++) {
                uint64_t at = w->position + i;
                if (at >= s.n_samples && s.last_batch != PSTK_LAST_PAD)
                    break;
                if (at % s.world != s.rank)
                    continue;
                const struct pstk_order_settings one = {.size = sizeof one,
                                                        .order = s.order,
                                                        .n_samples = s.n_samples,
                                                        .seed = s.seed,
                                                        .epoch = s.epoch,
                                                        .batch_size = 1,
                                                        .world = 1};
                CHECK_EQ(pstk_order_batch(&one, at % s.n_samples, &id), 1);
                CHECK_EQ(ids[wanted], id);
                wanted++;
            }
            CHECK_EQ(n, wanted);
        }
    }
}

/* 2^60 samples, 1000 changes, an epoch far away: no walk could find it. */
TEST(far_places_are_found_at_once)
{
    static struct pstk_batch_step steps[PSTK_MAX_BATCH_STEPS];
    for (uint32_t i = 0; i < PSTK_MAX_BATCH_STEPS; i++)
        steps[i] = (struct pstk_batch_step){.from = (i + 1) * 1000000007ull, .rows = 2 + i % 1000};
    struct pstk_order_settings s = {.size = sizeof s,
                                    .n_samples = (uint64_t)1 << 30,
                                    .batch_size = 1,
                                    .world = 1,
                                    .n_batch_steps = PSTK_MAX_BATCH_STEPS,
                                    .batch_schedule = steps};
    const struct pstk_batch_step *last = &steps[PSTK_MAX_BATCH_STEPS - 1];
    CHECK_EQ(pstk_order_rows(&s, 0), 1);
    CHECK_EQ(pstk_order_rows(&s, 1000000006), 1);
    CHECK_EQ(pstk_order_rows(&s, 1000000007), 2);
    s.epoch = UINT64_MAX;
    CHECK_EQ(pstk_order_rows(&s, 0), last->rows);
    CHECK_EQ(pstk_order_n_batches(&s, 0), s.n_samples / last->rows);
}

TEST(wrong_schedules_are_refused)
{
    const struct pstk_batch_step bad[][2] = {
        {{0, 4, 0}, {3, 4, 0}},
        {{3, 4, 0}, {3, 5, 0}},
        {{3, 4, 0}, {2, 5, 0}},
        {{1, 0, 0}, {2, 5, 0}},
        {{1, 4, 1}, {2, 5, 0}},
        {{1, 101, 0}, {2, 5, 0}},
        {{1, 4, 0}, {PSTK__MAX_BATCH_FROM, 5, 0}},
    };
    struct pstk_order_settings s = {
        .size = sizeof s, .n_samples = 100, .batch_size = 8, .world = 1, .n_batch_steps = 2};
    uint64_t ids[128];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s.batch_schedule = bad[i];
        CHECK_EQ(pstk_order_n_batches(&s, 0), 0);
        CHECK_EQ(pstk_order_rows(&s, 0), 0);
        CHECK_EQ(pstk_order_batch(&s, 0, ids), PSTK_EINVAL);
    }
    s.batch_schedule = NULL;
    CHECK_EQ(pstk_order_rows(&s, 0), 0);
    s.n_batch_steps = 0;
    CHECK_EQ(pstk_order_rows(&s, 0), 8);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(any_place_has_the_batch_of_a_walk_from_the_first_step),
        CASE(the_batches_from_any_position_are_as_many_as_are_counted),
        CASE(ids_are_those_of_batches_of_one_row),
        CASE(far_places_are_found_at_once),
        CASE(wrong_schedules_are_refused),
    };
    return RUN_CASES(cases);
}
