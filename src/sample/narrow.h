/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow: whole numbers of a scalar field that are read as a dtype that does not hold every value
 * of the field's: int64 as int32. The field's side column proves at open that it holds all that
 * there are. Records are compared with that when they are read, because a column may be wrong.
 */
#ifndef PSTK_NARROW_H
#define PSTK_NARROW_H

#include "sample/plan.h"

/* Check that all values of output i's field, a scalar, fit the output's dtype: the types say so, or
 * the field's side column, which is read whole; of a mixture that of each data set. EINVAL: they do
 * not, or nothing proves it; the results of reading a column. */
int pstk__narrow_check(const struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* Refuse a record whose value does not fit the dtype, against what the column says. EBADMSG. */
int pstk__narrow_fail(const struct pstk__record *record, uint32_t field, uint32_t dtype,
                      struct pstk_error *err);

#endif
