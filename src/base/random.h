/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random: counter-based random numbers and mathematics in a fixed order of operations. Pure. The
 * same bits on every machine: no libm, compiled with -ffp-contract=off.
 */
#ifndef PSTK_RANDOM_H
#define PSTK_RANDOM_H

#include <stdint.h>

/* Compute a block of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011). */
void pstk__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Everything that a random draw depends on. */
struct pstk__random_key {
    uint64_t seed;
    uint64_t epoch;
    uint64_t sample_id;
    uint32_t data_set;   /* index in a mixture; else 0 */
    uint64_t occurrence; /* number of the draw within the epoch, when drawing with replacement; else
                            0 */
    uint32_t group;      /* random group of the output */
    uint32_t op;         /* index of the operation in the output's list */
};

/* A stream of draws for one key. Plain data. */
struct pstk__random {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t block[4];
    uint32_t n_left; /* unused words of block */
};

void pstk__random_init(struct pstk__random *r, const struct pstk__random_key *key);
uint32_t pstk__random_u32(struct pstk__random *r);
uint64_t pstk__random_u64(struct pstk__random *r);
/* Return a uniform number in [0, 1), 53 bits. */
double pstk__random_unit(struct pstk__random *r);
/* Return lo + (hi - lo) * unit. */
double pstk__random_uniform(struct pstk__random *r, double lo, double hi);
/* Return a uniform integer in [0, n), n >= 1, without bias. */
uint64_t pstk__random_below(struct pstk__random *r, uint64_t n);
/* Fill `order` with 0 to n - 1 in a uniformly random order, n >= 1 (Fisher and Yates). */
void pstk__random_order(struct pstk__random *r, uint32_t *order, uint32_t n);

/* Mix a 64-bit word (the finaliser of SplitMix64). */
uint64_t pstk__mix64(uint64_t x);

/* Return exp and natural logarithm, within 2 ulp on [-50, 50] and on (0, 1e300), the same on every
 * machine. */
double pstk__exp(double x);
double pstk__log(double x);
/* Round half to even, as Python's round. */
double pstk__rint_even(double x);

#endif
