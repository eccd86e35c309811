/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png/text: finds the texts in the tEXt, zTXt and iTXt chunks of a PNG file, as Pillow 12 reads
 * them, and inflates compressed ones. Allocates nothing.
 */
#ifndef PSTK_PNG_TEXT_H
#define PSTK_PNG_TEXT_H

#include "image/png/chunk.h"

#include <zlib.h>

struct pstk__png_text {
    const char *key;     /* of key_size bytes, not terminated */
    uint32_t key_size;   /* bytes */
    const uint8_t *data; /* the text as coded */
    uint32_t size;       /* bytes */
    int is_deflated;     /* 1: data is a zlib stream */
    int is_utf8;         /* 1: the text is of an iTXt chunk, and the words before it are UTF-8 */
};

/* Find the text of a chunk. Returns 1; 0: it is another chunk, or Pillow ignores or refuses its
 * text. */
int pstk__png_text_of(const struct pstk__png_chunk *chunk, struct pstk__png_text *text);
/* Return 1 when the text has this key. */
int pstk__png_text_is(const struct pstk__png_text *text, const char *key);

/* Largest number of bytes of an inflated text: Pillow's MAX_TEXT_CHUNK. */
#define PSTK__PNG_TEXT_MAX (1u << 20)
/* Bytes for zlib's state and window: 44 KiB by its documentation; zlib's forks take some more. */
#define PSTK__PNG_INFLATE_SIZE (64u << 10)

/* A reader of a text from its beginning to its end. */
struct pstk__png_text_reader {
    const struct pstk__png_text *text; /* borrowed */
    uint64_t n_read;                   /* bytes returned so far */
    int is_deflated;                   /* 1: the text is a zlib stream, and not empty */
    z_stream zlib;                     /* used for a zlib stream */
    int has_ended;                     /* 1: no byte follows */
    int has_failed;                    /* 1: the text is refused */
    uint32_t used;                     /* bytes of memory in use */
    _Alignas(64) uint8_t memory[PSTK__PNG_INFLATE_SIZE];
};

/* Go to the beginning of the text. Callers may do so at any time. */
void pstk__png_text_begin(struct pstk__png_text_reader *reader, const struct pstk__png_text *text);
/* Copy the next bytes, at most n. Returns their number, 0 at the end; -1: the text does not
 * inflate, or is longer than PSTK__PNG_TEXT_MAX. */
int64_t pstk__png_text_read(struct pstk__png_text_reader *reader, uint8_t *out, uint32_t n);
#endif
