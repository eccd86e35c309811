/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access_points: the positions of a compressed file where unpacking can begin, in a file of their
 * own. Any byte is found by one read of the file, whatever its size; it is never read as a whole.
 *
 * The file: a header of 4 KiB; the dictionaries; a cell of 64 bytes for each PSTK__SPACING unpacked
 * bytes; 8 bytes with the CRC32C of each PSTK__CHUNK unpacked bytes from a point on. Header, cells,
 * dictionaries and checksums each have a CRC32C. Cell k has the last point before byte k *
 * PSTK__SPACING, cell 0 the first; there is at most one from there on to the next multiple, so the
 * point before a byte is in one cell or in the next. A file is complete or it is not
 * there: it is written under another name.
 */
#ifndef PSTK_UNPACK_ACCESS_POINTS_H
#define PSTK_UNPACK_ACCESS_POINTS_H

#include "store/unpack/packing.h"

#define PSTK__ACCESS_POINTS_VERSION 2 /* of the file, and of the rows in the index (build.c) */
#define PSTK__SPACING (1u << 20)      /* unpacked bytes */
#define PSTK__CHUNK (1u << 16)        /* unpacked bytes */

/* A point, and the span of bytes up to the next one. */
struct pstk__access_point {
    uint64_t begin, end;      /* unpacked bytes; end is not one of them */
    uint64_t packed;          /* byte of the file where reading begins */
    uint64_t dictionary;      /* byte of the access points file */
    uint32_t dictionary_kept; /* bytes of it there, fewer than it has: compressed */
    uint32_t dictionary_crc;  /* of these */
    uint64_t chunk;           /* number of the checksum of its first chunk */
    struct pstk__restart restart;
};

/* What an access points file is of. */
struct pstk__access_points_of {
    uint32_t packing;   /* number */
    uint64_t size;      /* bytes of the compressed file */
    int64_t changed_ns; /* as store.h */
    uint64_t unpacked;  /* bytes */
};

static inline int pstk__access_points_same(const struct pstk__access_points_of *a,
                                           const struct pstk__access_points_of *b)
{
    return a->packing == b->packing && a->size == b->size && a->changed_ns == b->changed_ns &&
           a->unpacked == b->unpacked;
}

/* An opened access points file. */
struct pstk__access_points {
    int fd;         /* owned, or -1 */
    uint32_t owner; /* user of the file */
    struct pstk__access_points_of of;
    uint64_t n_cells, cells;   /* and the byte where they begin */
    uint64_t n_chunks, chunks; /* and the byte where their checksums begin */
};

/* Open the access points file at `path`. head_crc: the checksum of its header, which it must have.
 * 0 or a negative errno: EBADMSG, it is damaged; ESTALE: it is intact, and was made anew since.
 * Allocates nothing. */
int pstk__access_points_open(struct pstk__access_points *points, const char *path,
                             uint32_t head_crc);
void pstk__access_points_close(struct pstk__access_points *points);
/* Find the point whose span has an unpacked byte: `offset` < of.unpacked. 0 or a negative errno. */
int pstk__access_points_find(const struct pstk__access_points *points, uint64_t offset,
                             struct pstk__access_point *point);
/* Read a point's dictionary as it is kept, point->dictionary_kept bytes. 0 or a negative errno. */
int pstk__access_points_dictionary(const struct pstk__access_points *points,
                                   const struct pstk__access_point *point,
                                   uint8_t kept[PSTK__DICTIONARY]);
/* The CRC32C of a chunk. 0 or a negative errno. */
int pstk__access_points_crc(const struct pstk__access_points *points, uint64_t chunk,
                            uint32_t *crc);

/* ---- making one: one thread ---- */

struct pstk__access_points_writer;

/* Begin a file that will be at `path`; dir: its folder, borrowed until the end. Returns owned. */
int pstk__access_points_writer_open(struct pstk__access_points_writer **out, int dir,
                                    const char *path, struct pstk_error *err);
/* Begin a span at this unpacked and packed byte; the one before ends. dictionary: of restart. */
int pstk__access_points_writer_point(struct pstk__access_points_writer *writer, uint64_t unpacked,
                                     uint64_t packed, const struct pstk__restart *restart,
                                     const uint8_t *dictionary, struct pstk_error *err);
/* Add the checksum of the next chunk of the span. */
int pstk__access_points_writer_chunk(struct pstk__access_points_writer *writer, uint32_t crc,
                                     struct pstk_error *err);
/* Finish: sync, rename. *size: bytes of the file; *head_crc: for open. Frees and nulls *writer,
 * also on failure. */
int pstk__access_points_writer_commit(struct pstk__access_points_writer **writer,
                                      const struct pstk__access_points_of *of, uint64_t *size,
                                      uint32_t *head_crc, struct pstk_error *err);
/* Give up: remove the file. NULL is fine. */
void pstk__access_points_writer_abort(struct pstk__access_points_writer **writer);

#endif
