/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_mds: writes shards and index.json of MosaicML Streaming, format version 2, without
 * compression and hashes:
 *
 *   shard   u32 n; u32 offset[n + 1]; the configuration as JSON; the samples
 *   sample  u32 sizes of the columns whose size varies; all columns
 *
 * Columns are sorted by name. A shard begins with the offsets of its samples, so the samples are
 * written to a file of their own first. Fields have these encodings:
 *
 *   images           jpeg, or png if none is a JPEG
 *   masks            png
 *   lists of them    list[jpeg], list[png]
 *   texts            str
 *   lists of texts   json
 *   bytes            bytes
 *   i64              int
 *   other scalars    their dtype
 *   arrays           ndarray:DTYPE:SHAPE, or ndarray:DTYPE
 */
#include "base/error.h"
#include "base/little.h"
#include "export/array.h"
#include "export/export.h"
#include "export/image_items.h"
#include "export/json_value.h"
#include "export/shards.h"
#include "record/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPOOL ".tmp-samples" /* file of the open shard's samples */
#define ENCODING_SIZE 128    /* bytes of "ndarray:", a dtype, and 8 numbers of at most 10 digits */

struct column {
    uint32_t field; /* number among the export's fields */
    char encoding[ENCODING_SIZE];
    uint64_t size; /* bytes of a value; 0: it varies */
};

struct mds {
    struct pstk__export *export; /* borrowed */
    struct column columns[PSTK_MAX_FIELDS];
    struct pstk__out_file spool; /* samples of the open shard */
    struct pstk__shards shards;  /* shards.n_samples: samples in the open shard */
    struct pstk__bytes sizes;    /* u64 size of each sample in the spool; owned */
    struct pstk__bytes config;   /* configuration, the same in each shard; owned */
    struct pstk__bytes sample;   /* a sample in the form of a shard; owned */
    struct pstk__bytes head;     /* head of a shard; owned */
    struct pstk__bytes index;    /* objects of the shards so far; owned */
};

/* ---- columns --------------------------------------------------------------------------------- */

/* Return 1 if the encodings of the field's values are known and none is JPEG. */
static int has_no_jpeg(const struct pstk__export *e, uint32_t i)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < sizeof e->stats[i].n_encoding / sizeof e->stats[i].n_encoding[0]; k++)
        n += e->stats[i].n_encoding[k];
    return n > 0 && e->stats[i].n_encoding[PSTK_ENCODING_JPEG] == 0;
}

static const char *refuse(const struct pstk__export *e, uint32_t i)
{
    return e->fields[i].kind == PSTK_FIELD_BYTES_LIST
               ? "is a list of bytes, for which MDS has no encoding"
               : NULL;
}

static void array_column(struct column *column, const struct pstk_field *field)
{
    const int is_fixed = pstk__value_n_variable(field) == 0;
    size_t n = (size_t)snprintf(column->encoding, ENCODING_SIZE, "ndarray:%s",
                                pstk__array_dtype_name(field->dtype));
    column->size = is_fixed ? pstk_dtype_size(field->dtype) : 0;
    for (uint32_t i = 0; is_fixed && i < field->n_dims && n < ENCODING_SIZE; i++) {
        n += (size_t)snprintf(column->encoding + n, ENCODING_SIZE - n, "%s%llu", i ? "," : ":",
                              (unsigned long long)field->shape[i]);
        column->size *= field->shape[i];
    }
}

static const char *encoding_of(const struct pstk__export *e, uint32_t i)
{
    switch (e->fields[i].kind) {
    case PSTK_FIELD_IMAGE:
        return has_no_jpeg(e, i) ? "png" : "jpeg"; /* Pillow opens either encoding in both */
    case PSTK_FIELD_MASK:
        return "png";
    case PSTK_FIELD_IMAGE_LIST:
        return "list[jpeg]"; /* either encoding here too */
    case PSTK_FIELD_MASK_LIST:
        return "list[png]";
    case PSTK_FIELD_UTF8:
        return "str";
    case PSTK_FIELD_UTF8_LIST:
        return "json";
    case PSTK_FIELD_SCALAR:
        return e->fields[i].dtype == PSTK_I64 ? "int" : pstk__array_dtype_name(e->fields[i].dtype);
    default:
        return "bytes";
    }
}

