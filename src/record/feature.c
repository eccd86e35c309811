/* SPDX-License-Identifier: Apache-2.0 */
#include "record/feature.h"

#include "base/little.h"
#include "image/image.h"
#include "record/list.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>

/* A tag is the field's number, shifted left by 3, plus its coding: 0 varint, 1 eight bytes, 2 size
 * and bytes, 5 four bytes; 3 begins a group of fields, and 4 ends it. */
#define TAG_FIRST PSTK__WIRE_FIRST
#define TAG_SECOND PSTK__WIRE_SECOND
#define TAG_THIRD 0x1a  /* field 3: size and bytes */
#define TAG_VARINT 0x08 /* field 1: varint */
#define TAG_FLOAT 0x0d  /* field 1: four bytes */

/* The maximum nesting of groups, about as deep as protobuf's parsers accept; those also count
 * messages. */
#define MAX_GROUPS 100

#define WRONG(...) (snprintf(text, 160, __VA_ARGS__), text)

static uint64_t left(const struct pstk__wire *wire)
{
    return (uint64_t)(wire->end - wire->at);
}

/* ---- the wire -------------------------------------------------------------------------------- */

/* Read a varint of at most 64 bits in 10 bytes. Returns 0 if there is none. */
static int read_varint(struct pstk__wire *wire, uint64_t *number)
{
    if (wire->at < wire->end && *wire->at < 0x80) {
        *number = *wire->at++;
        return 1;
    }
    *number = 0;
    for (uint32_t shift = 0; shift < 70 && wire->at < wire->end; shift += 7) {
        const uint8_t byte = *wire->at++;
        if (shift == 63 && byte > 1)
            return 0;
        *number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return 1;
    }
    return 0;
}

int pstk__wire_open(struct pstk__wire *wire, uint8_t tag, uint64_t *size)
{
    if (wire->at == wire->end || *wire->at != tag)
        return 0;
    wire->at++;
    return read_varint(wire, size);
}

/* Read a field that has this tag and is coded as size and bytes. Returns 0 if there is none. */
static int read_bytes(struct pstk__wire *wire, uint8_t tag, const uint8_t **bytes, uint64_t *size)
{
    if (!pstk__wire_open(wire, tag, size) || *size > left(wire))
        return 0;
    *bytes = wire->at;
    wire->at += *size;
    return 1;
}

/* Step over `size` bytes. Returns 0 if fewer are left. */
static int skip(struct pstk__wire *wire, uint64_t size)
{
    if (size > left(wire))
        return 0;
    wire->at += size;
    return 1;
}

static int read_tag(struct pstk__wire *wire, uint64_t *tag)
{
    return read_varint(wire, tag) && *tag <= UINT32_MAX && *tag >> 3 > 0;
}

/* Step over the value after a tag; for size and bytes, read only the size. Returns 0 if there is no
 * value, or if the tag begins or ends a group. */
static int skip_value(struct pstk__wire *wire, uint64_t tag, uint64_t *size)
{
    uint64_t number;
    *size = 0;
    switch (tag & 7) {
    case 0:
        return read_varint(wire, &number);
    case 1:
        return skip(wire, 8);
    case 2:
        return read_varint(wire, size);
    case 5:
        return skip(wire, 4);
    default:
        return 0;
    }
}

/* Step over the fields of the group that `tag` began, and over its end tag. Returns 0 if the group
 * does not end, or if groups nest too deep. */
static int skip_group(struct pstk__wire *wire, uint64_t tag)
{
    uint64_t open[MAX_GROUPS], size; /* open: end tags of the groups that are open */
    uint32_t n = 0;
    open[n++] = tag + 1;
    while (n > 0) {
        if (!read_tag(wire, &tag))
            return 0;
        if (tag == open[n - 1])
            n--;
        else if (PSTK__WIRE_IS_GROUP(tag) && n < MAX_GROUPS)
            open[n++] = tag + 1;
        else if (!skip_value(wire, tag, &size) || !skip(wire, size))
            return 0;
    }
    return 1;
}

int pstk__wire_field(struct pstk__wire *wire, uint64_t *tag, uint64_t *size)
{
    *size = 0;
    if (!read_tag(wire, tag))
        return 0;
    return PSTK__WIRE_IS_GROUP(*tag) ? skip_group(wire, *tag) : skip_value(wire, *tag, size);
}

/* Read a field that is coded as size and bytes, or step over another, with no bytes. Returns 0 if
 * there is none. */
