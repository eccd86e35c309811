/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions for made-up stages, against what arithmetic by hand says. */
#include <penstock/penstock.h>

#include "support/test.h"

#include <math.h>

#define MS 1000000ull

/* One second of a loader with one worker that is always busy: 1000 samples, of which each takes a
 * worker 1 ms, the reader 0.1 ms and the consumer 0.25 ms. */
static struct pstk_stats busy_worker(void)
{
    return (struct pstk_stats){
        .size = sizeof(struct pstk_stats),
        .bottleneck = PSTK_BOTTLENECK_DECODE,
        .n_threads = 1,
        .n_batches = 100,
        .n_samples = 1000,
        .cpu_ns = 1100 * MS,
        .stage_workers = {.busy_ns = 1000 * MS, .n_items = 1000},
        .stage_reader = {.busy_ns = 100 * MS, .starved_ns = 100 * MS, .blocked_ns = 800 * MS},
        .stage_consumer = {.busy_ns = 250 * MS, .starved_ns = 750 * MS},
    };
}

/* The stats of the same second, for a loader whose reader waits for storage all the time. */
static struct pstk_stats slow_storage(void)
{
    struct pstk_stats s = busy_worker();
    s.bottleneck = PSTK_BOTTLENECK_STORAGE;
    s.stage_reader = (struct pstk_stage_stats){.busy_ns = 100 * MS, .starved_ns = 900 * MS};
    s.stage_workers =
        (struct pstk_stage_stats){.busy_ns = 200 * MS, .starved_ns = 800 * MS, .n_items = 1000};
    return s;
}

static void expect(struct pstk_stats s, double rate, uint32_t limit,
                   struct pstk_forecast_settings change)
{
    struct pstk_forecast forecast = {.size = sizeof forecast};
    change.size = sizeof change;
    CHECK_EQ(pstk_predict(&s, &change, &forecast), 0);
    CHECK(fabs(forecast.samples_per_second - rate) < 0.001);
    CHECK(fabs(forecast.measured - (s.n_samples ? 1000 : 0)) < 0.001);
    CHECK_EQ(forecast.limit, limit);
}

#define EXPECT(s, rate, limit, ...)                                                                \
    expect(s, rate, limit, (struct pstk_forecast_settings){__VA_ARGS__})

TEST(nothing_changes_nothing)
{
    EXPECT(busy_worker(), 1000, PSTK_BOTTLENECK_DECODE, .size = 0);
    EXPECT(busy_worker(), 1000, PSTK_BOTTLENECK_DECODE, .n_threads = 1, .storage_factor = 1,
           .worker_factor = 1, .n_cores = 2);
    EXPECT(slow_storage(), 1000, PSTK_BOTTLENECK_STORAGE, .size = 0);
}

TEST(workers_help_until_something_else_limits)
{
    EXPECT(busy_worker(), 2000, PSTK_BOTTLENECK_DECODE, .n_threads = 2);
    struct pstk_stats ahead = busy_worker(); /* rows that its times leave out */
    ahead.stage_workers.n_items += 500;
    ahead.n_rows_ahead = 500;
    EXPECT(ahead, 4000, PSTK_BOTTLENECK_CONSUMER, .n_threads = 8);
    EXPECT(ahead, 2000 / 1.1, PSTK_BOTTLENECK_CORES, .n_threads = 2, .n_cores = 2);
    EXPECT(busy_worker(), 4000, PSTK_BOTTLENECK_CONSUMER, .n_threads = 8);
    EXPECT(busy_worker(), 5000, PSTK_BOTTLENECK_STORAGE, .n_threads = 8, .no_consumer = 1);
    EXPECT(slow_storage(), 1000, PSTK_BOTTLENECK_STORAGE, .n_threads = 8);
}

TEST(cores_that_are_full_keep_workers_from_helping)
{
    /* 1.1 ms of CPU time for a sample */
    EXPECT(busy_worker(), 2000 / 1.1, PSTK_BOTTLENECK_CORES, .n_threads = 2, .n_cores = 2);
    EXPECT(busy_worker(), 1000, PSTK_BOTTLENECK_CORES, .n_threads = 2, .n_cores = 1);
    EXPECT(busy_worker(), 1500 / 1.1, PSTK_BOTTLENECK_CORES, .n_threads = 2, .n_cores = 1.5);
    EXPECT(busy_worker(), 2000, PSTK_BOTTLENECK_DECODE, .n_threads = 2, .n_cores = 64);
}

TEST(storage_helps_only_where_it_limits)
{
    EXPECT(slow_storage(), 2000, PSTK_BOTTLENECK_STORAGE, .storage_factor = 2);
    EXPECT(slow_storage(), 4000, PSTK_BOTTLENECK_CONSUMER, .storage_factor = 100);
    EXPECT(slow_storage(), 500, PSTK_BOTTLENECK_STORAGE, .storage_factor = 0.5);
    EXPECT(busy_worker(), 1000, PSTK_BOTTLENECK_DECODE, .storage_factor = 100);
    EXPECT(busy_worker(), 500, PSTK_BOTTLENECK_STORAGE, .storage_factor = 0.1);
}

