/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weigh: computes integer weights for the members of a subset, from a side column, from a list, or
 * so that all classes come equally often.
 */
#ifndef PSTK_WEIGH_H
#define PSTK_WEIGH_H

#include "order/subset.h"

#include <penstock/format.h>

/* Write the weight of each index of the subset to weights[subset->n]. The largest weight becomes
 * 2^bits; a smaller one is scaled and rounded down, but to at least 1 unless it is 0. `step` is of
 * kind WEIGHTED or BALANCED. EINVAL, ENOENT, EBADMSG, ENOMEM: see pstk_members_open. */
int pstk__weigh(struct pstk_dataset *dataset, const struct pstk_subset *step,
                const struct pstk__subset *subset, uint32_t bits, uint64_t *weights,
                struct pstk_error *err);

#endif
