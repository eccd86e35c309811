/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access_points: the positions of a compressed file where unpacking can begin, kept in a file of
 * their own. Any byte is found by one read of that file, whatever its size; it is never read as a
 * whole.
 *
 * The file: a header of 4 KiB; the dictionaries; a cell of 64 bytes for each PSTK__SPACING unpacked
 * bytes; 8 bytes with the CRC32C of each PSTK__CHUNK unpacked bytes from a point on. Header, cells,
 * dictionaries and checksums each have a CRC32C. Cell k has the last point before byte k *
 * PSTK__SPACING, and cell 0 has the first point. At most one point lies between two multiples of
 * PSTK__SPACING, so the point before a byte is in one cell or in the next. The writer uses a
 * temporary name, so the file is either complete or absent.
 */
#ifndef PSTK_UNPACK_ACCESS_POINTS_H
#define PSTK_UNPACK_ACCESS_POINTS_H

#include "store/unpack/packing.h"

#define PSTK__ACCESS_POINTS_VERSION                                                                \
    2                            /* version of the file, and of the rows in the index (build.c) */
#define PSTK__SPACING (1u << 20) /* unpacked bytes */
#define PSTK__CHUNK (1u << 16)   /* unpacked bytes */

/* A point, and the span of bytes up to the next point. */
struct pstk__access_point {
    uint64_t begin, end;      /* range of unpacked bytes; end is excluded */
    uint64_t packed;          /* byte of the compressed file where reading begins */
    uint64_t dictionary;      /* begin of the dictionary, byte of the access points file */
    uint32_t dictionary_kept; /* bytes of the dictionary in that file; fewer than dictionary_size:
                                 compressed */
    uint32_t dictionary_crc;  /* CRC32C of the bytes in that file */
    uint64_t chunk;           /* number of the first chunk's checksum */
    struct pstk__restart restart;
};

/* The compressed file that access points belong to. */
struct pstk__access_points_of {
    uint32_t packing;   /* number of its packing */
    uint64_t size;      /* bytes of the compressed file */
    int64_t changed_ns; /* time of change, as in store.h */
    uint64_t unpacked;  /* unpacked bytes */
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
    uint32_t owner; /* user id of the file's owner */
    struct pstk__access_points_of of;
    uint64_t n_cells, cells;   /* number of cells, and the byte where they begin */
    uint64_t n_chunks, chunks; /* number of checksums, and the byte where they begin */
};

/* Open the access points file at `path`. head_crc: the checksum that its header must have. 0 or a
 * negative errno: EBADMSG, it is damaged; ESTALE: it is intact, but was made again since. Never
 * allocates. */
int pstk__access_points_open(struct pstk__access_points *points, const char *path,
                             uint32_t head_crc);
void pstk__access_points_close(struct pstk__access_points *points);
/* Find the point whose span has the unpacked byte `offset` < of.unpacked. 0 or a negative errno. */
int pstk__access_points_find(const struct pstk__access_points *points, uint64_t offset,
                             struct pstk__access_point *point);
/* Read a point's dictionary in its stored form, point->dictionary_kept bytes. 0 or a negative
 * errno. */
int pstk__access_points_dictionary(const struct pstk__access_points *points,
                                   const struct pstk__access_point *point,
                                   uint8_t kept[PSTK__DICTIONARY]);
/* Read the CRC32C of a chunk. 0 or a negative errno. */
int pstk__access_points_crc(const struct pstk__access_points *points, uint64_t chunk,
                            uint32_t *crc);

/* ---- making one: one thread ---- */

struct pstk__access_points_writer;

/* Begin a file that will be at `path`, in its folder `dir`, which is borrowed until the end.
 * Returns owned. */
int pstk__access_points_writer_open(struct pstk__access_points_writer **out, int dir,
                                    const char *path, struct pstk_error *err);
/* Begin a span at this unpacked and packed byte, and end the span before. dictionary: the bytes
 * that restart->dictionary_size counts. */
int pstk__access_points_writer_point(struct pstk__access_points_writer *writer, uint64_t unpacked,
                                     uint64_t packed, const struct pstk__restart *restart,
                                     const uint8_t *dictionary, struct pstk_error *err);
/* Add the checksum of the next chunk of the span. */
int pstk__access_points_writer_chunk(struct pstk__access_points_writer *writer, uint32_t crc,
                                     struct pstk_error *err);
/* Finish: sync and rename. *size: bytes of the file; *head_crc: argument of open. Frees and nulls
 * *writer, also on failure. */
int pstk__access_points_writer_commit(struct pstk__access_points_writer **writer,
                                      const struct pstk__access_points_of *of, uint64_t *size,
                                      uint32_t *head_crc, struct pstk_error *err);
/* Give up, and remove the file. NULL is fine. */
void pstk__access_points_writer_abort(struct pstk__access_points_writer **writer);

#endif
