/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multi_size: batches of several sizes. There is a plan for each list of operations: outputs that
 * have several take the list of that number, and all others are the same in every plan. So a batch
 * is what a loader with that one list makes. The plan of size 0 is the loader's, and owns the
 * others; what is allocated at open fits the largest of each.
 */
#ifndef PSTK_MULTI_SIZE_H
#define PSTK_MULTI_SIZE_H

#include "sample/plan.h"

/* Return the plan of a size; p is that of size 0. */
static inline const struct pstk__plan *pstk__plan_of_size(const struct pstk__plan *p,
                                                          uint32_t size_index)
{
    return size_index == 0 ? p : p->others[size_index - 1];
}

/* Return which size a batch has, the same on every rank. index: of the batch in its epoch. */
uint32_t pstk__multi_size_at(const struct pstk__plan *p, uint64_t epoch, uint64_t index);
/* Bytes of the largest row of output i, as workers write it, and as it is handed out. */
uint64_t pstk__multi_size_row_size(const struct pstk__plan *p, uint32_t i);
uint64_t pstk__multi_size_final_size(const struct pstk__plan *p, uint32_t i);

#endif
