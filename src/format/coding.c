/* SPDX-License-Identifier: Apache-2.0 */
#include "format/coding.h"

#include "base/error.h"
#include "format/arrays/npy.h"
#include "image/image.h"
#include "record/translate.h"
#include "base/utf8.h"
#include "record/value.h"

#include <stdio.h>
#include <string.h>

/* Suffixes as in webdataset/autodecode.py and its decoders; all others are bytes. */
static const struct {
    const char *suffix;
    uint8_t kind, dtype, coding;
} suffixes[] = {
    {"jpg", PSTK_FIELD_IMAGE, 0, PSTK__CODING_PLAIN},
    {"jpeg", PSTK_FIELD_IMAGE, 0, PSTK__CODING_PLAIN},
    {"png", PSTK_FIELD_IMAGE, 0, PSTK__CODING_PLAIN},
    {"cls", PSTK_FIELD_SCALAR, PSTK_I64, PSTK__CODING_TEXT_INTEGER},
    {"cls2", PSTK_FIELD_SCALAR, PSTK_I64, PSTK__CODING_TEXT_INTEGER},
    {"index", PSTK_FIELD_SCALAR, PSTK_I64, PSTK__CODING_TEXT_INTEGER},
    {"inx", PSTK_FIELD_SCALAR, PSTK_I64, PSTK__CODING_TEXT_INTEGER},
    {"id", PSTK_FIELD_SCALAR, PSTK_I64, PSTK__CODING_TEXT_INTEGER},
    {"txt", PSTK_FIELD_UTF8, 0, PSTK__CODING_PLAIN},
    {"text", PSTK_FIELD_UTF8, 0, PSTK__CODING_PLAIN},
    {"transcript", PSTK_FIELD_UTF8, 0, PSTK__CODING_PLAIN},
    {"json", PSTK_FIELD_UTF8, 0, PSTK__CODING_PLAIN},
    {"jsn", PSTK_FIELD_UTF8, 0, PSTK__CODING_PLAIN},
    {"npy", PSTK_FIELD_BYTES, 0, PSTK__CODING_NPY},
};

void pstk__coding_by_suffix(struct pstk__index_field *field, const char *suffix)
{
    const size_t n = strcspn(suffix, ";");
    size_t begin = n;
    while (begin > 0 && suffix[begin - 1] != '.')
        begin--;
    field->field.kind = PSTK_FIELD_BYTES;
    field->field.dtype = 0;
    field->coding = PSTK__CODING_PLAIN;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strlen(suffixes[i].suffix) == n - begin &&
            memcmp(suffix + begin, suffixes[i].suffix, n - begin) == 0) {
            field->field.kind = suffixes[i].kind;
            field->field.dtype = suffixes[i].dtype;
            field->coding = suffixes[i].coding;
        }
}

