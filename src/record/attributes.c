/* SPDX-License-Identifier: Apache-2.0 */
#include "record/attributes.h"

#include "base/error.h"
#include "record/kind.h"

#include <stdio.h>
#include <string.h>

#define FAIL(field, i, fmt, ...)                                                                   \
    pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "fields[%u] \"%s\": " fmt, i, (field)->name,     \
               ##__VA_ARGS__)

static int name_char_ok(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

int pstk__attributes_name_ok(const char name[PSTK_MAX_NAME])
{
    size_t n = strnlen(name, PSTK_MAX_NAME);
    if (n == 0 || n == PSTK_MAX_NAME)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!name_char_ok(name[i]))
            return 0;
    return 1;
}

/* ---- a field by itself ----------------------------------------------------------------------- */

static int has_integers(const struct pstk_field *field)
{
    return field->dtype >= PSTK_U8 && field->dtype <= PSTK_I64;
}

/* Return 1 if only the first dimension is variable, so that the size gives the number of rows. */
static int has_rows(const struct pstk_field *field)
{
    if (!(pstk__field_traits(field->kind) & PSTK__TRAIT_ARRAY) || field->shape[0] != 0)
        return 0;
    for (uint32_t d = 1; d < field->n_dims; d++)
        if (field->shape[d] == 0)
            return 0;
    return 1;
}

/* Return the shape that the field's kind requires, for messages; NULL if the field has it or any
 * shape will do. */
static const char *shape_wanted(const struct pstk_field *field)
{
    const uint64_t *shape = field->shape;
    const uint32_t n = field->n_dims;
    switch (field->kind) {
    case PSTK_FIELD_BOXES:
        return n == 2 && shape[0] == 0 && shape[1] == 4 ? NULL : "0,4";
    case PSTK_FIELD_KEYPOINTS:
        return n == 3 && shape[0] == 0 && shape[1] > 0 && (shape[2] == 2 || shape[2] == 3)
                   ? NULL
                   : "0,k,3 or 0,k,2 (k > 0)";
    case PSTK_FIELD_POLYGONS:
        return n == 2 && shape[0] == 0 && shape[1] == 2 ? NULL : "0,2";
    case PSTK_FIELD_RLE:
        return n == 1 && shape[0] == 0 ? NULL : "0";
    default:
        return NULL;
    }
}

static int check_shape(const struct pstk_field *field, uint32_t i, struct pstk_error *err)
{
    const char *wanted = shape_wanted(field), *kind = pstk__field_kind_name(field->kind);
    if (wanted)
        return FAIL(field, i, "shape: value is of %u dimensions; must be %s for %s", field->n_dims,
                    wanted, kind);
    if (field->kind == PSTK_FIELD_RLE && field->dtype != PSTK_U32)
        return FAIL(field, i, "dtype: value is %s; must be u32 for rle",
                    pstk_dtype_name(field->dtype));
    if (field->coordinates == PSTK_COORDINATES_UNIT && has_integers(field))
        return FAIL(field, i,
                    "dtype: value is %s; must be f16, bf16, f32 or f64 for coordinates "
                    "unit",
                    pstk_dtype_name(field->dtype));
    return 0;
}

static int check_words(const struct pstk_field *field, uint32_t i, uint32_t traits,
                       struct pstk_error *err)
{
    if (traits & PSTK__TRAIT_BOX_FORMAT
            ? field->box_format < PSTK_BOX_FORMAT_XYXY || field->box_format > PSTK_BOX_FORMAT_CXCYWH
            : field->box_format != PSTK_BOX_FORMAT_NONE)
        return FAIL(field, i,
                    "form: value is %u; must be one of enum pstk_box_format for boxes, 0 for "
                    "others",
                    field->box_format);
    if (traits & PSTK__TRAIT_COORDINATES ? field->coordinates < PSTK_COORDINATES_PIXELS ||
                                               field->coordinates > PSTK_COORDINATES_UNIT
                                         : field->coordinates != PSTK_COORDINATES_NONE)
        return FAIL(field, i,
                    "coordinates: value is %u; must be one of enum pstk_coordinates for "
                    "boxes, keypoints and polygons, 0 for others",
                    field->coordinates);
    return 0;
}

static int check_axes(const struct pstk_field *field, uint32_t i, uint32_t traits,
                      struct pstk_error *err)
{
    if (field->rows[0] && !pstk__attributes_name_ok(field->rows))
        return FAIL(field, i,
                    "rows: value is \"%.*s\"; must be 1 to %d of the characters A-Z a-z "
                    "0-9 _ . -",
                    PSTK_MAX_NAME - 1, field->rows, PSTK_MAX_NAME - 1);
    if (field->rows[0] && !(traits & PSTK__TRAIT_LIST) && !has_rows(field))
        return FAIL(field, i,
                    "rows: value is %s; must be left out, because the field is neither a list nor "
                    "an array whose only variable dimension is the first",
                    field->rows);
    if (field->splits[0] &&
        (!pstk__attributes_name_ok(field->splits) || field->kind != PSTK_FIELD_NDARRAY ||
         field->n_dims != 1 || field->shape[0] != 0 || !has_integers(field)))
        return FAIL(field, i,
                    "splits: value is \"%.*s\"; must be the name of an axis, and left "
                    "out unless the field is an ndarray of integers of shape 0",
                    PSTK_MAX_NAME - 1, field->splits);
    return 0;
}

