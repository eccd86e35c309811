/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multi_size: batches of several sizes, with one plan for each list of operations. In plan k,
 * outputs with several lists take list k; all other outputs are the same in every plan. So a batch
 * equals that of a loader with this list alone. The plan of size 0 is the loader's, and owns the
 * others; memory that open allocates fits the largest size of each.
 */
#ifndef PSTK_MULTI_SIZE_H
#define PSTK_MULTI_SIZE_H

#include "sample/plan.h"

/* Return the plan of a size. p: the plan of size 0. */
static inline const struct pstk__plan *pstk__plan_of_size(const struct pstk__plan *p,
                                                          uint32_t size_index)
{
    return size_index == 0 ? p : p->others[size_index - 1];
}

/* Return the size index of a batch, the same on every rank. index: number of the batch in its
 * epoch. */
uint32_t pstk__multi_size_at(const struct pstk__plan *p, uint64_t epoch, uint64_t index);
/* Return the bytes of the largest row of output i: as workers write it; as it is handed out. */
uint64_t pstk__multi_size_row_size(const struct pstk__plan *p, uint32_t i);
uint64_t pstk__multi_size_final_size(const struct pstk__plan *p, uint32_t i);

#endif
