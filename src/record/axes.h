/* SPDX-License-Identifier: Apache-2.0 */
/* axes: checks the fields of one record against each other: equal rows on an axis, lengths that
 * split rows, masks as large as their image. Pure. The writer calls it before it takes a record;
 * verify calls it after reading one. */
#ifndef PSTK_AXES_H
#define PSTK_AXES_H

#include "record/record.h"

/* Return 1 if the check reads the bytes of field i, not only their number. */
int pstk__axes_reads(const struct pstk__schema *schema, uint32_t i);
/* Check the values of a record against each other. values: one for each field, in plain bytes that
 * pstk__value_check accepts; data may be NULL if pstk__axes_reads is 0. views: width and height of
 * images. Returns NULL, or a phrase in `text` with the reason, and the field's number in *field. */
const char *pstk__axes_check(const struct pstk__schema *schema, const struct pstk_value *values,
                             const struct pstk__field_view *views, uint32_t *field, char text[320]);

#endif
