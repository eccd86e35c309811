/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 4096

void pstk__bytes_clear(struct pstk__bytes *bytes)
{
    bytes->size = 0;
    bytes->failed = 0;
}

static int grow(struct pstk__bytes *bytes, uint64_t size)
{
    if (bytes->failed || size > SIZE_MAX / 2 - bytes->size)
        return 0;
    const uint64_t least = bytes->size + size, twice = 2 * bytes->capacity;
    uint64_t capacity = twice > FIRST_SIZE ? twice : FIRST_SIZE;
    capacity = capacity > least ? capacity : least;
    uint8_t *data = realloc(bytes->data, capacity);
    if (!data)
        return 0;
    bytes->data = data;
    bytes->capacity = capacity;
    return 1;
}

void *pstk__bytes_room(struct pstk__bytes *bytes, uint64_t size)
{
    if (bytes->failed || (size > bytes->capacity - bytes->size && !grow(bytes, size)) ||
        !bytes->data) {
        bytes->failed = bytes->failed || size > 0;
        return NULL;
    }
    bytes->size += size;
    return bytes->data + bytes->size - size;
}

void pstk__bytes_put(struct pstk__bytes *bytes, const void *data, uint64_t size)
{
    void *room = size ? pstk__bytes_room(bytes, size) : NULL;
    if (room)
        memcpy(room, data, size);
}

void pstk__bytes_text(struct pstk__bytes *bytes, const char *text)
{
    pstk__bytes_put(bytes, text, strlen(text));
}

void pstk__bytes_format(struct pstk__bytes *bytes, const char *format, ...)
{
    char text[200]; /* enough for most texts */
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int n = vsnprintf(text, sizeof text, format, arguments);
    char *room = n < 0 ? NULL : pstk__bytes_room(bytes, (uint64_t)n + 1); /* with its 0 */
    if (room && (size_t)n < sizeof text)
        memcpy(room, text, (size_t)n + 1);
    else if (room)
        vsnprintf(room, (size_t)n + 1, format, again);
    if (room)
        bytes->size--;
    bytes->failed |= n < 0;
    va_end(again);
    va_end(arguments);
}

/* Numbers are little-endian on every machine that penstock builds for. */
void pstk__bytes_u8(struct pstk__bytes *bytes, uint8_t value)
{
    pstk__bytes_put(bytes, &value, sizeof value);
}

void pstk__bytes_u32(struct pstk__bytes *bytes, uint32_t value)
{
    pstk__bytes_put(bytes, &value, sizeof value);
}

void pstk__bytes_i64(struct pstk__bytes *bytes, int64_t value)
{
    pstk__bytes_put(bytes, &value, sizeof value);
}

void pstk__bytes_f32(struct pstk__bytes *bytes, double value)
{
    const float rounded = (float)value;
    pstk__bytes_put(bytes, &rounded, sizeof rounded);
}

void pstk__bytes_f64(struct pstk__bytes *bytes, double value)
{
    pstk__bytes_put(bytes, &value, sizeof value);
}

void pstk__bytes_zeros(struct pstk__bytes *bytes, uint64_t size)
{
    void *room = size ? pstk__bytes_room(bytes, size) : NULL;
    if (room)
        memset(room, 0, size);
}

void pstk__bytes_free(struct pstk__bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct pstk__bytes){0};
}
