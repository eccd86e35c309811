/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chains: appends a MIX and its chains for a random operation:
 *
 *   begin -> (chain -> fixed operations, by pstk__sampled_ops_add) ... -> end
 */
#ifndef PSTK_CHAINS_H
#define PSTK_CHAINS_H

#include "augment/sampled_ops.h"

#define PSTK__MAX_CHAINS 16u
#define PSTK__MAX_CHAIN 16u /* operations */

/* Append a MIX: its mode, an enum pstk_chain_mode, and the weight of the original. Returns its
 * index. */
uint32_t pstk__chains_begin(struct pstk__sampled_ops *to, uint32_t mode, double weight);
/* Begin a chain of this weight; the operations appended next belong to it. */
void pstk__chains_add(struct pstk__sampled_ops *to, double weight);
/* Make all ops appended since begin, which returned `at`, the children of the MIX. */
void pstk__chains_end(struct pstk__sampled_ops *to, uint32_t at);
/* Return the arena bytes of a MIX, without those of its children. */
uint64_t pstk__chains_scratch(const struct pstk__largest *in, uint32_t channels);

/* Draw n weights, 1 to PSTK__MAX_CHAINS, of a symmetric Dirichlet distribution. Their sum is 1;
 * alpha is 0.01 to 100 (chains.c). */
void pstk__chains_weights(struct pstk__random *r, double alpha, uint32_t n, float *weights);

#endif