int pstk__coding_are_alike(const char *list, int has_type)
{
    struct pstk__index_field first = {0}, other = {0};
    pstk__coding_by_suffix(&first, list);
    for (list += strcspn(list, ";"); *list; list += strcspn(list, ";")) {
        pstk__coding_by_suffix(&other, ++list);
        const int is_npy = first.coding == PSTK__CODING_NPY || other.coding == PSTK__CODING_NPY;
        if (first.coding != other.coding && (is_npy || !has_type))
            return 0;
        if (!has_type &&
            (first.field.kind != other.field.kind || first.field.dtype != other.field.dtype))
            return 0;
    }
    return 1;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* States of a field's `reserved` while files are observed. */
enum { SEEN = 1, REFUSED = 2 };

#define NPY_NAME "its .npy file" /* noun for messages that name the field */

static int is_array(const struct pstk_field *field)
{
    return field->kind == PSTK_FIELD_NDARRAY || field->kind == PSTK_FIELD_SCALAR;
}

uint64_t pstk__coding_head_size(const uint8_t *bytes, uint64_t n)
{
    return pstk__npy_head_size(bytes, n);
}

void pstk__coding_observe(struct pstk__index_field *field, const uint8_t *bytes, uint64_t n)
{
    struct pstk__array array;
    struct pstk_field *to = &field->field;
    const int r = pstk__npy_head_read(&array, bytes, n, NPY_NAME, NULL);
    if (r == PSTK_ENOTSUP || (r == 0 && array.n_dims > PSTK_MAX_DIMS))
        field->reserved |= REFUSED;
    if (r < 0 || field->reserved & REFUSED)
        return;
    if (!(field->reserved & SEEN)) {
        to->kind = array.n_dims ? PSTK_FIELD_NDARRAY : PSTK_FIELD_SCALAR;
        to->dtype = array.dtype;
        to->n_dims = array.n_dims;
        memcpy(to->shape, array.shape, sizeof to->shape);
        field->reserved |= SEEN;
        return;
    }
    for (uint32_t i = 0; to->n_dims == array.n_dims && i < to->n_dims; i++)
        to->shape[i] = to->shape[i] == array.shape[i] ? to->shape[i] : 0;
}

void pstk__coding_settle(struct pstk__index_field *field)
{
    struct pstk_field *to = &field->field;
    if (field->coding == PSTK__CODING_NPY &&
        (field->reserved != SEEN || pstk__value_n_variable(to) > 1)) {
        to->kind = PSTK_FIELD_BYTES;
        to->dtype = to->n_dims = 0;
        memset(to->shape, 0, sizeof to->shape);
    }
    field->reserved = 0;
}

const char *pstk__coding_check_array(const struct pstk__coding_array *array,
                                     const struct pstk_field *field, char text[160])
{
    if (array->dtype != field->dtype || array->n_dims != field->n_dims) {
        snprintf(text, 160,
                 "is an array of %s with %u dimensions; must be of %s with %u, as the first sample "
                 "or the setting fields has",
                 pstk_dtype_name(array->dtype), array->n_dims, pstk_dtype_name(field->dtype),
                 field->n_dims);
        return text;
    }
    uint64_t expected = pstk_dtype_size(array->dtype);
    int is_large = 0; /* 1: the size of its shape passes 2^64, even if a dimension after it is 0 */
    for (uint32_t i = 0; i < array->n_dims; i++) {
        if (field->shape[i] && field->shape[i] != array->dims[i]) {
            snprintf(text, 160, "is an array whose dimension %u is %llu; must be %llu", i,
                     (unsigned long long)array->dims[i], (unsigned long long)field->shape[i]);
            return text;
        }
        is_large |= __builtin_mul_overflow(expected, array->dims[i], &expected);
    }
    if (is_large)
        expected = UINT64_MAX;
    if (expected == array->n_bytes)
        return NULL;
    snprintf(text, 160, "has %llu bytes of elements, but its shape needs %llu",
             (unsigned long long)array->n_bytes, (unsigned long long)expected);
    return text;
}

/* View the elements of an array in a .npy file. */
static const char *view_npy(struct pstk__field_view *view, const struct pstk_field *field,
                            const uint8_t *data, uint64_t size, char text[160])
{
    struct pstk__array array;
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    if (pstk__npy_head_read(&array, data, size, NPY_NAME, &why) < 0) {
        snprintf(text, 160, "%.159s", why.message);
        return text;
    }
    if (array.n_dims > PSTK_MAX_DIMS) {
        snprintf(text, 160, "is an array of more than %d dimensions", PSTK_MAX_DIMS);
        return text;
    }
    struct pstk__coding_array found = {
        .dtype = array.dtype, .n_dims = array.n_dims, .n_bytes = size - array.offset};
    memcpy(found.dims, array.shape, sizeof found.dims);
    view->data = data + array.offset;
    view->stored_size = view->plain_size = (uint32_t)found.n_bytes;
    return pstk__coding_check_array(&found, field, text);
}

static int is_integer(uint32_t dtype)
{
    return pstk_dtype_size(dtype) > 0 && dtype != PSTK_F16 && dtype != PSTK_F32 &&
           dtype != PSTK_F64 && dtype != PSTK_BF16;
}

int pstk__coding_retype(struct pstk__index_field *field, const struct pstk_field *wanted,
                        struct pstk_error *err)
{
    const char *name = field->field.name;
    const int is_npy = field->coding == PSTK__CODING_NPY && is_array(wanted);
    if (is_npy && pstk__value_n_variable(wanted) > 1)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "field %s: more than one dimension of its arrays differs from sample to "
                          "sample; must be at most one for .npy files: read them as bytes",
                          name);
    switch (is_npy ? PSTK_FIELD_BYTES : wanted->kind) {
    case PSTK_FIELD_SCALAR:
        if (!is_integer(wanted->dtype))
            return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                              "field %s: a scalar is read from text, so its dtype must be an "
                              "integer type (read other numbers as utf8 or bytes)",
                              name);
        field->coding = PSTK__CODING_TEXT_INTEGER;
        break;
    case PSTK_FIELD_BYTES:
    case PSTK_FIELD_UTF8:
    case PSTK_FIELD_IMAGE:
    case PSTK_FIELD_NDARRAY:
        field->coding = field->coding == PSTK__CODING_NPY ? PSTK__CODING_NPY : PSTK__CODING_PLAIN;
        break;
    default:
        return pstk__fail(
            err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
            "field %s: its kind is %u; must be bytes, utf8, image, scalar or ndarray, the kinds "
            "that files can hold (for another kind pack the data set)",
            name, wanted->kind);
    }
    field->field = *wanted;
    field->field.codec = PSTK_CODEC_NONE;
    return 0;
}