int pstk__attributes_check(const struct pstk_field *field, uint32_t i, struct pstk_error *err)
{
    const uint32_t traits = pstk__field_traits(field->kind);
    if (!(traits & PSTK__TRAIT_OF) != !field->of[0] ||
        (field->of[0] && !pstk__attributes_name_ok(field->of)))
        return FAIL(field, i,
                    "of: value is \"%.*s\"; must be the name of an image field for kinds "
                    "that belong to an image, and empty for %s",
                    PSTK_MAX_NAME - 1, field->of,
                    traits & PSTK__TRAIT_OF ? "others" : pstk__field_kind_name(field->kind));
    int r = check_words(field, i, traits, err);
    if (r == 0)
        r = check_shape(field, i, err);
    return r == 0 ? check_axes(field, i, traits, err) : r;
}

/* ---- fields among each other ----------------------------------------------------------------- */

/* The state while links are being found. */
struct linking {
    struct pstk__links *links;
    const struct pstk_field *fields;
    uint32_t n;
};

static int32_t find_image(const struct linking *linking, const char *name)
{
    for (uint32_t i = 0; i < linking->n; i++)
        if (linking->fields[i].kind == PSTK_FIELD_IMAGE &&
            strcmp(linking->fields[i].name, name) == 0)
            return (int32_t)i;
    return -1;
}

/* Return the number of the first field that has this axis, or -1. */
static int32_t find_axis(const struct linking *linking, const char *axis)
{
    for (uint32_t i = 0; i < linking->n; i++)
        if (strcmp(linking->fields[i].rows, axis) == 0)
            return (int32_t)i;
    return -1;
}

static int link_of(const struct linking *linking, uint32_t i, struct pstk_error *err)
{
    const struct pstk_field *field = &linking->fields[i];
    linking->links->of[i] = field->of[0] ? find_image(linking, field->of) : -1;
    return !field->of[0] || linking->links->of[i] >= 0
               ? 0
               : FAIL(field, i, "of: value is \"%s\"; must be the name of a field of kind image",
                      field->of);
}

static int link_split(const struct linking *linking, uint32_t i, struct pstk_error *err)
{
    const struct pstk_field *field = &linking->fields[i];
    struct pstk__links *links = linking->links;
    links->split[i] = field->splits[0] ? find_axis(linking, field->splits) : -1;
    if (!field->splits[0])
        return 0;
    if (links->split[i] < 0 || strcmp(field->rows, field->splits) == 0)
        return FAIL(field, i,
                    "splits: value is \"%s\"; must be the axis that `rows` of another field has",
                    field->splits);
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(linking->fields[k].splits, field->splits) == 0)
            return FAIL(field, i,
                        "splits: value is %s, which field %s splits; must be an axis that no other "
                        "field splits",
                        field->splits, linking->fields[k].name);
    for (uint32_t k = 0; k < linking->n; k++)
        if (strcmp(linking->fields[k].rows, field->splits) == 0)
            links->split_by[k] = (int32_t)i;
    return 0;
}

int pstk__attributes_link(struct pstk__links *links, const struct pstk_field *fields, uint32_t n,
                          struct pstk_error *err)
{
    const struct linking linking = {links, fields, n};
    int r = 0;
    links->has_axes = 0;
    for (uint32_t i = 0; i < PSTK_MAX_FIELDS; i++)
        links->of[i] = links->axis[i] = links->split[i] = links->split_by[i] = -1;
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        links->axis[i] = fields[i].rows[0] ? find_axis(&linking, fields[i].rows) : -1;
        links->has_axes |= fields[i].rows[0] || fields[i].kind == PSTK_FIELD_RLE ||
                           fields[i].kind == PSTK_FIELD_MASK;
        r = link_of(&linking, i, err);
        if (r == 0)
            r = link_split(&linking, i, err);
    }
    return r;
}

/* ---- text ------------------------------------------------------------------------------------ */

void pstk__attributes_text(const struct pstk_field *field, char *text, uint32_t size)
{
    const struct {
        const char *key, *value;
    } pairs[] = {
        {"of", field->of},
        {"rows", field->rows},
        {"splits", field->splits},
        {"form", field->box_format ? pstk__form_name(field->box_format) : ""},
        {"coordinates", field->coordinates ? pstk__coordinates_name(field->coordinates) : ""},
    };
    uint32_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0] && used < size; i++) {
        const int n = pairs[i].value[0] ? snprintf(text + used, size - used, " %s=%s", pairs[i].key,
                                                   pairs[i].value)
                                        : 0;
        used += n > 0 ? (uint32_t)n : 0;
    }
}
