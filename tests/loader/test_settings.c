/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings made ours, and checked by name: the ends of every range and one step past them, in the
 * words "SETTING: value is X; must be ...".
 */
#include "loader/settings.h"
#include "support/test.h"

#include <stddef.h>

static struct pstk_output outputs[64];
static struct pstk_settings s;
static struct pstk_error err;

static void plain(void)
{
    pstk_settings_init(&s, sizeof s);
    pstk_error_init(&err, sizeof err);
    s.path = "somewhere";
    s.outputs = outputs;
    s.n_outputs = 1;
    s.order.kind = PSTK_ORDER_WINDOWED; /* the only one with ways, block and window */
}

static int check(void)
{
    return pstk__settings_check(&s, &err);
}

/* The 32-bit setting that lies at `offset`. */
static uint32_t *at(size_t offset)
{
    return (uint32_t *)(void *)((uint8_t *)&s + offset);
}

#define RANGE(name, member, least, most, is_auto)                                                  \
    {                                                                                              \
        name, offsetof(struct pstk_settings, member), least, most, is_auto                         \
    }
static const struct {
    const char *name;
    size_t offset;
    uint32_t least, most;
    int is_auto; /* 0 is taken as well */
} ranges[] = {
    RANGE("batch_size", batch_size, 1, 1 << 30, 0),
    RANGE("n_outputs", n_outputs, 1, 64, 0),
    RANGE("order", order.kind, 0, 2, 0),
    RANGE("ways", order.ways, 1, PSTK_MAX_WAYS, 1),
    RANGE("block", order.block, 1, PSTK_MAX_BLOCK, 1),
    RANGE("window", order.window, 1, PSTK_MAX_WINDOW, 1),
    RANGE("last_batch", last_batch, 0, 2, 0),
    RANGE("reader", reading.reader, 0, 2, 0),
    RANGE("io", reading.io, 0, 2, 0),
    RANGE("bad_sample", bad_sample, 0, 1, 0),
    RANGE("kernels", reading.kernels, 0, 4, 0),
    RANGE("report_crops", observe.report_crops, 0, 1, 0),
    RANGE("pin_threads", reading.pin_threads, 0, 1, 0),
    RANGE("measure_device", device.measure, 0, 1, 0),
    RANGE("nvtx", observe.nvtx, 0, 1, 0),
    RANGE("trace_events", observe.trace_events, 1, 1 << 20, 1),
    RANGE("n_threads", n_threads, 1, 1024, 1),
    RANGE("n_slots", memory.n_slots, 2, 4096, 1),
    RANGE("queue_depth", reading.queue_depth, 1, 4096, 1),
    RANGE("n_device_slots", device.n_slots, 2, 64, 1),
};

/* With the setting k at `value`: is it refused in the one form? */
static int is_refused(size_t k, uint32_t value)
{
    char says[160];
    plain();
    *at(ranges[k].offset) = value;
    snprintf(says, sizeof says, "%s: value is %u; must be %sfrom %u to %u", ranges[k].name, value,
             ranges[k].is_auto ? "0 (open chooses) or " : "", ranges[k].least, ranges[k].most);
    return check() == PSTK_EINVAL && !strcmp(err.message, says);
}

static int is_taken(size_t k, uint32_t value)
{
    plain();
    *at(ranges[k].offset) = value;
    return check() == 0;
}

TEST(every_setting_is_taken_within_its_range_and_refused_by_name_past_it)
{
    for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
        const uint32_t least = ranges[k].least, most = ranges[k].most;
        CHECK(is_taken(k, least));
        CHECK(is_taken(k, most));
        CHECK(is_refused(k, most + 1));
        CHECK(is_refused(k, UINT32_MAX));
        CHECK(least == 0 || ranges[k].is_auto ? is_taken(k, 0) : is_refused(k, 0));
        CHECK(least < 2 || is_refused(k, 1));
    }
}

