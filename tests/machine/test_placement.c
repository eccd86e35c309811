/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads get which cores, on machines from 1 to 128 cores and 1 to 8 nodes. */
#include "machine/placement.h"
#include "support/test.h"

#define MAX_NODES 8u
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static uint32_t n_nodes_of(const uint32_t *cores)
{
    uint32_t n = 0;
    while (n < MAX_NODES && cores[n])
        n++;
    return n;
}

static uint32_t sum_of(const uint32_t *cores)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n_nodes_of(cores); i++)
        sum += cores[i];
    return sum;
}

/* A plan, with room for its nodes. */
struct plan {
    struct pstk__placement_config c;
    struct pstk__node_threads nodes[MAX_NODES];
    struct pstk__placement p;
};

/* Plan with these settings. Where they leave them out, there is no quota, and the device's node is
 * unknown. */
static void plan(struct plan *plan, const uint32_t *cores, const struct pstk__placement_config *c)
{
    plan->c = *c;
    plan->c.n_cores = cores;
    plan->c.n_nodes = n_nodes_of(cores);
    plan->c.n_usable = c->n_usable ? c->n_usable : sum_of(cores);
    plan->p.nodes = plan->nodes;
    memset(plan->nodes, 0xff, sizeof plan->nodes);
    pstk__placement_init(&plan->p, &plan->c);
}

/* Return the workers of each node as text: "8 7". */
static const char *workers_of(const uint32_t *cores, const struct pstk__placement_config *c)
{
    static char text[128];
    struct plan of;
    size_t at = 0;
    plan(&of, cores, c);
    for (uint32_t i = 0; i < of.c.n_nodes; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u", i ? " " : "",
                               of.nodes[i].n_workers);
    return text;
}

