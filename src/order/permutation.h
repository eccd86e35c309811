/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permutation: a keyed bijection on [0, n) for every n >= 1. Pure, O(1) memory and time.
 *
 * Small n (<= PSTK__PERMUTATION_TABLE) is a Fisher-Yates table, so that all permutations are
 * equally likely; larger n is a Feistel network on the next power of two with cycle walking.
 */
#ifndef PSTK_PERMUTATION_H
#define PSTK_PERMUTATION_H

#include "base/random.h"

#define PSTK__PERMUTATION_TABLE 1024
#define PSTK__FEISTEL_ROUNDS 8

/* A network on [0, 2^(left + right)), halves of 2 to 32 bits. */
struct pstk__feistel {
    uint32_t left_bits, right_bits;
    uint64_t keys[PSTK__FEISTEL_ROUNDS];
};

/* Plain data. */
struct pstk__permutation {
    uint64_t n;
    struct pstk__feistel network;            /* n > PSTK__PERMUTATION_TABLE */
    uint16_t table[PSTK__PERMUTATION_TABLE]; /* else */
};

/* The halves of the smallest network on at least n >= 2 places, 16 at least: 2^bits < 2 n for
 * n > 8, so that a walk takes less than two steps on average; the right half is larger by one bit
 * if they differ. */
void pstk__feistel_size(struct pstk__feistel *network, uint64_t n);
/* Walk from x < n until the walk is below n again: a bijection on [0, n) for every n that the
 * network holds. `twist` is added to every key: another bijection for each. */
uint64_t pstk__feistel_walk(const struct pstk__feistel *network, uint64_t twist, uint64_t n,
                            uint64_t x);

/* Draw a permutation of n >= 1. O(min(n, PSTK__PERMUTATION_TABLE)). */
void pstk__permutation_init(struct pstk__permutation *permutation, uint64_t n,
                            struct pstk__random *draws);
/* Where it takes k < n. */
uint64_t pstk__permutation_at(const struct pstk__permutation *permutation, uint64_t k);
/* Which k < n it takes to x < n. */
uint64_t pstk__permutation_find(const struct pstk__permutation *permutation, uint64_t x);

#endif