TEST(a_rank_is_below_its_world)
{
    plain();
    s.ranks.world = 3;
    s.ranks.rank = 2;
    CHECK_EQ(check(), 0);
    s.ranks.rank = 3;
    CHECK_EQ(check(), PSTK_EINVAL);
    CHECK(!strcmp(err.message, "rank: value is 3; must be below world, which is 3"));
    plain();
    s.ranks.local_world = 2;
    s.ranks.local_rank = 2;
    CHECK_EQ(check(), PSTK_EINVAL);
    CHECK(!strcmp(err.message, "local_rank: value is 2; must be below local_world, which is 2"));
}

/* The result of atoi("") must not make every process read all samples. */
TEST(a_world_of_no_processes_is_refused)
{
    struct pstk_settings to;
    plain();
    CHECK(s.ranks.world == 1 && s.ranks.local_world == 1);
    s.ranks.world = 0;
    CHECK_EQ(pstk__settings_copy(&to, &s, &err), 0);
    CHECK_EQ(pstk__settings_check(&to, &err), PSTK_EINVAL);
    CHECK(!strcmp(err.message, "world: value is 0; must be at least 1, a number of processes "
                               "(pstk_settings_init sets 1)"));
    s.global_batch_size = 8; /* world divides it */
    CHECK_EQ(check(), PSTK_EINVAL);
    plain();
    s.ranks.local_world = 0;
    CHECK_EQ(pstk__settings_copy(&to, &s, &err), 0);
    CHECK_EQ(pstk__settings_check(&to, &err), PSTK_EINVAL);
    CHECK(!strcmp(err.message, "local_world: value is 0; must be at least 1, a number of processes "
                               "(pstk_settings_init sets 1)"));
}

TEST(orders_that_are_not_windowed_have_no_windows)
{
    const size_t offsets[] = {offsetof(struct pstk_settings, order.ways),
                              offsetof(struct pstk_settings, order.block),
                              offsetof(struct pstk_settings, order.window)};
    static const char *const names[] = {"ways", "block", "window"};
    for (int i = 0; i < 6; i++) {
        char says[160];
        plain();
        s.order.kind = i < 3 ? PSTK_ORDER_FULL : PSTK_ORDER_SEQUENTIAL;
        CHECK_EQ(check(), 0);
        *at(offsets[i % 3]) = 8;
        CHECK_EQ(check(), PSTK_EINVAL);
        snprintf(says, sizeof says, "%s: value is 8; must be 0 unless order is windowed",
                 names[i % 3]);
        CHECK(!strcmp(err.message, says));
    }
}

TEST(settings_without_a_default_must_be_set)
{
    plain();
    s.path = NULL;
    CHECK_EQ(check(), PSTK_EINVAL);
    CHECK(!strncmp(err.message, "path: value is NULL; must be ", 29));
    plain();
    s.path = "";
    CHECK_EQ(check(), PSTK_EINVAL);
    CHECK(!strncmp(err.message, "path: value is empty; must be ", 30));
    plain();
    s.outputs = NULL;
    CHECK_EQ(check(), PSTK_EINVAL);
    CHECK(!strncmp(err.message, "outputs: value is NULL; must be ", 32));
}

TEST(settings_that_nobody_initialised_are_refused)
{
    struct pstk_settings to;
    plain();
    s.output_size = 0;
    CHECK_EQ(check(), PSTK_EINVAL);
    CHECK(strstr(err.message, "output_size: value is 0; must be ") == err.message);
    plain();
    s.op_size = 0;
    CHECK_EQ(check(), PSTK_EINVAL);
    CHECK(strstr(err.message, "op_size: value is 0; must be ") == err.message);
    s.size = 0;
    CHECK_EQ(pstk__settings_copy(&to, &s, &err), PSTK_EINVAL);
    CHECK_EQ(pstk__settings_copy(&to, NULL, &err), PSTK_EINVAL);
}

/* The check of settings whose member `name` was set refuses it in these words. */
static int is_no_part_of_this_version(const char *name)
{
    char says[160];
    snprintf(says, sizeof says, "%s: not supported in this version; must be 0", name);
    return check() == PSTK_ENOTSUP && !strcmp(err.message, says);
}