static int by_name(const void *a, const void *b)
{
    const struct pstk_field *const *first = a, *const *second = b;
    return strcmp((*first)->name, (*second)->name);
}

static void make_columns(struct mds *mds)
{
    const struct pstk__export *e = mds->export;
    const struct pstk_field *sorted[PSTK_MAX_FIELDS];
    for (uint32_t i = 0; i < e->n_fields; i++)
        sorted[i] = &e->fields[i];
    qsort(sorted, e->n_fields, sizeof *sorted, by_name);
    for (uint32_t i = 0; i < e->n_fields; i++) {
        struct column *column = &mds->columns[i];
        const struct pstk_field *field = sorted[i];
        column->field = (uint32_t)(field - e->fields);
        if (pstk__array_is(field) && field->kind != PSTK_FIELD_SCALAR) {
            array_column(column, field);
            continue;
        }
        snprintf(column->encoding, ENCODING_SIZE, "%s", encoding_of(e, column->field));
        column->size = field->kind == PSTK_FIELD_SCALAR ? pstk_dtype_size(field->dtype) : 0;
    }
}

/* Append the members with which a shard's configuration and its object in the index begin. */
static void put_columns(const struct mds *mds, struct pstk__bytes *to)
{
    const uint32_t n = mds->export->n_fields;
    pstk__bytes_text(to, "{\"column_encodings\":[");
    for (uint32_t i = 0; i < n; i++)
        pstk__bytes_format(to, "%s\"%s\"", i ? "," : "", mds->columns[i].encoding);
    pstk__bytes_text(to, "],\"column_names\":[");
    for (uint32_t i = 0; i < n; i++)
        pstk__bytes_format(to, "%s\"%s\"", i ? "," : "",
                           mds->export->fields[mds->columns[i].field].name);
    pstk__bytes_text(to, "],\"column_sizes\":[");
    for (uint32_t i = 0; i < n; i++)
        if (mds->columns[i].size)
            pstk__bytes_format(to, "%s%llu", i ? "," : "",
                               (unsigned long long)mds->columns[i].size);
        else
            pstk__bytes_text(to, i ? ",null" : "null");
    pstk__bytes_text(to, "],\"compression\":null,\"format\":\"mds\",\"hashes\":[],");
}

/* ---- samples --------------------------------------------------------------------------------- */

static void put_u32(struct pstk__bytes *to, uint64_t value)
{
    uint8_t bytes[4];
    pstk__put32(bytes, (uint32_t)value);
    pstk__bytes_put(to, bytes, sizeof bytes);
}

/* Append an array of variable shape: a byte that holds the number of dimensions and a width, the
 * dimensions (2^width bytes each), the elements. */
static void put_array(struct pstk__bytes *to, const struct pstk__array *array)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < array->n_dims; i++)
        most = array->shape[i] > most ? array->shape[i] : most;
    const uint32_t width = most < 1u << 8 ? 0 : most < 1u << 16 ? 1 : most <= UINT32_MAX ? 2 : 3;
    const uint8_t head = (uint8_t)(array->n_dims << 2 | width);
    pstk__bytes_put(to, &head, 1);
    for (uint32_t i = 0; i < array->n_dims; i++) {
        uint8_t bytes[8];
        pstk__put64(bytes, array->shape[i]);
        pstk__bytes_put(to, bytes, 1u << width);
    }
    pstk__bytes_put(to, array->data, array->n * pstk_dtype_size(array->dtype));
}

/* Append a list: u32 0, u32 n, u32 sizes, the items. */
static int put_items(struct mds *mds, uint32_t kind, const struct pstk__export_value *value,
                     struct pstk_error *err)
{
    struct pstk__image_items items;
    const void *data;
    uint64_t size;
    int r = 0;
    pstk__image_items_begin(&items, kind, value);
    const uint32_t n = items.list.n;
    put_u32(&mds->sample, 0);
    put_u32(&mds->sample, n);
    const uint64_t sizes = mds->sample.size;
    pstk__bytes_zeros(&mds->sample, 4 * (uint64_t)n);
    while (r == 0 && items.list.i < n) {
        const uint64_t at = sizes + 4 * (uint64_t)items.list.i;
        r = pstk__image_items_next(&items, &data, &size, err);
        if (r == 0)
            pstk__bytes_put(&mds->sample, data, size);
        if (r == 0 && !mds->sample.failed)
            pstk__put32(mds->sample.data + at, (uint32_t)size);
    }
    pstk__image_items_end(&items);
    mds->export->result.n_encoded += items.n_encoded;
    return r;
}

