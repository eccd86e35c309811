/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tfrecord/example.h"

#include "base/error.h"
#include "format/coding.h"
#include "record/kind.h"
#include "record/list.h"
#include "record/translate.h"

/* ---- names ----------------------------------------------------------------------------------- */

static char name_byte(uint8_t byte)
{
    const int is_letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
    const int is_digit = byte >= '0' && byte <= '9';
    return is_letter || is_digit || byte == '_' || byte == '-' ? (char)byte : '.';
}

int pstk__tfrecord_is_name(const char *name, const uint8_t *key, uint64_t size)
{
    if (size >= PSTK_MAX_NAME)
        return 0;
    for (uint64_t i = 0; i < size; i++)
        if (name[i] != (char)key[i] && (key[i] == 0 || name[i] != name_byte(key[i])))
            return 0;
    return name[size] == 0;
}

void pstk__tfrecord_name(char name[PSTK_MAX_NAME], const uint8_t *key, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        name[i] = name_byte(key[i]);
    name[size] = 0;
}

int pstk__tfrecord_find(const struct pstk__inferred_schema *found, const uint8_t *key,
                        uint64_t size, uint32_t guess)
{
    if (guess < found->n_fields &&
        pstk__tfrecord_is_name(found->fields[guess].field.name, key, size))
        return (int)guess;
    for (uint32_t i = 0; i < found->n_fields; i++)
        if (pstk__tfrecord_is_name(found->fields[i].field.name, key, size))
            return (int)i;
    return -1;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static int is_list(const struct pstk__index_field *field)
{
    return (pstk__field_traits(field->field.kind) & PSTK__TRAIT_LIST) != 0;
}

static int is_integer(uint32_t dtype)
{
    return pstk_dtype_size(dtype) > 0 && dtype != PSTK_F16 && dtype != PSTK_BF16 &&
           dtype != PSTK_F32 && dtype != PSTK_F64;
}

/* 1: a field of a coding can be of this kind. */
static int suits(uint32_t coding, const struct pstk_field *wanted)
{
    uint32_t n_variable = 0;
    for (uint32_t i = 0; i < wanted->n_dims && i < PSTK_MAX_DIMS; i++)
        n_variable += wanted->shape[i] == 0;
    const int is_array = wanted->kind == PSTK_FIELD_NDARRAY && n_variable <= 1;
    const int is_number = wanted->kind == PSTK_FIELD_SCALAR || is_array;
    switch (coding) {
    case PSTK__TFRECORD_FLOAT:
        return is_number && wanted->dtype == PSTK_F32;
    case PSTK__TFRECORD_INT64:
        return is_number && is_integer(wanted->dtype);
    case PSTK__TFRECORD_BYTES:
        if (wanted->kind == PSTK_FIELD_BYTES_LIST || wanted->kind == PSTK_FIELD_UTF8_LIST)
            return 1;
        break;
    default:
        break;
    }
    return is_array || wanted->kind == PSTK_FIELD_BYTES || wanted->kind == PSTK_FIELD_UTF8 ||
           wanted->kind == PSTK_FIELD_IMAGE;
}

/* Return the kinds that fields of a coding can have, for messages. */
static const char *kinds_of(uint32_t coding)
{
    switch (coding) {
    case PSTK__TFRECORD_FLOAT:
        return "a float_list, read as a scalar or an ndarray of f32";
    case PSTK__TFRECORD_INT64:
        return "an int64_list, read as a scalar or an ndarray of an integer dtype";
    case PSTK__TFRECORD_BYTES:
        return "a bytes_list, read as bytes, utf8, image, ndarray, bytes_list or utf8_list";
    default:
        return "all data of a record, read as bytes, utf8, image or ndarray";
    }
}

int pstk__tfrecord_retype(struct pstk__index_field *field, const struct pstk_field *wanted,
                          struct pstk_error *err)
{
    if (!suits(field->coding, wanted))
        return pstk__fail(
            err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
            "field %s: kind is %s%s%s; it is %s with at most one variable dimension",
            field->field.name, pstk__field_kind_name(wanted->kind), wanted->dtype ? " " : "",
            wanted->dtype ? pstk_dtype_name(wanted->dtype) : "", kinds_of(field->coding));
    field->field = *wanted;
    field->field.codec = PSTK_CODEC_NONE;
    return 0;
}

int pstk__tfrecord_want(struct pstk__index_field *field, const struct pstk_field *wanted,
                        struct pstk_error *err)
{
    static const uint32_t codings[] = {PSTK__TFRECORD_INT64, PSTK__TFRECORD_FLOAT,
                                       PSTK__TFRECORD_BYTES};
    *field = (struct pstk__index_field){.field = *wanted};
    for (uint32_t i = 0; i < 3; i++)
        if (suits(codings[i], wanted)) {
            field->coding = codings[i];
            return 0;
        }
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                      "field %s: kind is %s; none of the first records has it, and no feature can "
                      "be of this kind: must be a scalar or an ndarray of f32 or of an integer "
                      "dtype, bytes, utf8, image, bytes_list or utf8_list",
                      wanted->name, pstk__field_kind_name(wanted->kind));
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void measure(struct pstk__index_field *field, uint64_t size, uint64_t plain)
{
    field->bytes += size;
    field->max_size = size > field->max_size ? size : field->max_size;
    field->max_plain = plain > field->max_plain ? plain : field->max_plain;
}

void pstk__tfrecord_measure_one(struct pstk__index_field *field, uint64_t size)
{
    if (field->coding == PSTK__TFRECORD_BYTES)
        measure(field, size, size + 8); /* as a list of one item */
    else if (field->coding == PSTK__TFRECORD_WHOLE)
        measure(field, size, size);
}

/* max_size: of the values in a list of bytes, or of a message with numbers; max_plain: of a list of
 * bytes as a list, of floats as f32, of integers as i64. */
int pstk__tfrecord_measure(struct pstk__index_field *field, const void *data, uint64_t size)
{
    struct pstk__feature_list list;
    uint64_t n_bytes;
    const int is_feature = pstk__feature_open(&list, data, size);
    if (is_feature && list.type == PSTK__FEATURE_EMPTY)
        return 0;
    const int64_t n =
        is_feature && 16 + list.type == field->coding ? pstk__feature_count(&list, &n_bytes) : -1;
    if (n >= 0 && field->coding == PSTK__TFRECORD_BYTES)
        measure(field, n_bytes, 4 + 4 * (uint64_t)n + n_bytes);
    else if (n >= 0)
        measure(field, size, (uint64_t)n * (field->coding == PSTK__TFRECORD_FLOAT ? 4 : 8));
    return 1;
}

uint64_t pstk__tfrecord_max_plain(const struct pstk__index_field *field)
{
    if (field->coding == PSTK__TFRECORD_INT64)
        return field->max_plain / 8 * pstk_dtype_size(field->field.dtype);
    if (field->coding != PSTK__TFRECORD_BYTES)
        return field->max_plain;
    const uint64_t empty =
        pstk__list_head_size(field->field.kind, 0); /* value of a record without it */
    return !is_list(field) ? field->max_size : field->max_plain < empty ? empty : field->max_plain;
}

/* ---- views ----------------------------------------------------------------------------------- */

static uint32_t codec_of(const struct pstk__index_field *field)
{
    return PSTK__FOREIGN_FEATURE + (field->coding == PSTK__TFRECORD_INT64 ? PSTK__FEATURE_READ_INT64
                                    : field->coding == PSTK__TFRECORD_FLOAT
                                        ? PSTK__FEATURE_READ_FLOAT
                                    : is_list(field) ? PSTK__FEATURE_READ_LIST
                                                     : PSTK__FEATURE_READ_ONE);
}

/* Return the only value of a list of bytes, or the floats of a list that users can read in place;
 * NULL: the feature must be translated, or is wrong. */
static const uint8_t *find_in_place(const struct pstk__index_field *field, const uint8_t *data,
                                    uint64_t size, uint64_t *n_bytes)
{
    struct pstk__feature_list list;
    char text[160];
    if (field->coding == PSTK__TFRECORD_INT64 || is_list(field) ||
        !pstk__feature_open(&list, data, size))
        return NULL;
    if (field->coding == PSTK__TFRECORD_FLOAT) {
        const uint8_t *floats = pstk__feature_floats(&list, n_bytes);
        const int is_aligned = ((uintptr_t)floats & 3) == 0; /* dtypes of outputs may need it */
        return floats && is_aligned && pstk__feature_fits(&field->field, *n_bytes / 4, text)
                   ? floats
                   : NULL;
    }
    const uint8_t *value;
    const int has_one = list.type == PSTK__FEATURE_BYTES &&
                        pstk__feature_next(&list, &value, n_bytes) > 0 &&
                        list.wire.at == list.wire.end;
    return has_one ? value : NULL;
}

void pstk__tfrecord_view(struct pstk__field_view *view, const struct pstk__index_field *field,
                         const uint8_t *data, uint64_t size)
{
    char text[160];
    uint64_t n_bytes = 0;
    const uint8_t *value = size > 0 ? find_in_place(field, data, size, &n_bytes) : NULL;
    if (value && !pstk__coding_view(view, field, value, n_bytes, text))
        return;
    const uint32_t codec = codec_of(field);
    const int64_t plain = pstk__translated_size(codec, &field->field, data, size);
    *view = (struct pstk__field_view){.data = data,
                                      .stored_size = (uint32_t)size,
                                      .plain_size = plain < 0 ? 0 : (uint32_t)plain,
                                      .codec = (uint8_t)codec,
                                      .checksum = PSTK__CHECKSUM_NONE};
}