#define NUMBER_IS_REFUSED(part, member)                                                            \
    (plain(), s.part member = 1, is_no_part_of_this_version(#part "reserved"))

TEST(room_for_later_versions_is_refused_by_name_when_it_is_set)
{
    CHECK(NUMBER_IS_REFUSED(, reserved));
    CHECK(NUMBER_IS_REFUSED(order., reserved[0]));
    CHECK(NUMBER_IS_REFUSED(ranks., reserved[1]));
    CHECK(NUMBER_IS_REFUSED(memory., reserved[2]));
    CHECK(NUMBER_IS_REFUSED(reading., reserved[3]));
    CHECK(NUMBER_IS_REFUSED(reading., reserved2));
    CHECK(NUMBER_IS_REFUSED(device., reserved[0]));
    CHECK(NUMBER_IS_REFUSED(observe., reserved[3]));
    CHECK(NUMBER_IS_REFUSED(observe., reserved2));
    plain();
    CHECK_EQ(check(), 0);
}

/* The check of settings with a global batch refuses them in words that begin so. */
static int refuses_global(uint32_t global, uint32_t world, uint32_t uneven, const char *says)
{
    plain();
    s.global_batch_size = global;
    s.ranks.world = world;
    s.order.uneven = uneven;
    return check() == PSTK_EINVAL && !strncmp(err.message, says, strlen(says));
}

TEST(a_global_batch_is_divided_among_the_ranks)
{
    plain();
    s.global_batch_size = 1536;
    s.ranks.world = 48;
    CHECK_EQ(check(), 0);
    CHECK_EQ(s.batch_size, 32);
    plain();
    s.global_batch_size = 10;
    s.ranks.world = 4;
    s.order.uneven = 1;
    CHECK_EQ(check(), 0);
    CHECK_EQ(s.batch_size, 3);
    CHECK(refuses_global(10, 4, 0,
                         "global_batch_size: value is 10; must be a multiple of world, which is 4, "
                         "as 8 is; or set uneven"));
    CHECK(refuses_global(3, 4, 1, "global_batch_size: value is 3; must be at least world"));
    CHECK(refuses_global(UINT32_MAX, 1, 0, "global_batch_size / world: value is 4294967295"));
    CHECK(refuses_global(0, 4, 1, "uneven: value is 1; must be 0 without global_batch_size"));
    CHECK(refuses_global(8, 4, 2, "uneven: value is 2"));
    plain();
    s.batch_size = 2;
    s.global_batch_size = 2;
    CHECK_EQ(check(), PSTK_EINVAL);
    CHECK(strstr(err.message, "batch_size: value is 2; must be left at its default") ==
          err.message);
}

TEST(a_device_of_no_kind_is_refused)
{
    plain();
    s.device.kind = 7;
    CHECK_EQ(check(), PSTK_EINVAL);
    CHECK(!strcmp(err.message, "device: value is 7; must be PSTK_HOST (0) or PSTK_CUDA (1)"));
}

TEST(settings_of_an_unfinished_program_and_set_ones_of_a_newer_one_are_refused)
{
    struct {
        struct pstk_settings s;
        uint8_t newer[8];
    } longer = {.newer = {0}};
    struct pstk_settings to;
    plain();
    s.size = sizeof s - 8; /* before the first release */
    CHECK_EQ(pstk__settings_copy(&to, &s, &err), PSTK_EINVAL);
    plain();
    longer.s = s;
    longer.s.size = sizeof longer;
    CHECK_EQ(pstk__settings_copy(&to, &longer.s, &err), 0);
    CHECK_EQ(to.size, sizeof to);
    longer.newer[3] = 1;
    CHECK_EQ(pstk__settings_copy(&to, &longer.s, &err), PSTK_ENOTSUP);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(every_setting_is_taken_within_its_range_and_refused_by_name_past_it),
        CASE(a_rank_is_below_its_world),
        CASE(a_world_of_no_processes_is_refused),
        CASE(orders_that_are_not_windowed_have_no_windows),
        CASE(settings_without_a_default_must_be_set),
        CASE(settings_that_nobody_initialised_are_refused),
        CASE(room_for_later_versions_is_refused_by_name_when_it_is_set),
        CASE(a_global_batch_is_divided_among_the_ranks),
        CASE(a_device_of_no_kind_is_refused),
        CASE(settings_of_an_unfinished_program_and_set_ones_of_a_newer_one_are_refused),
    };
    return RUN_CASES(cases);
}
