/* SPDX-License-Identifier: Apache-2.0 */
#include "record/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the well-formed UTF-8 sequence at p (Unicode 15, table 3-7), 0 if there is none. */
static uint32_t sequence_size(const uint8_t *p, uint64_t left)
{
    uint8_t low = 0x80, high = 0xbf; /* range of the second byte */
    uint32_t n;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (p[0] == 0xe0)
        low = 0xa0; /* no overlong forms */
    else if (p[0] == 0xed)
        high = 0x9f; /* no surrogates */
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f; /* no code point over U+10FFFF */
    if (left < n || p[1] < low || p[1] > high)
        return 0;
    for (uint32_t i = 2; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

uint64_t pstk__utf8_end(const void *text, uint64_t size)
{
    const uint8_t *p = text;
    uint64_t i = 0;
    while (i < size) {
        uint64_t word;
        if (size - i >= 8 && (memcpy(&word, p + i, 8), !(word & 0x8080808080808080u))) {
            i += 8;
            continue;
        }
        uint32_t n = sequence_size(p + i, size - i);
        if (n == 0)
            return i;
        i += n;
    }
    return size;
}

static const char *check_utf8(const void *data, uint64_t size, char text[160])
{
    uint64_t end = pstk__utf8_end(data, size);
    if (end == size)
        return NULL;
    snprintf(text, 160, "not UTF-8 at byte %" PRIu64, end);
    return text;
}

/* Product of the dimensions times the element size, variable ones as `variable` says (NULL: 1).
 * UINT64_MAX when it does not fit. */
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

/* Several variable dimensions: the shape stands before the elements. */
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

static const char *check_ndarray(const struct pstk_field *field, const void *data, uint64_t size,
                                 char text[160])
{
    uint32_t n_variable = 0;
    for (uint32_t i = 0; i < field->n_dims; i++)
        n_variable += field->shape[i] == 0;
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
    switch (field->kind) {
    case PSTK_FIELD_UTF8:
        return check_utf8(data, size, text);
    case PSTK_FIELD_NDARRAY:
        return check_ndarray(field, data, size, text);
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
