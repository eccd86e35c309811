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

/* A Feistel network on [0, 2^(left + right)), with halves of 2 to 32 bits. */
struct pstk__feistel {
    uint32_t left_bits, right_bits;
    uint64_t keys[PSTK__FEISTEL_ROUNDS];
};

/* A permutation; plain data. */
struct pstk__permutation {
    uint64_t n;
    struct pstk__feistel network;            /* for n > PSTK__PERMUTATION_TABLE */
    uint16_t table[PSTK__PERMUTATION_TABLE]; /* for smaller n */
};

/* Set the halves of the smallest network on at least n >= 2 numbers, and on at least 16: 2^bits < 2
 * n for n > 8, so that a walk takes less than two steps on average. If the halves differ, the right
 * one is larger by one bit. */
void pstk__feistel_size(struct pstk__feistel *network, uint64_t n);
/* Walk from x < n until the result is below n again: a bijection on [0, n) for every n that the
 * network holds. Each `twist`, which is added to every key, gives another bijection. */
uint64_t pstk__feistel_walk(const struct pstk__feistel *network, uint64_t twist, uint64_t n,
                            uint64_t x);

/* Draw a permutation of n >= 1. O(min(n, PSTK__PERMUTATION_TABLE)). */
void pstk__permutation_init(struct pstk__permutation *permutation, uint64_t n,
                            struct pstk__random *draws);
/* Return the image of k < n. */
uint64_t pstk__permutation_at(const struct pstk__permutation *permutation, uint64_t k);
/* Return the k < n whose image is x < n. */
uint64_t pstk__permutation_find(const struct pstk__permutation *permutation, uint64_t x);

#endif
