/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence of bench about its bottleneck. */
#include "cli/report/report.h"

#include "support/test.h"

TEST(more_threads_are_advised_where_workers_are_busy_and_cores_free)
{
    static const struct {
        uint32_t busy, n_threads; /* percent; of 4 workers */
        const char *says, *never;
    } cases[] = {
        {10, 1, "only 10 % of the time", "try --threads"},
        {15, 1, "only 15 % of the time", "try --threads"},
        {19, 2, "only 19 % of the time", "try --threads"},
        {15, 4, "only 15 % of the time", "more cores"},
        {20, 1, "but only 1 of 4 cores are used; try --threads 4", "gain little"},
        {50, 2, "but only 2 of 4 cores are used; try --threads 4", "gain little"},
        {100, 1, "but only 1 of 4 cores are used; try --threads 4", "gain little"},
        {100, 4, "more cores, or smaller images", "try --threads"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct pstk_stage_stats workers = {.busy_ns = cases[i].busy,
                                                 .starved_ns = 90 - cases[i].busy * 9 / 10,
                                                 .blocked_ns = 10 - cases[i].busy / 10};
        struct report report = {.n_usable = 4, .n_workers = 4};
        char text[256];
        report.stats = (struct pstk_stats){.bottleneck = PSTK_BOTTLENECK_DECODE,
                                           .n_threads = cases[i].n_threads,
                                           .stage_workers = workers};
        report_advise(&report, text, sizeof text);
        if (!strstr(text, cases[i].says) || strstr(text, cases[i].never))
            printf("# busy %u %%: %s\n", cases[i].busy, text);
        CHECK(strstr(text, cases[i].says) && !strstr(text, cases[i].never));
    }
}

TEST(fewer_threads_are_advised_where_the_reader_has_no_core)
{
    static const struct {
        uint32_t n_workers, n_threads; /* n_workers: by default; 0: unknown */
        const char *says;
    } cases[] = {{3, 4,
                  "no core 60 % of the time; more cores, or fewer workers, would "
                  "help; try --threads 3"},
                 {1, 9, "would help; try --threads 1"},
                 {4, 4, "would help"},
                 {4, 3, "would help"},
                 {0, 4, "would help"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct report report = {
            .n_workers = cases[i].n_workers,
            .stats = {.bottleneck = PSTK_BOTTLENECK_CORES,
                      .n_threads = cases[i].n_threads,
                      .stage_reader = {.busy_ns = 80, .starved_ns = 20, .core_wait_ns = 60}}};
        char text[256];
        report_advise(&report, text, sizeof text);
        CHECK(strncmp(text, "cores: ", 7) == 0);
        CHECK(strlen(text) >= strlen(cases[i].says) &&
              strcmp(text + strlen(text) - strlen(cases[i].says), cases[i].says) == 0);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(more_threads_are_advised_where_workers_are_busy_and_cores_free),
        CASE(fewer_threads_are_advised_where_the_reader_has_no_core)};
    return RUN_CASES(cases);
}
