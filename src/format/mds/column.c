/* SPDX-License-Identifier: Apache-2.0 */
#include "format/mds/column.h"

#include "base/error.h"
#include "image/pixels.h"
#include "record/kind.h"
#include "record/translate.h"
#include "record/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIXELS_HEAD 12 /* bytes of width, height, and the mode's size */
#define WRONG(...) (snprintf(text, 160, __VA_ARGS__), text)

/* ---- encodings ------------------------------------------------------------------------------- */

/* Encodings of streaming/base/format/mds/encodings.py, except arrays; pkl is omitted on purpose. */
static const struct {
    const char *name;
    uint8_t kind, dtype, coding;
} encodings[] = {
    {"bytes", PSTK_FIELD_BYTES, 0, PSTK__CODING_PLAIN},
    {"str", PSTK_FIELD_UTF8, 0, PSTK__CODING_PLAIN},
    {"int", PSTK_FIELD_SCALAR, PSTK_I64, PSTK__CODING_PLAIN},
    {"uint8", PSTK_FIELD_SCALAR, PSTK_U8, PSTK__CODING_PLAIN},
    {"uint16", PSTK_FIELD_SCALAR, PSTK_U16, PSTK__CODING_PLAIN},
    {"uint32", PSTK_FIELD_SCALAR, PSTK_U32, PSTK__CODING_PLAIN},
    {"uint64", PSTK_FIELD_SCALAR, PSTK_U64, PSTK__CODING_PLAIN},
    {"int8", PSTK_FIELD_SCALAR, PSTK_I8, PSTK__CODING_PLAIN},
    {"int16", PSTK_FIELD_SCALAR, PSTK_I16, PSTK__CODING_PLAIN},
    {"int32", PSTK_FIELD_SCALAR, PSTK_I32, PSTK__CODING_PLAIN},
    {"int64", PSTK_FIELD_SCALAR, PSTK_I64, PSTK__CODING_PLAIN},
    {"float16", PSTK_FIELD_SCALAR, PSTK_F16, PSTK__CODING_PLAIN},
    {"float32", PSTK_FIELD_SCALAR, PSTK_F32, PSTK__CODING_PLAIN},
    {"float64", PSTK_FIELD_SCALAR, PSTK_F64, PSTK__CODING_PLAIN},
    {"str_int", PSTK_FIELD_SCALAR, PSTK_I64, PSTK__CODING_TEXT_INTEGER},
    {"str_float", PSTK_FIELD_UTF8, 0, PSTK__CODING_PLAIN},
    {"str_decimal", PSTK_FIELD_UTF8, 0, PSTK__CODING_PLAIN},
    {"json", PSTK_FIELD_UTF8, 0, PSTK__CODING_PLAIN},
    {"jpeg", PSTK_FIELD_IMAGE, 0, PSTK__CODING_PLAIN},
    {"png", PSTK_FIELD_IMAGE, 0, PSTK__CODING_PLAIN},
    {"pil", PSTK_FIELD_IMAGE, 0, PSTK__MDS_PIXELS},
    {"jpeg_array", PSTK_FIELD_IMAGE_LIST, 0, PSTK__MDS_IMAGES},
    {"jpegarray", PSTK_FIELD_IMAGE_LIST, 0, PSTK__MDS_IMAGES},
    {"list[jpeg]", PSTK_FIELD_IMAGE_LIST, 0, PSTK__MDS_IMAGE_LIST},
    {"list[png]", PSTK_FIELD_IMAGE_LIST, 0, PSTK__MDS_IMAGE_LIST},
    {"list[pil]", PSTK_FIELD_BYTES, 0, PSTK__CODING_PLAIN},
};

/* Names and codes of the dtypes of arrays, as in that file. */
static const struct {
    const char *name;
    uint8_t code, dtype;
} dtypes[] = {
    {"uint8", 8, PSTK_U8},   {"int8", 9, PSTK_I8},      {"uint16", 16, PSTK_U16},
    {"int16", 17, PSTK_I16}, {"float16", 18, PSTK_F16}, {"uint32", 32, PSTK_U32},
    {"int32", 33, PSTK_I32}, {"float32", 34, PSTK_F32}, {"uint64", 64, PSTK_U64},
    {"int64", 65, PSTK_I64}, {"float64", 66, PSTK_F64},
};

static uint32_t dtype_of_code(uint8_t code)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (dtypes[i].code == code)
            return dtypes[i].dtype;
    return 0;
}

