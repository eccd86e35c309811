/* SPDX-License-Identifier: Apache-2.0 */
#include "format/table/value.h"

#include "base/cast.h"
#include "base/little.h"
#include "format/folder/name.h"
#include "record/translate.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_NUMBER 511 /* max bytes of a number's text */

/* ---- what it is ------------------------------------------------------------------------------ */

const char *pstk__table_skip_digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

/* 1: a decimal integer of int64, in its only canonical form. */
static int is_integer(const char *at, const char *end)
{
    const int is_negative = at < end && *at == '-';
    at += is_negative;
    uint64_t number = 0;
    if (at == end || end - at > 19 || (*at == '0' && end - at > 1) ||
        pstk__table_skip_digits(at, end) != end)
        return 0;
    for (; at < end; at++) /* stays below 10^19 */
        number = number * 10 + (uint64_t)(*at - '0');
    return number <= (uint64_t)INT64_MAX + (uint64_t)is_negative;
}

static int is_word(const char *at, const char *end, const char *word)
{
    return (size_t)(end - at) == strlen(word) && strncasecmp(at, word, (size_t)(end - at)) == 0;
}

static int is_not_finite(const char *at, const char *end)
{
    at += at < end && (*at == '-' || *at == '+');
    return is_word(at, end, "nan") || is_word(at, end, "inf") || is_word(at, end, "infinity");
}

/* 1: digits with a point or an exponent, or a name of infinity or NaN. An integer outside of int64
 * is no float: it would lose digits. */
static int is_float(const char *at, const char *end)
{
    if (is_not_finite(at, end))
        return 1;
    at += at < end && (*at == '-' || *at == '+');
    const char *begin = at, *before = pstk__table_skip_digits(at, end);
    int64_t n = before - at, has_more = 0;
    at = before;
    if (at < end && *at == '.') {
        const char *after = pstk__table_skip_digits(at + 1, end);
        n += after - at - 1;
        at = after;
        has_more = 1;
    }
    if (n > 0 && at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '-' || *at == '+');
        const char *after = pstk__table_skip_digits(at, end);
        has_more = after > at;
        at = after;
    }
    const int has_zeros = before > begin + 1 && *begin == '0';
    return at == end && n > 0 && has_more && !has_zeros;
}

