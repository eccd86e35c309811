/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order: (seed, epoch, position) -> sample id. Pure, O(1) memory and time.
 *
 * `full` is one keyed permutation of all samples (permutation.h); its version is
 * PSTK_ORDER_VERSION. `windowed` mixes blocks and windows of them (windowed.h); its version is
 * PSTK_WINDOWED_VERSION. Golden vectors in tests hold both.
 */
#ifndef PSTK_ORDER_H
#define PSTK_ORDER_H

#include "order/windowed.h"

#include <penstock/order.h>

/* The inputs of an order; constant for a data set. */
struct pstk__order_shape {
    uint32_t kind;                      /* enum pstk_order */
    struct pstk__interleave interleave; /* n: for every kind; the rest: for windowed, settled */
};

/* The order of one epoch. Plain data; init is O(min(n, 1024)). */
struct pstk__order {
    uint32_t kind; /* enum pstk_order */
    uint64_t n;
    struct pstk__permutation full;
    struct pstk__windowed windowed;
};

void pstk__order_init(struct pstk__order *order, const struct pstk__order_shape *shape,
                      uint64_t seed, uint64_t epoch);
/* Return the sample id at position k < n. */
uint64_t pstk__order_at(const struct pstk__order *order, uint64_t k);

#endif
