/* SPDX-License-Identifier: Apache-2.0 */
/* beta: draws random numbers of the symmetric beta distribution. Pure. The bits are the same on
 * every machine. */
#ifndef PSTK_BETA_H
#define PSTK_BETA_H

#include "base/random.h"

/*
 * Draw a number of Beta(alpha, alpha), alpha > 0, in [0, 1]. Always takes two numbers of 53 bits
 * and a word, and rejects none. The method is Devroye's, "Random variate generation in one line of
 * code", Winter Simulation Conference 1996: let T have Student's distribution of 2 alpha degrees of
 * freedom, made of two uniform numbers as in Bailey's polar method; then 1/2 + T / (2 sqrt(2 alpha
 * + T^2)) is Beta(alpha, alpha).
 */
double pstk__beta(struct pstk__random *random, double alpha);

#endif