static int put_value(struct mds *mds, const struct column *column,
                     const struct pstk__export_value *value, struct pstk_error *err)
{
    const struct pstk_field *field = &mds->export->fields[column->field];
    struct pstk__array array;
    if (field->kind == PSTK_FIELD_IMAGE_LIST || field->kind == PSTK_FIELD_MASK_LIST)
        return put_items(mds, field->kind, value, err);
    if (field->kind == PSTK_FIELD_UTF8_LIST) {
        pstk__json_texts(&mds->sample, value->data, value->size);
    } else if (pstk__array_is(field) && !column->size) {
        pstk__array_of(&array, field, value->data, value->size);
        put_array(&mds->sample, &array);
    } else {
        pstk__bytes_put(&mds->sample, value->data, value->size);
    }
    return 0;
}

/* Write a sample to mds->sample. */
static int encode(struct mds *mds, const struct pstk__export_sample *sample, struct pstk_error *err)
{
    const uint32_t n = mds->export->n_fields;
    struct pstk__bytes *to = &mds->sample;
    uint32_t n_variable = 0;
    int r = 0;
    pstk__bytes_clear(to);
    for (uint32_t i = 0; i < n; i++)
        n_variable += mds->columns[i].size == 0;
    pstk__bytes_zeros(to, 4 * (uint64_t)n_variable);
    for (uint32_t i = 0, at = 0; r == 0 && i < n; i++) {
        const uint64_t begin = to->size;
        r = put_value(mds, &mds->columns[i], &sample->values[mds->columns[i].field], err);
        if (mds->columns[i].size || to->failed)
            continue;
        pstk__put32(to->data + at, (uint32_t)(to->size - begin));
        at += 4;
    }
    return r == 0 && to->failed ? pstk__export_no_memory(mds->export, err) : r;
}

/* ---- shards ---------------------------------------------------------------------------------- */

/* Return the bytes of a shard before its samples. */
static uint64_t head_size(const struct mds *mds, uint64_t n_samples)
{
    return 4 + 4 * (n_samples + 1) + mds->config.size;
}

static void put_head(struct mds *mds, uint64_t n)
{
    uint64_t offset = head_size(mds, n);
    pstk__bytes_clear(&mds->head);
    put_u32(&mds->head, n);
    put_u32(&mds->head, offset);
    for (uint64_t i = 0; i < n; i++) {
        offset += pstk__get64(mds->sizes.data + 8 * i);
        put_u32(&mds->head, offset); /* below 2^32, as add checks */
    }
    pstk__bytes_put(&mds->head, mds->config.data, mds->config.size);
}

/* Append a shard's object to the index. */
static void put_index(struct mds *mds, const char *name, uint64_t size, uint64_t n_samples)
{
    struct pstk__bytes *to = &mds->index;
    pstk__bytes_text(to, to->size ? "," : "");
    put_columns(mds, to);
    pstk__bytes_format(to, "\"raw_data\":{\"basename\":\"%s\",\"bytes\":%llu,\"hashes\":{}},", name,
                       (unsigned long long)size);
    pstk__bytes_format(to, "\"samples\":%llu,\"size_limit\":%llu,\"version\":2,\"zip_data\":null}",
                       (unsigned long long)n_samples, (unsigned long long)mds->export->shard_size);
}

/* Write the samples in the spool as a shard. */
static int write_shard(struct mds *mds, struct pstk_error *err)
{
    struct pstk__out_file file;
    char name[PSTK__SHARD_NAME];
    const uint64_t n = mds->sizes.size / 8;
    put_head(mds, n);
    pstk__shards_name(&mds->shards, mds->shards.n++, name);
    put_index(mds, name, mds->head.size + mds->spool.size, n);
    if (mds->head.failed || mds->index.failed)
        return pstk__export_no_memory(mds->export, err);
    int r = pstk__outdir_create(&mds->export->files, &file, name, err);
    if (r < 0)
        return r;
    r = pstk__out_file_put(&file, mds->head.data, mds->head.size, err);
    if (r == 0)
        r = pstk__out_file_copy(&file, mds->spool.fd, 0, mds->spool.size, err);
    if (r == 0)
        return pstk__out_file_end(&file, 1, err);
    pstk__out_file_drop(&file);
    return r;
}

