/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pstk/manifest_parse.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Max separators in the values that are parsed at once. A shard with dictionaries for all fields
 * has the most: 6 colons, 5 and 63 commas, 2 brackets. */
#define MAX_SEPARATORS 256

void pstk__parse_fail_key(struct pstk__parse *parse, const char *key, const char *fmt, ...)
{
    if (parse->code < 0)
        return;
    char where[96] = ""; /* prefix of a key in messages: "shards[3]." or "" */
    char what[256];
    if (parse->list)
        snprintf(where, sizeof where, "%s[%zu].", parse->list, parse->index);
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(what, sizeof what, fmt, args) < 0)
        what[0] = 0;
    va_end(args);
    parse->code = pstk__manifest_wrong(parse->name, PSTK_EBADMSG, parse->err, "the key %s%.64s %s",
                                       where, key, what);
}

int pstk__parse_no_memory(const struct pstk__parse *parse)
{
    return pstk__fail(parse->err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to parse %s",
                      parse->name);
}

/* Return the line of the byte at `at`, from 1. */
static int line_of(const struct pstk__parse *parse, const char *at)
{
    int line = 1;
    for (const char *c = parse->text; c < at; c++)
        line += *c == '\n';
    return line;
}

void pstk__parse_fail_at(struct pstk__parse *parse, const char *at, const char *what)
{
    if (parse->code == 0)
        parse->code = pstk__manifest_wrong(parse->name, PSTK_EBADMSG, parse->err, "line %d: %s",
                                           line_of(parse, at), what);
}

json_t *pstk__parse_piece(struct pstk__parse *parse, const struct pstk__json_piece *piece)
{
    if (parse->code < 0)
        return NULL;
    if (piece->n_separators > MAX_SEPARATORS) {
        pstk__parse_fail_at(parse, piece->at, "too many values in one place for a manifest");
        return NULL;
    }
    json_error_t why;
    json_t *value =
        json_loadb(piece->at, piece->size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (value)
        return value;
    if (json_error_code(&why) == json_error_out_of_memory)
        parse->code = pstk__parse_no_memory(parse);
    else
        parse->code = pstk__manifest_wrong(parse->name, PSTK_EBADMSG, parse->err, "line %d: %s",
                                           line_of(parse, piece->at) + why.line - 1, why.text);
    return NULL;
}

int pstk__parse_next(struct pstk__parse *parse, struct pstk__json_walk *walk,
                     struct pstk__json_piece *key, struct pstk__json_piece *value)
{
    if (parse->code < 0)
        return 0;
    int r = pstk__json_walk_next(walk, key, value);
    if (r < 0)
        pstk__parse_fail_at(parse, walk->at, "a value, a comma or a bracket is missing here");
    return r > 0;
}

json_t *pstk__parse_get(struct pstk__parse *parse, json_t *object, const char *key, json_type type,
                        const char *noun)
{
    json_t *value = json_object_get(object, key);
    if (!value)
        pstk__parse_fail_key(parse, key, "is missing");
    else if (json_typeof(value) != type)
        pstk__parse_fail_key(parse, key, "must be %s", noun);
    return parse->code < 0 ? NULL : value;
}

const char *pstk__parse_text(struct pstk__parse *parse, json_t *object, const char *key)
{
    json_t *value = pstk__parse_get(parse, object, key, JSON_STRING, "a text");
    return value ? json_string_value(value) : "";
}

uint64_t pstk__parse_number(struct pstk__parse *parse, json_t *object, const char *key,
                            uint64_t max)
{
    json_t *value = pstk__parse_get(parse, object, key, JSON_INTEGER, "a whole number");
    json_int_t n = value ? json_integer_value(value) : 0;
    if (n < 0 || (uint64_t)n > max) {
        pstk__parse_fail_key(parse, key, "is %lld; must be from 0 to %llu", (long long)n,
                             (unsigned long long)max);
        return 0;
    }
    return (uint64_t)n;
}

int pstk__parse_hex(const char *text, uint32_t *value)
{
    if (strlen(text) != 8 || strspn(text, "0123456789abcdef") != 8)
        return -1;
    *value = (uint32_t)strtoul(text, NULL, 16);
    return 0;
}

uint32_t pstk__parse_crc(struct pstk__parse *parse, json_t *object, const char *key)
{
    uint32_t value = 0;
    if (pstk__parse_hex(pstk__parse_text(parse, object, key), &value) < 0)
        pstk__parse_fail_key(parse, key, "must be 8 lower-case hex digits");
    return value;
}

void pstk__parse_check_keys(struct pstk__parse *parse, json_t *object, const char *const *known,
                            size_t n)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (i < n && strcmp(known[i], key) != 0)
            i++;
        if (i == n)
            pstk__parse_fail_key(parse, key, "is unknown to this version");
    }
}

struct pstk__parse_list pstk__parse_list_begin(struct pstk__parse *parse,
                                               const struct pstk__json_piece *piece,
                                               const char *name)
{
    struct pstk__parse_list list = {.n = 0};
    struct pstk__json_piece value;
    const char *end = piece->at ? piece->at + piece->size : NULL;
    if (!piece->at)
        pstk__parse_fail_key(parse, name, "is missing");
    else if (!pstk__json_walk_begin(&list.walk, piece->at, end, '['))
        pstk__parse_fail_key(parse, name, "is not a list");
    while (pstk__parse_next(parse, &list.walk, NULL, &value))
        list.n++;
    if (parse->code < 0)
        return (struct pstk__parse_list){.n = 0};
    pstk__json_walk_begin(&list.walk, piece->at, end, '[');
    return list;
}

json_t *pstk__parse_element(struct pstk__parse *parse, struct pstk__parse_list *list,
                            const char *list_name, size_t i)
{
    struct pstk__json_piece piece;
    parse->list = list_name;
    parse->index = i;
    if (!pstk__parse_next(parse, &list->walk, NULL, &piece))
        return NULL;
    json_t *object = pstk__parse_piece(parse, &piece);
    if (object && !json_is_object(object))
        pstk__parse_fail_key(parse, "", "is not an object");
    return object;
}

void pstk__parse_copy_text(struct pstk__parse *parse, json_t *object, const char *key, char *to,
                           size_t size)
{
    const char *text = pstk__parse_text(parse, object, key);
    if (strlen(text) >= size)
        pstk__parse_fail_key(parse, key, "is longer than %zu bytes", size - 1);
    else
        memcpy(to, text, strlen(text) + 1);
}
