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
    plan.outputs[0].settings.kind = PSTK_OUTPUT_IMAGE;
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

TEST(what_the_group_leaves_is_divided_where_it_is_less_than_the_default)
{
    const struct pstk_settings s = {.world = 1, .local_world = 1};
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
    const struct pstk_settings s = {.world = 1, .local_world = 1},
                               given = {.world = 1, .local_world = 1, .max_memory = 60 * MIB};
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

int main(void)
{
    const struct test_case cases[] = {
        CASE(what_the_group_leaves_is_divided_where_it_is_less_than_the_default),
        CASE(too_little_is_refused_by_the_groups_limit_and_the_need),
    };
    return RUN_CASES(cases);
}
