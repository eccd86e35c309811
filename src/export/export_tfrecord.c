/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_tfrecord: writes TFRecord files, whose records are tf.train.Example messages:
 *
 *   images, masks, bytes, texts    bytes_list of one
 *   lists of these                 bytes_list of the items
 *   whole numbers                  int64_list
 *   other numbers                  float_list
 *
 * An array is the list of its elements. If its shape does not follow from the schema and its
 * length, the feature FIELD/shape holds it. Features are in the order of the schema.
 */
#include "base/cast.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/little.h"
#include "export/array.h"
#include "export/export.h"
#include "export/image_items.h"
#include "export/shards.h"
#include "record/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME 16 /* bytes of a record except its data: length and two CRCs */

/* Tags of Protocol Buffers: the field's number and its wire type. All fields here have type 2, a
 * length and bytes. */
enum {
    TAG_FIRST = 1 << 3 | 2,  /* Example.features, Features.feature, an entry's key, List.value */
    TAG_SECOND = 2 << 3 | 2, /* an entry's value */
};

/* Fields of Feature. */
enum feature { BYTES_LIST = 1, FLOAT_LIST = 2, INT64_LIST = 3 };

struct tfrecord {
    struct pstk__export *export; /* borrowed */
    struct pstk__shards shards;
    struct pstk__bytes list;     /* owned; BytesList, FloatList or Int64List */
    struct pstk__bytes features; /* owned; Features */
    struct pstk__bytes record;   /* owned; with its frame */
};

/* ---- messages -------------------------------------------------------------------------------- */

static uint32_t varint_size(uint64_t n)
{
    uint32_t size = 1;
    while (n >>= 7)
        size++;
    return size;
}

