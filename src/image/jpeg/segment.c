/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/segment.h"

#include <string.h>

/* Return the offset of the next 0xff, or `size` when there is none. */
static uint64_t find_ff(const uint8_t *data, uint64_t size, uint64_t at)
{
    if (at == size)
        return size;
    const uint8_t *found = memchr(data + at, 0xff, (size_t)(size - at));
    return found ? (uint64_t)(found - data) : size;
}

/* Return the end of a run of 0xff that begins at `at`. */
static uint64_t skip_ff(const uint8_t *data, uint64_t size, uint64_t at)
{
    while (at < size && data[at] == 0xff)
        at++;
    return at;
}

static int has_body(uint32_t marker)
{
    return marker != 0x01 && (marker < PSTK__JPEG_RST0 || marker > PSTK__JPEG_EOI);
}

int pstk__jpeg_walk_next(struct pstk__jpeg_walk *walk, struct pstk__jpeg_segment *segment)
{
    uint64_t at = walk->at;
    do {
        at = skip_ff(walk->data, walk->size, find_ff(walk->data, walk->size, at));
        if (at == walk->size || walk->has_ended)
            return 0;
    } while (walk->data[at] == 0);
    *segment =
        (struct pstk__jpeg_segment){.marker = walk->data[at], .begin = at - 1, .end = at + 1};
    if (has_body(segment->marker)) {
        uint64_t left = walk->size - segment->end;
        uint32_t length = left < 2 ? 0
                                   : (uint32_t)walk->data[segment->end] << 8 |
                                         (uint32_t)walk->data[segment->end + 1];
        if (length < 2 || length > left)
            return 0;
        segment->body = walk->data + segment->end + 2;
        segment->size = length - 2;
        segment->end += length;
    }
    walk->at = segment->end;
    walk->has_scan |= segment->marker == PSTK__JPEG_SOS;
    walk->has_ended = walk->has_scan && segment->marker == PSTK__JPEG_EOI;
    return 1;
}

uint64_t pstk__jpeg_scan_end(const uint8_t *data, uint64_t size, uint64_t at)
{
    for (;;) {
        uint64_t begin = find_ff(data, size, at);
        at = skip_ff(data, size, begin);
        if (at == size)
            return size;
        if (data[at] != 0 && (data[at] < PSTK__JPEG_RST0 || data[at] > PSTK__JPEG_RST7))
            return begin;
    }
}
