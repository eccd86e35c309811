/* SPDX-License-Identifier: Apache-2.0 */
#include "record/schema.h"

#include "base/codec.h"
#include "base/crc32c.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* The values of ZSTD_minCLevel() and ZSTD_maxCLevel() in every zstd 1.x. */
#define LEVEL_MIN (-131072)
#define LEVEL_MAX 22

/* Return the bytes of an ndarray of fixed shape; 0 if a dimension is variable; UINT64_MAX if it is
 * too large for a record. */
static uint64_t shape_size(const struct pstk_field *field)
{
    uint64_t size = pstk_dtype_size(field->dtype);
    for (uint32_t d = 0; d < field->n_dims; d++) {
        if (field->shape[d] == 0)
            return 0;
        if (field->shape[d] > PSTK__MAX_VALUE_SIZE / size)
            return UINT64_MAX;
        size *= field->shape[d];
    }
    return size;
}

static int check_shape(const struct pstk_field *field, uint32_t i, struct pstk_error *err)
{
    uint32_t is_array = pstk__field_traits(field->kind) & PSTK__TRAIT_ARRAY;
    uint32_t has_dtype = is_array || field->kind == PSTK_FIELD_SCALAR;
    if (has_dtype ? pstk_dtype_size(field->dtype) == 0 : field->dtype != 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": dtype: value is %u with kind %s; must be one of enum "
                          "pstk_dtype for scalars and arrays, 0 for the others",
                          i, field->name, field->dtype, pstk__field_kind_name(field->kind));
    if (is_array ? field->n_dims < 1 || field->n_dims > PSTK_MAX_DIMS : field->n_dims != 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": n_dims: value is %u; must be from 1 to %d for "
                          "arrays, 0 for the others",
                          i, field->name, field->n_dims, PSTK_MAX_DIMS);
    for (uint32_t d = 0; d < field->n_dims; d++)
        if (field->shape[d] > PSTK__MAX_VALUE_SIZE)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "fields[%u] \"%s\": shape[%u]: value is %llu; must be at most "
                              "2^32-1, the bytes of a record",
                              i, field->name, d, (unsigned long long)field->shape[d]);
    if (is_array && shape_size(field) == UINT64_MAX)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "fields[%u] \"%s\": shape has more than the 2^32-1 bytes that a record may have", i,
            field->name);
    return 0;
}

static int check_codec(const struct pstk_field *field, uint32_t i, struct pstk_error *err)
{
    if (!pstk__codec_known(field->codec))
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": codec: value is %u (%s); must be a codec that this "
                          "version supports",
                          i, field->name, field->codec, pstk__codec_name(field->codec));
    const uint32_t of_images = PSTK__TRAIT_LIST | PSTK__TRAIT_IMAGES;
    const int is_list_of_images = (pstk__field_traits(field->kind) & of_images) == of_images;
    if ((field->kind == PSTK_FIELD_SCALAR || is_list_of_images) && field->codec != PSTK_CODEC_NONE)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": codec is set; must be none for a %s", i, field->name,
                          is_list_of_images ? "list of images" : "scalar");
    if (field->codec == PSTK_CODEC_PLANES && field->kind != PSTK_FIELD_IMAGE)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": codec: value is planes; must be none or zstd, "
                          "because the field is not an image",
                          i, field->name);
    if (field->codec == PSTK_CODEC_PLANES && (field->codec_level < 0 || field->codec_level > 1))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": codec_level: value is %d; must be 0 (every JPEG) or "
                          "1 (only JPEGs that can be restored byte for byte) for planes",
                          i, field->name, field->codec_level);
    if (field->codec_level < LEVEL_MIN || field->codec_level > LEVEL_MAX)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": codec_level: value is %d; must be from %d to %d for "
                          "zstd (0 means 3)",
                          i, field->name, field->codec_level, LEVEL_MIN, LEVEL_MAX);
    return 0;
}

static int check_field(const struct pstk_field *field, uint32_t i, struct pstk_error *err)
{
    if (!pstk__attributes_name_ok(field->name))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u]: name: value is \"%.*s\"; must be 1 to %d of the characters "
                          "A-Z a-z 0-9 _ . -",
                          i, PSTK_MAX_NAME - 1, field->name, PSTK_MAX_NAME - 1);
    if (!pstk__field_kind_known(field->kind))
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "fields[%u] \"%s\": kind: value is %u; must be one of enum pstk_field_kind", i,
            field->name, field->kind);
    if (field->reserved != 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": reserved: value is %u; must be 0", i, field->name,
                          field->reserved);
    int r = check_shape(field, i, err);
    if (r == 0)
        r = pstk__attributes_check(field, i, err);
    return r < 0 ? r : check_codec(field, i, err);
}