static uint32_t dtype_of_name(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strlen(dtypes[i].name) == n && memcmp(dtypes[i].name, name, n) == 0)
            return dtypes[i].dtype;
    return 0;
}

/* Read "3,224,224" as the shape of a field. 0: it is no shape. */
static int read_shape(struct pstk_field *field, const char *text)
{
    while (field->n_dims < PSTK_MAX_DIMS && *text >= '1' && *text <= '9') {
        uint64_t n = 0;
        for (; *text >= '0' && *text <= '9'; text++) {
            n = 10 * n + (uint64_t)(*text - '0');
            if (n > 0xffffffffu)
                return 0;
        }
        field->shape[field->n_dims++] = n;
        if (*text == 0)
            return 1;
        if (*text++ != ',')
            return 0;
    }
    return 0;
}

/* Read "ndarray", "ndarray:int32" or "ndarray:int32:3,4". 0: it is none of these. */
static int read_array(struct pstk__mds_column *column, const char *encoding)
{
    column->field.kind = PSTK_FIELD_NDARRAY;
    column->coding = PSTK__MDS_ARRAY;
    encoding += strlen("ndarray");
    if (*encoding == 0)
        return 1;
    if (*encoding++ != ':')
        return 0;
    const size_t n = strcspn(encoding, ":");
    column->field.dtype = dtype_of_name(encoding, n);
    column->coding = encoding[n] ? PSTK__CODING_PLAIN : PSTK__MDS_ARRAY_TYPED;
    return column->field.dtype &&
           (encoding[n] == 0 || read_shape(&column->field, encoding + n + 1));
}

