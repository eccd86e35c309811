/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png/text: the texts in the tEXt, zTXt and iTXt chunks of a PNG file, as Pillow 12 reads them,
 * some of them inflated. Allocates nothing.
 */
#ifndef PSTK_PNG_TEXT_H
#define PSTK_PNG_TEXT_H

#include "image/png/chunk.h"

#include <zlib.h>

struct pstk__png_text {
    const char *key;     /* of key_size bytes, not terminated */
    uint32_t key_size;   /* bytes */
    const uint8_t *data; /* as it is coded */
    uint32_t size;       /* bytes */
    int is_deflated;     /* 1: data is a zlib stream */
    int is_utf8;         /* 1: of an iTXt chunk, and the words before its text are UTF-8 */
};

/* 1: the chunk has a text. 0: it is another chunk, or one whose text Pillow ignores or refuses. */
int pstk__png_text_of(const struct pstk__png_chunk *chunk, struct pstk__png_text *text);
/* 1: the text has this key. */
int pstk__png_text_is(const struct pstk__png_text *text, const char *key);

/* Bytes of an inflated text, at most: Pillow's MAX_TEXT_CHUNK. */
#define PSTK__PNG_TEXT_MAX (1u << 20)
/* Bytes for zlib's state and window: 44 KiB by its documentation; forks of it take some more. */
#define PSTK__PNG_INFLATE_SIZE (64u << 10)

/* Reads a text from its begin to its end. */
struct pstk__png_text_reader {
    const struct pstk__png_text *text; /* borrowed */
    uint64_t n_read;                   /* bytes given so far */
    int is_deflated;                   /* 1: the text is, and has bytes */
    z_stream zlib;                     /* of such a text */
    int has_ended;                     /* 1: no byte follows */
    int has_failed;                    /* 1: the text is refused */
    uint32_t used;                     /* bytes of memory */
    _Alignas(64) uint8_t memory[PSTK__PNG_INFLATE_SIZE];
};

/* Go to the begin of the text. A reader may do so at any time. */
void pstk__png_text_begin(struct pstk__png_text_reader *reader, const struct pstk__png_text *text);
/* Copy the next bytes, at most n. Returns their number, 0 at the end; -1: the text does not
 * inflate, or is longer than PSTK__PNG_TEXT_MAX. */
int64_t pstk__png_text_read(struct pstk__png_text_reader *reader, uint8_t *out, uint32_t n);
#endif
