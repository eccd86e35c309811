/* SPDX-License-Identifier: Apache-2.0 */
#include "record/axes.h"

#include "base/little.h"

#include <inttypes.h>
#include <stdio.h>

#define WRONG(...) (snprintf(text, 320, __VA_ARGS__), text)

int pstk__axes_reads(const struct pstk__schema *schema, uint32_t i)
{
    const struct pstk_field *field = &schema->fields[i];
    const int is_list = (pstk__field_traits(field->kind) & PSTK__TRAIT_LIST) != 0;
    return field->splits[0] || field->kind == PSTK_FIELD_RLE || (is_list && field->rows[0]);
}

/* Return the rows of an array whose only variable dimension is the first, or the items of a list.
 * The product of the other dimensions may overflow 64 bits; then pstk__value_check accepts only an
 * empty value. */
static uint64_t n_rows(const struct pstk_field *field, const struct pstk_value *value)
{
    uint64_t row = pstk_dtype_size(field->dtype);
    if (pstk__field_traits(field->kind) & PSTK__TRAIT_LIST)
        return pstk__get32(value->data);
    if (value->size == 0)
        return 0;
    for (uint32_t d = 1; d < field->n_dims; d++)
        row *= field->shape[d];
    return value->size / row;
}

/* Return element k of an array of integers; UINT64_MAX if it is negative. */
static uint64_t length_at(const struct pstk_field *field, const uint8_t *data, uint64_t k)
{
    const uint32_t size = pstk_dtype_size(field->dtype);
    const uint8_t *at = data + k * size;
    const int is_signed = field->dtype == PSTK_I8 || field->dtype == PSTK_I16 ||
                          field->dtype == PSTK_I32 || field->dtype == PSTK_I64;
    if (is_signed && at[size - 1] & 0x80)
        return UINT64_MAX;
    switch (size) {
    case 1:
        return at[0];
    case 2:
        return pstk__get16(at);
    case 4:
        return pstk__get32(at);
    default:
        return pstk__get64(at);
    }
}

static const char *check_rows(const struct pstk__schema *schema, const struct pstk_value *values,
                              uint32_t i, char text[320])
{
    const uint32_t first = (uint32_t)schema->links.axis[i];
    const uint64_t n = n_rows(&schema->fields[i], &values[i]);
    const uint64_t n_first = n_rows(&schema->fields[first], &values[first]);
    return n == n_first ? NULL
                        : WRONG("rows: value is %" PRIu64 "; must be %" PRIu64
                                ", as field %s has on the axis %s",
                                n, n_first, schema->fields[first].name, schema->fields[i].rows);
}

/* Check that the lengths are at least 0 and add up to the rows of the axis. The sum cannot
 * overflow: each length is compared with the rows that are left. */
static const char *check_split(const struct pstk__schema *schema, const struct pstk_value *values,
                               uint32_t i, char text[320])
{
    const struct pstk_field *field = &schema->fields[i];
    const uint32_t first = (uint32_t)schema->links.split[i];
    const uint64_t n = n_rows(&schema->fields[first], &values[first]),
                   n_lengths = n_rows(field, &values[i]);
    uint64_t sum = 0;
    for (uint64_t k = 0; k < n_lengths; k++) {
        const uint64_t length = length_at(field, values[i].data, k);
        if (length > n - sum)
            return WRONG("splits: lengths 0 to %" PRIu64
                         " are negative or add up to too many rows; must add up to %" PRIu64
                         ", the rows of field %s on the axis %s",
                         k, n, schema->fields[first].name, field->splits);
        sum += length;
    }
    return sum == n ? NULL
                    : WRONG("splits: sum is %" PRIu64 "; must be %" PRIu64
                            ", the rows of field %s on the axis %s",
                            sum, n, schema->fields[first].name, field->splits);
}

/* Check that a mask is as large as the image that it belongs to. */
static const char *check_sides(const struct pstk__schema *schema,
                               const struct pstk__field_view *views, uint32_t i, char text[320])
{
    const uint32_t of = (uint32_t)schema->links.of[i];
    return views[i].width == views[of].width && views[i].height == views[of].height
               ? NULL
               : WRONG("the mask has %u x %u pixels; must have %u x %u, as field %s has",
                       views[i].width, views[i].height, views[of].width, views[of].height,
                       schema->fields[of].name);
}

/* The runs of one RLE field of a record. */
struct runs {
    const struct pstk__schema *schema;
    const struct pstk_value *values;
    const struct pstk__field_view *views;
    uint32_t field;
};

/* Check one mask: its n runs add up to the pixels of its image. A mask of 0 runs is absent, and
 * accepted. */
static const char *check_mask(const struct runs *runs, uint64_t from, uint64_t n, char text[320])
{
    const uint32_t of = (uint32_t)runs->schema->links.of[runs->field];
    const uint8_t *data = runs->values[runs->field].data;
    const uint64_t n_pixels = (uint64_t)runs->views[of].width * runs->views[of].height;
    uint64_t sum = 0; /* fewer than 2^30 runs below 2^32: no overflow */
    for (uint64_t k = 0; k < n; k++)
        sum += pstk__get32(data + 4 * (from + k));
    return n == 0 || sum == n_pixels
               ? NULL
               : WRONG("runs %" PRIu64 " to %" PRIu64 ": sum is %" PRIu64 "; must be %" PRIu64
                       ", the pixels of field %s",
                       from, from + n - 1, sum, n_pixels, runs->schema->fields[of].name);
}

/* Check each mask of an RLE field. check_split has made sure that the lengths add up to the runs.
 */
static const char *check_rle(const struct runs *runs, char text[320])
{
    const int32_t by = runs->schema->links.split_by[runs->field];
    const char *wrong = NULL;
    uint64_t from = 0;
    if (by < 0)
        return check_mask(runs, 0, runs->values[runs->field].size / 4, text);
    const struct pstk_field *lengths = &runs->schema->fields[by];
    const uint64_t n = n_rows(lengths, &runs->values[by]);
    for (uint64_t k = 0; !wrong && k < n; k++) {
        const uint64_t length = length_at(lengths, runs->values[by].data, k);
        wrong = check_mask(runs, from, length, text);
        from += length;
    }
    return wrong;
}

const char *pstk__axes_check(const struct pstk__schema *schema, const struct pstk_value *values,
                             const struct pstk__field_view *views, uint32_t *field, char text[320])
{
    const char *wrong = NULL;
    for (uint32_t i = 0; schema->links.has_axes && !wrong && i < schema->n_fields; i++) {
        *field = i;
        if (schema->links.axis[i] >= 0)
            wrong = check_rows(schema, values, i, text);
    }
    for (uint32_t i = 0; schema->links.has_axes && !wrong && i < schema->n_fields; i++) {
        *field = i;
        if (schema->links.split[i] >= 0)
            wrong = check_split(schema, values, i, text);
    }
    for (uint32_t i = 0; schema->links.has_axes && !wrong && i < schema->n_fields; i++) {
        *field = i;
        if (schema->fields[i].kind == PSTK_FIELD_RLE)
            wrong = check_rle(&(const struct runs){schema, values, views, i}, text);
        else if (schema->fields[i].kind == PSTK_FIELD_MASK)
            wrong = check_sides(schema, views, i, text);
    }
    return wrong;
}