TEST(kernels_change_what_a_worker_needs)
{
    EXPECT(busy_worker(), 500, PSTK_BOTTLENECK_DECODE, .worker_factor = 2);
    EXPECT(busy_worker(), 2000, PSTK_BOTTLENECK_DECODE, .worker_factor = 0.5);
    /* 2 ms of a worker and 0.1 ms of others for a sample */
    EXPECT(busy_worker(), 2000 / 2.1, PSTK_BOTTLENECK_CORES, .n_threads = 4, .worker_factor = 2,
           .n_cores = 2);
}

TEST(a_consumer_that_limits_is_helped_by_nothing_else)
{
    struct pstk_stats s = busy_worker();
    s.bottleneck = PSTK_BOTTLENECK_CONSUMER;
    s.stage_consumer = (struct pstk_stage_stats){.busy_ns = 1000 * MS};
    s.stage_workers =
        (struct pstk_stage_stats){.busy_ns = 250 * MS, .blocked_ns = 750 * MS, .n_items = 1000};
    EXPECT(s, 1000, PSTK_BOTTLENECK_CONSUMER, .n_threads = 4, .storage_factor = 4);
    EXPECT(s, 4000, PSTK_BOTTLENECK_DECODE, .no_consumer = 1);
}

TEST(rows_that_are_not_delivered_yet_count_as_work)
{
    struct pstk_stats s = busy_worker();
    s.bottleneck = PSTK_BOTTLENECK_CONSUMER;
    s.stage_consumer = (struct pstk_stage_stats){.busy_ns = 1000 * MS};
    s.stage_workers =
        (struct pstk_stage_stats){.busy_ns = 250 * MS, .blocked_ns = 750 * MS, .n_items = 1250};
    s.stage_reader = (struct pstk_stage_stats){.blocked_ns = 1000 * MS};
    EXPECT(s, 5000, PSTK_BOTTLENECK_DECODE, .no_consumer = 1);
}

TEST(on_a_device_the_stream_shows_the_consumer)
{
    struct pstk_stats s = busy_worker();
    s.n_device_slots = 2;
    s.stage_uploader = (struct pstk_stage_stats){
        .busy_ns = 100 * MS, .starved_ns = 650 * MS, .blocked_ns = 250 * MS};
    s.stage_consumer = (struct pstk_stage_stats){.starved_ns = 1000 * MS}; /* it asks ahead */
    EXPECT(s, 4000, PSTK_BOTTLENECK_CONSUMER, .n_threads = 8);
    s.stream_used_ns = 500 * MS;
    s.stream_starved_ns = 500 * MS;
    EXPECT(s, 2000, PSTK_BOTTLENECK_CONSUMER, .n_threads = 8);
    EXPECT(s, 5000, PSTK_BOTTLENECK_STORAGE, .n_threads = 80, .no_consumer = 1);
}

TEST(too_short_a_run_predicts_nothing)
{
    struct pstk_stats s = busy_worker();
    s.bottleneck = PSTK_BOTTLENECK_UNKNOWN;
    EXPECT(s, 0, PSTK_BOTTLENECK_UNKNOWN, .n_threads = 2);
    s = (struct pstk_stats){.size = sizeof s};
    EXPECT(s, 0, PSTK_BOTTLENECK_UNKNOWN, .n_threads = 2);
    s = busy_worker();
    s.n_rows_ahead = s.stage_workers.n_items; /* no row was made since the loop asked */
    EXPECT(s, 0, PSTK_BOTTLENECK_UNKNOWN, .n_threads = 2);
    EXPECT(s, 0, PSTK_BOTTLENECK_UNKNOWN, .storage_factor = 2, .no_consumer = 1, .n_cores = 2);
}

TEST(bad_arguments_are_refused)
{
    const double bad[] = {-1, NAN, INFINITY};
    const struct pstk_stats s = busy_worker();
    struct pstk_stats small = s;
    struct pstk_forecast f = {.size = sizeof f};
    small.size = 8;
    const struct pstk_forecast_settings same = {.size = sizeof same}, none = {.size = 0};
    CHECK_EQ(pstk_predict(&s, &same, &f), 0);
    CHECK_EQ(pstk_predict(&small, &same, &f), PSTK_EINVAL);
    CHECK_EQ(pstk_predict(&s, &none, &f), PSTK_EINVAL);
    CHECK_EQ(pstk_predict(NULL, &same, &f), PSTK_EINVAL);
    CHECK_EQ(pstk_predict(&s, NULL, &f), PSTK_EINVAL);
    CHECK_EQ(pstk_predict(&s, &same, NULL), PSTK_EINVAL);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            struct pstk_forecast_settings change = same;
            *(k == 0   ? &change.storage_factor
              : k == 1 ? &change.worker_factor
                       : &change.n_cores) = bad[i];
            CHECK_EQ(pstk_predict(&s, &change, &f), PSTK_EINVAL);
        }
    f.size = 0;
    CHECK_EQ(pstk_predict(&s, &same, &f), PSTK_EINVAL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(nothing_changes_nothing),
        CASE(workers_help_until_something_else_limits),
        CASE(cores_that_are_full_keep_workers_from_helping),
        CASE(storage_helps_only_where_it_limits),
        CASE(kernels_change_what_a_worker_needs),
        CASE(a_consumer_that_limits_is_helped_by_nothing_else),
        CASE(rows_that_are_not_delivered_yet_count_as_work),
        CASE(on_a_device_the_stream_shows_the_consumer),
        CASE(too_short_a_run_predicts_nothing),
        CASE(bad_arguments_are_refused),
    };
    return RUN_CASES(cases);
}