TEST(each_machine_has_its_plan)
{
    /* The workers of each node: where workers make the reads, with batches on the host and on a
     * device whose node is unknown; and the same two where readers make all reads. */
    static const struct {
        uint32_t cores[MAX_NODES + 1];
        const char *workers[4];
    } rows[] = {
        /* 4 cores on 1, 2, 4 and 8 nodes */
        {{4}, {"4", "4", "4", "4"}},
        {{2, 2}, {"2 2", "2 2", "2 2", "2 2"}},
        {{1, 1, 1, 1}, {"1 1 1 1", "1 1 1 1", "1 1 1 1", "1 1 1 1"}},
        /* 8 cores on 1, 2, 4 and 8 nodes */
        {{8}, {"8", "7", "7", "6"}},
        {{4, 4}, {"4 4", "4 4", "4 4", "4 4"}},
        {{2, 2, 2, 2}, {"2 2 2 2", "2 2 2 2", "2 2 2 2", "2 2 2 2"}},
        {{1, 1, 1, 1, 1, 1, 1, 1},
         {"1 1 1 1 1 1 1 1", "1 1 1 1 1 1 1 1", "1 1 1 1 1 1 1 1", "1 1 1 1 1 1 1 1"}},
        /* 16 cores on 1, 2, 4 and 8 nodes */
        {{16}, {"16", "15", "15", "14"}},
        {{8, 8}, {"8 8", "8 7", "7 7", "7 6"}},
        {{4, 4, 4, 4}, {"4 4 4 4", "4 4 4 4", "4 4 4 4", "4 4 4 4"}},
        {{2, 2, 2, 2, 2, 2, 2, 2},
         {"2 2 2 2 2 2 2 2", "2 2 2 2 2 2 2 2", "2 2 2 2 2 2 2 2", "2 2 2 2 2 2 2 2"}},
        /* 32 cores on 1, 2, 4 and 8 nodes */
        {{32}, {"31", "30", "31", "30"}},
        {{16, 16}, {"16 16", "16 15", "15 15", "15 14"}},
        {{8, 8, 8, 8}, {"8 8 8 8", "8 8 8 7", "7 7 7 7", "7 7 7 6"}},
        {{4, 4, 4, 4, 4, 4, 4, 4},
         {"4 4 4 4 4 4 4 4", "4 4 4 4 4 4 4 4", "4 4 4 4 4 4 4 4", "4 4 4 4 4 4 4 4"}},
        /* 48 cores on 1, 2, 4 and 8 nodes */
        {{48}, {"47", "46", "47", "46"}},
        {{24, 24}, {"24 24", "24 23", "23 23", "23 22"}},
        {{12, 12, 12, 12}, {"12 12 12 12", "12 12 12 11", "11 11 11 11", "11 11 11 10"}},
        {{6, 6, 6, 6, 6, 6, 6, 6},
         {"6 6 6 6 6 6 6 6", "6 6 6 6 6 6 6 5", "5 5 5 5 5 5 5 5", "5 5 5 5 5 5 5 4"}},
        /* 64 cores on 1, 2, 4 and 8 nodes */
        {{64}, {"63", "62", "63", "62"}},
        {{32, 32}, {"31 31", "31 30", "31 31", "31 30"}},
        {{16, 16, 16, 16}, {"16 16 16 16", "16 16 16 15", "15 15 15 15", "15 15 15 14"}},
        {{8, 8, 8, 8, 8, 8, 8, 8},
         {"8 8 8 8 8 8 8 8", "8 8 8 8 8 8 8 7", "7 7 7 7 7 7 7 7", "7 7 7 7 7 7 7 6"}},
        /* 96 cores on 1, 2, 4 and 8 nodes */
        {{96}, {"95", "94", "95", "94"}},
        {{48, 48}, {"47 47", "47 46", "47 47", "47 46"}},
        {{24, 24, 24, 24}, {"24 24 24 24", "24 24 24 23", "23 23 23 23", "23 23 23 22"}},
        {{12, 12, 12, 12, 12, 12, 12, 12},
         {"12 12 12 12 12 12 12 12", "12 12 12 12 12 12 12 11", "11 11 11 11 11 11 11 11",
          "11 11 11 11 11 11 11 10"}},
        /* 128 cores on 1, 2, 4 and 8 nodes */
        {{128}, {"127", "126", "127", "126"}},
        {{64, 64}, {"63 63", "63 62", "63 63", "63 62"}},
        {{32, 32, 32, 32}, {"31 31 31 31", "31 31 31 30", "31 31 31 31", "31 31 31 30"}},
        {{16, 16, 16, 16, 16, 16, 16, 16},
         {"16 16 16 16 16 16 16 16", "16 16 16 16 16 16 16 15", "15 15 15 15 15 15 15 15",
          "15 15 15 15 15 15 15 14"}},
        /* few cores, and odd numbers of them */
        {{1}, {"1", "1", "1", "1"}},
        {{2}, {"2", "2", "2", "2"}},
        {{3}, {"3", "3", "3", "3"}},
        {{5}, {"5", "4", "4", "4"}},
        {{6}, {"6", "5", "5", "4"}},
        {{7}, {"7", "6", "6", "5"}},
        {{31}, {"31", "30", "30", "29"}},
        {{33}, {"32", "31", "32", "31"}},
        {{1, 2}, {"1 2", "1 2", "1 2", "1 2"}},
        {{3, 5}, {"3 5", "3 4", "3 4", "3 4"}},
        {{5, 3}, {"5 3", "4 3", "4 3", "4 3"}},
        {{64, 1}, {"63 1", "62 1", "63 1", "62 1"}},
        {{6, 6, 6}, {"6 6 6", "6 6 5", "5 5 5", "5 5 4"}},
        {{40, 16, 4}, {"39 16 4", "39 15 4", "39 15 4", "39 14 4"}},
    };
    for (size_t i = 0; i < LENGTH(rows); i++)
        for (int k = 0; k < 4; k++) {
            const struct pstk__placement_config c = {
                .reader_reads = k >= 2, .has_uploader = k % 2, .device_node = UINT32_MAX};
            printf("# row %zu, column %d\n", i, k);
            CHECK_STR(workers_of(rows[i].cores, &c), rows[i].workers[k]);
        }
}

TEST(the_uploader_has_its_core_on_the_node_of_its_device_where_that_has_one_to_spare)
{
    static const struct {
        uint32_t cores[MAX_NODES + 1];
        const char *near_first, *near_second; /* workers */
    } rows[] = {
        {{8, 8}, "7 8", "8 7"},       {{4, 8}, "4 7", "4 7"}, {{8, 4}, "7 4", "7 4"},
        {{64, 64}, "62 63", "63 62"}, {{2, 2}, "2 2", "2 2"},
    };
    for (size_t i = 0; i < LENGTH(rows); i++)
        for (uint32_t node = 0; node < 2; node++) {
            const struct pstk__placement_config c = {.has_uploader = 1, .device_node = node};
            CHECK_STR(workers_of(rows[i].cores, &c),
                      node ? rows[i].near_second : rows[i].near_first);
        }
}

