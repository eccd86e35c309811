/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow: whole numbers of a scalar field that are read as a dtype too narrow for the field's type:
 * int64 as int32. The field's side column proves at open that the dtype holds all values. Records
 * are checked again when they are read, because a column may be wrong.
 */
#ifndef PSTK_NARROW_H
#define PSTK_NARROW_H

#include "sample/plan.h"

/* Check that all values of output i's scalar field fit the output's dtype. The types prove it, or
 * the field's side column does, which is read whole; in a mixture, the column of each data set.
 * EINVAL: they do not fit, or nothing proves it; else the errors of reading a column. */
int pstk__narrow_check(const struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* Refuse a record whose value does not fit the dtype, although the column's values do. EBADMSG. */
int pstk__narrow_fail(const struct pstk__record *record, uint32_t field, uint32_t dtype,
                      struct pstk_error *err);

#endif
