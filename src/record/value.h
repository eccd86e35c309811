/* SPDX-License-Identifier: Apache-2.0 */
/* value: checks the plain bytes of one field against its schema. Pure. The writer calls it before
 * it takes a value, verify after it has read one. */
#ifndef PSTK_VALUE_H
#define PSTK_VALUE_H

#include <penstock/format.h>

/* Size of scalars, shape of arrays, UTF-8 of utf8, items of lists; bytes and images are always
 * right. Returns NULL, or what is wrong, as a phrase in `text`. */
const char *pstk__value_check(const struct pstk_field *field, const void *data, uint64_t size,
                              char text[160]);
/* Dimensions of an array's field that vary. */
uint32_t pstk__value_n_variable(const struct pstk_field *field);
/* Set the field's n_dims numbers of `shape`, for an array that pstk__value_check finds right. */
void pstk__value_shape(const struct pstk_field *field, const void *data, uint64_t size,
                       uint64_t *shape);

#endif
