/* SPDX-License-Identifier: Apache-2.0 */
#include "record/value.h"

#include "record/kind.h"
#include "record/list.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *check_utf8(const void *data, uint64_t size, char text[160])
{
    uint64_t end = pstk__utf8_end(data, size);
    if (end == size)
        return NULL;
    snprintf(text, 160, "not UTF-8 at byte %" PRIu64, end);
    return text;
}

/* Return the product of the dimensions and the element size. variable: the variable dimensions;
 * NULL: 1 each. UINT64_MAX if it overflows. */
static uint64_t array_size(const struct pstk_field *field, const uint64_t *variable)
{
    uint64_t size = pstk_dtype_size(field->dtype);
    for (uint32_t i = 0; i < field->n_dims; i++) {
        uint64_t n = field->shape[i] ? field->shape[i] : variable ? variable[i] : 1;
        if (__builtin_mul_overflow(size, n, &size))
            return UINT64_MAX;
    }
    return size;
}

/* Check an array of several variable dimensions: its shape precedes the elements. */
static const char *check_shaped(const struct pstk_field *field, const void *data, uint64_t size,
                                char text[160])
{
    uint64_t shape[PSTK_MAX_DIMS], head = field->n_dims * sizeof(uint64_t);
    if (size < head) {
        snprintf(text, 160, "%" PRIu64 " bytes, too few for its shape of %u dimensions", size,
                 field->n_dims);
        return text;
    }
    memcpy(shape, data, head);
    for (uint32_t i = 0; i < field->n_dims; i++) {
        if (field->shape[i] && field->shape[i] != shape[i]) {
            snprintf(text, 160, "dimension %u is %" PRIu64 ", the schema has %" PRIu64, i, shape[i],
                     field->shape[i]);
            return text;
        }
    }
    uint64_t expected = array_size(field, shape);
    if (expected == size - head)
        return NULL;
    snprintf(text, 160, "%" PRIu64 " bytes of elements, but its shape needs %" PRIu64, size - head,
             expected);
    return text;
}

uint32_t pstk__value_n_variable(const struct pstk_field *field)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < field->n_dims; i++)
        n += field->shape[i] == 0;
    return n;
}

static const char *check_ndarray(const struct pstk_field *field, const void *data, uint64_t size,
                                 char text[160])
{
    const uint32_t n_variable = pstk__value_n_variable(field);
    if (n_variable > 1)
        return check_shaped(field, data, size, text);
    uint64_t unit = array_size(field, NULL);
    if (n_variable == 1 ? unit != 0 && size % unit == 0 : size == unit)
        return NULL;
    snprintf(text, 160, "%" PRIu64 " bytes, not %s%" PRIu64, size,
             n_variable ? "a multiple of " : "", unit);
    return text;
}

const char *pstk__value_check(const struct pstk_field *field, const void *data, uint64_t size,
                              char text[160])
{
    const uint32_t traits = pstk__field_traits(field->kind);
    if (traits & PSTK__TRAIT_ARRAY)
        return check_ndarray(field, data, size, text);
    if (traits & PSTK__TRAIT_LIST)
        return pstk__list_check(field->kind, data, size, text);
    switch (field->kind) {
    case PSTK_FIELD_UTF8:
        return check_utf8(data, size, text);
    case PSTK_FIELD_SCALAR:
        if (size == pstk_dtype_size(field->dtype))
            return NULL;
        snprintf(text, 160, "%" PRIu64 " bytes; a %s has %u", size, pstk_dtype_name(field->dtype),
                 pstk_dtype_size(field->dtype));
        return text;
    default:
        return NULL;
    }
}

void pstk__value_shape(const struct pstk_field *field, const void *data, uint64_t size,
                       uint64_t *shape)
{
    const uint64_t unit = array_size(field, NULL);
    if (pstk__value_n_variable(field) > 1) {
        memcpy(shape, data, field->n_dims * sizeof *shape);
        return;
    }
    for (uint32_t i = 0; i < field->n_dims; i++)
        shape[i] = field->shape[i] ? field->shape[i] : size / unit;
}
