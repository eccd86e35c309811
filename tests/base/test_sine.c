/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sine.h"
#include "support/test.h"

#include <math.h>

static uint64_t state = 88172645463325252ull;

/* In [lo, hi). */
static double draw(double lo, double hi)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return lo + (hi - lo) * ((double)(state >> 11) * 0x1p-53);
}

/* Some of every size, and near multiples of a quarter turn. */
static double draw_angle(uint32_t i)
{
    const double sizes[4] = {7, 127, 1, 1e-6};
    if (i % 5 == 4)
        return nextafter((i / 5 % 160 - 80.0) * 1.5707963267948966, draw(-200, 200));
    return draw(-1, 1) * sizes[i % 5];
}

/* Return whether a is b or the double next to it. */
static int is_next(double a, double b)
{
    return a == b || nextafter(a, b) == b;
}

TEST(results_are_at_most_one_place_from_those_of_the_libm)
{
    for (uint32_t i = 0; i < 200000; i++) {
        const double x = draw_angle(i);
        CHECK(is_next(pstk__sin(x), sin(x)));
        CHECK(is_next(pstk__cos(x), cos(x)));
        CHECK(is_next(pstk__tan(x), tan(x)));
    }
}

TEST(results_are_the_doubles_nearest_to_the_exact_ones)
{
    /* Computed with 400 bits. */
    CHECK(pstk__sin(1) == 0x1.aed548f090ceep-1);
    CHECK(pstk__cos(1) == 0x1.14a280fb5068cp-1);
    CHECK(pstk__tan(1) == 0x1.8eb245cbee3a6p+0);
    CHECK(pstk__sin(0x1.921fb54442d18p+1) == 0x1.1a62633145c07p-53);
    CHECK(pstk__cos(0x1.921fb54442d18p+0) == 0x1.1a62633145c07p-54);
    CHECK(pstk__tan(0x1.921fb54442d18p+0) == 0x1.d02967c31cdb5p+53);
    CHECK(pstk__sin(127.5) == 0x1.ee0f8249e50bbp-1);
    CHECK(pstk__cos(127.5) == -0x1.0cafce69b0627p-2);
    CHECK(pstk__tan(127.5) == -0x1.d6bb73329865ep+1);
    CHECK(pstk__sin(1e-9) == 1e-9 && pstk__cos(1e-9) == 1 && pstk__tan(-1e-9) == -1e-9);
}

TEST(zero_keeps_its_sign_and_what_is_out_of_range_is_no_number)
{
    CHECK(signbit(pstk__sin(-0.0)) && signbit(pstk__tan(-0.0)) && pstk__cos(-0.0) == 1);
    CHECK(isnan(pstk__sin(128)) && isnan(pstk__cos(-128)) && isnan(pstk__tan(INFINITY)));
    CHECK(isnan(pstk__sin(NAN)));
}

TEST(degrees_are_reduced_without_rounding)
{
    for (uint32_t i = 0; i < 100000; i++) {
        const double sizes[4] = {400, 1e6, 1e18, 1e300}, x = draw(-1, 1) * sizes[i % 4];
        double want = fmod(x, 360);
        want += want < 0 ? 360 : 0;
        CHECK(pstk__degrees_modulo(x) == want);
    }
    CHECK(pstk__degrees_modulo(-360) == 0 && !signbit(pstk__degrees_modulo(-360)));
    CHECK(pstk__degrees_modulo(-1e-20) == 360);
}

TEST(fifteen_places_are_those_of_the_exact_value)
{
    CHECK(pstk__round_15(0.1 + 0.2) == 0.3);
    CHECK(pstk__round_15(1e-15) == 1e-15 && pstk__round_15(6.1e-16) == 1e-15);
    CHECK(pstk__round_15(4.9e-16) == 0 && signbit(pstk__round_15(-4.9e-16)));
    CHECK(pstk__round_15(0x1p-1074) == 0);
    CHECK(pstk__round_15(0.5) == 0.5 && pstk__round_15(-1) == -1);
    CHECK(pstk__round_15(0.70710678118654757) == 0.707106781186548);
    for (uint32_t i = 0; i < 100000; i++) {
        char text[32];
        const double x = draw(-1, 1);
        snprintf(text, sizeof text, "%.15f", x);
        CHECK(pstk__round_15(x) == strtod(text, NULL));
    }
}

TEST(radians_are_those_of_python)
{
    CHECK(pstk__radians(180) == 3.141592653589793);
    CHECK(pstk__radians(30) == 0.5235987755982988);
    CHECK(pstk__radians(-77.7) == -1.356120828799594);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(results_are_at_most_one_place_from_those_of_the_libm),
        CASE(results_are_the_doubles_nearest_to_the_exact_ones),
        CASE(zero_keeps_its_sign_and_what_is_out_of_range_is_no_number),
        CASE(degrees_are_reduced_without_rounding),
        CASE(fifteen_places_are_those_of_the_exact_value),
        CASE(radians_are_those_of_python),
    };
    return RUN_CASES(cases);
}
