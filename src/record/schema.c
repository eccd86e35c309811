/* SPDX-License-Identifier: Apache-2.0 */
#include "record/schema.h"

#include "base/codec.h"
#include "base/crc32c.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* ZSTD_minCLevel() and ZSTD_maxCLevel() of every zstd 1.x. */
#define LEVEL_MIN (-131072)
#define LEVEL_MAX 22

/* A value lies in one record, and that has at most 2^32-1 bytes. */
#define VALUE_MAX 0xffffffffull

static const char *const kind_names[] = {
    [PSTK_FIELD_BYTES] = "bytes",   [PSTK_FIELD_UTF8] = "utf8",       [PSTK_FIELD_IMAGE] = "image",
    [PSTK_FIELD_SCALAR] = "scalar", [PSTK_FIELD_NDARRAY] = "ndarray",
};

const char *pstk__field_kind_name(uint32_t kind)
{
    return kind >= PSTK_FIELD_BYTES && kind <= PSTK_FIELD_NDARRAY ? kind_names[kind] : "?";
}

uint32_t pstk__field_kind_parse(const char *name)
{
    for (uint32_t k = PSTK_FIELD_BYTES; k <= PSTK_FIELD_NDARRAY; k++)
        if (strcmp(kind_names[k], name) == 0)
            return k;
    return 0;
}

static int name_char_ok(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

static int name_ok(const char name[PSTK_MAX_NAME])
{
    size_t n = strnlen(name, PSTK_MAX_NAME);
    if (n == 0 || n == PSTK_MAX_NAME)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!name_char_ok(name[i]))
            return 0;
    return 1;
}

/* Bytes of an ndarray of fixed shape; 0 when a dimension is variable; UINT64_MAX when it is too
 * large for a record. */
static uint64_t shape_size(const struct pstk_field *f)
{
    uint64_t size = pstk_dtype_size(f->dtype);
    for (uint32_t d = 0; d < f->n_dims; d++) {
        if (f->shape[d] == 0)
            return 0;
        if (f->shape[d] > VALUE_MAX / size)
            return UINT64_MAX;
        size *= f->shape[d];
    }
    return size;
}

static int check_shape(const struct pstk_field *f, uint32_t i, struct pstk_error *err)
{
    uint32_t is_array = f->kind == PSTK_FIELD_NDARRAY;
    uint32_t has_dtype = is_array || f->kind == PSTK_FIELD_SCALAR;
    if (has_dtype ? pstk_dtype_size(f->dtype) == 0 : f->dtype != 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": dtype %u does not go with kind %s: set one of enum "
                          "pstk_dtype for scalar and ndarray, 0 for the others",
                          i, f->name, f->dtype, kind_names[f->kind]);
    if (is_array ? f->n_dims < 1 || f->n_dims > PSTK_MAX_DIMS : f->n_dims != 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": n_dims is %u; an ndarray has 1 to %d, the others 0",
                          i, f->name, f->n_dims, PSTK_MAX_DIMS);
    for (uint32_t d = 0; d < f->n_dims; d++)
        if (f->shape[d] > VALUE_MAX)
            return pstk__fail(
                err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                "fields[%u] \"%s\": shape[%u] is %llu, over the 2^32-1 bytes of a record", i,
                f->name, d, (unsigned long long)f->shape[d]);
    if (is_array && shape_size(f) == UINT64_MAX)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": shape has more than the 2^32-1 bytes of a record", i,
                          f->name);
    return 0;
}

static int check_codec(const struct pstk_field *f, uint32_t i, struct pstk_error *err)
{
    if (!pstk__codec_known(f->codec))
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": codec %u (%s) is not supported by this version", i,
                          f->name, f->codec, pstk__codec_name(f->codec));
    if (f->kind == PSTK_FIELD_SCALAR && f->codec != PSTK_CODEC_NONE)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": a scalar has no codec; set codec to none", i,
                          f->name);
    if (f->codec == PSTK_CODEC_PLANES && f->kind != PSTK_FIELD_IMAGE)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": the codec planes is for images", i, f->name);
    if (f->codec == PSTK_CODEC_PLANES && (f->codec_level < 0 || f->codec_level > 1))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": codec_level is %d; planes has 0 (all) and 1 (only "
                          "what can be given back byte for byte)",
                          i, f->name, f->codec_level);
    if (f->codec_level < LEVEL_MIN || f->codec_level > LEVEL_MAX)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": codec_level is %d; zstd has %d to %d, 0 means 3", i,
                          f->name, f->codec_level, LEVEL_MIN, LEVEL_MAX);
    return 0;
}