static int read_field(struct pstk__wire *wire, uint64_t *tag, struct pstk__wire *bytes)
{
    uint64_t size;
    if (!pstk__wire_field(wire, tag, &size))
        return 0;
    const uint8_t *begin = wire->at;
    *bytes = (struct pstk__wire){begin, begin + (size > left(wire) ? 0 : size)};
    return skip(wire, size);
}

/* ---- an Example ------------------------------------------------------------------------------ */

/* Step to the next Features that has entries; at the end of `rest`, leave no entries. Returns 0 if
 * the bytes are no fields. */
static int next_features(struct pstk__example *example)
{
    uint64_t tag;
    example->entries.at = example->entries.end = example->rest.end;
    while (example->rest.at < example->rest.end) {
        struct pstk__wire bytes;
        if (!read_field(&example->rest, &tag, &bytes))
            return 0;
        if (tag == TAG_FIRST && bytes.at < bytes.end) {
            example->entries = bytes;
            return 1;
        }
    }
    return 1;
}

int pstk__example_begin(struct pstk__example *example, const void *data, uint64_t size)
{
    struct pstk__wire wire = {data, (const uint8_t *)data + size}, bytes;
    uint64_t tag;
    *example = (struct pstk__example){{wire.end, wire.end}, wire};
    while (wire.at < wire.end)
        if (!read_field(&wire, &tag, &bytes) || tag == TAG_SECOND)
            return 0;
    return next_features(example);
}

/* Read the key and the value of an entry. */
static int read_entry(struct pstk__wire entry, struct pstk__feature *feature)
{
    struct pstk__wire bytes;
    uint64_t tag;
    *feature = (struct pstk__feature){0};
    while (entry.at < entry.end) {
        if (!read_field(&entry, &tag, &bytes))
            return 0;
        if ((tag == TAG_FIRST && feature->key) || (tag == TAG_SECOND && feature->data))
            return 0;
        if (tag == TAG_FIRST) {
            feature->key = bytes.at;
            feature->key_size = left(&bytes);
        } else if (tag == TAG_SECOND) {
            feature->data = bytes.at;
            feature->size = left(&bytes);
        }
    }
    return feature->key && feature->data;
}

int pstk__example_next(struct pstk__example *example, struct pstk__feature *feature)
{
    struct pstk__wire *entries = &example->entries, bytes;
    uint64_t tag;
    for (;;) {
        if (entries->at == entries->end && !next_features(example))
            return -1;
        if (entries->at == entries->end)
            return 0;
        if (!read_field(entries, &tag, &bytes))
            return -1;
        if (tag == TAG_FIRST)
            return read_entry(bytes, feature) ? 1 : -1;
    }
}

const char *pstk__example_other(const void *data, uint64_t size)
{
    struct pstk__wire wire = {data, (const uint8_t *)data + size}, bytes;
    struct pstk__feature entry;
    uint64_t tag;
    int has_features = 0, has_lists = 0;
    while (wire.at < wire.end && read_field(&wire, &tag, &bytes)) {
        struct pstk__example example = {bytes, {bytes.end, bytes.end}};
        if (tag == TAG_FIRST)
            has_features |= pstk__example_next(&example, &entry) > 0;
        else if (tag == TAG_SECOND) /* its entries have the coding of a feature's */
            has_lists |= pstk__example_next(&example, &entry) > 0;
    }
    return has_lists ? "a tf.train.SequenceExample"
           : has_features
               ? "a tf.train.Example only at its beginning, so it is damaged or of another type"
               : NULL;
}

/* ---- a feature ------------------------------------------------------------------------------- */

int pstk__feature_open(struct pstk__feature_list *list, const void *data, uint64_t size)
{
    struct pstk__wire wire = {data, (const uint8_t *)data + size}, bytes;
    uint64_t tag;
    *list = (struct pstk__feature_list){PSTK__FEATURE_EMPTY, {wire.end, wire.end}};
    while (wire.at < wire.end) {
        if (!read_field(&wire, &tag, &bytes))
            return 0;
        if (tag != TAG_FIRST && tag != TAG_SECOND && tag != TAG_THIRD)
            continue;
        if (list->type != PSTK__FEATURE_EMPTY)
            return 0;
        *list = (struct pstk__feature_list){(uint32_t)tag >> 3, bytes};
    }
    return size == 0 || list->type != PSTK__FEATURE_EMPTY; /* 0: only fields of unknown kinds */
}

int pstk__feature_next(struct pstk__feature_list *list, const uint8_t **value, uint64_t *size)
{
    if (list->wire.at == list->wire.end)
        return 0;
    return read_bytes(&list->wire, TAG_FIRST, value, size) ? 1 : -1;
}

