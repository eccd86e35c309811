/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of a loader in a control group with little memory: it fits, or is refused by name. */
#include "loader/budget.h"

#include "format/pstk/pstk.h"
#include "support/test.h"

#define MIB (1024 * 1024ull)

static struct pstk__source source;
static struct pstk__plan plan;
static struct pstk__layout layout, smallest;
static struct pstk_error err;
static uint32_t kind = PSTK_OUTPUT_IMAGE;

/* Images of 100 kB and slots of 9 MiB, two workers, in a group that leaves so much of its limit. */
static int divide(struct pstk__budget *b, const struct pstk_settings *s, uint64_t limit,
                  uint64_t left)
{
    source = (struct pstk__source){.format = &pstk__format_pstk,
                                   .n_samples = 1000,
                                   .bytes = 1000 * 100000ull,
                                   .n_pages = 2,
                                   .limits.max_size = 200000};
    plan.source = &source;
    plan.n_outputs = 1;
    plan.outputs[0].kind = kind;
    plan.batch_size = 64;
    plan.rows_setting = "batch_size";
    layout.size = 9 * MIB;
    smallest.size = MIB;
    pstk_error_init(&err, sizeof err);
    const struct pstk__budget_config c = {.settings = s,
                                          .plan = &plan,
                                          .layout = &layout,
                                          .least = &smallest,
                                          .n_nodes = 1,
                                          .workers_per_node = 2,
                                          .machine_memory = limit ? limit : 1024 * MIB,
                                          .group_limit = limit,
                                          .group_left = left};
    return pstk__budget_init(b, &c, &err);
}

static uint64_t all_of(const struct pstk__budget *b)
{
    return b->slot_memory + b->n_lanes * (b->buffer_size + b->index_size);
}

/* Return the MiB that a message names after these words; -1: it has no such words. */
static double named(const char *words)
{
    const char *at = strstr(err.message, words);
    return at ? strtod(at + strlen(words), NULL) : -1;
}

TEST(memory_left_in_the_group_is_divided_if_below_the_default)
{
    const struct pstk_settings s = {.ranks.world = 1, .ranks.local_world = 1};
    struct pstk__budget wide, narrow;
    CHECK_EQ(divide(&wide, &s, 0, 0), 0);
    CHECK_EQ(divide(&narrow, &s, 200 * MIB, 190 * MIB), 0);
    CHECK_EQ(all_of(&narrow), all_of(&wide));
    CHECK_EQ(divide(&narrow, &s, 200 * MIB, 60 * MIB), 0);
    CHECK(all_of(&narrow) < all_of(&wide) && all_of(&narrow) <= 42 * MIB);
    CHECK_EQ(narrow.n_slots, 4);
    CHECK_EQ(divide(&narrow, &s, 200 * MIB, 45 * MIB), 0);
    CHECK(narrow.n_slots < 4 && all_of(&narrow) <= 27 * MIB);
}

TEST(too_little_is_refused_by_the_groups_limit_and_the_need)
{
    const struct pstk_settings s = {.ranks.world = 1, .ranks.local_world = 1},
                               given = {.ranks.world = 1,
                                        .ranks.local_world = 1,
                                        .memory.max_memory = 60 * MIB};
    static const char text[] = "memory: the limit of the control group is 50.0 MiB, and 39.0 MiB "
                               "are left; a loader needs at least ";
    struct pstk__budget b;
    CHECK_EQ(divide(&b, &s, 50 * MIB, 39 * MIB), PSTK_ENOMEM);
    CHECK(strncmp(err.message, text, strlen(text)) == 0);
    CHECK(strstr(err.message, "raise memory.max, or lower batch_size or n_threads)"));
    double need = strtod(err.message + strlen(text), NULL);
    CHECK(need > 39 && need < 45);
    CHECK_EQ(divide(&b, &s, 50 * MIB, (uint64_t)((need + 0.1) * MIB)), 0); /* as it says */
    CHECK_EQ(divide(&b, &s, 20 * MIB, 20 * MIB), PSTK_ENOMEM); /* three quarters of it: no slots */
    CHECK(strstr(err.message, "control group is 20.0 MiB"));
    CHECK_EQ(divide(&b, &s, 50 * MIB, 0), PSTK_ENOMEM);
    CHECK_EQ(divide(&b, &given, 0, 0), 0);
    CHECK_EQ(divide(&b, &given, 100 * MIB, 40 * MIB), PSTK_ENOMEM);
    CHECK(strstr(err.message, "control group"));
}

