/* SPDX-License-Identifier: Apache-2.0 */
#include "option/fields.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "option/options.h"
#include "ui/message.h"

#define MAX_TYPES 64 /* words, and a NULL; some 20 are used */
#define WORD_TEXT "text"

const struct choice fields_splits[] = {
    {"auto", PSTK_SPLIT_AUTO}, {"first", PSTK_SPLIT_FIRST}, {"last", PSTK_SPLIT_LAST}, {NULL, 0}};

const struct choice fields_damages[] = {
    {"refuse", PSTK_DAMAGED_UNCHECKED}, {"accept", PSTK_DAMAGED_ACCEPT}, {NULL, 0}};

/* NumPy's names, which the Python package takes; `penstock info` prints the short ones. */
static const struct choice long_names[] = {{"int8", PSTK_I8},
                                           {"int16", PSTK_I16},
                                           {"int32", PSTK_I32},
                                           {"int64", PSTK_I64},
                                           {"uint8", PSTK_U8},
                                           {"uint16", PSTK_U16},
                                           {"uint32", PSTK_U32},
                                           {"uint64", PSTK_U64},
                                           {"float16", PSTK_F16},
                                           {"float32", PSTK_F32},
                                           {"float64", PSTK_F64},
                                           {"bfloat16", PSTK_BF16},
                                           {NULL, 0}};

/* Return 1 when values of this kind need no dtype and no attributes. */
static int is_plain(uint32_t kind)
{
    switch (kind) {
    case PSTK_FIELD_SCALAR:
    case PSTK_FIELD_NDARRAY:
    case PSTK_FIELD_BOXES:
    case PSTK_FIELD_KEYPOINTS:
    case PSTK_FIELD_POLYGONS:
    case PSTK_FIELD_RLE:
        return 0;
    default:
        return 1;
    }
}

/* List all words that a type may be, ended by NULL. */
static void list_types(const char *types[MAX_TYPES])
{
    int n = 0;
    types[n++] = WORD_TEXT;
    for (const struct choice *kind = names_field_kind; kind->name && n < MAX_TYPES / 2; kind++)
        if (is_plain(kind->value))
            types[n++] = kind->name;
    for (const struct choice *dtype = long_names; dtype->name; dtype++)
        types[n++] = dtype->name;
    for (const struct choice *dtype = names_dtype; dtype->name && n < MAX_TYPES - 1; dtype++)
        types[n++] = dtype->name;
    types[n] = NULL;
}

static int refuse(const char *text, const char *must_be)
{
    message_say("--field: value is '%s'; %s", text, must_be);
    return -1;
}

