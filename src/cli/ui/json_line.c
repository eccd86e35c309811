/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/json_line.h"

#include <stdlib.h>
#include <string.h>

#include "ui/message.h"
#include "ui/text.h"

#define ESCAPE_SIZE 6 /* bytes of \uXXXX */

/* Return the code of an escape \uXXXX, or -1. The line's last 0 byte ends it at the latest. */
static long code_of(const char *at)
{
    char digits[5] = "";
    if (at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 0; i < 4; i++) {
        digits[i] = at[2 + i];
        if (!digits[i] || !strchr("0123456789abcdefABCDEF", digits[i]))
            return -1;
    }
    return strtol(digits, NULL, 16);
}

/* Return the bytes of an escape at `at` that stay: 6, 12 for a surrogate pair, 2 for other escapes.
 * 0: it is replaced, with all of its 6 bytes. */
static size_t escape_size(const char *at)
{
    const long code = code_of(at);
    if (code < 0)
        return at[1] ? 2 : 1;
    if (code == 0 || (code >= 0xDC00 && code < 0xE000))
        return 0;
    if (code < 0xD800 || code >= 0xE000)
        return ESCAPE_SIZE;
    const long next = code_of(at + ESCAPE_SIZE);
    return next >= 0xDC00 && next < 0xE000 ? 2 * ESCAPE_SIZE : 0;
}

/* Return the bytes of NaN or Infinity at `at`, or 0. */
static size_t odd_number_size(const char *at)
{
    static const char *const names[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(at, names[i], strlen(names[i])) == 0)
            return strlen(names[i]);
    return 0;
}

/* Copy one character or escape inside a string from *from to *to, and move both. */
static void copy_in_string(const char **from, char **to)
{
    size_t size = 1, replaced = 0;
    if (**from == '\\') {
        size = escape_size(*from);
        replaced = ESCAPE_SIZE;
    } else if ((unsigned char)**from >= 0x80) {
        size = (size_t)text_character(*from);
        replaced = 1;
    }
    if (size == 0) {
        *(*to)++ = '?';
        *from += replaced;
        return;
    }
    memcpy(*to, *from, size);
    *to += size;
    *from += size;
}

char *json_line_strict(const char *line, size_t *size)
{
    /* Only NaN grows, from 3 bytes to 4. */
    const size_t length = strlen(line);
    char *copy = malloc(length + length / 3 + 1), *to = copy;
    int in_string = 0;
    if (!copy)
        message_no_memory();
    while (*line) {
        const size_t odd = in_string ? 0 : odd_number_size(line);
        if (odd) {
            to = stpcpy(to, "null");
            line += odd;
        } else if (in_string && *line != '"') {
            copy_in_string(&line, &to);
        } else {
            in_string ^= *line == '"';
            *to++ = *line++;
        }
    }
    *to = 0;
    *size = (size_t)(to - copy);
    return copy;
}
