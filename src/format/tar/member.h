/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member: steps through the members of a tar in memory. Pure.
 *
 * Reads POSIX.1-1988 (ustar), POSIX.1-2001 (pax: path and size of typeflag x), and GNU's long names
 * (typeflag L) and binary sizes. Skips global pax records and long names of links (typeflags g, K).
 * Checks each header's checksum. Refuses links, devices and sparse files. A name is bytes: it is
 * never used as a path.
 */
#ifndef PSTK_TAR_MEMBER_H
#define PSTK_TAR_MEMBER_H

#include <penstock/types.h>

#define PSTK__TAR_BLOCK 512
#define PSTK__TAR_MAX_NAME 4096 /* bytes of a name, its 0 included */
/* Max bytes of all headers of a member: its own, and those before it with its name or pax records.
 */
#define PSTK__TAR_MAX_HEADERS (1u << 20)

/* A regular file of the archive. */
struct pstk__tar_member {
    uint64_t begin; /* begin of its first header, byte of the archive */
    uint64_t first; /* begin of the first header that matters: earlier ones give neither name nor
                       size */
    uint64_t data;  /* begin of its data */
    uint64_t size;  /* bytes of its data */
    uint64_t next;  /* begin of the next member's first header */
    /* Position of the whole `name`; PSTK_NONE: its prefix and its end lie apart. */
    uint64_t named;
    char name[PSTK__TAR_MAX_NAME];
};

/* The parts of a member's name: "a/b.seg.png" has the key "a/b" and the suffix "seg.png". */
struct pstk__tar_name {
    const char *key;
    uint32_t key_size;
    uint32_t suffix_size; /* 0: the name has no suffix, or the member is skipped */
    int is_too_long;      /* 1: the suffix is longer than the name of a field; it is cut */
    char suffix[64];      /* in lower case, its 0 included */
};

enum pstk__tar_step {
    PSTK__TAR_MEMBER, /* *member is the next regular file */
    PSTK__TAR_OTHER,  /* a folder, or a file whose name ends in '/': it belongs to no sample */
    PSTK__TAR_END,    /* a block of zeros */
    PSTK__TAR_MORE,   /* the bytes end within the headers */
    PSTK__TAR_BAD,    /* damage: the reason and its position are in the fault */
};

/* The reason of a failed step, static storage, and its byte of the archive. */
struct pstk__tar_fault {
    const char *why;
    uint64_t at;
};

/* Read the headers of the member that begins at byte `begin` of the archive; `bytes` has
 * `available` bytes from there on. The member's data may be missing. */
enum pstk__tar_step pstk__tar_read(struct pstk__tar_member *member, uint64_t begin,
                                   const void *bytes, uint64_t available,
                                   struct pstk__tar_fault *fault);
/* Split a name at the first dot of its last part, as WebDataset does; at_last 1: at the last dot.
 */
void pstk__tar_split(struct pstk__tar_name *name, const char *text, int at_last);

#endif