static int refuse_type(const char *text, const char *word)
{
    const char *types[MAX_TYPES];
    char must_be[256];
    list_types(types);
    const char *near = option_nearest(word, types);
    snprintf(must_be, sizeof must_be,
             "the type must be image, bytes, utf8, or a dtype such as int64, uint8, float32%s%s%s",
             near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return refuse(text, must_be);
}

/* Set kind and dtype by a word. Returns 0, or -1: no such type. */
static int set_type(struct pstk_field *field, const char *word)
{
    const char *kind = strcmp(word, WORD_TEXT) == 0 ? WORD_PSTK_FIELD_UTF8 : word;
    for (const struct choice *choice = names_field_kind; choice->name; choice++)
        if (is_plain(choice->value) && strcmp(choice->name, kind) == 0) {
            field->kind = choice->value;
            return 0;
        }
    field->kind = PSTK_FIELD_SCALAR;
    field->dtype = pstk_dtype_parse(word);
    for (const struct choice *name = long_names; name->name; name++)
        if (strcmp(name->name, word) == 0)
            field->dtype = name->value;
    return field->dtype ? 0 : -1;
}

/* Read "2049]" or "*,4]". Returns 0, or -1: it is no shape. */
static int set_shape(struct pstk_field *field, const char *text)
{
    field->kind = PSTK_FIELD_NDARRAY;
    while (field->n_dims < PSTK_MAX_DIMS) {
        uint64_t n = 0;
        char *end;
        while (*text == ' ')
            text++;
        if (*text == '*') {
            text++;
        } else {
            if (*text < '1' || *text > '9')
                return -1;
            n = strtoull(text, &end, 10);
            if (n > UINT32_MAX)
                return -1;
            text = end;
        }
        field->shape[field->n_dims++] = n;
        if (strcmp(text, "]") == 0)
            return 0;
        if (*text++ != ',')
            return -1;
    }
    return -1;
}

/* Append a field that is the first of several suffixes. The library checks them. */
static int add_first_of(struct fields *fields, const char *text, const struct pstk_field *field,
                        const char *suffixes)
{
    for (uint32_t i = 0; i < fields->n_first_of; i++)
        if (strcmp(fields->names[i], field->name) == 0)
            return refuse(text, "must be given once for each field");
    if (fields->n_first_of == PSTK_MAX_FIELDS)
        return refuse(text, "must be at most 64 fields");
    char *name = fields->names[fields->n_first_of];
    memcpy(name, field->name, PSTK_MAX_NAME);
    fields->first_of[fields->n_first_of++] =
        (struct pstk_first_of){.name = name, .suffixes = suffixes};
    return 0;
}

/* Read a number of a scalar's dtype. Returns 0, or -1: it is no number, or does not fit. */
static int set_number(uint32_t dtype, const char *text, uint8_t number[8])
{
    const int is_signed =
        dtype == PSTK_I8 || dtype == PSTK_I16 || dtype == PSTK_I32 || dtype == PSTK_I64;
    char *end;
    errno = 0;
    if (dtype == PSTK_F32) {
        const float value = strtof(text, &end);
        memcpy(number, &value, sizeof value);
        /* Subnormal numbers set errno, too. */
        const int is_lost = errno && (isinf(value) || value == 0);
        return *end || end == text || isspace((unsigned char)*text) || is_lost ? -1 : 0;
    }
    if (strspn(text, is_signed ? "-0123456789" : "0123456789") != strlen(text))
        return -1;
    const int64_t value = is_signed ? strtoll(text, &end, 10) : (int64_t)strtoull(text, &end, 10);
    memcpy(number, &value, sizeof value); /* little-endian on every machine penstock builds for */
    if (*end || end == text || errno)
        return -1;
    const uint32_t unused = 64 - 8 * pstk_dtype_size(dtype);
    const int64_t kept = is_signed ? (int64_t)((uint64_t)value << unused) >> unused
                                   : (int64_t)((uint64_t)value << unused >> unused);
    return kept == value ? 0 : -1;
}

/* Append the default of the last field. The library checks it. */
static int add_default(struct fields *fields, const char *text, const char *value)
{
    const struct pstk_field *field = &fields->at[fields->n - 1];
    uint8_t *number = fields->numbers[fields->n_defaults];
    struct pstk_default *made = &fields->defaults[fields->n_defaults];
    if (field->kind == PSTK_FIELD_NDARRAY)
        return refuse(text, "must have no default: that of an array can be given in Python");
    *made = (struct pstk_default){.name = field->name, .data = value, .size = strlen(value)};
    if (field->kind == PSTK_FIELD_SCALAR) {
        if (field->dtype == PSTK_F16 || field->dtype == PSTK_BF16 || field->dtype == PSTK_F64)
            return refuse(text, "the type must be float32 with a default: floats of TFRecords are");
        if (set_number(field->dtype, value, number) < 0)
            return refuse(text, "the default must be a number that the type can hold");
        made->data = number;
        made->size = pstk_dtype_size(field->dtype);
    }
    fields->n_defaults++;
    return 0;
}

static int add(struct fields *fields, const char *text)
{
    static const char names[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    struct pstk_field field = {.kind = 0};
    char word[32], shape[128];
    const size_t length = strspn(text, names);
    if (length == 0 || text[length] != '=' || !text[length + 1])
        return refuse(text, "must be NAME=TYPE, such as cls=int64");
    if (length >= PSTK_MAX_NAME)
        return refuse(text, "the name must have at most 63 characters");
    memcpy(field.name, text, length);
    const char *type = text + length + 1;
    if (strchr(type, ';'))
        return add_first_of(fields, text, &field, type);
    const size_t n = strcspn(type, "[="), n_type = strcspn(type, "=");
    if (n >= sizeof word || n_type - n >= sizeof shape)
        return refuse_type(text, "");
    snprintf(shape, sizeof shape, "%.*s", (int)(n_type - n), type + n);
    snprintf(word, sizeof word, "%.*s", (int)n, type);
    if (set_type(&field, word) < 0)
        return refuse_type(text, word);
    if (shape[0] && field.kind != PSTK_FIELD_SCALAR)
        return refuse(text, "must have a dtype before the shape, such as uint16[2049]");
    if (shape[0] && set_shape(&field, shape + 1) < 0)
        return refuse(text, "the shape must be as in uint16[2049] or float32[*,4]: 1 to 8 numbers "
                            "below 2^32, or * for a dimension that differs");
    for (uint32_t i = 0; i < fields->n; i++)
        if (strcmp(fields->at[i].name, field.name) == 0)
            return refuse(text, "must be given once for each field");
    if (fields->n == PSTK_MAX_FIELDS)
        return refuse(text, "must be at most 64 fields");
    fields->at[fields->n++] = field;
    return type[n_type] ? add_default(fields, text, type + n_type + 1) : 0;
}

int fields_take(struct fields *fields, int code, const char *text)
{
    if (code == OPT_FIELD)
        return add(fields, text);
    if (code == OPT_SPLIT_AT)
        return option_choice("--split-at", text, fields_splits, &fields->split_at);
    if (code == OPT_BY_CONTENT) {
        fields->by_content = 1;
        return 0;
    }
    if (code == OPT_READ_DAMAGED)
        return option_choice("--damaged", text, fields_damages, &fields->damaged);
    if (!text[0]) {
        message_say("--root-path: value is empty; must be a folder");
        return -1;
    }
    fields->root_path = text;
    return 0;
}

void fields_apply(const struct fields *fields, struct pstk_foreign *foreign)
{
    foreign->fields = fields->n ? fields->at : NULL;
    foreign->n_fields = fields->n;
    foreign->defaults = fields->n_defaults ? fields->defaults : NULL;
    foreign->n_defaults = fields->n_defaults;
    foreign->first_of = fields->n_first_of ? fields->first_of : NULL;
    foreign->n_first_of = fields->n_first_of;
    foreign->root_path = fields->root_path;
    foreign->split_at = fields->split_at;
    foreign->by_content = fields->by_content;
    foreign->damaged = fields->damaged;
}

/* Return 1 when the name and a quotation mark begin at `begin`. */
static int is_named(const char *begin, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(begin, name, n) == 0 && begin[n] == '\'';
}

/* Find the given field that the message names as: value has 'NAME'. NULL: none. */
static const char *named_in(const struct fields *fields, const char *message)
{
    static const char before[] = "value has '";
    const char *begin = strstr(message, before);
    if (!begin)
        return NULL;
    begin += sizeof before - 1;
    for (uint32_t i = 0; i < fields->n; i++)
        if (is_named(begin, fields->at[i].name))
            return fields->at[i].name;
    for (uint32_t i = 0; i < fields->n_first_of; i++)
        if (is_named(begin, fields->names[i]))
            return fields->names[i];
    return NULL;
}

/* Replace a setting in a message by its option: in "NAME: value is ...", or in "... (NAME)", the
 * last one. Paths in the message may contain the same word. */
static void explain_setting(struct pstk_error *err, const char *setting, const char *option)
{
    char text[sizeof err->message], word[64];
    const char *at = err->message;
    const size_t n = strlen(setting);
    if (strncmp(at, setting, n) != 0 || at[n] != ':') {
        const char *found = NULL;
        snprintf(word, sizeof word, " (%s)", setting);
        while ((at = strstr(at, word)))
            found = at += 2;
        if (!found)
            return;
        at = found;
    }
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - err->message), err->message, option, at + n);
    memcpy(err->message, text, sizeof text);
}

