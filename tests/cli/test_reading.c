/* SPDX-License-Identifier: Apache-2.0 */
/* Tests on which machines and data sets, all made up, doctor and bench name the windowed order. */
#include "cli/option/reading.h"
#include "support/test.h"

#define MEMORY 1000000000u

static struct reading reading;

static int judge(int rotational, const char *system, uint64_t bytes, uint64_t n, uint32_t world)
{
    struct pstk_machine machine = {.memory = MEMORY, .rotational = rotational};
    const struct pstk_dataset_info info = {.bytes = bytes, .n_samples = n};
    snprintf(machine.file_system, sizeof machine.file_system, "%s", system);
    memset(&reading, 0, sizeof reading);
    return reading_judge(&machine, &info, world, &reading);
}

TEST(storage_that_is_slow_at_random_reads_is_named)
{
    CHECK(judge(1, "ext4", 64 * 2000000000ull, 1280000, 1));
    CHECK_STR(reading.text,
              "random reads of 100 kB, a sample on average, are slow on a spinning disk, as the "
              "kernel calls this one");
    CHECK_STR(reading.advice, "for 1 rank --order windowed --ways 48 reads blocks of 6.40 MB, "
                              "each once, and holds 1.54 GB of them for each rank; it mixes less: "
                              "`penstock order --explain`");
    CHECK(judge(-1, "nfs", 64 * 2000000000ull, 1280000, 32));
    CHECK_STR(reading.text,
              "random reads of 100 kB, a sample on average, are slow on files of another machine");
    CHECK(strstr(reading.advice, "for 32 ranks --order windowed --ways 64 reads blocks"));
    CHECK(strstr(reading.advice, "holds 64.0 MB of them"));
    CHECK(judge(0, "lustre", 2 * (uint64_t)MEMORY, 100000, 8));
}

TEST(nothing_is_said_where_random_reads_are_no_problem)
{
    CHECK(!judge(0, "ext4", 100 * (uint64_t)MEMORY, 1000000, 1));  /* a solid state disk */
    CHECK(!judge(-1, "ext4", 100 * (uint64_t)MEMORY, 1000000, 1)); /* unknown */
    CHECK(!judge(1, "ext4", MEMORY - 1, 100000, 1));               /* the page cache holds it */
    CHECK(judge(1, "ext4", MEMORY, 100000, 1));
    CHECK(!judge(1, "ext4", 4 * (uint64_t)MEMORY, 1000, 1)); /* records of 4 MB */
    CHECK(judge(1, "ext4", 4 * (uint64_t)MEMORY, 1001, 1));
    CHECK(!judge(0, "nfs", 4 * (uint64_t)MEMORY, 4000, 1)); /* records of 1 MB */
    CHECK(judge(0, "nfs", 4 * (uint64_t)MEMORY, 4001, 1));
    CHECK(!judge(1, "ext4", 0, 0, 1));
}

TEST(small_records_in_full_order_are_scattered)
{
    const struct pstk_dataset_info small = {.bytes = 100000, .n_samples = 10};
    const struct pstk_dataset_info large = {.bytes = 10000000, .n_samples = 10};
    CHECK(reading_is_scattered(PSTK_ORDER_FULL, &small));
    CHECK(!reading_is_scattered(PSTK_ORDER_FULL, &large));
    CHECK(!reading_is_scattered(PSTK_ORDER_WINDOWED, &small));
    CHECK(!reading_is_scattered(PSTK_ORDER_SEQUENTIAL, &small));
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(storage_that_is_slow_at_random_reads_is_named),
        CASE(nothing_is_said_where_random_reads_are_no_problem),
        CASE(small_records_in_full_order_are_scattered),
    };
    return RUN_CASES(cases);
}
