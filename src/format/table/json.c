/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON lines: a JSON object (RFC 8259) on each line, in which a number may also be NaN, Infinity or
 * -Infinity, as Python's json module writes and reads them. The JSON library checks lists and
 * objects in it; this file checks everything else.
 */
#include "base/json_piece.h"
#include "base/utf8.h"
#include "format/table/table.h"
#include "format/table/value.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define MAX_NESTED                                                                                 \
    100000 /* max values in one list or object, because the library makes a tree of it */

static int wrong(struct pstk__table_row *row, uint64_t at, const char *what)
{
    snprintf(row->wrong, sizeof row->wrong, "%s", what);
    row->wrong_at = at;
    return -1;
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Read 4 hexadecimal digits; -1: other characters. */
static int32_t read_hex(const char *at, const char *end)
{
    int32_t number = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const char c = at[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return -1;
        number = number * 16 + digit;
    }
    return number;
}

static char *put_utf8(char *to, int32_t point)
{
    if (point < 0x80) {
        *to++ = (char)point;
    } else if (point < 0x800) {
        *to++ = (char)(0xc0 | point >> 6);
        *to++ = (char)(0x80 | (point & 0x3f));
    } else if (point < 0x10000) {
        *to++ = (char)(0xe0 | point >> 12);
        *to++ = (char)(0x80 | (point >> 6 & 0x3f));
        *to++ = (char)(0x80 | (point & 0x3f));
    } else {
        *to++ = (char)(0xf0 | point >> 18);
        *to++ = (char)(0x80 | (point >> 12 & 0x3f));
        *to++ = (char)(0x80 | (point >> 6 & 0x3f));
        *to++ = (char)(0x80 | (point & 0x3f));
    }
    return to;
}

/* Write the character of the digits after \u, with the second half of a pair, and move *to past it.
 * Returns the end of the digits; NULL: they name no character. */
static const char *take_point(const char *at, const char *end, char **to)
{
    int32_t point = read_hex(at, end);
    if (point <= 0 || (point >= 0xdc00 && point < 0xe000))
        return NULL;
    at += 4;
    if (point >= 0xd800 && point < 0xdc00) {
        if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
            return NULL;
        const int32_t low = read_hex(at + 2, end);
        if (low < 0xdc00 || low >= 0xe000)
            return NULL;
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
    }
    *to = put_utf8(*to, point);
    return at;
}

/* Unescape the characters between two quotes; the output never has more bytes. Returns its end;
 * NULL: they are no JSON string. */
static char *unescape(const char *at, const char *end, char *to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    while (at < end) {
        if (*at != '\\') {
            *to++ = *at++;
            continue;
        }
        if (++at == end)
            return NULL;
        const char c = *at++;
        const char *known = memchr(from, c, sizeof from - 1);
        if (known)
            *to++ = into[known - from];
        else if (c != 'u' || !(at = take_point(at, end, &to)))
            return NULL;
    }
    return to;
}

/* Read a piece that is a string in quotes, and move *room past its text. 0, or -1. */
static int read_string(const struct pstk__json_piece *piece, char **room, const char **text,
                       uint64_t *size)
{
    const char *at = piece->at + 1, *end = piece->at + piece->size - 1;
    *text = at;
    *size = (uint64_t)(end - at);
    for (const char *c = at; c < end; c++)
        if ((uint8_t)*c < 0x20)
            return -1;
    if (pstk__utf8_end(at, *size) != *size)
        return -1;
    if (!memchr(at, '\\', *size))
        return 0;
    *text = *room;
    *room = unescape(at, end, *room);
    *size = *room ? (uint64_t)(*room - *text) : 0;
    return *room ? 0 : -1;
}

/* ---- other values ---------------------------------------------------------------------------- */

/* 1: -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)? */
static int is_number(const char *at, const char *end)
{
    at += at < end && *at == '-';
    const char *digits = at;
    at = pstk__table_skip_digits(at, end);
    if (at == digits || (at > digits + 1 && *digits == '0'))
        return 0;
    if (at < end && *at == '.') {
        digits = at + 1;
        at = pstk__table_skip_digits(digits, end);
        if (at == digits)
            return 0;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        digits = at;
        at = pstk__table_skip_digits(at, end);
        if (at == digits)
            return 0;
    }
    return at == end;
}

/* Return the bytes of a number that is not finite at `at`; 0: there is none. */
static size_t not_finite(const char *at, const char *end)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if ((size_t)(end - at) >= strlen(words[i]) && memcmp(at, words[i], strlen(words[i])) == 0)
            return strlen(words[i]);
    return 0;
}

static int is_word(const struct pstk__json_piece *piece, const char *word)
{
    return piece->size == strlen(word) && memcmp(piece->at, word, piece->size) == 0;
}

/* Copy the text at `at`, in quotes, with another character for each \u0000. Returns its end. */
static const char *copy_text(const char *at, const char *end, char **to)
{
    *(*to)++ = *at++;
    while (at < end && *at != '"') {
        const int is_escape = *at == '\\' && end - at >= 2;
        const int is_nul = is_escape && end - at >= 6 && memcmp(at + 1, "u0000", 5) == 0;
        const size_t n = is_nul ? 6 : is_escape ? 2 : 1;
        memcpy(*to, is_nul ? "\\u0001" : at, n);
        *to += n;
        at += n;
    }
    if (at < end)
        *(*to)++ = *at++;
    return at;
}

/* Copy the number at `at`, or 0 in its place; text that is no number is copied unchanged. Returns
 * its end. */
static const char *copy_number(const char *at, const char *end, char **to)
{
    const char *after = at;
    while (after < end && memchr("+-.0123456789Ee", *after, 15))
        after++;
    const int is_known = is_number(at, after);
    const size_t n = is_known ? 1 : (size_t)(after - at);
    memcpy(*to, is_known ? "0" : at, n);
    *to += n;
    return after;
}

