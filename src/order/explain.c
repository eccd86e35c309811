/* SPDX-License-Identifier: Apache-2.0 */
#include "order/explain.h"

#define WAYS_WANTED 48u

uint64_t pstk__common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Return x^n, for 0 <= x <= 1. */
static double power(double x, uint64_t n)
{
    double result = 1;
    for (; n; n >>= 1, x *= x)
        if (n & 1)
            result *= x;
    return result;
}

/* Return the probability that none of `mine` random samples of a window of n lies in a given piece
 * of `piece` samples. It is the product of (n - piece - j) / (n - j) for j < mine, approximated by
 * the middle factor to the power of mine. */
static double none_of(uint64_t n, uint64_t piece, uint64_t mine)
{
    const double middle = mine ? (double)(mine - 1) / 2 : 0;
    const double rest = (double)n - (double)piece - middle;
    return rest > 0 ? power(rest / ((double)n - middle), mine) : mine == 0;
}

/* Return how many of `ranks`, which share windows of n samples evenly, have a sample among `piece`
 * samples of a window or among `other` samples of another window. */
static double readers_of(uint64_t n, uint64_t piece, uint64_t other, uint64_t ranks)
{
    /* Some ranks have one sample of a window more than the others. */
    const uint64_t mine = n / ranks, n_longer = n % ranks;
    const double none = none_of(n, piece, mine) * none_of(n, other, mine),
                 none_longer = none_of(n, piece, mine + 1) * none_of(n, other, mine + 1);
    return (double)n_longer * (1 - none_longer) + (double)(ranks - n_longer) * (1 - none);
}

/* Return the number of readings of all blocks by all ranks; `ranks` of them share each way. A way
 * has a part of its first block, whole blocks, and a part of its last block. */
static double readings(const struct pstk__interleave *interleave, uint64_t groups, uint64_t ranks)
{
    const uint64_t block = interleave->block, window = (uint64_t)interleave->window * block;
    const uint64_t length = interleave->n / interleave->ways,
                   n_longer = interleave->n % interleave->ways;
    double sum = 0;
    uint64_t begin = 0,
             before = 0; /* part, of the same ranks, of the block that this way begins in */
    for (uint32_t way = 0; way < interleave->ways && begin < interleave->n; way++) {
        const uint64_t own = length + (way < n_longer), n = min_of(window, own);
        const uint64_t first = min_of((block - begin % block) % block, own);
        const uint64_t last = (own - first) % block, whole = (own - first) / block;
        /* A window ends `cut` samples inside a block, so it divides one block of each window. */
        const uint64_t phase = way * window / interleave->ways;
        const uint64_t cut = (begin % block + block - phase % block) % block;
        const double divided = (double)whole / interleave->window;
        sum += divided * readers_of(n, cut, block - cut, ranks);
        sum += ((double)whole - divided) * readers_of(n, block, 0, ranks);
        if (groups > 1) { /* other ranks read the other parts of the block */
            sum += readers_of(n, first, 0, ranks) + readers_of(n, last, 0, ranks);
        } else if ((begin + first) % block == 0) {
            sum += readers_of(n, first, before, ranks);
            before = last;
        } else {
            before += first;
        }
        begin += own;
    }
    return sum + readers_of(min_of(window, interleave->n), before, 0, ranks);
}

void pstk__interleave_explain(const struct pstk__interleave *interleave, uint64_t world,
                              struct pstk__interleave_share *out)
{
    *out = (struct pstk__interleave_share){0};
    if (!interleave->n)
        return;
    const uint64_t groups = pstk__common_divisor(interleave->ways, world),
                   n_blocks = (interleave->n - 1) / interleave->block + 1,
                   window = (uint64_t)interleave->window * interleave->block;
    out->ways = interleave->ways / groups;
    out->ranks = world / groups;
    /* A window touches one block more than it is long; the short last block is another. */
    const uint64_t of_way = interleave->n / interleave->ways / interleave->block + 1;
    out->blocks = out->ways * (min_of(interleave->window, of_way) + 1);
    out->blocks = min_of(out->blocks + (interleave->n % interleave->block != 0), n_blocks);
    out->n_mixed = min_of(interleave->ways * window, interleave->n);
    const double mean = readings(interleave, groups, out->ranks) / (double)n_blocks;
    out->n_readings = mean > 1 ? mean : 1;
}

/* Return the largest divisor of world that is a valid number of ways. */
static uint32_t largest_divisor(uint64_t world)
{
    uint32_t divisor = PSTK__WAYS_MAX;
    while (world % divisor)
        divisor--;
    return divisor;
}

uint32_t pstk__interleave_advise(const struct pstk__interleave *interleave, uint64_t world)
{
    if (world > PSTK__WAYS_MAX)
        return largest_divisor(world);
    uint64_t times = (WAYS_WANTED + world / 2) / world; /* the multiple that is nearest to 48 */
    const uint64_t most = interleave->n / PSTK__WAY_LEAST / world;
    times = min_of(times, most);
    return (uint32_t)(times ? times * world : world);
}