TEST(a_quota_counts_as_so_many_cores)
{
    static const struct {
        uint32_t cores[MAX_NODES + 1], n_usable;
        const char *by_workers, *by_reader, *device; /* workers of the nodes */
    } rows[] = {
        {{16}, 1, "1", "1", "1"},
        {{16}, 4, "4", "4", "4"},
        {{16}, 5, "5", "4", "4"},
        {{16}, 8, "8", "7", "7"},
        {{64}, 8, "8", "7", "7"}, /* 8 of 64 are no node of many cores */
        {{64}, 31, "31", "30", "30"},
        {{64}, 32, "31", "31", "30"},
        {{64, 64}, 2, "1 1", "1 1", "1 1"},
        {{64, 64}, 8, "4 4", "4 4", "4 4"},
        {{64, 64}, 9, "5 4", "4 4", "5 3"},
        {{64, 64}, 64, "31 31", "31 31", "31 30"},
        {{8, 8, 8, 8}, 2, "1 0 1 0", "1 0 1 0", "1 0 1 0"},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct pstk__placement_config c = {.n_usable = rows[i].n_usable, .device_node = UINT32_MAX};
        printf("# row %zu\n", i);
        CHECK_STR(workers_of(rows[i].cores, &c), rows[i].by_workers);
        c.reader_reads = 1;
        CHECK_STR(workers_of(rows[i].cores, &c), rows[i].by_reader);
        c.reader_reads = 0;
        c.has_uploader = 1;
        CHECK_STR(workers_of(rows[i].cores, &c), rows[i].device);
    }
}

TEST(as_many_workers_as_are_asked_for_are_spread_over_all_cores)
{
    static const struct {
        uint32_t cores[MAX_NODES + 1], n_workers;
        const char *workers;
    } rows[] = {
        {{16}, 1, "1"},          {{16}, 15, "15"},        {{16}, 16, "16"},
        {{16}, 33, "33"},        {{2}, 3, "3"},           {{8, 8}, 1, "1 0"},
        {{8, 8}, 2, "1 1"},      {{8, 8}, 15, "8 7"},     {{8, 8}, 16, "8 8"},
        {{8, 8}, 24, "16 8"},    {{8, 8}, 32, "16 16"},   {{12, 4}, 4, "3 1"},
        {{12, 4}, 16, "12 4"},   {{12, 4}, 32, "24 8"},   {{64, 64}, 1024, "512 512"},
        {{1, 1, 1}, 2, "1 1 0"}, {{4, 4, 4}, 3, "1 1 1"}, {{32, 32}, 64, "32 32"},
    };
    for (size_t i = 0; i < LENGTH(rows); i++)
        for (int k = 0; k < 8; k++) {
            const struct pstk__placement_config c = {.n_workers = rows[i].n_workers,
                                                     .n_usable = k & 1 ? 1 : 0,
                                                     .reader_reads = k >> 1 & 1,
                                                     .has_uploader = k >> 2,
                                                     .n_more = 5,
                                                     .n_times = 5};
            printf("# row %zu\n", i);
            CHECK_STR(workers_of(rows[i].cores, &c), rows[i].workers);
        }
}

TEST(workers_that_wait_for_processes_come_on_top_of_the_cores)
{
    const uint32_t cores[] = {16, 0};
    struct pstk__placement_config c = {.n_more = 3, .n_times = 2};
    CHECK_STR(workers_of(cores, &c), "51");
    c.reader_reads = 1;
    CHECK_STR(workers_of(cores, &c), "50");
    c.n_usable = 4;
    CHECK_STR(workers_of(cores, &c), "15");
    c.n_times = UINT32_MAX;
    CHECK_STR(workers_of(cores, &c), "1024");
}

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % n);
}

/* Do the sums of a plan agree, and does no core count twice? */
static int adds_up(const struct plan *of)
{
    uint32_t n_workers = 0, n_left = 0;
    int good = 1;
    for (uint32_t i = 0; i < of->c.n_nodes; i++) {
        n_workers += of->nodes[i].n_workers;
        n_left += of->nodes[i].n_left;
        good &= of->nodes[i].n_left < of->c.n_cores[i];
    }
    for (uint32_t w = 0; w < of->p.n_workers; w++) {
        const uint32_t core = pstk__placement_core(&of->p, w);
        good &= core < of->p.n_kept;
        if (w > 0 && w < of->p.n_kept)
            good &= core > pstk__placement_core(&of->p, w - 1);
    }
    return good && n_workers == of->p.n_workers && n_left == of->p.n_left &&
           of->p.n_kept + n_left == sum_of(of->c.n_cores);
}

