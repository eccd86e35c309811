/* SPDX-License-Identifier: Apache-2.0 */
#include "order/order.h"

#include <assert.h>

/* Return the stream of draws that makes the order of an epoch. Seed and epoch go into different
 * parts of Philox (key, counter), so that (seed + 1, epoch) and (seed, epoch + 1) have nothing in
 * common. */
static struct pstk__random draws_of(uint64_t seed, uint64_t epoch)
{
    uint64_t key = pstk__mix64(seed + 0x6F726465723031u); /* "order01" */
    return (struct pstk__random){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
        .counter = {0, 0, (uint32_t)epoch, (uint32_t)(epoch >> 32)},
    };
}

void pstk__order_init(struct pstk__order *order, const struct pstk__order_shape *shape,
                      uint64_t seed, uint64_t epoch)
{
    order->kind = shape->kind;
    order->n = shape->interleave.n;
    struct pstk__random draws = draws_of(seed, epoch);
    if (order->kind == PSTK_ORDER_FULL && order->n > 0)
        pstk__permutation_init(&order->full, order->n, &draws);
    if (order->kind == PSTK_ORDER_WINDOWED && order->n > 0)
        pstk__windowed_init(&order->windowed, &shape->interleave, seed, epoch);
}

uint64_t pstk__order_at(const struct pstk__order *order, uint64_t k)
{
    assert(k < order->n);
    switch (order->kind) {
    case PSTK_ORDER_FULL:
        return pstk__permutation_at(&order->full, k);
    case PSTK_ORDER_WINDOWED:
        return pstk__windowed_at(&order->windowed, k);
    default:
        return k;
    }
}
