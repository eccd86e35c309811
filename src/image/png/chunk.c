/* SPDX-License-Identifier: Apache-2.0 */
#include "image/png/chunk.h"

#include <string.h>

#define HEAD_SIZE 8 /* length and name */
#define CRC_SIZE 4

/* Return 1 when all characters match \w, as Pillow requires. */
static int is_name(const uint8_t *p)
{
    for (int i = 0; i < 4; i++)
        if (!((p[i] | 0x20) >= 'a' && (p[i] | 0x20) <= 'z') && !(p[i] >= '0' && p[i] <= '9') &&
            p[i] != '_')
            return 0;
    return 1;
}

int pstk__png_chunk_begin(const void *file, uint64_t size, uint64_t at,
                          struct pstk__png_chunk *chunk)
{
    if (at > size || size - at < HEAD_SIZE)
        return 0;
    const uint8_t *p = (const uint8_t *)file + at;
    *chunk = (struct pstk__png_chunk){(const char *)p + 4, p + HEAD_SIZE, pstk__png_get32(p)};
    return is_name(p + 4);
}

int pstk__png_chunk_next(const void *file, uint64_t size, uint64_t *at,
                         struct pstk__png_chunk *chunk)
{
    if (!pstk__png_chunk_begin(file, size, *at, chunk) || chunk->size > size - *at - HEAD_SIZE)
        return 0;
    *at += HEAD_SIZE + (uint64_t)chunk->size + CRC_SIZE;
    return 1;
}

int pstk__png_chunk_is(const struct pstk__png_chunk *chunk, const char *name)
{
    return memcmp(chunk->name, name, 4) == 0;
}
