/* SPDX-License-Identifier: Apache-2.0 */
#include "annotations/growing.h"

#include <stdlib.h>
#include <string.h>

#define FIRST 256 /* bytes */

uint8_t *pstk__growing_get(struct pstk__growing *bytes, uint64_t n)
{
    if (bytes->failed)
        return NULL;
    if (n > bytes->room - bytes->size) {
        uint64_t room = bytes->room ? bytes->room : FIRST;
        while (room - bytes->size < n) /* both are far below 2^63: no overflow */
            room *= 2;
        uint8_t *more = realloc(bytes->at, room);
        if (!more) {
            bytes->failed = 1;
            return NULL;
        }
        bytes->at = more;
        bytes->room = room;
    }
    bytes->size += n;
    return bytes->at + bytes->size - n;
}

void pstk__growing_add(struct pstk__growing *bytes, const void *data, uint64_t n)
{
    uint8_t *at = n ? pstk__growing_get(bytes, n) : NULL;
    if (at)
        memcpy(at, data, n);
}

void pstk__growing_add_u8(struct pstk__growing *bytes, uint8_t value)
{
    pstk__growing_add(bytes, &value, sizeof value);
}

/* Numbers are little-endian on every machine that penstock builds for. */
void pstk__growing_add_u32(struct pstk__growing *bytes, uint32_t value)
{
    pstk__growing_add(bytes, &value, sizeof value);
}

void pstk__growing_add_i64(struct pstk__growing *bytes, int64_t value)
{
    pstk__growing_add(bytes, &value, sizeof value);
}

void pstk__growing_add_f32(struct pstk__growing *bytes, double value)
{
    const float rounded = (float)value;
    pstk__growing_add(bytes, &rounded, sizeof rounded);
}

void pstk__growing_add_f64(struct pstk__growing *bytes, double value)
{
    pstk__growing_add(bytes, &value, sizeof value);
}

void pstk__growing_clear(struct pstk__growing *bytes)
{
    bytes->size = 0;
    bytes->failed = 0;
}

void pstk__growing_close(struct pstk__growing *bytes)
{
    free(bytes->at);
    *bytes = (struct pstk__growing){.at = NULL};
}
