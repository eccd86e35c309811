/* SPDX-License-Identifier: Apache-2.0 */
#include "order/subset.h"

#include <assert.h>

/* The numbers of the steps in the digest. */
enum { ALL = 1, RANGE, DRAWN, LIST, WEIGHTS };

/* Two chains of 64 bits; each step is a bijection of the state for a given word, and the second
 * chain takes in the first. */
static void absorb(struct pstk__subset *subset, uint64_t word)
{
    uint64_t *digest = subset->digest;
    digest[0] = pstk__mix64((digest[0] ^ word) + 0x9E3779B97F4A7C15u);
    digest[1] = pstk__mix64((digest[1] + digest[0]) ^ (word << 32 | word >> 32));
}

void pstk__subset_init(struct pstk__subset *subset, uint64_t n_samples)
{
    *subset = (struct pstk__subset){.n = n_samples, .n_samples = n_samples};
    absorb(subset, ALL);
    absorb(subset, n_samples);
}

static struct pstk__subset_step *step_of(struct pstk__subset *subset, uint64_t first, uint64_t last,
                                         int skips)
{
    assert(first < last && last <= subset->n && subset->n_steps < PSTK_SUBSET_MAX_STEPS);
    struct pstk__subset_step *step = &subset->steps[subset->n_steps++];
    step->first = first;
    step->n = last - first;
    step->skips = skips;
    step->is_permuted = 0;
    return step;
}

void pstk__subset_range(struct pstk__subset *subset, uint64_t first, uint64_t last)
{
    step_of(subset, first, last, 0);
    subset->n = last - first;
    absorb(subset, RANGE);
    absorb(subset, first);
    absorb(subset, last);
}

void pstk__subset_drawn(struct pstk__subset *subset, uint64_t seed, uint64_t first, uint64_t last,
                        int skips)
{
    struct pstk__subset_step *step = step_of(subset, first, last, skips);
    const uint64_t key = pstk__mix64(seed + 0x7375627365743031u); /* "subset01" */
    struct pstk__random draws = {.key = {(uint32_t)key, (uint32_t)(key >> 32)}};
    step->is_permuted = 1;
    pstk__permutation_init(&step->permutation, subset->n, &draws);
    subset->n = skips ? subset->n - (last - first) : last - first;
    assert(subset->n > 0);
    absorb(subset, skips ? DRAWN | (uint64_t)1 << 32 : DRAWN);
    absorb(subset, seed);
    absorb(subset, first);
    absorb(subset, last);
}

void pstk__subset_list(struct pstk__subset *subset, const uint32_t *small, const uint64_t *large,
                       uint64_t n)
{
    subset->small = small;
    subset->large = large;
    subset->n = n;
    subset->n_steps = 0;
    absorb(subset, LIST);
    absorb(subset, n);
    for (uint64_t i = 0; i < n; i++)
        absorb(subset, small ? small[i] : large[i]);
}

void pstk__subset_weigh(struct pstk__subset *subset, const uint64_t *weights, uint64_t n_draws)
{
    absorb(subset, WEIGHTS);
    absorb(subset, n_draws);
    for (uint64_t i = 0; i < subset->n; i++)
        absorb(subset, weights[i]);
}

uint64_t pstk__subset_border(uint64_t n, uint64_t part, uint64_t whole)
{
    return (uint64_t)((unsigned __int128)n * part / whole);
}

uint64_t pstk__subset_at(const struct pstk__subset *subset, uint64_t i)
{
    assert(i < subset->n);
    for (uint32_t k = subset->n_steps; k-- > 0;) {
        const struct pstk__subset_step *step = &subset->steps[k];
        if (!step->skips)
            i += step->first;
        else if (i >= step->first)
            i += step->n;
        if (step->is_permuted)
            i = pstk__permutation_at(&step->permutation, i);
    }
    return subset->small ? subset->small[i] : subset->large ? subset->large[i] : i;
}
