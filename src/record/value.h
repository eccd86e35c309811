/* SPDX-License-Identifier: Apache-2.0 */
/* value: checks the plain bytes of one field against its schema. Pure. The writer calls it before
 * it takes a value; verify calls it after reading one. */
#ifndef PSTK_VALUE_H
#define PSTK_VALUE_H

#include <penstock/format.h>

/* Check the size of scalars, the shape of arrays, the UTF-8 of texts and the items of lists; any
 * bytes and images are accepted. Returns NULL, or a phrase in `text` with the reason of a failure.
 */
const char *pstk__value_check(const struct pstk_field *field, const void *data, uint64_t size,
                              char text[160]);
/* Return the number of variable dimensions of an array field. */
uint32_t pstk__value_n_variable(const struct pstk_field *field);
/* Set the field's n_dims numbers of `shape`, for an array that pstk__value_check accepts. */
void pstk__value_shape(const struct pstk_field *field, const void *data, uint64_t size,
                       uint64_t *shape);

#endif