static void put_varint(struct pstk__bytes *to, uint64_t n)
{
    uint8_t bytes[10];
    uint32_t size = 0;
    do {
        bytes[size++] = (uint8_t)((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
        n >>= 7;
    } while (n);
    pstk__bytes_put(to, bytes, size);
}

static void put_tag(struct pstk__bytes *to, uint8_t tag, uint64_t size)
{
    pstk__bytes_put(to, &tag, 1);
    put_varint(to, size);
}

static void put_bytes(struct pstk__bytes *to, uint8_t tag, const void *data, uint64_t size)
{
    put_tag(to, tag, size);
    pstk__bytes_put(to, data, size);
}

/* Append a feature, whose list is in t->list, as an entry to the map. */
static void put_feature(struct tfrecord *t, const char *name, const char *suffix,
                        enum feature feature)
{
    const uint64_t name_size = strlen(name) + strlen(suffix), list_size = t->list.size;
    const uint64_t feature_size = 1 + varint_size(list_size) + list_size;
    put_tag(&t->features, TAG_FIRST,
            1 + varint_size(name_size) + name_size + 1 + varint_size(feature_size) + feature_size);
    put_tag(&t->features, TAG_FIRST, name_size);
    pstk__bytes_text(&t->features, name);
    pstk__bytes_text(&t->features, suffix);
    put_tag(&t->features, TAG_SECOND, feature_size);
    put_bytes(&t->features, (uint8_t)(feature << 3 | 2), t->list.data, list_size);
    t->features.failed |= t->list.failed;
    pstk__bytes_clear(&t->list);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Return an element as an int64, two's complement. */
static uint64_t whole(uint32_t dtype, const uint8_t *element)
{
    int64_t value;
    if (dtype == PSTK_U64)
        return pstk__get64(element);
    pstk__cast(&value, PSTK_I64, element, dtype);
    return (uint64_t)value;
}

static void put_whole(struct pstk__bytes *list, const struct pstk__array *array)
{
    const uint32_t size = pstk_dtype_size(array->dtype);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < array->n; i++)
        bytes += varint_size(whole(array->dtype, array->data + i * size));
    if (array->n)
        put_tag(list, TAG_FIRST, bytes);
    for (uint64_t i = 0; i < array->n && !list->failed; i++)
        put_varint(list, whole(array->dtype, array->data + i * size));
}

static void put_floats(struct pstk__bytes *list, const struct pstk__array *array)
{
    if (!array->n)
        return;
    put_tag(list, TAG_FIRST, array->n * sizeof(float));
    if (array->dtype == PSTK_F32) {
        pstk__bytes_put(list, array->data, array->n * sizeof(float));
        return;
    }
    for (uint64_t i = 0; i < array->n && !list->failed; i++) {
        const float value = pstk__f32_from_f16(pstk__get16(array->data + 2 * i));
        pstk__bytes_put(list, &value, sizeof value);
    }
}

static int check_large(const struct tfrecord *t, const struct pstk__export_sample *sample,
                       uint32_t i, const struct pstk__array *array, struct pstk_error *err)
{
    for (uint64_t k = 0; array->dtype == PSTK_U64 && k < array->n; k++) {
        const uint64_t value = pstk__get64(array->data + 8 * k);
        if (value > INT64_MAX)
            return pstk__export_fail(t->export, sample, i, PSTK_EINVAL, err,
                                     "has the value %llu; an int64_list holds at most 2^63 - 1 "
                                     "(leave the field out)",
                                     (unsigned long long)value);
    }
    return 0;
}

/* Return 1 if a value's shape does not follow from the schema and the number of elements. */
static int needs_shape(const struct pstk_field *field)
{
    return pstk__value_n_variable(field) > 1;
}

static int put_array(struct tfrecord *t, const struct pstk__export_sample *sample, uint32_t i,
                     struct pstk_error *err)
{
    const struct pstk_field *field = &t->export->fields[i];
    struct pstk__array array;
    pstk__array_of(&array, field, sample->values[i].data, sample->values[i].size);
    const int is_whole = pstk__array_is_whole(field->dtype);
    const int r = check_large(t, sample, i, &array, err);
    if (r < 0)
        return r;
    (is_whole ? put_whole : put_floats)(&t->list, &array);
    put_feature(t, field->name, "", is_whole ? INT64_LIST : FLOAT_LIST);
    if (needs_shape(field)) {
        const struct pstk__array shape = {
            .dtype = PSTK_U64, .n = array.n_dims, .data = (const uint8_t *)array.shape};
        put_whole(&t->list, &shape);
        put_feature(t, field->name, "/shape", INT64_LIST);
    }
    return 0;
}

static int put_items(struct tfrecord *t, const struct pstk__export_sample *sample, uint32_t i,
                     struct pstk_error *err)
{
    const struct pstk_field *field = &t->export->fields[i];
    struct pstk__image_items items;
    const void *data;
    uint64_t size;
    int r = 0;
    pstk__image_items_begin(&items, field->kind, &sample->values[i]);
    while (r == 0 && items.list.i < items.list.n) {
        r = pstk__image_items_next(&items, &data, &size, err);
        if (r == 0)
            put_bytes(&t->list, TAG_FIRST, data, size);
    }
    pstk__image_items_end(&items);
    t->export->result.n_encoded += items.n_encoded;
    put_feature(t, field->name, "", BYTES_LIST);
    return r;
}

static int put_value(struct tfrecord *t, const struct pstk__export_sample *sample, uint32_t i,
                     struct pstk_error *err)
{
    const struct pstk_field *field = &t->export->fields[i];
    if (pstk__array_is(field))
        return put_array(t, sample, i, err);
    if (pstk__field_traits(field->kind) & PSTK__TRAIT_LIST)
        return put_items(t, sample, i, err);
    put_bytes(&t->list, TAG_FIRST, sample->values[i].data, sample->values[i].size);
    put_feature(t, field->name, "", BYTES_LIST);
    return 0;
}

/* ---- records --------------------------------------------------------------------------------- */

static uint32_t masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* Write the features as a record: u64 length, u32 CRC of the length, data, u32 CRC of the data. */
static void put_record(struct tfrecord *t)
{
    const uint64_t size = 1 + varint_size(t->features.size) + t->features.size;
    uint8_t head[12], tail[4];
    pstk__put64(head, size);
    pstk__put32(head + 8, masked(pstk__crc32c(0, head, 8)));
    pstk__bytes_clear(&t->record);
    pstk__bytes_put(&t->record, head, sizeof head);
    put_bytes(&t->record, TAG_FIRST, t->features.data, t->features.size);
    t->record.failed |= t->features.failed;
    if (t->record.failed)
        return;
    pstk__put32(tail, masked(pstk__crc32c(0, t->record.data + sizeof head, size)));
    pstk__bytes_put(&t->record, tail, sizeof tail);
}

static int end_shard(void *state, struct pstk_error *err)
{
    struct tfrecord *t = state;
    return pstk__shards_end(&t->shards, "", 0, err);
}

static int add(void *state, const struct pstk__export_sample *sample, struct pstk_error *err)
{
    struct tfrecord *t = state;
    int r = 0;
    pstk__bytes_clear(&t->list);
    pstk__bytes_clear(&t->features);
    for (uint32_t i = 0; r == 0 && i < t->export->n_fields; i++)
        r = put_value(t, sample, i, err);
    if (r < 0)
        return r;
    put_record(t);
    if (t->record.failed)
        return pstk__export_no_memory(t->export, err);
    if (t->record.size - FRAME > INT32_MAX)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_WRITE,
                          "sample %llu has %llu bytes; a tf.train.Example has at most 2 GiB (leave "
                          "fields out)",
                          (unsigned long long)sample->id, (unsigned long long)t->record.size);
    if (pstk__shards_is_full(&t->shards, t->record.size))
        r = end_shard(t, err);
    return r < 0 ? r : pstk__shards_add(&t->shards, t->record.data, t->record.size, err);
}

/* ---- the target ------------------------------------------------------------------------------ */

static const char *refuse(const struct pstk__export *e, uint32_t i)
{
    return e->fields[i].dtype == PSTK_F64
               ? "has float64 numbers, and the float_list of a tf.train.Example has float32 (pack "
                 "it as float32)"
               : NULL;
}

static int open_records(void **state, struct pstk__export *e, struct pstk_error *err)
{
    struct tfrecord *t = *state = calloc(1, sizeof *t);
    if (!t)
        return pstk__export_no_memory(e, err);
    t->export = e;
    t->shards =
        (struct pstk__shards){.export = e, .prefix = "", .n_digits = 5, .suffix = ".tfrecord"};
    return 0;
}

/* Rename the shards to their final names, which contain the number of shards. */
static int commit(void *state, struct pstk_error *err)
{
    struct tfrecord *t = state;
    int r = 0;
    for (uint64_t i = 0; r == 0 && i < t->shards.n; i++) {
        char from[PSTK__SHARD_NAME], to[PSTK__SHARD_NAME];
        pstk__shards_name(&t->shards, i, from);
        snprintf(to, sizeof to, "%05llu-of-%05llu.tfrecord", (unsigned long long)i,
                 (unsigned long long)t->shards.n);
        r = pstk__outdir_rename(&t->export->files, from, to, err);
    }
    return r;
}

static void abort_records(void *state)
{
    struct tfrecord *t = state;
    if (!t)
        return;
    pstk__out_file_drop(&t->shards.file);
    pstk__bytes_free(&t->list);
    pstk__bytes_free(&t->features);
    pstk__bytes_free(&t->record);
    free(t);
}

const struct pstk__export_target pstk__export_tfrecord = {
    .target = PSTK_EXPORT_TFRECORD,
    .name = "tfrecord",
    .one = "a tf.train.Example",
    .shard_size = UINT64_C(256) << 20,
    .max_shard_size = UINT64_MAX,
    .refuse = refuse,
    .open = open_records,
    .add = add,
    .end_shard = end_shard,
    .commit = commit,
    .abort = abort_records,
};
