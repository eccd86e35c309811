/* SPDX-License-Identifier: Apache-2.0 */
/* What limits, from the shares of time of made-up stages. */
#include "metrics/stats.h"
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
    CHECK_EQ(pstk__stats_limit(&s), PSTK_LIMIT_UNKNOWN);
}

TEST(a_consumer_that_never_waits_limits)
{
    struct pstk_stats s = waiting();
    s.stage_consumer.starved_ns = 5 * MS;
    CHECK_EQ(pstk__stats_limit(&s), PSTK_LIMIT_CONSUMER);
}

TEST(the_stage_with_the_least_rest_limits)
{
    struct pstk_stats s = waiting();
    s.stage_workers.busy_ns = 9000 * MS;
    CHECK_EQ(pstk__stats_limit(&s), PSTK_LIMIT_DECODE);
    s = waiting();
    s.stage_reader.starved_ns = 9000 * MS;
    CHECK_EQ(pstk__stats_limit(&s), PSTK_LIMIT_STORAGE);
    s = waiting();
    s.stage_reader.busy_ns = 9000 * MS;
    CHECK_EQ(pstk__stats_limit(&s), PSTK_LIMIT_READER);
    s = waiting();
    s.stage_uploader.busy_ns = 900 * MS;
    s.stage_uploader.starved_ns = 100 * MS;
    CHECK_EQ(pstk__stats_limit(&s), PSTK_LIMIT_COPY);
}

TEST(an_uploader_that_waits_for_the_step_means_the_consumer)
{
    struct pstk_stats s = waiting();
    s.stage_uploader.busy_ns = 100 * MS;
    s.stage_uploader.blocked_ns = 900 * MS;
    CHECK_EQ(pstk__stats_limit(&s), PSTK_LIMIT_CONSUMER);
    s = waiting();
    s.stream_used_ns = 900 * MS;
    s.stream_starved_ns = 80 * MS;
    CHECK_EQ(pstk__stats_limit(&s), PSTK_LIMIT_CONSUMER);
    s.stream_starved_ns = 100 * MS;
    CHECK_EQ(pstk__stats_limit(&s), PSTK_LIMIT_DECODE);
    s.stage_uploader.busy_ns = 100 * MS;
    s.stage_uploader.blocked_ns = 900 * MS;
    CHECK_EQ(pstk__stats_limit(&s), PSTK_LIMIT_COPY);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(too_little_time_says_nothing),
        CASE(a_consumer_that_never_waits_limits),
        CASE(the_stage_with_the_least_rest_limits),
        CASE(an_uploader_that_waits_for_the_step_means_the_consumer),
    };
    return RUN_CASES(cases);
}
