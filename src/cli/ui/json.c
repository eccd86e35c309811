/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/json.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/types.h>

#include "command.h"
#include "ui/message.h"
#include "ui/text.h"

static json_t *have(json_t *value)
{
    if (!value)
        message_no_memory();
    return value;
}

static void set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, have(value)) < 0)
        message_no_memory();
}

/* Make a JSON string. Text from a file system may not be UTF-8, which JSON requires: invalid bytes
 * become '?'. */
static json_t *text_value(const char *text)
{
    json_t *value = json_string(text);
    if (value)
        return value;
    char *copy = strdup(text);
    if (!copy)
        message_no_memory();
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    value = json_string(copy);
    free(copy);
    return have(value);
}

static json_t *count_value(uint64_t value)
{
    return value > INT64_MAX ? json_null() : json_integer((json_int_t)value);
}

json_t *json_make_object(void)
{
    return have(json_object());
}

json_t *json_make_array(void)
{
    return have(json_array());
}

void json_put_text(json_t *object, const char *key, const char *text)
{
    set(object, key, text ? text_value(text) : json_null());
}

void json_put_count(json_t *object, const char *key, uint64_t value)
{
    set(object, key, count_value(value));
}

void json_put_real(json_t *object, const char *key, double value)
{
    set(object, key, isfinite(value) ? json_real(value) : json_null());
}

void json_put_bool(json_t *object, const char *key, int value)
{
    set(object, key, json_boolean(value));
}

void json_put_null(json_t *object, const char *key)
{
    set(object, key, json_null());
}

void json_put(json_t *object, const char *key, json_t *takes)
{
    set(object, key, takes);
}

void json_append(json_t *array, json_t *takes)
{
    if (json_array_append_new(array, have(takes)) < 0)
        message_no_memory();
}

void json_append_text(json_t *array, const char *text)
{
    json_append(array, text_value(text));
}

void json_append_count(json_t *array, uint64_t value)
{
    json_append(array, count_value(value));
}

void json_append_whole(json_t *array, int64_t value)
{
    json_append(array, json_integer((json_int_t)value));
}

void json_append_real(json_t *array, double value)
{
    json_append(array, isfinite(value) ? json_real(value) : json_null());
}

void json_print_line(json_t *takes)
{
    char *text = json_dumps(takes, JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
    json_decref(takes);
    if (!text)
        message_no_memory();
    text_print_json(stdout, text);
    putchar('\n');
    free(text);
    fflush(stdout);
}

int json_print(json_t *takes, int status)
{
    json_print_line(takes);
    return message_finish(status);
}

void json_drop(json_t *takes)
{
    json_decref(takes);
}

json_t *json_take_first(json_t *takes)
{
    json_t *first = json_incref(have(json_array_get(takes, 0)));
    json_decref(takes);
    return first;
}

struct json_t *json_read(const char *path)
{
    return json_load_file(path, 0, NULL);
}

const char *json_text(const struct json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

uint64_t json_count(const struct json_t *object, const char *key, uint64_t otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? (uint64_t)json_integer_value(value) : otherwise;
}

double json_number(const struct json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

const struct json_t *json_get(const struct json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

size_t json_n(const struct json_t *value)
{
    return json_is_object(value) ? json_object_size(value) : json_array_size(value);
}

const struct json_t *json_at(const struct json_t *array, size_t i)
{
    return json_array_get(array, i);
}

void json_each(const struct json_t *object,
               void (*see)(void *user, const char *key, const struct json_t *value), void *user)
{
    json_t *whole = json_incref((json_t *)(uintptr_t)object);
    const char *key;
    json_t *value;
    json_object_foreach(whole, key, value) see(user, key, value);
    json_decref(whole);
}

char *json_plain(const struct json_t *value)
{
    char *text = NULL;
    int r = 0;
    if (json_is_string(value))
        text = strdup(json_string_value(value));
    else if (json_is_boolean(value))
        text = strdup(json_is_true(value) ? "yes" : "no");
    else if (json_is_integer(value))
        r = asprintf(&text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        r = asprintf(&text, "%.6g", json_real_value(value));
    else
        return NULL;
    if (r < 0 || !text)
        message_no_memory();
    return text;
}

struct json_t *json_parse(const char *text, size_t size)
{
    json_t *value = json_loadb(text, size, 0, NULL);
    if (json_is_object(value))
        return value;
    json_decref(value);
    return NULL;
}

struct json_t *json_share(const struct json_t *value)
{
    return json_incref((json_t *)(uintptr_t)value);
}

void json_write_html(FILE *file, const struct json_t *value)
{
    char *text = json_dumps(value, JSON_REAL_PRECISION(7) | JSON_PRESERVE_ORDER | JSON_COMPACT);
    if (!text)
        message_no_memory();
    for (const char *c = text; *c; c++) {
        if (*c == '<' || *c == '>' || *c == '&') /* only strings contain these */
            fprintf(file, "\\u%04x", *c);
        else
            putc(*c, file);
    }
    free(text);
}

double json_figure(const struct json_t *object, const char *key)
{
    return json_number(json_object_get(object, key));
}

void json_fill(struct json_t *object, const struct json_t *from)
{
    const char *key;
    json_t *value, *whole = (json_t *)(uintptr_t)from;
    json_object_foreach(whole, key, value)
    {
        json_t *old = json_object_get(object, key);
        if (!old || json_is_null(old))
            set(object, key, json_incref(value));
        else if (json_is_object(old) && json_is_object(value))
            json_fill(old, value);
    }
}
