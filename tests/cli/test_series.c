/* SPDX-License-Identifier: Apache-2.0 */
/* Figures over time, which stay within a bound and lose no time. */
#include "cli/report/series.h"

#include <math.h>

#include "support/test.h"

static struct series series;

static void add(double begin, double seconds, double rate, double waiting)
{
    struct series_point point = {.begin = begin, .seconds = seconds};
    for (int i = 0; i < SERIES_FIGURES; i++)
        point.figure[i] = NAN;
    point.figure[SERIES_SAMPLES] = rate;
    point.figure[SERIES_WAITING] = waiting;
    series_add(&series, &point);
}

/* The integral of a figure, which merging must keep. */
static double whole(void)
{
    double sum = 0;
    for (uint32_t i = 0; i < series.n; i++)
        sum += series.points[i].seconds * series.points[i].figure[SERIES_SAMPLES];
    return sum;
}

TEST(a_full_series_halves_and_keeps_time_and_samples)
{
    memset(&series, 0, sizeof series);
    double sum = 0;
    for (int i = 0; i < 10 * SERIES_POINTS; i++) {
        add(i, 1 + i % 3, i, 0.5);
        sum += (1 + i % 3) * (double)i;
        CHECK(series.n >= 1 && series.n <= SERIES_POINTS);
        CHECK(fabs(whole() - sum) < 1e-6 * sum + 1e-9);
    }
    CHECK_EQ(series.n_merged, 16);
    CHECK_EQ(series.n, 10 * SERIES_POINTS / 16);
    CHECK(series.points[1].begin == 16);
}

TEST(an_odd_series_keeps_its_last_point_when_it_halves)
{
    memset(&series, 0, sizeof series);
    for (int i = 0; i < 5; i++)
        add(i, 1, i, 0.5);
    series_halve(&series);
    CHECK_EQ(series.n, 3);
    CHECK(series.points[2].begin == 4 && series.points[2].seconds == 1);
    add(5, 1, 5, 0.5); /* the last point has one measurement of two */
    CHECK_EQ(series.n, 3);
    CHECK(series.points[2].seconds == 2 && series.points[2].figure[SERIES_SAMPLES] == 4.5);
    add(6, 1, 6, 0.5);
    CHECK_EQ(series.n, 4);
}

TEST(an_unknown_figure_does_not_count_and_no_time_is_no_point)
{
    memset(&series, 0, sizeof series);
    add(0, 0, 1, 1);
    add(0, -1, 1, 1);
    add(0, NAN, 1, 1);
    add(INFINITY, 1, 1, 1);
    CHECK_EQ(series.n, 0);
    add(0, 1, 10, NAN);
    add(1, 3, 20, 0.25);
    series_halve(&series);
    CHECK(series.points[0].figure[SERIES_SAMPLES] == 17.5);
    CHECK(series.points[0].figure[SERIES_WAITING] == 0.25);
    CHECK(isnan(series.points[0].figure[SERIES_GPU]));
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(a_full_series_halves_and_keeps_time_and_samples),
        CASE(an_odd_series_keeps_its_last_point_when_it_halves),
        CASE(an_unknown_figure_does_not_count_and_no_time_is_no_point),
    };
    return RUN_CASES(cases);
}
