/* SPDX-License-Identifier: Apache-2.0 */
/* The limiting stage, from made-up shares of time of the stages. */
#include "observe/stats.h"
#include "support/test.h"

#define MS 1000000ull

/* A second of a loader whose consumer waits most of the time, and whose other stages rest. */
static struct pstk_stats waiting(void)
{
    return (struct pstk_stats){
        .n_batches = 100,
        .stage_consumer = {.busy_ns = 100 * MS, .starved_ns = 900 * MS},
        .stage_workers = {.busy_ns = 100 * MS, .starved_ns = 900 * MS},
        .stage_reader = {.busy_ns = 100 * MS, .starved_ns = 100 * MS, .blocked_ns = 800 * MS},
    };
}

TEST(too_little_time_says_nothing)
{
    struct pstk_stats s = waiting();
    s.n_batches = 3;
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_UNKNOWN);
}

TEST(a_consumer_that_never_waits_limits)
{
    struct pstk_stats s = waiting();
    s.stage_consumer.starved_ns = 5 * MS;
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_CONSUMER);
}

TEST(the_stage_with_the_least_rest_limits)
{
    struct pstk_stats s = waiting();
    s.stage_workers.busy_ns = 9000 * MS;
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_DECODE);
    s = waiting();
    s.stage_reader.starved_ns = 9000 * MS;
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_STORAGE);
    s = waiting();
    s.stage_reader.busy_ns = 9000 * MS;
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_READER);
    s = waiting();
    s.stage_uploader.busy_ns = 900 * MS;
    s.stage_uploader.starved_ns = 100 * MS;
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_COPY);
}

TEST(a_busy_reader_without_a_core_means_the_cores)
{
    struct pstk_stats s = waiting();
    s.stage_reader = (struct pstk_stage_stats){
        .busy_ns = 900 * MS, .cpu_ns = 400 * MS, .core_wait_ns = 400 * MS};
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_READER); /* as long is not longer */
    s.stage_reader.core_wait_ns += 1;
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_CORES);
    s.stage_workers = (struct pstk_stage_stats){.busy_ns = 1000 * MS}; /* the workers are busier */
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_DECODE);
}

TEST(an_uploader_that_waits_for_the_step_means_the_consumer)
{
    struct pstk_stats s = waiting();
    s.stage_uploader.busy_ns = 100 * MS;
    s.stage_uploader.blocked_ns = 900 * MS;
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_CONSUMER);
    s = waiting();
    s.stream_used_ns = 900 * MS;
    s.stream_starved_ns = 80 * MS;
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_CONSUMER);
    s.stream_starved_ns = 100 * MS;
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_DECODE);
    s.stream_start_ns = 11 * MS; /* the first wait limits nothing */
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_CONSUMER);
    s.stream_start_ns = 101 * MS; /* read later than the sum */
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_CONSUMER);
    s.stream_start_ns = 0;
    s.stage_uploader.busy_ns = 100 * MS;
    s.stage_uploader.blocked_ns = 900 * MS;
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_COPY);
}

TEST(shares_at_the_bounds_decide_as_stated)
{
    struct pstk_stats s = waiting();
    s.n_batches = 4;
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_DECODE);
    s.stage_consumer = (struct pstk_stage_stats){.busy_ns = 9 * MS, .starved_ns = 91 * MS};
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_DECODE);
    s.stage_consumer.starved_ns--; /* less than 100 ms */
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_UNKNOWN);
    s.stage_consumer = (struct pstk_stage_stats){.busy_ns = 900 * MS, .starved_ns = 100 * MS};
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_DECODE); /* a tenth is enough */
    s.stage_consumer.starved_ns -= MS;
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_CONSUMER);
    s = waiting();
    s.stage_uploader.busy_ns = 500 * MS;
    s.stage_uploader.blocked_ns = 500 * MS; /* half is not most */
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_COPY);
}

TEST(a_stage_that_hardly_works_is_not_named)
{
    struct pstk_stats s = waiting();
    s.stage_reader = (struct pstk_stage_stats){.starved_ns = 99 * MS, .blocked_ns = 901 * MS};
    s.stage_workers = (struct pstk_stage_stats){.busy_ns = 10 * MS, .starved_ns = 990 * MS};
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_UNKNOWN);
    s.stage_reader.starved_ns += MS, s.stage_reader.blocked_ns -= MS; /* a tenth is enough */
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_STORAGE);
    s.stage_reader.starved_ns = 0;
    s.stage_uploader = (struct pstk_stage_stats){.busy_ns = 100 * MS, .starved_ns = 900 * MS};
    CHECK_EQ(pstk__stats_bottleneck(&s), PSTK_BOTTLENECK_COPY);
}

TEST(a_span_counts_from_where_the_times_begin)
{
    const struct {
        uint64_t since, begin, end, counted;
    } spans[] = {{0, 10, 20, 0},  {5, 10, 20, 10}, {10, 10, 20, 10}, {15, 10, 20, 5},
                 {20, 10, 20, 0}, {25, 10, 20, 0}, {5, 10, 10, 0}};
    for (uint32_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        const _Atomic uint64_t since = spans[i].since;
        _Atomic uint64_t counter = 100;
        pstk__count_span(&counter, &since, spans[i].begin, spans[i].end);
        CHECK_EQ(counter, 100 + spans[i].counted);
    }
}

TEST(one_threads_counters_are_added_and_the_thread_is_counted)
{
    struct pstk__counters c = {0};
    struct pstk_stage_stats to = {0};
    pstk__count(&c.busy_ns, 1);
    pstk__count(&c.busy_ns, 10);
    pstk__count(&c.starved_ns, 100);
    pstk__count(&c.blocked_ns, 1000);
    pstk__count(&c.n_items, 10000);
    pstk__count(&c.bytes, 7);
    pstk__count(&c.n_hits, 7);
    for (uint32_t n = 1; n <= 3; n++) {
        pstk__stats_add(&to, &c);
        const struct pstk_stage_stats expected = {.busy_ns = 11 * n,
                                                  .starved_ns = 100 * n,
                                                  .blocked_ns = 1000 * n,
                                                  .n_items = 10000 * n,
                                                  .n_threads = n};
        CHECK(memcmp(&to, &expected, sizeof to) == 0);
    }
}

TEST(two_threads_counters_share_no_cache_line)
{
    struct pstk__counters two[2];
    CHECK((uintptr_t)&two[1] - (uintptr_t)&two[0] >= 128);
    CHECK((uintptr_t)&two[0] % 128 == 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(too_little_time_says_nothing),
        CASE(a_consumer_that_never_waits_limits),
        CASE(the_stage_with_the_least_rest_limits),
        CASE(a_busy_reader_without_a_core_means_the_cores),
        CASE(an_uploader_that_waits_for_the_step_means_the_consumer),
        CASE(shares_at_the_bounds_decide_as_stated),
        CASE(a_stage_that_hardly_works_is_not_named),
        CASE(a_span_counts_from_where_the_times_begin),
        CASE(one_threads_counters_are_added_and_the_thread_is_counted),
        CASE(two_threads_counters_share_no_cache_line),
    };
    return RUN_CASES(cases);
}
