/* SPDX-License-Identifier: Apache-2.0 */
#include "image/exif.h"

#include <string.h>

static uint32_t read_number(const uint8_t *p, uint32_t n_bytes, int little)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < n_bytes; i++)
        value = value << 8 | p[little ? n_bytes - 1 - i : i];
    return value;
}

uint32_t pstk__exif_orientation(const uint8_t *tiff, uint64_t size)
{
    enum { ENTRY_SIZE = 12, TAG_ORIENTATION = 0x112, TYPE_SHORT = 3, TYPE_LONG = 4 };

    if (size < 8)
        return 1;
    int little = tiff[0] == 'I';
    uint32_t mark = (uint32_t)tiff[2] << 8 | tiff[3];
    if (memcmp(tiff, little ? "II" : "MM", 2) != 0 || (mark != 0x2a && mark != 0x2a00))
        return 1; /* accept 42 in the wrong byte order, as Pillow does */
    uint64_t at = read_number(tiff + 4, 4, little);
    if (at > size - 2)
        return 1;
    uint64_t n_entries = read_number(tiff + at, 2, little);
    at += 2;
    for (uint64_t i = 0; i < n_entries && at <= size && size - at >= ENTRY_SIZE; i++) {
        const uint8_t *entry = tiff + at;
        at += ENTRY_SIZE;
        if (read_number(entry, 2, little) != TAG_ORIENTATION)
            continue;
        uint32_t type = read_number(entry + 2, 2, little);
        uint32_t value = 0;
        if (read_number(entry + 4, 4, little) == 1 && (type == TYPE_SHORT || type == TYPE_LONG))
            value = read_number(entry + 8, type == TYPE_SHORT ? 2 : 4, little);
        return value >= 1 && value <= 8 ? value : 1;
    }
    return 1;
}
