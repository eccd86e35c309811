/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png/salvage: makes the bytes of a valid PNG file, while a decoder reads them, from one whose
 * fault comes after its rows: the chunks before the image data, the rows in blocks that are not
 * compressed, IEND. Allocates only from an arena.
 */
#ifndef PSTK_PNG_SALVAGE_H
#define PSTK_PNG_SALVAGE_H

#include "image/png/rows.h"

/* Bytes of a chunk of rows without the rows: its length, name and CRC; the headers of zlib and of a
 * block, and the checksum of all rows. */
#define PSTK__PNG_SALVAGE_HEAD 32u
/* Bytes of arena: this struct, and zlib's state and window, 44 KiB by its documentation; zlib's
 * forks take some more. */
#define PSTK__PNG_SALVAGE_SIZE (sizeof(struct pstk__png_salvage) + (64u << 10))

struct pstk__png_salvage {
    struct pstk__png_rows rows;
    const uint8_t *next; /* next byte to be read: in the file, or in `made` */
    uint64_t n_next;
    uint32_t adler; /* zlib's checksum (Adler-32) of the rows so far */
    int has_rows;   /* 1: a chunk of rows was made */
    int has_end;    /* 1: IEND was made */
    uint8_t made[PSTK__PNG_SALVAGE_HEAD + PSTK__PNG_ROWS_ROOM];
};

/* Begin with a file of at least PSTK__PNG_IHDR_END bytes whose header is `info`; borrows all.
 * EBADMSG: Pillow refuses it; ENOMEM: the arena is full. There is no close. */
int pstk__png_salvage_begin(struct pstk__png_salvage *salvage, struct pstk__arena *arena,
                            const void *data, uint64_t size, const struct pstk__image_info *info);
/* Copy the next n bytes. EBADMSG: the file has no more bytes, rows are missing or damaged, or
 * Pillow refuses the chunks after them. */
int pstk__png_salvage_read(struct pstk__png_salvage *salvage, uint8_t *out, uint64_t n);
#endif
