/* SPDX-License-Identifier: Apache-2.0 */
/* png/chunk: finds the chunks of a PNG file one after another. Pure. */
#ifndef PSTK_PNG_CHUNK_H
#define PSTK_PNG_CHUNK_H

#include <stdint.h>

#define PSTK__PNG_IHDR_END 33 /* bytes: signature, then length, name, 13 bytes and CRC of IHDR */

/* Numbers are big-endian. */
static inline uint32_t pstk__png_get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
/* Returns what follows the number. */
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

/* 1: the chunk at *at, and *at moves past its CRC. 0: there is none, it is cut short, or bytes that
 * Pillow takes for no name follow. */
int pstk__png_chunk_next(const void *file, uint64_t size, uint64_t *at,
                         struct pstk__png_chunk *chunk);
/* 1: a chunk begins at `at`; its data may be cut off. */
int pstk__png_chunk_begin(const void *file, uint64_t size, uint64_t at,
                          struct pstk__png_chunk *chunk);
/* 1: the chunk has this name. */
int pstk__png_chunk_is(const struct pstk__png_chunk *chunk, const char *name);
#endif
