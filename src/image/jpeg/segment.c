/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/segment.h"

#include <string.h>

/* Where the next 0xff is, or size. */
static uint64_t find_ff(const uint8_t *data, uint64_t size, uint64_t at)
{
    if (at == size)
        return size;
    const uint8_t *found = memchr(data + at, 0xff, (size_t)(size - at));
    return found ? (uint64_t)(found - data) : size;
}

/* Behind a run of 0xff that begins at `at`. */
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

int pstk__jpeg_walk_next(struct pstk__jpeg_walk *w, struct pstk__jpeg_segment *s)
{
    uint64_t at = w->at;
    do {
        at = skip_ff(w->data, w->size, find_ff(w->data, w->size, at));
        if (at == w->size || w->has_ended)
            return 0;
    } while (w->data[at] == 0);
    *s = (struct pstk__jpeg_segment){.marker = w->data[at], .begin = at - 1, .end = at + 1};
    if (has_body(s->marker)) {
        uint64_t left = w->size - s->end;
        uint32_t length =
            left < 2 ? 0 : (uint32_t)w->data[s->end] << 8 | (uint32_t)w->data[s->end + 1];
        if (length < 2 || length > left)
            return 0;
        s->body = w->data + s->end + 2;
        s->size = length - 2;
        s->end += length;
    }
    w->at = s->end;
    w->has_scan |= s->marker == PSTK__JPEG_SOS;
    w->has_ended = w->has_scan && s->marker == PSTK__JPEG_EOI;
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
