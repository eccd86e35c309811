/* SPDX-License-Identifier: Apache-2.0 */
#include "record/ustar.h"

#include <string.h>

enum { MAGIC = 257, PREFIX = 345 };
enum { NAME_SIZE = 100, PREFIX_SIZE = 155 };

/* Return the size of a text of at most `size` bytes, which a 0 may end early. */
static uint32_t text_size(const uint8_t *field, uint32_t size)
{
    const uint8_t *end = memchr(field, 0, size);
    return end ? (uint32_t)(end - field) : size;
}

int pstk__ustar_is_parted(const uint8_t header[PSTK__USTAR_HEADER])
{
    return memcmp(header + MAGIC, "ustar\0", 6) == 0 && header[PREFIX] != 0;
}

uint32_t pstk__ustar_name(const uint8_t header[PSTK__USTAR_HEADER], char name[PSTK__USTAR_MAX_NAME])
{
    uint32_t n = 0;
    if (pstk__ustar_is_parted(header)) {
        n = text_size(header + PREFIX, PREFIX_SIZE);
        memcpy(name, header + PREFIX, n);
        name[n++] = '/';
    }
    const uint32_t own = text_size(header + PSTK__USTAR_NAME, NAME_SIZE);
    memcpy(name + n, header + PSTK__USTAR_NAME, own);
    name[n + own] = 0;
    return n + own;
}
