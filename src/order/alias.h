/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alias: draw one of n indices by weight, O(1) (Walker 1977; Vose, "A linear algorithm for
 * generating random numbers with a given distribution", 1991). Pure.
 *
 * Weights are whole numbers, and so is all arithmetic: index i comes with the probability
 * weights[i] / total exactly, the same on every machine.
 */
#ifndef PSTK_ALIAS_H
#define PSTK_ALIAS_H

#include <stdint.h>

#define PSTK__ALIAS_MAX ((uint64_t)1 << 32) /* indices */

/* Plain data. */
struct pstk__alias {
    uint64_t n;             /* indices, 1 to PSTK__ALIAS_MAX */
    uint64_t total;         /* of the weights, at most 2^62 */
    const uint64_t *shares; /* borrowed, n: of `total`; below it the index itself is drawn, */
    const uint32_t *others; /* borrowed, n: else this one */
};

/* The bits that a whole weight of n indices may have: n * weight is at most 2^62. */
uint32_t pstk__alias_bits(uint64_t n);
/* Make shares of weights in place, and fill others; `work` has room for n. Each weight * n is at
 * most 2^62, and one is not 0. */
void pstk__alias_init(struct pstk__alias *alias, uint64_t n, uint64_t *weights, uint32_t *others,
                      uint32_t *work);
/* The index of draw k of an epoch. */
uint64_t pstk__alias_at(const struct pstk__alias *alias, uint64_t seed, uint64_t epoch, uint64_t k);
/* Try number `attempt` to replace a sample: a function of nothing else. */
uint64_t pstk__alias_other(const struct pstk__alias *alias, uint64_t id, uint32_t attempt);

#endif
