/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png/rows: the rows of a PNG file whose rows are whole and whose fault comes after them: a wrong
 * CRC of its data, data after the last row, no IEND. Takes the files that Pillow 12 loads, except
 * animations, and refuses those that Pillow refuses. Rows come as they are filtered; whoever
 * unfilters them checks the filters.
 *
 *   begin -> next, until it returns 0 -> after, until it returns 0; close at any time
 */
#ifndef PSTK_PNG_ROWS_H
#define PSTK_PNG_ROWS_H

#include "image/decoder.h"
#include "image/png/chunk.h"

#include <zlib.h>

/* Bytes of room that next needs. */
#define PSTK__PNG_ROWS_ROOM 16384u

/* A file being read. Zero `in`, or set zlib's memory functions there; begin sets the other members.
 */
struct pstk__png_rows {
    const uint8_t *data; /* borrowed */
    uint64_t size;
    const struct pstk__image_info *info; /* borrowed */
    uint64_t data_at; /* offset of the first IDAT chunk; begin has checked that the chunks before it
                         are complete, as Pillow does */
    uint64_t at;      /* offset of the next chunk */
    uint64_t piece_at, piece_end; /* offsets of the image data that zlib does not have yet */
    uint64_t n_left;              /* bytes of rows that are still missing */
    z_stream in;
    int is_open; /* 1: in is open */
};

/* Begin with a file of at least PSTK__PNG_IHDR_END bytes whose header is `info`. EBADMSG: Pillow
 * refuses a chunk before the image data; ENOMEM. */
int pstk__png_rows_begin(struct pstk__png_rows *rows, const void *data, uint64_t size,
                         const struct pstk__image_info *info);
/* Write the next bytes of rows, with their filters, to PSTK__PNG_ROWS_ROOM bytes. Returns their
 * number; 0: the last row was returned; EBADMSG: rows are missing, or their data is damaged. */
int64_t pstk__png_rows_next(struct pstk__png_rows *rows, uint8_t *out);
/* Find the next chunk after the image data, up to IEND, without checking its CRC, as Pillow does.
 * Returns 1 with *chunk set; 0: there is none; EBADMSG: Pillow refuses it. */
int pstk__png_rows_after(struct pstk__png_rows *rows, struct pstk__png_chunk *chunk);
/* Free zlib's memory. */
void pstk__png_rows_close(struct pstk__png_rows *rows);
#endif
