/* SPDX-License-Identifier: Apache-2.0 */
/* png/chunk: finds the chunks of a PNG file one after another. Pure. */
#ifndef PSTK_PNG_CHUNK_H
#define PSTK_PNG_CHUNK_H

#include <stdint.h>

#define PSTK__PNG_IHDR_END 33 /* bytes: signature, then length, name, 13 bytes and CRC of IHDR */

/* Return a 32-bit big-endian number. */
static inline uint32_t pstk__png_get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
/* Write a 32-bit big-endian number. Returns the byte after it. */
static inline uint8_t *pstk__png_put32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
    return p + 4;
}

struct pstk__png_chunk {
    const char *name;    /* 4 characters */
    const uint8_t *data; /* `size` bytes, all in the file; the CRC after them may be cut off */
    uint32_t size;
};

/* Find the chunk at *at, and move *at past its CRC. Returns 1, or 0 when there is no chunk, it is
 * cut short, or the next bytes are no name to Pillow. */
int pstk__png_chunk_next(const void *file, uint64_t size, uint64_t *at,
                         struct pstk__png_chunk *chunk);
/* Return 1 when a chunk begins at `at`; its data may be cut off. */
int pstk__png_chunk_begin(const void *file, uint64_t size, uint64_t at,
                          struct pstk__png_chunk *chunk);
/* Return 1 when the chunk has this name. */
int pstk__png_chunk_is(const struct pstk__png_chunk *chunk, const char *name);
#endif
