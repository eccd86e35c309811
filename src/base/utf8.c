/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>

/* Return the bytes of the well-formed UTF-8 sequence at p (Unicode 15, table 3-7), 0 if there is
 * none. */
static uint32_t sequence_size(const uint8_t *p, uint64_t left)
{
    uint8_t low = 0x80, high = 0xbf; /* range of the second byte */
    uint32_t n;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (p[0] == 0xe0)
        low = 0xa0; /* excludes overlong forms */
    else if (p[0] == 0xed)
        high = 0x9f; /* excludes surrogates */
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f; /* excludes code points over U+10FFFF */
    if (left < n || p[1] < low || p[1] > high)
        return 0;
    for (uint32_t i = 2; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

uint64_t pstk__utf8_end(const void *text, uint64_t size)
{
    const uint8_t *p = text;
    uint64_t i = 0;
    while (i < size) {
        uint64_t word;
        if (size - i >= 8 && (memcpy(&word, p + i, 8), !(word & 0x8080808080808080u))) {
            i += 8;
            continue;
        }
        uint32_t n = sequence_size(p + i, size - i);
        if (n == 0)
            return i;
        i += n;
    }
    return size;
}