static int is_bool(const char *at, const char *end)
{
    static const char *const words[] = {"true", "false", "True", "False", "TRUE", "FALSE"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if ((size_t)(end - at) == strlen(words[i]) && memcmp(at, words[i], strlen(words[i])) == 0)
            return 1;
    return 0;
}

enum pstk__cell_class pstk__cell_class(const struct pstk__cell *cell)
{
    const char *at = cell->text, *end = at + cell->size;
    switch (cell->kind) {
    case PSTK__CELL_PLAIN:
        return is_integer(at, end) ? PSTK__CLASS_INTEGER
               : is_float(at, end) ? PSTK__CLASS_FLOAT
               : is_bool(at, end)  ? PSTK__CLASS_BOOL
                                   : PSTK__CLASS_TEXT;
    case PSTK__CELL_STRING:
        return PSTK__CLASS_TEXT;
    case PSTK__CELL_NUMBER:
        return is_integer(at, end) ? PSTK__CLASS_INTEGER
               : is_float(at, end) ? PSTK__CLASS_FLOAT
                                   : PSTK__CLASS_MIXED;
    case PSTK__CELL_WORD:
        return PSTK__CLASS_BOOL;
    default:
        return PSTK__CLASS_MIXED;
    }
}

int pstk__cell_is_number(const struct pstk__cell *cell)
{
    const char *at = cell->text, *end = at + cell->size;
    return cell->kind == PSTK__CELL_PLAIN &&
           (is_integer(at, end) || (is_float(at, end) && !is_not_finite(at, end)));
}

enum pstk__cell_class pstk__cell_class_join(enum pstk__cell_class a, enum pstk__cell_class b)
{
    if (a == PSTK__CLASS_NONE || a == b)
        return b;
    if (b == PSTK__CLASS_NONE)
        return a;
    return a <= PSTK__CLASS_FLOAT && b <= PSTK__CLASS_FLOAT ? PSTK__CLASS_FLOAT : PSTK__CLASS_MIXED;
}

const char *pstk__cell_class_name(enum pstk__cell_class class)
{
    static const char *const names[] = {"any value",     "an integer", "a number",
                                        "true or false", "a text",     "any value"};
    return names[class];
}

/* ---- its value ------------------------------------------------------------------------------- */

void pstk__table_show(const char *from, uint64_t size, char to[64])
{
    char cut[56];
    const uint64_t n = size < sizeof cut - 1 ? size : sizeof cut - 1;
    memcpy(cut, from, n);
    cut[n] = 0;
    pstk__folder_show(cut, to, 60);
    if (n < size || strlen(to) > 55)
        strncat(to, "...", 63 - strlen(to));
}

static const char *must_be(const struct pstk__cell *cell, const char *what, char text[240])
{
    char shown[64];
    pstk__table_show(cell->raw, cell->raw_size, shown);
    snprintf(text, 240, "is '%s'; must be %s", shown, what);
    return text;
}

/* 1: a column whose first cells are of class `wanted` may have a cell of this class. */
static int fits(uint32_t wanted, enum pstk__cell_class class)
{
    return wanted == PSTK__CLASS_NONE || wanted == PSTK__CLASS_MIXED || wanted == class ||
           (wanted == PSTK__CLASS_FLOAT && class == PSTK__CLASS_INTEGER);
}

static int is_float_dtype(uint32_t dtype)
{
    return dtype == PSTK_F16 || dtype == PSTK_F32 || dtype == PSTK_F64 || dtype == PSTK_BF16;
}

static void put_float(uint32_t dtype, double value, float single, uint8_t room[8])
{
    uint64_t bits = 0;
    if (dtype == PSTK_F64) {
        memcpy(&bits, &value, sizeof value);
    } else if (dtype == PSTK_F32) {
        memcpy(&bits, &single, sizeof single);
    } else {
        bits = dtype == PSTK_F16 ? pstk__f16_from_f32(single) : pstk__bf16_from_f32(single);
    }
    pstk__put64(room, bits);
}

/* 1: the value is infinite in the column's dtype. */
static int is_infinite(uint32_t dtype, double value, float single)
{
    if (dtype == PSTK_F64)
        return isinf(value);
    if (dtype == PSTK_F16)
        return isinf(pstk__f32_from_f16(pstk__f16_from_f32(single)));
    return isinf(single) ||
           (dtype == PSTK_BF16 && (pstk__bf16_from_f32(single) & 0x7fff) == 0x7f80);
}

/* A decimal number without its sign: 0.DIGITS * 10^exponent, no zero at either end. */
struct decimal {
    char digits[MAX_NUMBER + 1];
    long n, exponent;
};

/* Read a number that is finite and not 0; its decimal point may be any character. */
static void read_decimal(struct decimal *decimal, const char *text)
{
    int has_point = 0;
    *decimal = (struct decimal){.n = 0};
    for (; *text && *text != 'e' && *text != 'E'; text++) {
        if (*text < '0' || *text > '9') {
            has_point |= *text != '-' && *text != '+';
        } else if (decimal->n > 0 || *text != '0') {
            decimal->digits[decimal->n++] = *text;
            decimal->exponent += !has_point;
        } else {
            decimal->exponent -= has_point;
        }
    }
    decimal->exponent += *text ? strtol(text + 1, NULL, 10) : 0;
    while (decimal->n > 0 && decimal->digits[decimal->n - 1] == '0')
        decimal->n--;
}

/* Compare a number, without its sign, with the float32 to which it was rounded. Returns 1: more,
 * -1: less, or 0: equal. The float32 has less than 120 digits. */
static int compare_exactly(const char *number, float value)
{
    char exact[160];
    struct decimal a, b;
    snprintf(exact, sizeof exact, "%.130e", (double)value);
    read_decimal(&a, number);
    read_decimal(&b, exact);
    if (a.exponent != b.exponent)
        return a.exponent > b.exponent ? 1 : -1;
    const long n = a.n < b.n ? a.n : b.n;
    const int r = memcmp(a.digits, b.digits, (size_t)n);
    return r ? (r > 0 ? 1 : -1) : (a.n > b.n) - (a.n < b.n);
}

/* Round a number to a float32 by "round to odd": exact, or the one of its two neighbours whose last
 * bit is 1. strtod has rounded it to `value`. A second rounding, to a half, then gives the same as
 * one rounding of the number: if `value` is in the middle between two halves, the digits decide. */
static float round_to_odd(const char *number, double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof single);
    if (value == 0 || !isfinite(value) || bits & 1)
        return single;
    const double magnitude = value < 0 ? -value : value;
    const double rounded = single < 0 ? -(double)single : (double)single;
    const int more = magnitude == rounded ? compare_exactly(number, single)
                                          : (magnitude > rounded) - (magnitude < rounded);
    bits += (uint32_t)more;
    memcpy(&single, &bits, sizeof single);
    return single;
}

