/* SPDX-License-Identifier: Apache-2.0 */
/* axes: what the fields of one record must have in common: rows, lengths that split rows, masks as
 * large as their image. Pure. The writer calls it before it takes a record, verify after it has
 * read one. */
#ifndef PSTK_AXES_H
#define PSTK_AXES_H

#include "record/record.h"

/* 1: the check looks at the bytes of field i, not only at how many there are. */
int pstk__axes_reads(const struct pstk__schema *schema, uint32_t i);
/* Check the values of a record, one for each field: plain bytes, each right by pstk__value_check.
 * data may be NULL where pstk__axes_reads is 0. views: width and height of images. Returns NULL; or
 * what is wrong, as a phrase in `text`, with the number of the field in *field. */
const char *pstk__axes_check(const struct pstk__schema *schema, const struct pstk_value *values,
                             const struct pstk__field_view *views, uint32_t *field, char text[320]);

#endif