TEST(local_ranks_share_what_the_group_leaves)
{
    struct pstk_settings s = {.ranks.world = 8, .ranks.local_world = 8};
    struct pstk__budget all, one;
    CHECK_EQ(divide(&all, &s, 4096 * MIB, 480 * MIB), 0); /* 60 MiB each */
    s.ranks.local_world = 1;
    CHECK_EQ(divide(&one, &s, 4096 * MIB, 60 * MIB), 0);
    CHECK(all_of(&all) <= 42 * MIB && all.n_slots == one.n_slots);
    s.ranks.local_world = 8;
    CHECK_EQ(divide(&all, &s, 4096 * MIB, 280 * MIB), PSTK_ENOMEM);
    CHECK(strstr(err.message, "280.0 MiB are left, 35.0 MiB for each of 8 local ranks; a loader"));
    const double need = named("needs at least ");
    CHECK(need > 39 && need < 45);
    CHECK_EQ(divide(&all, &s, 4096 * MIB, (uint64_t)((need + 0.1) * 8 * MIB)), 0); /* as it says */
}

TEST(max_memory_is_named_if_the_group_leaves_enough)
{
    struct pstk_settings s = {.ranks.world = 1, .ranks.local_world = 1};
    struct pstk__budget b;
    /* three quarters of the limit over 64 ranks are less than 2 slots; the group leaves each 50 MiB
     */
    s.ranks.local_world = 64;
    CHECK_EQ(divide(&b, &s, 1024 * MIB, 50 * 64 * MIB), PSTK_ENOMEM);
    CHECK(strstr(err.message, "raise max_memory") && !strstr(err.message, "control group"));
    s.memory.max_memory = 30 * MIB;
    CHECK_EQ(divide(&b, &s, 1024 * MIB, 50 * 64 * MIB), 0); /* as it says */
    /* more than any memory: nothing is said of what would do */
    s = (struct pstk_settings){
        .ranks.world = 1, .ranks.local_world = 1, .memory.n_slots = UINT32_MAX};
    CHECK_EQ(divide(&b, &s, 1024 * MIB, 1000 * MIB), PSTK_ENOMEM);
    CHECK(named("needs at least ") > 30000); /* TiB */
}

TEST(max_memory_is_a_bound_of_what_the_group_leaves)
{
    struct pstk_settings s = {.ranks.world = 1,
                              .ranks.local_world = 1,
                              .memory.max_memory = 600 * MIB,
                              .memory.n_slots = 2};
    struct pstk__budget b;
    CHECK_EQ(divide(&b, &s, 1024 * MIB, 1000 * MIB), 0);
    s.memory.n_slots = 0;
    s.memory.max_memory = 70 * MIB;
    CHECK_EQ(divide(&b, &s, 1024 * MIB, 45 * MIB), 0);
    CHECK(all_of(&b) <= 27 * MIB);
    s.memory.max_memory = 10 * MIB; /* too little by itself */
    CHECK_EQ(divide(&b, &s, 1024 * MIB, 1000 * MIB), PSTK_ENOMEM);
    CHECK(strstr(err.message, "max_memory"));
}

/* Divide what is left: all fits the part of each rank, or the message names a need above it, or it
 * names max_memory where the part is enough. */
static void check_left(const struct pstk_settings *s, uint64_t left)
{
    struct pstk__budget b;
    const double part = (double)left / s->ranks.local_world / MIB;
    const int r = divide(&b, s, 512 * MIB, left);
    const double need = named("needs at least ");
    if (r == 0)
        CHECK((double)all_of(&b) / MIB + 18 <= part);
    else if (need >= 0)
        CHECK(r == PSTK_ENOMEM && need + 0.05 > part && strstr(err.message, "control group"));
    else
        CHECK(strstr(err.message, "max_memory"));
}

TEST(the_budget_fits_any_memory_left_or_its_message_is_true)
{
    for (uint32_t i = 0; i < 64; i++) {
        struct pstk_settings s = {.ranks.world = 1,
                                  .ranks.local_world = i & 1 ? 4 : 1,
                                  .memory.n_slots = i & 2 ? 6 : 0,
                                  .memory.io_memory = i & 4 ? 12 * MIB : 0,
                                  .memory.max_memory = i & 8 ? 80 * MIB : 0,
                                  .memory.index_memory = i & 16 ? MIB : 0};
        kind = i & 32 ? PSTK_OUTPUT_SCALAR : PSTK_OUTPUT_IMAGE; /* copied: a lane for each worker */
        for (uint64_t left = 0; left <= 512 * MIB; left += 3 * MIB)
            check_left(&s, left);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(memory_left_in_the_group_is_divided_if_below_the_default),
        CASE(too_little_is_refused_by_the_groups_limit_and_the_need),
        CASE(local_ranks_share_what_the_group_leaves),
        CASE(max_memory_is_named_if_the_group_leaves_enough),
        CASE(max_memory_is_a_bound_of_what_the_group_leaves),
        CASE(the_budget_fits_any_memory_left_or_its_message_is_true),
    };
    return RUN_CASES(cases);
}