static uint32_t codec_of(const struct pstk__index_field *field)
{
    return field->coding == PSTK__CODING_TEXT_INTEGER ? PSTK__FOREIGN_TEXT_INTEGER
                                                      : PSTK_CODEC_NONE;
}

uint64_t pstk__coding_plain_size(const struct pstk__index_field *field, uint64_t size)
{
    const uint32_t codec = codec_of(field);
    if (codec == PSTK_CODEC_NONE)
        return size;
    const int64_t plain = pstk__translated_size(codec, &field->field, NULL, size);
    return plain < 0 ? 0 : (uint64_t)plain;
}

/* Set the values of an image's header. */
static const char *view_image(struct pstk__field_view *view, const uint8_t *data, uint64_t size,
                              char text[160])
{
    struct pstk__image_info info;
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    if (pstk__image_probe(data, size, UINT64_MAX, &info, &why) < 0) {
        snprintf(text, 160, "%.150s", why.message);
        return text;
    }
    view->encoding = (uint8_t)info.encoding;
    view->channels = info.channels;
    view->bit_depth = info.bit_depth;
    view->width = info.width;
    view->height = info.height;
    view->flags = info.has_palette ? PSTK__FIELD_PALETTE : 0;
    return NULL;
}

const char *pstk__coding_view(struct pstk__field_view *view, const struct pstk__index_field *field,
                              const uint8_t *data, uint64_t size, char text[160])
{
    *view = (struct pstk__field_view){.data = data,
                                      .stored_size = (uint32_t)size,
                                      .plain_size = (uint32_t)size,
                                      .codec = (uint8_t)codec_of(field),
                                      .checksum = PSTK__CHECKSUM_NONE};
    if (view->codec != PSTK_CODEC_NONE) {
        const int64_t plain = pstk__translated_size(view->codec, &field->field, data, size);
        view->plain_size = plain < 0 ? 0 : (uint32_t)plain;
    }
    if (field->coding == PSTK__CODING_NPY && is_array(&field->field))
        return view_npy(view, &field->field, data, size, text);
    if (field->field.kind == PSTK_FIELD_IMAGE)
        return view_image(view, data, size, text);
    if (field->field.kind == PSTK_FIELD_UTF8) {
        const uint64_t end = pstk__utf8_end(data, size);
        if (end == size)
            return NULL;
        snprintf(text, 160, "is not UTF-8 from byte %llu on: read it as bytes",
                 (unsigned long long)end);
        return text;
    }
    return NULL;
}
