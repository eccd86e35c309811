/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain: computes the samples and blocks that a rank of a windowed order reads and holds. Pure.
 *
 * C ways, R ranks, g = gcd(C, R). Position p is of way p modulo C and of rank p modulo R. So rank r
 * has samples of the C / g ways that are r modulo g, and R / g ranks share each way. If R divides C
 * each way has one rank, and each block is read once, apart from the blocks in which one way ends
 * and another rank's begins.
 */
#ifndef PSTK_EXPLAIN_H
#define PSTK_EXPLAIN_H

#include "order/windowed.h"

/* Smallest number of samples of a worthwhile way: four windows of the default size. */
#define PSTK__WAY_LEAST 1024u

struct pstk__interleave_share {
    uint64_t ways;     /* ways whose samples a rank has */
    uint64_t ranks;    /* ranks that share a way */
    uint64_t blocks;   /* largest number of blocks in a rank's windows at a time */
    uint64_t n_mixed;  /* samples in the windows of all ways together, from which the next sample
                          comes */
    double n_readings; /* estimate of the ranks that read a block, mean of all blocks; at least 1 */
};

uint64_t pstk__common_divisor(uint64_t a, uint64_t b);
/* Compute the share of a rank. interleave: settled; n of 0 gives all 0. world >= 1. */
void pstk__interleave_explain(const struct pstk__interleave *interleave, uint64_t world,
                              struct pstk__interleave_share *out);
/* Return a good number of ways for a planned number of ranks, near 48. It is a multiple of world
 * with PSTK__WAY_LEAST samples in each way if there is one, or else world; past PSTK__WAYS_MAX
 * ranks, the largest divisor of world. interleave->ways is not used. */
uint32_t pstk__interleave_advise(const struct pstk__interleave *interleave, uint64_t world);

#endif
