/* SPDX-License-Identifier: Apache-2.0 */
/*
 * where: finds the samples whose value in a side column meets a condition. Reads the column once,
 * in order.
 */
#ifndef PSTK_WHERE_H
#define PSTK_WHERE_H

#include <penstock/format.h>
#include <penstock/subset.h>

/* Set the bits of the samples that a step of kind WHERE or BETWEEN takes. All bits[n / 64, rounded
 * up] are 0 before. EINVAL, ENOENT, EBADMSG, ENOMEM: see pstk_members_open. */
int pstk__where_mark(struct pstk_dataset *dataset, const struct pstk_subset *step, uint64_t n,
                     uint64_t *bits, struct pstk_error *err);

#endif
