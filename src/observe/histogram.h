/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram: counts values in a fixed number of buckets: one for each value below 8, then 8 for
 * each power of 2. So a quantile is at most 1/8 above the true one. Values from 2^41 on (in
 * nanoseconds: 36 minutes) share the last bucket. One thread adds, any thread reads.
 */
#ifndef PSTK_HISTOGRAM_H
#define PSTK_HISTOGRAM_H

#include <penstock/diagnostics.h>

#include <stdatomic.h>

#define PSTK__BUCKETS 312u

struct pstk__histogram {
    _Atomic uint64_t sum;
    _Atomic uint64_t n[PSTK__BUCKETS];
};

/* A histogram as plain numbers: a sum over threads, or a difference of two sums. */
struct pstk__counted {
    uint64_t sum;
    uint64_t n[PSTK__BUCKETS];
};

/* Return the bucket of a value, and the largest value of a bucket. */
static inline uint32_t pstk__bucket_of(uint64_t value)
{
    if (value < 8)
        return (uint32_t)value;
    const uint32_t power = 63u - (uint32_t)__builtin_clzll(value);
    const uint32_t bucket = (power - 2) * 8 + (uint32_t)(value >> (power - 3) & 7);
    return bucket < PSTK__BUCKETS ? bucket : PSTK__BUCKETS - 1;
}
uint64_t pstk__bucket_top(uint32_t bucket);

/* Count a value. Only the histogram's own thread calls this: load, add and store are relaxed. */
static inline void pstk__histogram_add(struct pstk__histogram *histogram, uint64_t value)
{
    _Atomic uint64_t *n = &histogram->n[pstk__bucket_of(value)];
    atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&histogram->sum,
                          atomic_load_explicit(&histogram->sum, memory_order_relaxed) + value,
                          memory_order_relaxed);
}

/* Add one thread's histogram to a sum. */
void pstk__histogram_sum(struct pstk__counted *to, const struct pstk__histogram *from);
/* Compute the quantiles of the values counted after `since` was taken, up to `now`. */
void pstk__counted_describe(const struct pstk__counted *now, const struct pstk__counted *since,
                            struct pstk_distribution *distribution);

#endif