/* Set kind, dtype, shape and coding; the kind of an unknown encoding stays 0. */
static void read_encoding(struct pstk__mds_column *column, const char *encoding)
{
    if (strncmp(encoding, "ndarray", strlen("ndarray")) == 0 && !read_array(column, encoding)) {
        column->field.kind = column->field.dtype = column->field.n_dims = 0;
        column->coding = PSTK__CODING_PLAIN;
    }
    for (size_t i = 0; i < sizeof encodings / sizeof encodings[0]; i++)
        if (strcmp(encoding, encodings[i].name) == 0) {
            column->field.kind = encodings[i].kind;
            column->field.dtype = encodings[i].dtype;
            column->coding = encodings[i].coding;
        }
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Write a column's name as the name of a field: other characters become '.'. 0: it is too long, or
 * empty. */
static int name_field(struct pstk_field *field, const char *name)
{
    uint32_t n = 0;
    for (; *name; name++) {
        if (((uint8_t)*name & 0xc0) == 0x80) /* a later byte of a character of UTF-8 */
            continue;
        if (n == PSTK_MAX_NAME - 1)
            return 0;
        const int is_kept = (*name >= 'A' && *name <= 'Z') || (*name >= 'a' && *name <= 'z') ||
                            (*name >= '0' && *name <= '9') || *name == '_' || *name == '-';
        field->name[n++] = is_kept ? *name : '.';
    }
    return n > 0;
}

int pstk__mds_find(const struct pstk__mds_columns *columns, const char *name)
{
    for (uint32_t i = 0; i < columns->n; i++)
        if (strcmp(columns->at[i].field.name, name) == 0)
            return (int)i;
    return -1;
}

/* Return the bytes of each value by the encoding; 0: they vary, or are unknown. */
static uint64_t fixed_size(const struct pstk__mds_column *column)
{
    const struct pstk_field *field = &column->field;
    if (column->coding != PSTK__CODING_PLAIN ||
        (field->kind != PSTK_FIELD_SCALAR && field->kind != PSTK_FIELD_NDARRAY))
        return 0;
    uint64_t size = pstk_dtype_size(field->dtype);
    for (uint32_t i = 0; i < field->n_dims; i++)
        if (__builtin_mul_overflow(size, field->shape[i], &size))
            return UINT64_MAX;
    return size;
}

const char *pstk__mds_add(struct pstk__mds_columns *columns, const char *name, const char *encoding,
                          uint64_t size, int *code, char text[160])
{
    struct pstk__mds_column column = {.coding = PSTK__CODING_PLAIN};
    *code = PSTK_ENOTSUP;
    if (columns->n == PSTK_MAX_FIELDS)
        return WRONG("has more than %d columns, the most that a data set may have",
                     PSTK_MAX_FIELDS);
    if (!name_field(&column.field, name))
        return WRONG("has a column whose name is empty or longer than %d characters",
                     PSTK_MAX_NAME - 1);
    if (pstk__mds_find(columns, column.field.name) >= 0)
        return WRONG("has two columns named '%.63s' (all characters except A-Z a-z 0-9 _ - are "
                     "read as .)",
                     column.field.name);
    read_encoding(&column, encoding);
    *code = PSTK_EBADMSG;
    const uint64_t needed = fixed_size(&column);
    if (needed && size != needed)
        return WRONG("gives column '%.63s' values of %" PRIu64
                     " bytes; its encoding needs %" PRIu64,
                     column.field.name, size, needed);
    column.is_variable = size == 0;
    column.size = (uint32_t)size;
    if (size > UINT32_MAX || columns->fixed_size + size + 4 > UINT32_MAX)
        return WRONG("gives its columns values of 4 GiB or more");
    columns->at[columns->n++] = column;
    columns->n_variable += column.is_variable;
    columns->fixed_size += column.is_variable ? 4 : size;
    return NULL;
}

void pstk__mds_find_offsets(struct pstk__mds_offsets *offsets,
                            const struct pstk__mds_columns *columns, const uint8_t *head)
{
    uint64_t at = pstk__mds_head(columns);
    for (uint32_t i = 0; i < columns->n; i++) {
        offsets->begin[i] = at;
        if (columns->at[i].is_variable) {
            at += pstk__get32(head);
            head += 4;
        } else
            at += columns->at[i].size;
    }
    offsets->begin[columns->n] = at;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* The bytes before the elements of an array. */
struct head {
    const uint8_t *shape; /* its dimensions */
    uint32_t dtype, n_dims;
    uint64_t size; /* bytes of the head */
    uint64_t dims[PSTK_MAX_DIMS];
};

/* Read a head; n: bytes at `data`. */
static const char *read_head(struct head *head, const struct pstk__index_field *field,
                             const uint8_t *data, uint64_t n, char text[160])
{
    const uint32_t at = field->coding == PSTK__MDS_ARRAY;
    *head = (struct head){0};
    if (n < at + 1u)
        return WRONG("has %" PRIu64 " bytes, too few for an array", n);
    head->dtype = at ? dtype_of_code(data[0]) : field->field.dtype;
    if (!head->dtype)
        return WRONG("is an array of dtype %u, which does not exist", data[0]);
    head->shape = data + at;
    head->n_dims = data[at] >> 2;
    const uint32_t width = 1u << (data[at] & 3);
    head->size = at + 1 + (uint64_t)head->n_dims * width;
    if (n < head->size)
        return WRONG("has %" PRIu64 " bytes, too few for an array of %u dimensions", n,
                     head->n_dims);
    for (uint32_t i = 0; i < head->n_dims && i < PSTK_MAX_DIMS; i++)
        head->dims[i] = pstk__translated_dim(head->shape, i);
    return NULL;
}

/* Compare an array with its field, and its shape with its elements. */
static const char *check_array(const struct head *head, const struct pstk_field *field,
                               uint64_t size, char text[160])
{
    struct pstk__coding_array array = {
        .dtype = head->dtype, .n_dims = head->n_dims, .n_bytes = size - head->size};
    memcpy(array.dims, head->dims, sizeof array.dims);
    return pstk__coding_check_array(&array, field, text);
}

static const char *view_array(struct pstk__field_view *view, const struct pstk__index_field *field,
                              const uint8_t *data, uint64_t size, char text[160])
{
    struct head head;
    const char *wrong = read_head(&head, field, data, size, text);
    if (!wrong)
        wrong = check_array(&head, &field->field, size, text);
    if (wrong)
        return wrong;
    /* With one variable dimension the bytes are only the elements; with more the shape comes first.
     */
    if (pstk__value_n_variable(&field->field) > 1) {
        const uint64_t plain = size - head.size + 8 * (uint64_t)head.n_dims;
        view->data = head.shape;
        view->stored_size = (uint32_t)(size - (uint64_t)(head.shape - data));
        view->plain_size = (uint32_t)plain;
        view->codec = PSTK__FOREIGN_SHAPED_ARRAY;
        return plain > UINT32_MAX ? WRONG("has 4 GiB or more") : NULL;
    }
    view->data = data + head.size;
    view->stored_size = view->plain_size = (uint32_t)(size - head.size);
    return NULL;
}

const char *pstk__mds_describe(struct pstk__index_field *field,
                               const struct pstk__mds_column *column, const uint8_t *data,
                               uint64_t n, uint64_t size, char text[160])
{
    struct head head;
    *field = (struct pstk__index_field){.field = column->field, .coding = column->coding};
    if (column->field.kind == 0)
        field->field.kind = PSTK_FIELD_BYTES;
    if (column->coding != PSTK__MDS_ARRAY && column->coding != PSTK__MDS_ARRAY_TYPED)
        return NULL;
    const char *wrong = read_head(&head, field, data, n < size ? n : size, text);
    if (wrong)
        return wrong;
    if (head.n_dims == 0 || head.n_dims > PSTK_MAX_DIMS) { /* more than the dimensions of a field */
        field->field.kind = PSTK_FIELD_BYTES;
        field->field.dtype = 0;
        field->coding = PSTK__CODING_PLAIN;
        return NULL;
    }
    field->field.dtype = head.dtype;
    field->field.n_dims = head.n_dims;
    return NULL;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Modes of Pillow with the same rows as PSTK_ENCODING_PIXELS. */
static const struct {
    const char *name;
    uint8_t channels, bit_depth;
} modes[] = {{"L", 1, 8}, {"RGB", 3, 8}, {"RGBA", 4, 8}, {"I;16", 1, 16}};

static const char *view_pixels(struct pstk__field_view *view, const uint8_t *data, uint64_t size,
                               char text[160])
{
    const uint64_t n = size >= PIXELS_HEAD ? pstk__get32(data + 8) : 0;
    if (size < PIXELS_HEAD || n > size - PIXELS_HEAD)
        return WRONG("has %" PRIu64 " bytes, too few for an image of Pillow", size);
    const char *mode = (const char *)data + PIXELS_HEAD;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strlen(modes[i].name) == n && memcmp(modes[i].name, mode, n) == 0) {
            view->channels = modes[i].channels;
            view->bit_depth = modes[i].bit_depth;
        }
    if (view->channels == 0) {
        const char *at = WRONG("is an image of mode '%.*s'; must be L, RGB, RGBA or I;16: read it "
                               "as bytes",
                               (int)(n < 16 ? n : 16), mode);
        for (char *c = text; *c; c++)
            *c = (uint8_t)*c < 32 || (uint8_t)*c > 126 ? '?' : *c;
        return at;
    }
    view->encoding = PSTK_ENCODING_PIXELS;
    view->width = pstk__get32(data);
    view->height = pstk__get32(data + 4);
    view->data = data + PIXELS_HEAD + n;
    view->stored_size = view->plain_size = (uint32_t)(size - PIXELS_HEAD - n);
    return pstk__record_item_wrong(view);
}

static const char *view_images(struct pstk__field_view *view, const struct pstk__index_field *field,
                               const uint8_t *data, uint64_t size, char text[160])
{
    const uint32_t at = field->coding == PSTK__MDS_IMAGE_LIST ? 4 : 0;
    if (size < at || (at && pstk__get32(data) != 0))
        return WRONG("is a list that does not begin with 4 bytes of 0");
    view->codec = PSTK__FOREIGN_IMAGE_LIST;
    view->data = data + at;
    view->stored_size = (uint32_t)(size - at);
    const int64_t plain =
        pstk__translated_size(view->codec, &field->field, view->data, view->stored_size);
    if (plain < 0)
        return WRONG("has %" PRIu64 " bytes, but the sizes of its images add up to another number",
                     size);
    view->plain_size = (uint32_t)plain;
    return plain > UINT32_MAX ? WRONG("has 4 GiB or more") : NULL;
}

/* ---- all ------------------------------------------------------------------------------------- */

uint64_t pstk__mds_plain_size(const struct pstk__index_field *field, uint64_t size,
                              uint64_t n_items)
{
    switch (field->coding) {
    case PSTK__MDS_ARRAY:
    case PSTK__MDS_ARRAY_TYPED:
        return size + 8 * (uint64_t)PSTK_MAX_DIMS;
    case PSTK__MDS_IMAGES:
    case PSTK__MDS_IMAGE_LIST: /* a head for each, and zeros before each: list.h */
        return size + 16 + 31 * n_items;
    default:
        return size > 8 ? size : 8; /* texts of an integer become up to 8 bytes */
    }
}

const char *pstk__mds_view(struct pstk__field_view *view, const struct pstk__index_field *field,
                           const uint8_t *data, uint64_t size, char text[160])
{
    *view = (struct pstk__field_view){.data = data, .checksum = PSTK__CHECKSUM_NONE};
    switch (field->coding) {
    case PSTK__MDS_ARRAY:
    case PSTK__MDS_ARRAY_TYPED:
        return view_array(view, field, data, size, text);
    case PSTK__MDS_PIXELS:
        return view_pixels(view, data, size, text);
    case PSTK__MDS_IMAGES:
    case PSTK__MDS_IMAGE_LIST:
        return view_images(view, field, data, size, text);
    default:
        break;
    }
    const char *wrong = pstk__coding_view(view, field, data, size, text);
    if (wrong || field->coding != PSTK__CODING_PLAIN || field->field.kind == PSTK_FIELD_UTF8)
        return wrong;
    wrong = pstk__value_check(&field->field, data, size, text);
    if (!wrong)
        return NULL;
    char what[160];
    snprintf(what, sizeof what, "%s", wrong);
    return WRONG("has %.150s", what);
}

/* 1: the elements of a field's values may be read as an array of that dtype and shape. */
static int array_fits(const struct pstk__index_field *field, const struct pstk_field *wanted)
{
    const struct pstk_field *own = &field->field;
    if (own->kind == PSTK_FIELD_BYTES)
        return pstk__value_n_variable(wanted) <= 1;
    int fits = own->kind == PSTK_FIELD_NDARRAY && own->dtype == wanted->dtype &&
               own->n_dims == wanted->n_dims;
    for (uint32_t i = 0; fits && i < own->n_dims; i++)
        fits = own->shape[i] == 0 || own->shape[i] == wanted->shape[i];
    return fits;
}

/* 1: values can be read as `wanted` in the same coding; 2: in the coding PLAIN. */
static int can_be(const struct pstk__index_field *field, const struct pstk_field *wanted)
{
    const uint32_t own = field->field.kind;
    switch (wanted->kind) {
    case PSTK_FIELD_BYTES:
        return 2;
    case PSTK_FIELD_UTF8:
        return own == PSTK_FIELD_UTF8 || own == PSTK_FIELD_BYTES ||
                       field->coding == PSTK__CODING_TEXT_INTEGER
                   ? 2
                   : 0;
    case PSTK_FIELD_IMAGE:
        return own == PSTK_FIELD_IMAGE || own == PSTK_FIELD_BYTES;
    case PSTK_FIELD_IMAGE_LIST:
        return own == PSTK_FIELD_IMAGE_LIST;
    case PSTK_FIELD_SCALAR:
        return own == PSTK_FIELD_SCALAR && field->field.dtype == wanted->dtype;
    case PSTK_FIELD_NDARRAY:
        return array_fits(field, wanted);
    default:
        return 0;
    }
}

/* Describe the values of a field: "ndarray u16 [64]", "utf8". */
static const char *describe(const struct pstk_field *field, char text[160])
{
    int n = snprintf(text, 160, "%s%s%s", pstk__field_kind_name(field->kind),
                     field->dtype ? " " : "", field->dtype ? pstk_dtype_name(field->dtype) : "");
    for (uint32_t i = 0; i < field->n_dims && n < 130; i++) /* max 8 dimensions of 10 digits */
        n += field->shape[i] ? snprintf(text + n, 160 - (size_t)n, "%s%llu", i ? "," : " [",
                                        (unsigned long long)field->shape[i])
                             : snprintf(text + n, 160 - (size_t)n, "%s*", i ? "," : " [");
    if (field->n_dims)
        snprintf(text + n, 160 - (size_t)n, "]");
    return text;
}

int pstk__mds_retype(struct pstk__index_field *field, const struct pstk_field *wanted,
                     struct pstk_error *err)
{
    const int is_text =
        field->field.kind == PSTK_FIELD_UTF8 || field->field.kind == PSTK_FIELD_BYTES;
    if (wanted->kind == PSTK_FIELD_SCALAR &&
        (is_text || field->coding == PSTK__CODING_TEXT_INTEGER))
        return pstk__coding_retype(field, wanted, err);
    const int how = can_be(field, wanted);
    char own[160], other[160];
    if (!how)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "field %s: its column holds values of the type %s, which cannot be read "
                          "as %s; leave the type out, or read them as bytes",
                          field->field.name, describe(&field->field, own), describe(wanted, other));
    if (how == 2)
        field->coding = PSTK__CODING_PLAIN;
    field->field = *wanted;
    field->field.codec = PSTK_CODEC_NONE;
    return 0;
}
