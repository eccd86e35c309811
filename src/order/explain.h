/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain: what a rank of a windowed order reads and holds, as numbers. Pure.
 *
 * C strands, R ranks, g = gcd(C, R). Position p is of strand p modulo C and of rank p modulo R, so
 * rank r has samples of the C / g strands that are r modulo g, and each strand is shared by R / g
 * ranks. Where R divides C each strand has one rank, and each block is read once, apart from the
 * blocks in which one strand ends and another rank's begins.
 */
#ifndef PSTK_EXPLAIN_H
#define PSTK_EXPLAIN_H

#include "order/windowed.h"

/* The fewest samples of a strand that are worth one: four windows of the default size. */
#define PSTK__STRAND_LEAST 1024u

struct pstk__weave_share {
    uint64_t strands;  /* that a rank has samples of */
    uint64_t ranks;    /* that share a strand */
    uint64_t blocks;   /* that lie in a rank's windows at a time, at most */
    uint64_t n_mixed;  /* samples in the windows of all strands together: what the next is of */
    double n_readings; /* ranks that read a block, mean of all blocks, about; at least 1 */
};

uint64_t pstk__common_divisor(uint64_t a, uint64_t b);
/* weave: settled; n of 0 gives all 0. world >= 1. */
void pstk__weave_explain(const struct pstk__weave *weave, uint64_t world,
                         struct pstk__weave_share *out);
/* The number of strands for a planned number of ranks, near 48: a multiple of world of which each
 * has PSTK__STRAND_LEAST samples if that can be, or else world; past PSTK__STRANDS_MAX ranks the
 * largest divisor of world. weave->strands does not matter. */
uint32_t pstk__weave_advise(const struct pstk__weave *weave, uint64_t world);

#endif
