/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subset: index -> sample id. Pure: a list, or all ids, then a chain of O(1) steps.
 *
 *   index --step n--> ... --step 1--> index of the list --list--> sample id
 *
 * A step keeps a stretch of the indices before it, or all but a stretch, perhaps of a permutation.
 * A step without such a form (ids, conditions) becomes a list, and the chain begins anew.
 */
#ifndef PSTK_SUBSET_H
#define PSTK_SUBSET_H

#include "order/permutation.h"

#include <penstock/subset.h>

/* Keep, of n_before indices, [first, first + n) or, if it skips, all except those. */
struct pstk__subset_step {
    uint64_t first, n;
    int skips;
    int is_permuted; /* 1: first and n count positions of the permutation */
    struct pstk__permutation permutation;
};

/* A subset; plain data. Invariants: n >= 1; at most one of the lists is set, and it has n_listed
 * ids. */
struct pstk__subset {
    uint64_t n;            /* indices */
    uint64_t n_samples;    /* samples of the data set, above all ids */
    const uint32_t *small; /* borrowed, ids; or NULL */
    const uint64_t *large; /* borrowed, ids; or NULL */
    uint64_t digest[2];
    uint32_t n_steps;
    struct pstk__subset_step steps[PSTK_SUBSET_MAX_STEPS];
};

/* Take all samples of a data set. */
void pstk__subset_init(struct pstk__subset *subset, uint64_t n_samples);
/* Keep the indices first to last - 1; first < last <= subset->n, and a step is left. */
void pstk__subset_range(struct pstk__subset *subset, uint64_t first, uint64_t last);
/* Keep positions first to last - 1 of the permutation that the seed draws. skips: keep all except
 * these, which are not all. */
void pstk__subset_drawn(struct pstk__subset *subset, uint64_t seed, uint64_t first, uint64_t last,
                        int skips);
/* Take the listed ids instead of all before. One of the lists is set; it is borrowed for the life
 * of *subset. */
void pstk__subset_list(struct pstk__subset *subset, const uint32_t *small, const uint64_t *large,
                       uint64_t n);

/* Add weights[n] of the indices, and the draws of an epoch, to the digest. */
void pstk__subset_weigh(struct pstk__subset *subset, const uint64_t *weights, uint64_t n_draws);

/* Return floor(n * part / whole), exactly; part <= whole. */
uint64_t pstk__subset_border(uint64_t n, uint64_t part, uint64_t whole);
/* Return the sample id of index i < n. */
uint64_t pstk__subset_at(const struct pstk__subset *subset, uint64_t i);

#endif