static int end_shard(void *state, struct pstk_error *err)
{
    struct mds *mds = state;
    if (mds->sizes.size == 0)
        return 0;
    int r = pstk__out_file_flush(&mds->spool, err);
    if (r == 0)
        r = write_shard(mds, err);
    pstk__bytes_clear(&mds->sizes);
    pstk__out_file_drop(&mds->spool);
    mds->export->result.n_shards++;
    return r < 0 ? r : pstk__outdir_remove(&mds->export->files, SPOOL, err);
}

static int add(void *state, const struct pstk__export_sample *sample, struct pstk_error *err)
{
    struct mds *mds = state;
    uint8_t size[8];
    int r = encode(mds, sample, err);
    if (r < 0)
        return r;
    const uint64_t n = mds->sizes.size / 8, least = head_size(mds, 1) + mds->sample.size;
    if (least > UINT32_MAX)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_WRITE,
                          "sample %llu has %llu bytes; a shard of MDS has less than 4 GiB (leave "
                          "fields out)",
                          (unsigned long long)sample->id, (unsigned long long)mds->sample.size);
    if (n && head_size(mds, n + 1) + mds->spool.size + mds->sample.size > mds->export->shard_size)
        r = end_shard(mds, err);
    if (r == 0 && mds->sizes.size == 0)
        r = pstk__outdir_create(&mds->export->files, &mds->spool, SPOOL, err);
    if (r == 0)
        r = pstk__out_file_put(&mds->spool, mds->sample.data, mds->sample.size, err);
    pstk__put64(size, mds->sample.size);
    pstk__bytes_put(&mds->sizes, size, sizeof size);
    return r == 0 && mds->sizes.failed ? pstk__export_no_memory(mds->export, err) : r;
}

/* ---- the target ------------------------------------------------------------------------------ */

static int open_shards(void **state, struct pstk__export *e, struct pstk_error *err)
{
    struct mds *mds = *state = calloc(1, sizeof *mds);
    if (!mds)
        return pstk__export_no_memory(e, err);
    mds->export = e;
    mds->shards =
        (struct pstk__shards){.export = e, .prefix = "shard.", .n_digits = 5, .suffix = ".mds"};
    make_columns(mds);
    put_columns(mds, &mds->config);
    pstk__bytes_format(&mds->config, "\"size_limit\":%llu,\"version\":2}",
                       (unsigned long long)e->shard_size);
    return mds->config.failed ? pstk__export_no_memory(e, err) : 0;
}

static int commit(void *state, struct pstk_error *err)
{
    struct mds *mds = state;
    struct pstk__out_file file;
    int r = pstk__outdir_create(&mds->export->files, &file, "index.json", err);
    if (r < 0)
        return r;
    r = pstk__out_file_put(&file, "{\"shards\":[", 11, err);
    if (r == 0)
        r = pstk__out_file_put(&file, mds->index.data, mds->index.size, err);
    if (r == 0)
        r = pstk__out_file_put(&file, "],\"version\":2}\n", 15, err);
    if (r == 0)
        return pstk__out_file_end(&file, 1, err);
    pstk__out_file_drop(&file);
    return r;
}

static void abort_shards(void *state)
{
    struct mds *mds = state;
    if (!mds)
        return;
    pstk__out_file_drop(&mds->spool);
    pstk__bytes_free(&mds->sizes);
    pstk__bytes_free(&mds->config);
    pstk__bytes_free(&mds->sample);
    pstk__bytes_free(&mds->head);
    pstk__bytes_free(&mds->index);
    free(mds);
}

const struct pstk__export_target pstk__export_mds = {
    .target = PSTK_EXPORT_MDS,
    .name = "mds",
    .one = "a sample of MDS",
    .shard_size = UINT64_C(64) << 20,
    .max_shard_size = UINT32_MAX,
    .refuse = refuse,
    .open = open_shards,
    .add = add,
    .end_shard = end_shard,
    .commit = commit,
    .abort = abort_shards,
};
