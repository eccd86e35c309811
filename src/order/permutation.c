/* SPDX-License-Identifier: Apache-2.0 */
#include "order/permutation.h"

#include <assert.h>

/* Shuffle by Fisher-Yates: every permutation is equally likely. */
static void shuffle_table(uint16_t *table, uint32_t n, struct pstk__random *draws)
{
    for (uint32_t i = 0; i < n; i++)
        table[i] = (uint16_t)i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)pstk__random_below(draws, i);
        uint16_t t = table[i - 1];
        table[i - 1] = table[j];
        table[j] = t;
    }
}

void pstk__feistel_size(struct pstk__feistel *network, uint64_t n)
{
    /* Take the bits of n - 1, the largest number, and at least 2 for each half: with a half of one
     * bit, pairs of numbers would not all be equally likely to go to each pair (20 % off for n =
     * 5). */
    const uint32_t bits = n > 16 ? 64 - (uint32_t)__builtin_clzll(n - 1) : 4;
    network->left_bits = bits / 2;
    network->right_bits = bits - network->left_bits;
}

/* Mix a word by a key down to its top bits: two multiplications, so that each bit of x and of the
 * key reaches each bit of the result. */
static inline uint64_t round_of(uint64_t x, uint64_t key)
{
    x = (x + key) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 32) * 0x94D049BB133111EBu;
    return x;
}

/* Take one step of the walk: a permutation of [0, 2^(left + right)). Each round changes one half by
 * a function of the other half, and the same round undoes it. So the step is a permutation whatever
 * the function and the widths. */
static inline uint64_t forward(const struct pstk__feistel *network, uint64_t twist, uint64_t x)
{
    const uint32_t left_shift = 64 - network->left_bits, right_shift = 64 - network->right_bits;
    uint64_t left = x >> network->right_bits;
    uint64_t right = x & (((uint64_t)1 << network->right_bits) - 1);
    for (int i = 0; i < PSTK__FEISTEL_ROUNDS; i += 2) {
        left ^= round_of(right, network->keys[i] + twist) >> left_shift;
        right ^= round_of(left, network->keys[i + 1] + twist) >> right_shift;
    }
    return left << network->right_bits | right;
}

/* Undo a step: run the same rounds, the last one first. */
static inline uint64_t backward(const struct pstk__feistel *network, uint64_t x)
{
    const uint32_t left_shift = 64 - network->left_bits, right_shift = 64 - network->right_bits;
    uint64_t left = x >> network->right_bits;
    uint64_t right = x & (((uint64_t)1 << network->right_bits) - 1);
    for (int i = PSTK__FEISTEL_ROUNDS; i > 0; i -= 2) {
        right ^= round_of(left, network->keys[i - 1]) >> right_shift;
        left ^= round_of(right, network->keys[i - 2]) >> left_shift;
    }
    return left << network->right_bits | right;
}

uint64_t pstk__feistel_walk(const struct pstk__feistel *network, uint64_t twist, uint64_t n,
                            uint64_t x)
{
    /* The cycle of x, which lies in [0, n), leads back into [0, n): the walk ends, and no two
     * numbers end at the same one. */
    do
        x = forward(network, twist, x);
    while (x >= n);
    return x;
}

void pstk__permutation_init(struct pstk__permutation *permutation, uint64_t n,
                            struct pstk__random *draws)
{
    *permutation = (struct pstk__permutation){.n = n};
    if (n <= PSTK__PERMUTATION_TABLE) {
        shuffle_table(permutation->table, (uint32_t)n, draws);
        return;
    }
    pstk__feistel_size(&permutation->network, n);
    for (int i = 0; i < PSTK__FEISTEL_ROUNDS; i++)
        permutation->network.keys[i] = pstk__random_u64(draws);
}

uint64_t pstk__permutation_at(const struct pstk__permutation *permutation, uint64_t k)
{
    assert(k < permutation->n);
    if (permutation->n <= PSTK__PERMUTATION_TABLE)
        return permutation->table[k];
    return pstk__feistel_walk(&permutation->network, 0, permutation->n, k);
}

uint64_t pstk__permutation_find(const struct pstk__permutation *permutation, uint64_t x)
{
    assert(x < permutation->n);
    if (permutation->n > PSTK__PERMUTATION_TABLE) {
        do
            x = backward(&permutation->network, x);
        while (x >= permutation->n);
        return x;
    }
    uint64_t k = 0;
    while (permutation->table[k] != x)
        k++;
    return k;
}
