/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip: parses the parts of a ZIP archive (APPNOTE 6.3.10) whose members are stored, as numpy.savez
 * writes it. Pure: no I/O, no allocation. The caller reads the end of the file, then the central
 * directory that it names, then the local header of each wanted member.
 *
 * The parser accepts only unambiguous archives. The directory ends where the end record begins, and
 * the comment where the file ends; each local header agrees with its entry in the directory; no
 * member overlaps another or the directory. It decompresses nothing.
 */
#ifndef PSTK_ZIP_H
#define PSTK_ZIP_H

#include <penstock/format.h>

#define PSTK__ZIP_TAIL_MAX                                                                         \
    (65535u + 22 + 20 + 56) /* bytes of comment, end record, and the two of zip64 */
#define PSTK__ZIP_LOCAL_MAX (30u + 65535 + 65535)   /* max bytes of a local header */
#define PSTK__ZIP_DIRECTORY_MAX (UINT64_C(1) << 20) /* max bytes of a directory that is read */

/* An archive that is parsed. */
struct pstk__zip {
    const char *name;          /* name of the file, for messages; borrowed */
    struct pstk_error *err;    /* borrowed, or NULL */
    uint64_t directory_offset; /* begin of the directory, byte of the file */
    uint64_t directory_size;   /* bytes, at most PSTK__ZIP_DIRECTORY_MAX */
    uint64_t n_left;           /* members after `at` */
    const uint8_t *at, *end;   /* rest of the directory */
};

struct pstk__zip_member {
    const char *name;      /* borrowed from the directory; not terminated */
    uint32_t name_size;    /* bytes, may be 0 */
    uint32_t crc32;        /* CRC-32 of its data */
    uint32_t flags;        /* general purpose bits */
    uint64_t size;         /* bytes of its data */
    uint64_t local_offset; /* begin of its local header, byte of the file */
    uint64_t offset;       /* begin of its data, byte of the file; pstk__zip_local_parse sets it */
};

/* Find the directory. tail: the last min(file_size, PSTK__ZIP_TAIL_MAX) bytes of the file; zip has
 * name and err. EBADMSG: damaged, or no archive; ENOTSUP: several disks, a prefix, too large. */
int pstk__zip_end_parse(struct pstk__zip *zip, const uint8_t *tail, uint64_t tail_size,
                        uint64_t file_size);
/* Begin a walk over the directory, whose directory_size bytes are borrowed. */
void pstk__zip_begin(struct pstk__zip *zip, const uint8_t *directory);
/* Step to the next member. 1: *member, without offset; 0: there are no more; <0: damaged, or
 * ENOTSUP for a member that is compressed or encrypted. */
int pstk__zip_next(struct pstk__zip *zip, struct pstk__zip_member *member);
/* Set member->offset from the local header, of which `bytes` has `size`: PSTK__ZIP_LOCAL_MAX, or
 * the bytes up to the directory. */
int pstk__zip_local_parse(const struct pstk__zip *zip, struct pstk__zip_member *member,
                          const uint8_t *bytes, uint64_t size);
/* Check that no two members, with their local headers, overlap. O(n^2). */
int pstk__zip_check_overlaps(const struct pstk__zip *zip, const struct pstk__zip_member *members,
                             uint32_t n);
/* Copy a member's name for a message: bytes that are not printable ASCII become '?'. */
const char *pstk__zip_shown(const struct pstk__zip_member *member, char text[80]);

#endif