static const char *read_float(const struct pstk__table_column *column,
                              const struct pstk__cell *cell, locale_t locale, uint8_t room[8],
                              char text[240])
{
    const char *begin = cell->text, *finish = begin + cell->size;
    char number[MAX_NUMBER + 1];
    if (cell->kind == PSTK__CELL_NULL) { /* null in a column whose type was given */
        put_float(column->dtype, (double)NAN, NAN, room);
        return NULL;
    }
    if (!is_integer(begin, finish) && !is_float(begin, finish) &&
        !(cell->size > 0 &&
          pstk__table_skip_digits(begin + (*begin == '-' || *begin == '+'), finish) == finish &&
          finish[-1] >= '0' && finish[-1] <= '9'))
        return must_be(cell, "a number", text);
    if (cell->size > MAX_NUMBER) {
        snprintf(text, 240, "is a number of more than %d bytes", MAX_NUMBER);
        return text;
    }
    memcpy(number, cell->text, cell->size);
    number[cell->size] = 0;
    const double value = strtod_l(number, NULL, locale);
    const int is_half = column->dtype == PSTK_F16 || column->dtype == PSTK_BF16;
    const float single = is_half ? round_to_odd(number, value) : strtof_l(number, NULL, locale);
    if (is_infinite(column->dtype, value, single) && !is_not_finite(begin, finish)) {
        char what[64];
        snprintf(what, sizeof what, "a number that %s holds", pstk_dtype_name(column->dtype));
        return must_be(cell, what, text);
    }
    put_float(column->dtype, value, single, room);
    return NULL;
}

static const char *read_integer(const struct pstk__table_column *column,
                                const struct pstk__cell *cell, uint8_t room[8], char text[240])
{
    const struct pstk_field field = {.kind = PSTK_FIELD_SCALAR, .dtype = column->dtype};
    char why[160], what[64];
    if (pstk__cell_class(cell) == PSTK__CLASS_BOOL) {
        pstk__put64(room, cell->text[0] == 't' || cell->text[0] == 'T');
        return NULL;
    }
    if (!pstk__translate(PSTK__FOREIGN_TEXT_INTEGER, &field, cell->text, cell->size, room,
                         pstk_dtype_size(column->dtype), why))
        return NULL;
    snprintf(what, sizeof what, "an integer that %s holds", pstk_dtype_name(column->dtype));
    return must_be(cell, what, text);
}

static const char *read_text(const struct pstk__table_column *column, const struct pstk__cell *cell,
                             const void **data, uint64_t *size, char text[240])
{
    const int is_raw = column->reading == PSTK__READ_JSON;
    *data = is_raw ? cell->raw : cell->text;
    *size = is_raw ? cell->raw_size : cell->size;
    if (column->reading == PSTK__READ_TEXT && cell->kind != PSTK__CELL_PLAIN &&
        cell->kind != PSTK__CELL_STRING)
        return must_be(cell, "a text, as in the first rows", text);
    const uint64_t end = column->reading == PSTK__READ_BYTES ? *size : pstk__utf8_end(*data, *size);
    if (end == *size)
        return NULL;
    snprintf(
        text, 240,
        "is not UTF-8 from its byte %llu on; must be UTF-8, or the field must have the type bytes",
        (unsigned long long)end);
    return text;
}

const char *pstk__table_value(const struct pstk__table_column *column,
                              const struct pstk__cell *cell, locale_t locale, uint8_t room[8],
                              const void **data, uint64_t *size, char text[240])
{
    if (column->reading != PSTK__READ_SCALAR)
        return read_text(column, cell, data, size, text);
    *data = room;
    *size = pstk_dtype_size(column->dtype);
    if (!fits(column->class, pstk__cell_class(cell))) {
        char what[96];
        snprintf(what, sizeof what, "%s, as in the first rows",
                 pstk__cell_class_name(column->class));
        return must_be(cell, what, text);
    }
    return is_float_dtype(column->dtype) ? read_float(column, cell, locale, room, text)
                                         : read_integer(column, cell, room, text);
}