static int64_t count_bytes(struct pstk__feature_list list, uint64_t *n_bytes)
{
    const uint8_t *value;
    uint64_t size;
    int64_t n = 0;
    int r;
    *n_bytes = 0;
    for (; (r = pstk__feature_next(&list, &value, &size)) > 0; n++)
        *n_bytes += size; /* all lie in the list: no overflow */
    return r < 0 ? r : n;
}

static int64_t count_floats(struct pstk__wire wire)
{
    const uint8_t *piece;
    uint64_t size, n = 0;
    while (wire.at < wire.end) {
        if (*wire.at == TAG_FLOAT && left(&wire) >= 5) {
            wire.at += 5;
            n++;
        } else if (read_bytes(&wire, TAG_FIRST, &piece, &size) && size % 4 == 0) {
            n += size / 4;
        } else {
            return -1;
        }
    }
    return (int64_t)n;
}

/* Count the varints of a piece: the bytes below 128, which end them. The last byte must be one. */
static int64_t count_varints(const uint8_t *piece, uint64_t size)
{
    uint64_t n = 0;
    if (size > 0 && piece[size - 1] >= 0x80)
        return -1;
    for (uint64_t i = 0; i < size; i++)
        n += piece[i] < 0x80;
    return (int64_t)n;
}

static int64_t count_int64(struct pstk__wire wire)
{
    const uint8_t *piece;
    uint64_t size, value;
    int64_t n = 0;
    while (wire.at < wire.end) {
        int64_t more = 1;
        if (*wire.at == TAG_VARINT) {
            wire.at++;
            more = read_varint(&wire, &value) ? 1 : -1;
        } else {
            more = read_bytes(&wire, TAG_FIRST, &piece, &size) ? count_varints(piece, size) : -1;
        }
        if (more < 0)
            return -1;
        n += more;
    }
    return n;
}

int64_t pstk__feature_count(const struct pstk__feature_list *list, uint64_t *n_bytes)
{
    *n_bytes = 0;
    switch (list->type) {
    case PSTK__FEATURE_BYTES:
        return count_bytes(*list, n_bytes);
    case PSTK__FEATURE_FLOAT:
        return count_floats(list->wire);
    case PSTK__FEATURE_INT64:
        return count_int64(list->wire);
    default:
        return 0;
    }
}

