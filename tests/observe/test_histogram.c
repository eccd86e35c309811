/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms against a sorted list of all values. */
#include "observe/histogram.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(every_value_is_in_the_bucket_whose_top_is_next_above)
{
    for (uint32_t i = 0; i + 1 < PSTK__BUCKETS; i++) {
        const uint64_t top = pstk__bucket_top(i);
        CHECK_EQ(pstk__bucket_of(top), i);
        CHECK_EQ(pstk__bucket_of(top + 1), i + 1);
        const uint64_t least = i ? pstk__bucket_top(i - 1) + 1 : 0;
        CHECK(top - least <= least / 8); /* 8 for each power of 2 */
    }
    CHECK_EQ(pstk__bucket_of(UINT64_MAX), PSTK__BUCKETS - 1);
    CHECK_EQ(pstk__bucket_top(PSTK__BUCKETS - 1), ((uint64_t)1 << 41) - 1);
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* A quantile is the top of the bucket of the k-th value, of n in order. */
static int is_quantile(uint64_t found, const uint64_t *sorted, uint32_t n, double share)
{
    uint32_t k = 0;
    while ((double)(k + 1) < share * (double)n)
        k++;
    return found == pstk__bucket_top(pstk__bucket_of(sorted[k]));
}

TEST(quantiles_are_those_of_the_sorted_values)
{
    static struct pstk__histogram histogram;
    static struct pstk__counted none, before, now;
    uint64_t values[1000], sum = 0;
    struct pstk_distribution d;
    srand(7);
    for (uint32_t n = 1; n <= 1000; n += n < 50 ? 1 : 237) {
        memset(&before, 0, sizeof before);
        memset(&now, 0, sizeof now);
        pstk__histogram_sum(&before, &histogram); /* earlier values do not count */
        sum = 0;
        for (uint32_t i = 0; i < n; i++) {
            values[i] = (uint64_t)rand() >> (rand() % 31);
            sum += values[i];
            pstk__histogram_add(&histogram, values[i]);
        }
        pstk__histogram_sum(&now, &histogram);
        pstk__counted_describe(&now, &before, &d);
        qsort(values, n, sizeof *values, compare);
        CHECK_EQ(d.n, n);
        CHECK_EQ(d.sum, sum);
        CHECK(is_quantile(d.p50, values, n, 0.5));
        CHECK(is_quantile(d.p95, values, n, 0.95));
        CHECK(is_quantile(d.p99, values, n, 0.99));
        CHECK(is_quantile(d.max, values, n, 1.0));
    }
    pstk__counted_describe(&now, &now, &d);
    CHECK(d.n == 0 && d.sum == 0 && d.p50 == 0 && d.max == 0);
    pstk__counted_describe(&none, &none, &d);
    CHECK_EQ(d.n, 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(every_value_is_in_the_bucket_whose_top_is_next_above),
        CASE(quantiles_are_those_of_the_sorted_values),
    };
    return RUN_CASES(cases);
}
