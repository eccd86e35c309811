/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variants: batches of several sizes. There is a plan for each list of operations: outputs that
 * have several take the list of that number, and all others are the same in every plan. So a batch
 * is what a loader with that one list makes. The plan of variant 0 is the loader's, and owns the
 * others; what is allocated at open fits the largest of each.
 *
 *   open: choose, locate (each plan) -> open -> share -> close
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

/* ---- for plan.c ------------------------------------------------------------------------------ */

/* Output i has its settings: take its list of p->variant as its ops. EINVAL: members contradict
 * each other, or those of an output before it. */
int pstk__variants_choose(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* Add the variant to the error of a plan that could not be opened. */
void pstk__variants_locate(const struct pstk__plan *p, struct pstk_error *err);
/* Open the others of variant 0. EINVAL: their images have other channels, or end otherwise. */
int pstk__variants_open(struct pstk__plan *p, const struct pstk_settings *s,
                        struct pstk_error *err);
/* Processes make rows for all of them. */
void pstk__variants_share(struct pstk__plan *p);
void pstk__variants_close(struct pstk__plan *p);

#endif
