/* SPDX-License-Identifier: Apache-2.0 */
#include "image/xmp.h"

#include <string.h>

#define NAME "tiff:Orientation"
#define NAME_SIZE (sizeof NAME - 1)

/* Return the digit after the name, as a character; 0: none. */
static uint8_t digit_after(const uint8_t *p, uint64_t left)
{
    const uint64_t mark = left >= 1 && p[0] == '>'                ? 1
                          : left >= 2 && memcmp(p, "=\"", 2) == 0 ? 2
                                                                  : 0;
    return mark && left > mark && p[mark] >= '0' && p[mark] <= '9' ? p[mark] : 0;
}

uint32_t pstk__xmp_orientation(const uint8_t *xmp, uint64_t size)
{
    const uint8_t *p = xmp, *end = xmp + size;
    while (p && (uint64_t)(end - p) > NAME_SIZE) {
        p = memchr(p, NAME[0], (size_t)(end - p) - NAME_SIZE);
        if (!p)
            break;
        const uint8_t *after = p + NAME_SIZE;
        const uint8_t digit =
            memcmp(p, NAME, NAME_SIZE) == 0 ? digit_after(after, (uint64_t)(end - after)) : 0;
        if (digit)
            return digit >= '1' && digit <= '8' ? digit - '0' : 1;
        p++;
    }
    return 0;
}
