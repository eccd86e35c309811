/* SPDX-License-Identifier: Apache-2.0 */
/* The number of threads that memory allows. */
#include "cli/option/machine.h"

#include <penstock/penstock.h>

#include "support/test.h"

static uint64_t memory; /* bytes that this process may use, as the library says */
static int fails;

int __wrap_pstk_get_machine(const char *path, struct pstk_machine *machine, struct pstk_error *err);
int __wrap_pstk_get_machine(const char *path, struct pstk_machine *machine, struct pstk_error *err)
{
    (void)path, (void)err;
    machine->n_usable = 64;
    machine->memory = memory;
    return fails ? PSTK_EIO : 0;
}

#define MIB (UINT64_C(1) << 20)

TEST(threads_are_as_many_as_memory_holds_and_at_least_one)
{
    memory = 1024 * MIB;
    CHECK_EQ(machine_n_cores(1024), 64);
    CHECK_EQ(machine_n_within(64, 128 * MIB), 8);
    CHECK_EQ(machine_n_within(8, 128 * MIB), 8);
    CHECK_EQ(machine_n_within(7, 128 * MIB), 7);
    CHECK_EQ(machine_n_within(64, 8 * 128 * MIB), 1);
    memory = 40 * MIB;
    CHECK_EQ(machine_n_within(64, 128 * MIB), 1);
    memory = UINT64_MAX;
    CHECK_EQ(machine_n_within(64, 1), 64);
}

TEST(memory_that_is_unknown_limits_nothing)
{
    memory = 0;
    CHECK_EQ(machine_n_within(64, 128 * MIB), 64);
    memory = MIB;
    fails = 1;
    CHECK_EQ(machine_n_within(64, 128 * MIB), 64);
    fails = 0;
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(threads_are_as_many_as_memory_holds_and_at_least_one),
        CASE(memory_that_is_unknown_limits_nothing),
    };
    return RUN_CASES(cases);
}
