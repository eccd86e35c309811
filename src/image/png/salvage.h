/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png/salvage: the bytes of a whole PNG file, made while a decoder reads them, of one whose fault
 * comes after its rows: the chunks before the image data, the rows in blocks that are not
 * compressed, IEND. Allocates only from an arena.
 */
#ifndef PSTK_PNG_SALVAGE_H
#define PSTK_PNG_SALVAGE_H

#include "image/png/rows.h"

/* Bytes of a chunk of rows, without them: its length, name and CRC; zlib's header, that of a block,
 * and the checksum of all rows. */
#define PSTK__PNG_SALVAGE_HEAD 32u
/* Bytes of arena: this struct, and zlib's state and window, 44 KiB by its documentation; forks of
 * it take some more. */
#define PSTK__PNG_SALVAGE_SIZE (sizeof(struct pstk__png_salvage) + (64u << 10))

struct pstk__png_salvage {
    struct pstk__png_rows rows;
    const uint8_t *next; /* of the bytes to be read: in the file, or in `made` */
    uint64_t n_next;
    uint32_t adler; /* of the rows so far */
    int has_rows;   /* 1: a chunk of rows was made */
    int has_end;    /* 1: IEND was made */
    uint8_t made[PSTK__PNG_SALVAGE_HEAD + PSTK__PNG_ROWS_ROOM];
};

/* Begin with a file of at least PSTK__PNG_IHDR_END bytes whose header is `info`; borrows all.
 * EBADMSG: Pillow refuses it; ENOMEM: the arena is full. Nothing is to be closed. */
int pstk__png_salvage_begin(struct pstk__png_salvage *salvage, struct pstk__arena *arena,
                            const void *data, uint64_t size, const struct pstk__image_info *info);
/* Copy the next n bytes. EBADMSG: the file has no more of them, or rows are missing or damaged, or
 * Pillow refuses what follows them. */
int pstk__png_salvage_read(struct pstk__png_salvage *salvage, uint8_t *out, uint64_t n);
#endif
