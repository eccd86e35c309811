/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/histogram.h"

#include <string.h>

uint64_t pstk__bucket_top(uint32_t bucket)
{
    if (bucket < 8)
        return bucket;
    return ((uint64_t)(bucket % 8 + 9) << (bucket / 8 - 1)) - 1;
}

void pstk__histogram_sum(struct pstk__counted *to, const struct pstk__histogram *from)
{
    to->sum += atomic_load_explicit(&from->sum, memory_order_relaxed);
    for (uint32_t i = 0; i < PSTK__BUCKETS; i++)
        to->n[i] += atomic_load_explicit(&from->n[i], memory_order_relaxed);
}

/* Return the largest value of the bucket that holds the value of rank `rank`, from 1, in ascending
 * order. */
static uint64_t value_of(const struct pstk__counted *now, const struct pstk__counted *since,
                         uint64_t rank)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < PSTK__BUCKETS; i++) {
        n += now->n[i] - since->n[i];
        if (n >= rank)
            return pstk__bucket_top(i);
    }
    return pstk__bucket_top(PSTK__BUCKETS - 1);
}

void pstk__counted_describe(const struct pstk__counted *now, const struct pstk__counted *since,
                            struct pstk_distribution *distribution)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < PSTK__BUCKETS; i++)
        n += now->n[i] - since->n[i];
    memset(distribution, 0, sizeof *distribution);
    distribution->n = n;
    if (n == 0)
        return;
    distribution->sum = now->sum - since->sum;
    distribution->p50 = value_of(now, since, n - n / 2);
    distribution->p95 = value_of(now, since, n - n / 20);
    distribution->p99 = value_of(now, since, n - n / 100);
    distribution->max = value_of(now, since, n);
}
