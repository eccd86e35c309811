/* SPDX-License-Identifier: Apache-2.0 */
#include "export/json_value.h"

#include "base/cast.h"
#include "base/little.h"
#include "record/list.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_SIZE 40 /* bytes of a number; "%.17g" takes at most 24 */

/* ---- texts ----------------------------------------------------------------------------------- */

static void put_ascii(struct pstk__bytes *to, uint8_t c)
{
    if (c == '"' || c == '\\')
        pstk__bytes_format(to, "\\%c", c);
    else if (c == '\n')
        pstk__bytes_text(to, "\\n");
    else if (c == '\t')
        pstk__bytes_text(to, "\\t");
    else if (c == '\r')
        pstk__bytes_text(to, "\\r");
    else
        pstk__bytes_format(to, "\\u%04x", c);
}

/* Append UTF-8, and escape the characters that JSON requires to be escaped. */
static void put_utf8(struct pstk__bytes *to, const char *text, uint64_t size)
{
    uint64_t begin = 0;
    for (uint64_t i = 0; i < size; i++) {
        const uint8_t c = (uint8_t)text[i];
        if (c >= ' ' && c != '"' && c != '\\' && c != 0x7f)
            continue;
        pstk__bytes_put(to, text + begin, i - begin);
        put_ascii(to, c);
        begin = i + 1;
    }
    pstk__bytes_put(to, text + begin, size - begin);
}

void pstk__json_text(struct pstk__bytes *to, const char *text, uint64_t size)
{
    pstk__bytes_text(to, "\"");
    while (size > 0) {
        const uint64_t n = pstk__utf8_end(text, size);
        put_utf8(to, text, n);
        if (n < size)
            pstk__bytes_text(to, "\xef\xbf\xbd");
        const uint64_t skipped = n < size ? n + 1 : n;
        text += skipped;
        size -= skipped;
    }
    pstk__bytes_text(to, "\"");
}

void pstk__json_texts(struct pstk__bytes *to, const void *data, uint64_t size)
{
    struct pstk__list list;
    struct pstk__field_view item;
    char wrong[160];
    pstk__list_begin(&list, PSTK_FIELD_UTF8_LIST, data, size, wrong);
    pstk__bytes_text(to, "[");
    while (list.i < list.n) {
        pstk__bytes_text(to, list.i ? ", " : "");
        pstk__list_next(&list, &item, wrong);
        pstk__json_text(to, (const char *)item.data, item.plain_size);
    }
    pstk__bytes_text(to, "]");
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Write the shortest digits that read back as the same value, as a double or as a float. */
static void format_real(char text[NUMBER_SIZE], double value, int is_double)
{
    const int most = is_double ? 17 : 9;
    for (int digits = is_double ? 15 : 6; digits <= most; digits++) {
        snprintf(text, NUMBER_SIZE, "%.*g", digits, value);
        if (is_double ? strtod(text, NULL) == value : strtof(text, NULL) == (float)value)
            break;
    }
    for (char *c = text; *c; c++) /* the program's locale may use another decimal point */
        if (!strchr("0123456789+-e", *c))
            *c = '.';
}

static void put_real(struct pstk__bytes *to, double value, int is_double)
{
    char text[NUMBER_SIZE];
    if (value != value)
        pstk__bytes_text(to, "NaN");
    else if (value - value != 0)
        pstk__bytes_text(to, value > 0 ? "Infinity" : "-Infinity");
    else {
        format_real(text, value, is_double);
        pstk__bytes_text(to, text);
        if (!strpbrk(text, ".e"))
            pstk__bytes_text(to, ".0");
    }
}

static void put_float(struct pstk__bytes *to, uint32_t dtype, const void *element)
{
    float single;
    double real;
    if (dtype == PSTK_F64) {
        memcpy(&real, element, sizeof real);
        put_real(to, real, 1);
        return;
    }
    if (dtype == PSTK_F16)
        single = pstk__f32_from_f16(pstk__get16(element));
    else
        memcpy(&single, element, sizeof single);
    put_real(to, (double)single, 0);
}

void pstk__json_number(struct pstk__bytes *to, uint32_t dtype, const void *element)
{
    const uint8_t *bytes = element;
    switch (dtype) {
    case PSTK_U8:
        pstk__bytes_format(to, "%u", bytes[0]);
        return;
    case PSTK_I8:
        pstk__bytes_format(to, "%d", (int8_t)bytes[0]);
        return;
    case PSTK_U16:
        pstk__bytes_format(to, "%u", pstk__get16(element));
        return;
    case PSTK_I16:
        pstk__bytes_format(to, "%d", (int16_t)pstk__get16(element));
        return;
    case PSTK_U32:
        pstk__bytes_format(to, "%u", pstk__get32(element));
        return;
    case PSTK_I32:
        pstk__bytes_format(to, "%d", (int32_t)pstk__get32(element));
        return;
    case PSTK_U64:
        pstk__bytes_format(to, "%llu", (unsigned long long)pstk__get64(element));
        return;
    case PSTK_I64:
        pstk__bytes_format(to, "%lld", (long long)pstk__get64(element));
        return;
    default:
        put_float(to, dtype, element);
    }
}

void pstk__json_array(struct pstk__bytes *to, const struct pstk__array *array)
{
    const uint32_t size = pstk_dtype_size(array->dtype);
    uint64_t left[PSTK_MAX_DIMS] = {0}; /* elements or lists that follow in each open list */
    const uint8_t *element = array->data;
    uint32_t depth = 0;
    if (array->n_dims == 0)
        pstk__json_number(to, array->dtype, element);
    else
        pstk__bytes_text(to, "[");
    left[0] = array->shape[0];
    while (array->n_dims > 0 && !to->failed) {
        if (left[depth] == 0) {
            pstk__bytes_text(to, "]");
            if (depth == 0)
                return;
            depth--;
            pstk__bytes_text(to, left[depth] ? ", " : "");
            continue;
        }
        left[depth]--;
        if (depth + 1 < array->n_dims) {
            pstk__bytes_text(to, "[");
            depth++;
            left[depth] = array->shape[depth];
            continue;
        }
        pstk__json_number(to, array->dtype, element);
        element += size;
        pstk__bytes_text(to, left[depth] ? ", " : "");
    }
}