static int check_field(const struct pstk_field *f, uint32_t i, struct pstk_error *err)
{
    if (!name_ok(f->name))
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "fields[%u]: the name \"%.*s\" is no field name: 1 to %d of the characters "
            "A-Z a-z 0-9 _ . -",
            i, PSTK_MAX_NAME - 1, f->name, PSTK_MAX_NAME - 1);
    if (f->kind < PSTK_FIELD_BYTES || f->kind > PSTK_FIELD_NDARRAY)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": kind %u is none of enum pstk_field_kind", i, f->name,
                          f->kind);
    if (f->reserved != 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields[%u] \"%s\": reserved is %u, it must be 0", i, f->name,
                          f->reserved);
    int r = check_shape(f, i, err);
    return r < 0 ? r : check_codec(f, i, err);
}

/* Copies only what means something, so that equal schemas are equal bytes. */
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
}

/* Bytes of each value of a field, 0 where they vary. check_shape saw to it that they fit. */
static uint32_t plain_size(const struct pstk_field *f)
{
    if (f->kind == PSTK_FIELD_SCALAR)
        return pstk_dtype_size(f->dtype);
    return f->kind == PSTK_FIELD_NDARRAY ? (uint32_t)shape_size(f) : 0;
}

/* At most 16 + 64 * 4096 bytes: far from overflow. */
static void derive_layout(struct pstk__schema *s)
{
    s->n_entries = 0;
    for (uint32_t i = 0; i < s->n_fields; i++) {
        const uint32_t size = plain_size(&s->fields[i]);
        s->plain_size[i] = size;
        s->fixed_size[i] =
            size <= PSTK__FIXED_MAX && s->fields[i].codec == PSTK_CODEC_NONE ? size : 0;
        s->entry[i] = s->fixed_size[i] ? -1 : (int32_t)s->n_entries++;
    }
    s->head_size = PSTK__RECORD_HEAD + s->n_entries * PSTK__RECORD_ENTRY;
    for (uint32_t i = 0; i < s->n_fields; i++) {
        if (s->fixed_size[i] == 0)
            continue;
        s->fixed_offset[i] = s->head_size;
        s->head_size += s->fixed_size[i];
    }
}

static uint32_t crc_text(uint32_t crc, const char *text)
{
    return pstk__crc32c(crc, text, strlen(text));
}

static uint32_t field_crc(uint32_t crc, const struct pstk_field *f)
{
    crc = crc_text(crc_text(crc, f->name), " ");
    crc = crc_text(crc_text(crc, pstk__field_kind_name(f->kind)), " ");
    crc = crc_text(crc_text(crc, f->dtype ? pstk_dtype_name(f->dtype) : "-"), " ");
    crc = crc_text(crc_text(crc, pstk__codec_name(f->codec)), " ");
    if (f->n_dims == 0)
        crc = crc_text(crc, "-");
    for (uint32_t d = 0; d < f->n_dims; d++) {
        char text[24];
        snprintf(text, sizeof text, d ? ",%llu" : "%llu", (unsigned long long)f->shape[d]);
        crc = crc_text(crc, text);
    }
    return crc_text(crc, "\n");
}

int pstk__schema_init(struct pstk__schema *s, const struct pstk_field *fields, uint32_t n_fields,
                      struct pstk_error *err)
{
    memset(s, 0, sizeof *s);
    if (!fields || n_fields < 1 || n_fields > PSTK_MAX_FIELDS)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "n_fields is %u; a schema has 1 to %d fields", n_fields, PSTK_MAX_FIELDS);
    for (uint32_t i = 0; i < n_fields; i++) {
        int r = check_field(&fields[i], i, err);
        if (r < 0)
            return r;
        if (pstk__schema_find(s, fields[i].name) >= 0)
            return pstk__fail(
                err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                "fields[%u]: there is a field named \"%s\" before it; names are unique", i,
                fields[i].name);
        copy_field(&s->fields[i], &fields[i]);
        s->n_fields = i + 1;
    }
    derive_layout(s);
    for (uint32_t i = 0; i < n_fields; i++)
        s->crc = field_crc(s->crc, &s->fields[i]);
    return 0;
}

int pstk__schema_find(const struct pstk__schema *s, const char *name)
{
    for (uint32_t i = 0; i < s->n_fields; i++)
        if (strcmp(s->fields[i].name, name) == 0)
            return (int)i;
    return -1;
}

void pstk__schema_names(const struct pstk__schema *s, char *text, uint32_t size)
{
    uint32_t used = 0;
    if (size == 0)
        return;
    text[0] = 0;
    for (uint32_t i = 0; i < s->n_fields && used < size; i++) {
        int n = snprintf(text + used, size - used, "%s%s", i ? ", " : "", s->fields[i].name);
        used += n > 0 ? (uint32_t)n : 0;
    }
}