/* Copy [] in place of a number that is not finite, which `n` bytes name: no neighbour turns [] into
 * another value. Returns its end. */
static const char *copy_not_finite(const char *at, size_t n, char **to)
{
    *(*to)++ = '[';
    *(*to)++ = ']';
    return at + n;
}

/* 1: a list or object is JSON. The library refuses numbers and characters that C has no type for,
 * so this function checks them itself. `room` has as many bytes as the piece. */
static int is_json(const struct pstk__json_piece *piece, char *room)
{
    const char *at = piece->at, *end = at + piece->size;
    char *to = room;
    json_error_t why;
    while (at < end) {
        const size_t n = not_finite(at, end);
        if (n > 0)
            at = copy_not_finite(at, n, &to);
        else if (*at == '"')
            at = copy_text(at, end, &to);
        else if (memchr("-0123456789", *at, 11))
            at = copy_number(at, end, &to);
        else
            *to++ = *at++;
    }
    json_t *value = json_loadb(room, (size_t)(to - room), JSON_REJECT_DUPLICATES, &why);
    json_decref(value);
    return value != NULL;
}

/* Find the kind of a value. 0, or -1 with row->wrong. */
static int read_value(struct pstk__table_row *row, const struct pstk__json_piece *piece,
                      char **room, struct pstk__cell *cell)
{
    cell->text = cell->raw = piece->at;
    cell->size = cell->raw_size = piece->size;
    if (piece->at[0] == '"') {
        cell->kind = PSTK__CELL_STRING;
        return read_string(piece, room, &cell->text, &cell->size) < 0
                   ? wrong(row, cell->at,
                           "this is not a JSON string: must be UTF-8 without control characters, "
                           "with the escapes of JSON except \\u0000")
                   : 0;
    }
    if (piece->at[0] == '[' || piece->at[0] == '{') {
        cell->kind = PSTK__CELL_NESTED;
        if (piece->n_separators > MAX_NESTED)
            return wrong(row, cell->at, "a list or object has more than 100000 values");
        return is_json(piece, *room) ? 0 : wrong(row, cell->at, "this list or object is not JSON");
    }
    cell->kind = is_word(piece, "null")                              ? PSTK__CELL_NULL
                 : is_word(piece, "true") || is_word(piece, "false") ? PSTK__CELL_WORD
                                                                     : PSTK__CELL_NUMBER;
    const char *end = piece->at + piece->size;
    if (cell->kind == PSTK__CELL_NUMBER && !is_number(piece->at, end) &&
        not_finite(piece->at, end) != piece->size)
        return wrong(row, cell->at, "this is not a JSON value");
    return 0;
}

/* ---- a line ---------------------------------------------------------------------------------- */

static int is_double(const struct pstk__table_row *row, const struct pstk__cell *cell)
{
    for (uint32_t i = 0; i < row->n_cells; i++)
        if (row->cells[i].key_size == cell->key_size &&
            memcmp(row->cells[i].key, cell->key, cell->key_size) == 0)
            return 1;
    return 0;
}

static int take_member(struct pstk__table_row *row, const char *line,
                       const struct pstk__json_piece *key, const struct pstk__json_piece *value,
                       char **room)
{
    struct pstk__cell cell = {.at = (uint64_t)(value->at - line)};
    const uint64_t key_at = (uint64_t)(key->at - line);
    if (row->n_cells == PSTK__TABLE_MAX_CELLS)
        return wrong(row, key_at, "the row has more than 63 columns");
    if (read_string(key, room, &cell.key, &cell.key_size) < 0)
        return wrong(row, key_at, "the key is not a JSON string");
    if (is_double(row, &cell))
        return wrong(row, key_at, "the object has this key twice");
    if (read_value(row, value, room, &cell) < 0)
        return -1;
    row->cells[row->n_cells++] = cell;
    return 0;
}

static int parse_json(const struct pstk__table_kind *kind, const char *bytes, uint64_t size,
                      int is_end, char *room, struct pstk__table_row *row)
{
    struct pstk__json_walk walk;
    struct pstk__json_piece key = {0}, value = {0};
    const char *new_line = size ? memchr(bytes, '\n', size) : NULL;
    (void)kind;
    row->n_cells = 0;
    if (!new_line && !is_end)
        return 0;
    const char *end = new_line ? new_line : bytes + size;
    row->n_lines = new_line != NULL;
    row->size = (uint64_t)(end - bytes) + (new_line != NULL);
    if (pstk__json_skip_space(bytes, end) == end)
        return 1;
    if (memchr(bytes, 0, (size_t)(end - bytes)))
        return wrong(row, (uint64_t)((const char *)memchr(bytes, 0, size) - bytes),
                     "a NUL byte stands here: the table is damaged, or is not text");
    if (!pstk__json_walk_begin(&walk, bytes, end, '{'))
        return wrong(row, (uint64_t)(walk.at - bytes),
                     "a line must be a JSON object: {\"file_name\": ...}");
    int r;
    while ((r = pstk__json_walk_next(&walk, &key, &value)) > 0)
        if (take_member(row, bytes, &key, &value, &room) < 0)
            return -1;
    if (r < 0)
        return wrong(row, (uint64_t)(walk.at - bytes),
                     "the JSON object ends here or is damaged: each must be on one line");
    if (walk.at != end)
        return wrong(row, (uint64_t)(walk.at - bytes), "the line goes on after its JSON object");
    return row->n_cells ? 1 : wrong(row, 0, "the JSON object is empty");
}

const struct pstk__table_kind pstk__table_json = {
    .name = "JSON lines", .endings = ".jsonl .ndjson", .parse = parse_json};