/* Does every node have its part of the workers, by its cores? */
static int is_even(const struct plan *of)
{
    int good = 1;
    for (uint32_t i = 0; i < of->c.n_nodes; i++) {
        const int64_t part = (int64_t)of->p.n_workers * (of->c.n_cores[i] - of->nodes[i].n_left);
        const int64_t is = (int64_t)of->nodes[i].n_workers * of->p.n_kept;
        /* within one core's worth, or one round of sharing */
        const int64_t within = of->p.n_workers < of->p.n_kept
                                   ? of->p.n_kept
                                   : (int64_t)of->p.n_kept * of->c.n_cores[i];
        good &= is - part < within && part - is < within;
        good &= of->p.n_workers < of->p.n_kept || of->nodes[i].n_workers > 0;
    }
    return good;
}

/* Is what is left worth it: nothing of what was asked for, nothing of the first four workers of a
 * node, and a core for each reader that makes all reads where there is no quota? */
static int leaves_well(const struct plan *of)
{
    const int is_auto = of->c.n_workers == 0;
    int good = of->p.n_left <= of->c.n_nodes + (of->c.has_uploader != 0) &&
               (is_auto || (of->p.n_left == 0 && of->p.n_workers == of->c.n_workers));
    for (uint32_t i = 0; i < of->c.n_nodes; i++) {
        const uint32_t n_cores = of->c.n_cores[i], n_left = of->nodes[i].n_left;
        good &= n_left == 0 || n_cores - n_left >= 4;
        if (is_auto && of->c.reader_reads && n_cores > 4 && of->c.n_usable == sum_of(of->c.n_cores))
            good &= n_left >= 1;
    }
    if (is_auto && of->c.n_more == 0)
        good &= of->p.n_workers + of->p.n_left == of->c.n_usable;
    return good;
}

TEST(every_plan_adds_up_and_counts_no_core_twice)
{
    uint64_t random = 38;
    for (int i = 0; i < 100000; i++) {
        uint32_t cores[MAX_NODES + 1] = {0};
        const uint32_t n_nodes = 1 + random_below(&random, MAX_NODES),
                       most = random_below(&random, 2) ? 70 : 8;
        for (uint32_t k = 0; k < n_nodes; k++)
            cores[k] = 1 + random_below(&random, most);
        const struct pstk__placement_config c = {
            .n_usable = random_below(&random, 2) ? 1 + random_below(&random, sum_of(cores)) : 0,
            .n_workers = random_below(&random, 2) ? random_below(&random, 300) : 0,
            .n_more = random_below(&random, 4) ? 0 : random_below(&random, 20),
            .reader_reads = (int)random_below(&random, 2),
            .has_uploader = (int)random_below(&random, 2),
            .device_node = random_below(&random, 2) ? random_below(&random, n_nodes) : UINT32_MAX};
        struct plan of;
        plan(&of, cores, &c);
        CHECK(of.p.n_workers >= 1 && of.p.n_workers <= PSTK__MAX_WORKERS);
        CHECK(adds_up(&of));
        CHECK(is_even(&of));
        CHECK(leaves_well(&of));
    }
}

TEST(a_node_has_one_reader_or_one_for_each_worker_within_the_most)
{
    static const uint32_t rows[][5] = {
        /* workers of a node, nodes, for each worker, most of all nodes: readers of a node */
        {1, 1, 0, 64, 1},   {128, 1, 0, 64, 1}, {16, 8, 0, 64, 1},  {1, 1, 1, 64, 1},
        {2, 1, 1, 64, 2},   {16, 1, 1, 64, 16}, {8, 8, 1, 64, 8},   {127, 1, 1, 64, 64},
        {63, 2, 1, 64, 32}, {21, 3, 1, 64, 21}, {30, 3, 1, 64, 21}, {1, 64, 1, 64, 1},
        {4, 64, 1, 64, 1},  {4, 65, 1, 64, 1},
    };
    for (size_t i = 0; i < LENGTH(rows); i++)
        CHECK_EQ(pstk__placement_readers(rows[i][0], rows[i][1], (int)rows[i][2], rows[i][3]),
                 rows[i][4]);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(each_machine_has_its_plan),
        CASE(the_uploader_has_its_core_on_the_node_of_its_device_where_that_has_one_to_spare),
        CASE(a_quota_counts_as_so_many_cores),
        CASE(as_many_workers_as_are_asked_for_are_spread_over_all_cores),
        CASE(workers_that_wait_for_processes_come_on_top_of_the_cores),
        CASE(every_plan_adds_up_and_counts_no_core_twice),
        CASE(a_node_has_one_reader_or_one_for_each_worker_within_the_most),
    };
    return RUN_CASES(cases);
}