/* Copy only the bytes that carry meaning, so that equal schemas are equal byte by byte. */
static void copy_field(struct pstk_field *to, const struct pstk_field *from)
{
    memset(to, 0, sizeof *to);
    memcpy(to->name, from->name, strnlen(from->name, PSTK_MAX_NAME - 1));
    to->kind = from->kind;
    to->dtype = from->dtype;
    to->codec = from->codec;
    to->codec_level = from->codec_level;
    to->n_dims = from->n_dims;
    memcpy(to->shape, from->shape, from->n_dims * sizeof from->shape[0]);
    memcpy(to->of, from->of, strnlen(from->of, PSTK_MAX_NAME - 1));
    memcpy(to->rows, from->rows, strnlen(from->rows, PSTK_MAX_NAME - 1));
    memcpy(to->splits, from->splits, strnlen(from->splits, PSTK_MAX_NAME - 1));
    to->box_format = from->box_format;
    to->coordinates = from->coordinates;
}

/* Return the bytes of each value of a field; 0 if they vary. check_shape has made sure that they
 * fit. */
static uint32_t plain_size(const struct pstk_field *field)
{
    if (field->kind == PSTK_FIELD_SCALAR)
        return pstk_dtype_size(field->dtype);
    return pstk__field_traits(field->kind) & PSTK__TRAIT_ARRAY ? (uint32_t)shape_size(field) : 0;
}

/* A head has at most 16 + 64 * 4096 bytes and 15 of padding: no overflow. */
static void derive_layout(struct pstk__schema *schema)
{
    schema->n_entries = 0;
    for (uint32_t i = 0; i < schema->n_fields; i++) {
        const uint32_t size = plain_size(&schema->fields[i]);
        schema->plain_size[i] = size;
        schema->fixed_size[i] =
            size <= PSTK__FIXED_MAX && schema->fields[i].codec == PSTK_CODEC_NONE ? size : 0;
        schema->entry[i] = schema->fixed_size[i] ? -1 : (int32_t)schema->n_entries++;
    }
    schema->fixed_end = PSTK__RECORD_HEAD + schema->n_entries * PSTK__RECORD_ENTRY;
    for (uint32_t i = 0; i < schema->n_fields; i++) {
        if (schema->fixed_size[i] == 0)
            continue;
        schema->fixed_offset[i] = schema->fixed_end;
        schema->fixed_end += schema->fixed_size[i];
    }
    schema->head_size = (uint32_t)pstk__record_aligned(schema->fixed_end);
}

static uint32_t crc_text(uint32_t crc, const char *text)
{
    return pstk__crc32c(crc, text, strlen(text));
}

static uint32_t field_crc(uint32_t crc, const struct pstk_field *field)
{
    char attributes[PSTK__ATTRIBUTES_TEXT];
    crc = crc_text(crc_text(crc, field->name), " ");
    crc = crc_text(crc_text(crc, pstk__field_kind_name(field->kind)), " ");
    crc = crc_text(crc_text(crc, field->dtype ? pstk_dtype_name(field->dtype) : "-"), " ");
    crc = crc_text(crc_text(crc, pstk__codec_name(field->codec)), " ");
    if (field->n_dims == 0)
        crc = crc_text(crc, "-");
    for (uint32_t d = 0; d < field->n_dims; d++) {
        char text[24];
        snprintf(text, sizeof text, d ? ",%llu" : "%llu", (unsigned long long)field->shape[d]);
        crc = crc_text(crc, text);
    }
    pstk__attributes_text(field, attributes, sizeof attributes);
    return crc_text(crc_text(crc, attributes), "\n");
}

int pstk__schema_init(struct pstk__schema *schema, const struct pstk_field *fields,
                      uint32_t n_fields, struct pstk_error *err)
{
    memset(schema, 0, sizeof *schema);
    if (!fields || n_fields < 1 || n_fields > PSTK_MAX_FIELDS)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "n_fields: value is %u; must be from 1 to %d", n_fields, PSTK_MAX_FIELDS);
    for (uint32_t i = 0; i < n_fields; i++) {
        int r = check_field(&fields[i], i, err);
        if (r < 0)
            return r;
        if (pstk__schema_find(schema, fields[i].name) >= 0)
            return pstk__fail(
                err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                "fields[%u]: name: value is \"%s\", which a field before it has; must be unique", i,
                fields[i].name);
        copy_field(&schema->fields[i], &fields[i]);
        schema->n_fields = i + 1;
    }
    const int r = pstk__attributes_link(&schema->links, schema->fields, n_fields, err);
    if (r < 0)
        return r;
    derive_layout(schema);
    for (uint32_t i = 0; i < n_fields; i++)
        schema->crc = field_crc(schema->crc, &schema->fields[i]);
    return 0;
}

int pstk__schema_find(const struct pstk__schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->n_fields; i++)
        if (strcmp(schema->fields[i].name, name) == 0)
            return (int)i;
    return -1;
}

void pstk__schema_names(const struct pstk__schema *schema, char *text, uint32_t size)
{
    uint32_t used = 0;
    if (size == 0)
        return;
    text[0] = 0;
    for (uint32_t i = 0; i < schema->n_fields && used < size; i++) {
        int n = snprintf(text + used, size - used, "%s%s", i ? ", " : "", schema->fields[i].name);
        used += n > 0 ? (uint32_t)n : 0;
    }
}