const uint8_t *pstk__feature_floats(const struct pstk__feature_list *list, uint64_t *size)
{
    struct pstk__wire wire = list->wire;
    const uint8_t *piece;
    return list->type == PSTK__FEATURE_FLOAT && read_bytes(&wire, TAG_FIRST, &piece, size) &&
                   left(&wire) == 0 && *size % 4 == 0
               ? piece
               : NULL;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Return the product of the fixed dimensions of an array; *n_variable counts the others. */
static uint64_t elements(const struct pstk_field *field, uint32_t *n_variable)
{
    uint64_t n = 1;
    *n_variable = 0;
    for (uint32_t i = 0; i < field->n_dims; i++) {
        *n_variable += field->shape[i] == 0;
        if (field->shape[i] && __builtin_mul_overflow(n, field->shape[i], &n))
            return UINT64_MAX;
    }
    return n;
}

int pstk__feature_fits(const struct pstk_field *field, uint64_t n, char text[160])
{
    uint32_t n_variable;
    const uint64_t unit = elements(field, &n_variable);
    if (n_variable ? n % unit == 0 : n == unit)
        return 1;
    snprintf(text, 160, "has %" PRIu64 " values; must have %s%" PRIu64, n,
             n_variable ? "a multiple of " : "", unit);
    return 0;
}

static void copy_floats(struct pstk__wire wire, uint8_t *plain)
{
    while (wire.at < wire.end) {
        const uint8_t *piece = wire.at + 1;
        uint64_t size = 4;
        if (*wire.at == TAG_FLOAT)
            wire.at += 5;
        else if (!read_bytes(&wire, TAG_FIRST, &piece, &size))
            return; /* count_floats excludes this */
        if (size > 0)
            memcpy(plain, piece, size);
        plain += size;
    }
}

/* Return 1 if the value fits in the dtype. */
static int int64_fits(int64_t value, uint32_t dtype)
{
    const uint32_t bits = 8 * pstk_dtype_size(dtype);
    if (dtype == PSTK_I64)
        return 1;
    if (dtype == PSTK_U64)
        return value >= 0;
    if (dtype == PSTK_I8 || dtype == PSTK_I16 || dtype == PSTK_I32)
        return value >= -(INT64_C(1) << (bits - 1)) && value < INT64_C(1) << (bits - 1);
    return value >= 0 && value < INT64_C(1) << bits;
}

/* The position where numbers are written, one after another. */
struct numbers {
    uint8_t *plain;
    uint32_t dtype, size; /* size: bytes of a number */
};

/* Read one varint, or all varints of a piece. */
static const char *read_numbers(struct numbers *to, struct pstk__wire *wire, int is_piece,
                                char text[160])
{
    uint64_t value;
    do {
        if (is_piece && wire->at == wire->end)
            return NULL;
        if (!read_varint(wire, &value))
            return WRONG("has an integer of more than 64 bits");
        if (!int64_fits((int64_t)value, to->dtype))
            return WRONG("has the value %" PRId64 ", which does not fit in %s", (int64_t)value,
                         pstk_dtype_name(to->dtype));
        uint8_t bytes[8];
        pstk__put64(bytes, value);
        memcpy(to->plain, bytes, to->size);
        to->plain += to->size;
    } while (is_piece);
    return NULL;
}

/* Read a piece of i64, the most common dtype: a loop of its own is faster. */
static const char *read_int64(struct numbers *to, struct pstk__wire *wire, char text[160])
{
    uint64_t value;
    uint8_t *plain = to->plain;
    for (; wire->at < wire->end; plain += 8) {
        if (!read_varint(wire, &value))
            return WRONG("has an integer of more than 64 bits");
        pstk__put64(plain, value);
    }
    to->plain = plain;
    return NULL;
}

static const char *copy_int64(struct pstk__wire wire, const struct pstk_field *field,
                              uint8_t *plain, char text[160])
{
    struct numbers to = {plain, field->dtype, pstk_dtype_size(field->dtype)};
    const char *wrong = NULL;
    while (!wrong && wire.at < wire.end) {
        const uint8_t *bytes;
        uint64_t size;
        if (*wire.at == TAG_VARINT) {
            wire.at++;
            wrong = read_numbers(&to, &wire, 0, text);
        } else if (read_bytes(&wire, TAG_FIRST, &bytes, &size)) {
            struct pstk__wire piece = {bytes, bytes + size};
            wrong = field->dtype == PSTK_I64 ? read_int64(&to, &piece, text)
                                             : read_numbers(&to, &piece, 1, text);
        }
    }
    return wrong;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static const char *copy_list(struct pstk__feature_list list, uint32_t kind, uint32_t n,
                             uint8_t *plain, char text[160])
{
    uint64_t size, at = pstk__list_head_size(kind, n);
    const uint8_t *value;
    pstk__put32(plain, n);
    for (uint32_t i = 0; pstk__feature_next(&list, &value, &size) > 0; i++) {
        const struct pstk__field_view item = {.plain_size = (uint32_t)size};
        pstk__list_put_head(kind, n, i, &item, plain);
        if (kind == PSTK_FIELD_UTF8_LIST && pstk__utf8_end(value, size) != size)
            return WRONG("item %u is not UTF-8: read it as a bytes list", i);
        if (size > 0)
            memcpy(plain + at, value, size);
        at += size;
    }
    return NULL;
}

/* Copy the only value of a list, checked as its kind requires. */
static const char *copy_one(struct pstk__feature_list *list, uint32_t kind, uint8_t *plain,
                            char text[160])
{
    struct pstk__image_info info;
    struct pstk_error why;
    const uint8_t *value = NULL;
    uint64_t size = 0;
    (void)pstk__feature_next(list, &value, &size);
    pstk_error_init(&why, sizeof why);
    if (kind == PSTK_FIELD_IMAGE && pstk__image_probe(value, size, UINT64_MAX, &info, &why) < 0)
        return WRONG("%.150s", why.message);
    if (kind == PSTK_FIELD_UTF8 && pstk__utf8_end(value, size) != size)
        return WRONG("is not UTF-8 from byte %" PRIu64 " on: read it as bytes",
                     pstk__utf8_end(value, size));
    if (size > 0)
        memcpy(plain, value, size);
    return NULL;
}

/* ---- all ------------------------------------------------------------------------------------- */

static uint32_t type_of(uint32_t what)
{
    return what == PSTK__FEATURE_READ_FLOAT   ? PSTK__FEATURE_FLOAT
           : what == PSTK__FEATURE_READ_INT64 ? PSTK__FEATURE_INT64
                                              : PSTK__FEATURE_BYTES;
}

static const char *type_name(uint32_t type)
{
    return type == PSTK__FEATURE_FLOAT   ? "a float_list"
           : type == PSTK__FEATURE_INT64 ? "an int64_list"
                                         : "a bytes_list";
}

/* Open the list of a value that is read as `what`. Returns NULL, or the reason of a failure. */
static const char *open_list(struct pstk__feature_list *list, uint32_t what, const void *data,
                             uint64_t size, char text[160])
{
    if (!pstk__feature_open(list, data, size))
        return WRONG("is not coded as protobuf codes a tf.train.Feature");
    return list->type == PSTK__FEATURE_EMPTY || list->type == type_of(what)
               ? NULL
               : WRONG("is %s in this record; must be %s, as in others", type_name(list->type),
                       type_name(type_of(what)));
}

/* Return the size of a value that the record lacks, in bytes: an empty list or array, if the field
 * may be empty; else -1, with the remedy in `text`. */
static int64_t absent_size(uint32_t what, const struct pstk_field *field, char text[160])
{
    uint32_t n_variable = 0;
    if (what == PSTK__FEATURE_READ_LIST)
        return pstk__list_head_size(field->kind, 0);
    if (what == PSTK__FEATURE_READ_FLOAT || what == PSTK__FEATURE_READ_INT64)
        (void)elements(field, &n_variable);
    if (n_variable)
        return 0;
    if (what == PSTK__FEATURE_READ_ONE)
        snprintf(text, 160,
                 "is absent from this record; fields={\"%s\": [\"%s\"]} reads no item there",
                 field->name, field->kind == PSTK_FIELD_UTF8 ? "utf8" : "bytes");
    else
        snprintf(text, 160, "is absent from this record; fields={\"%s\": (\"%s\", %s there",
                 field->name, what == PSTK__FEATURE_READ_FLOAT ? "float32" : "int64",
                 field->kind == PSTK_FIELD_SCALAR ? "(), 0)} reads 0, and (None,) none"
                                                  : "(None,))} reads none");
    return -1;
}

/* Return the plain size of a list's values, in bytes; -1 with the reason in `text`. */
static int64_t plain_size_of(uint32_t what, const struct pstk_field *field,
                             const struct pstk__feature_list *list, char text[160])
{
    uint64_t n_bytes;
    if (list->type == PSTK__FEATURE_EMPTY)
        return absent_size(what, field, text);
    const int64_t n = pstk__feature_count(list, &n_bytes);
    if (n < 0) {
        snprintf(text, 160, "is not coded as protobuf codes %s", type_name(list->type));
        return -1;
    }
    if (what == PSTK__FEATURE_READ_FLOAT || what == PSTK__FEATURE_READ_INT64)
        return pstk__feature_fits(field, (uint64_t)n, text)
                   ? n * (int64_t)pstk_dtype_size(field->dtype)
                   : -1;
    if (what == PSTK__FEATURE_READ_LIST)
        return (int64_t)(pstk__list_head_size(field->kind, (uint32_t)n) + n_bytes);
    if (n == 1)
        return (int64_t)n_bytes;
    snprintf(text, 160, "has %" PRId64 " values in this record; must have 1", n);
    return -1;
}

int64_t pstk__feature_plain_size(uint32_t what, const struct pstk_field *field, const void *data,
                                 uint64_t size)
{
    struct pstk__feature_list list;
    char text[160];
    if (open_list(&list, what, data, size, text))
        return -1;
    const int64_t plain = plain_size_of(what, field, &list, text);
    return plain > (int64_t)UINT32_MAX ? -1 : plain;
}

const char *pstk__feature_translate(uint32_t what, const struct pstk_field *field, const void *data,
                                    uint64_t size, void *plain, uint64_t plain_size, char text[160])
{
    struct pstk__feature_list list;
    const char *wrong = open_list(&list, what, data, size, text);
    const int64_t wanted = wrong ? -1 : plain_size_of(what, field, &list, text);
    if (wanted < 0)
        return text;
    if (wanted > (int64_t)UINT32_MAX || (uint64_t)wanted != plain_size)
        return WRONG("has %" PRId64 " bytes, where %" PRIu64 " are expected", wanted, plain_size);
    if (what == PSTK__FEATURE_READ_INT64)
        return copy_int64(list.wire, field, plain, text);
    if (what == PSTK__FEATURE_READ_FLOAT) {
        copy_floats(list.wire, plain);
        return NULL;
    }
    uint64_t n_bytes;
    if (what == PSTK__FEATURE_READ_LIST)
        return copy_list(list, field->kind, (uint32_t)pstk__feature_count(&list, &n_bytes), plain,
                         text);
    return copy_one(&list, field->kind, plain, text);
}
