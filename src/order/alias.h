/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alias: draws one of n indices by weight, O(1) (Walker 1977; Vose, "A linear algorithm for
 * generating random numbers with a given distribution", 1991). Pure.
 *
 * Weights are whole numbers, and so is all arithmetic: index i comes with the probability
 * weights[i] / total exactly, the same on every machine.
 */
#ifndef PSTK_ALIAS_H
#define PSTK_ALIAS_H

#include <stdint.h>

#define PSTK__ALIAS_MAX ((uint64_t)1 << 32) /* indices */

/* A table to draw from; plain data. */
struct pstk__alias {
    uint64_t n;             /* indices, 1 to PSTK__ALIAS_MAX */
    uint64_t total;         /* sum of the weights, at most 2^62 */
    const uint64_t *shares; /* borrowed, n: a draw at index i, below `total`, keeps i if it is below
                               shares[i] */
    const uint32_t *others; /* borrowed, n: else it gives others[i] */
};

/* Return the number of bits that a whole weight of n indices may have, so that n * weight is at
 * most 2^62. */
uint32_t pstk__alias_bits(uint64_t n);
/* Make shares of weights in place, and fill others; `work` has n elements. Each weight * n is at
 * most 2^62, and one is not 0. */
void pstk__alias_init(struct pstk__alias *alias, uint64_t n, uint64_t *weights, uint32_t *others,
                      uint32_t *work);
/* Return the index of draw k of an epoch. */
uint64_t pstk__alias_at(const struct pstk__alias *alias, uint64_t seed, uint64_t epoch, uint64_t k);
/* Return the index of attempt `attempt` to replace sample `id`: a function of nothing else. */
uint64_t pstk__alias_other(const struct pstk__alias *alias, uint64_t id, uint32_t attempt);

#endif
