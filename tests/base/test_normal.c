/* SPDX-License-Identifier: Apache-2.0 */
#include "base/normal.h"
#include "support/test.h"

#include <math.h>

static double part_below(double x)
{
    return 0.5 * erfc(-x * sqrt(0.5));
}

TEST(the_part_of_normal_numbers_below_is_that_of_words)
{
    uint32_t word = 1;
    for (int i = 0; i < 200000; i++) {
        word = i < 40 ? 1u << (i % 32) : word * 1664525u + 1013904223u;
        const double wanted = ((double)word + 0.5) * 0x1p-32, x = pstk__normal(word);
        CHECK(fabs(part_below(x) - wanted) < 1e-13 * (x < -1 ? 1 + x * x : 1));
        CHECK(x >= 0 || fabs(part_below(x) / wanted - 1) < 1e-13 * (1 + x * x));
        CHECK(pstk__normal(~word) == -x);
    }
}

/* As Python's statistics.NormalDist().inv_cdf. These numbers may never change: they are elements of
 * every image that was erased with them. */
TEST(some_are_held_by_golden_numbers)
{
    CHECK(pstk__normal(0) == -0x1.95a1198fcf3d5p+2);
    CHECK(pstk__normal(0x12345678u) == -0x1.77b263457d4cep+0);
    CHECK(pstk__normal(0x80000000u) == 0x1.40d931ff62707p-32);
    CHECK(pstk__normal(0xfffff000u) == 0x1.30d569928f499p+2);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(the_part_of_normal_numbers_below_is_that_of_words),
        CASE(some_are_held_by_golden_numbers),
    };
    return RUN_CASES(cases);
}