void fields_explain(const struct fields *fields, struct pstk_error *err)
{
    message_settings(err);
    explain_setting(err, "root_path", "--root-path");
    explain_setting(err, "split_at", "--split-at");
    explain_setting(err, "by_content", "--by-content");
    static const char begin[] = "fields: value ";
    char text[sizeof err->message], list[sizeof err->message];
    const char *names[PSTK_MAX_FIELDS + 1], *near = NULL;
    int n = 0;
    if ((err->code != PSTK_EINVAL && err->code != PSTK_ENOTSUP) ||
        strncmp(err->message, begin, sizeof begin - 1) != 0)
        return;
    const char *name = named_in(fields, err->message);
    const char *last = strrchr(err->message, ':');
    if (name && last) { /* the message ends with ": NAME, NAME" */
        snprintf(list, sizeof list, "%s", last + 1);
        char *rest = list, *word;
        while ((word = strsep(&rest, ", ")) && n < PSTK_MAX_FIELDS)
            if (*word)
                names[n++] = word;
        names[n] = NULL;
        near = option_nearest(name, names);
    }
    snprintf(text, sizeof text, "--field: %s", err->message + strlen("fields: "));
    const size_t used = strlen(text);
    if (near)
        snprintf(text + used, sizeof text - used, "; did you mean %s?", near);
    memcpy(err->message, text, sizeof text);
}
