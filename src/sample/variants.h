/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variants: batches of several sizes. There is a plan for each list of operations: outputs that
 * have several take the list of that number, and all others are the same in every plan. So a batch
 * is what a loader with that one list makes. The plan of variant 0 is the loader's, and owns the
 * others; what is allocated at open fits the largest of each.
 */
#ifndef PSTK_VARIANTS_H
#define PSTK_VARIANTS_H

#include "sample/plan.h"

/* Of variant 0: the plan of a variant. */
static inline const struct pstk__plan *pstk__plan_variant(const struct pstk__plan *p,
                                                          uint32_t variant)
{
    return variant == 0 ? p : p->others[variant - 1];
}

/* The variant of a batch, the same on every rank. index: of the batch in its epoch. */
uint32_t pstk__variants_at(const struct pstk__plan *p, uint64_t epoch, uint64_t index);
/* Bytes of the largest row of output i, as workers write it, and as it is handed out. */
uint64_t pstk__variants_row_size(const struct pstk__plan *p, uint32_t i);
uint64_t pstk__variants_final_size(const struct pstk__plan *p, uint32_t i);

#endif
