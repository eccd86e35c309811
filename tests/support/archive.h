/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive: read a ZIP archive that is in memory, step by step as format/arrays/container.c does.
 * Each step gets a copy of exactly the bytes that it may read, so that ASan sees a read past them.
 */
#ifndef PSTK_ARCHIVE_H
#define PSTK_ARCHIVE_H

#include "format/arrays/zip.h"

#include <stdlib.h>
#include <string.h>

#define ARCHIVE_MAX 64 /* members */

struct archive {
    struct pstk__zip zip;
    uint32_t n;
    struct pstk__zip_member members[ARCHIVE_MAX]; /* the first ones; names are in `directory` */
    uint8_t *directory;                           /* owned */
};

static inline uint8_t *archive_copy(const uint8_t *from, uint64_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    if (size)
        memcpy(copy, from, size);
    return copy;
}

static inline uint64_t archive_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Read the local header of a member. */
static inline int archive_local(const struct archive *archive, struct pstk__zip_member *member,
                                const uint8_t *bytes)
{
    const uint64_t left = archive->zip.directory_offset - member->local_offset;
    const uint64_t size = archive_min(left, PSTK__ZIP_LOCAL_MAX);
    uint8_t *local = archive_copy(bytes + member->local_offset, size);
    const int rc = pstk__zip_local_parse(&archive->zip, member, local, size);
    free(local);
    return rc;
}

/* 0: *archive has the members, the caller ends it in either case; else the code. */
static inline int archive_read(struct archive *archive, const uint8_t *bytes, uint64_t size,
                               struct pstk_error *err)
{
    *archive = (struct archive){.zip = {.name = "x.npz", .err = err}};
    const uint64_t tail_size = archive_min(size, PSTK__ZIP_TAIL_MAX);
    uint8_t *tail = archive_copy(bytes + (size - tail_size), tail_size);
    int rc = pstk__zip_end_parse(&archive->zip, tail, tail_size, size);
    free(tail);
    if (rc < 0)
        return rc;
    archive->directory =
        archive_copy(bytes + archive->zip.directory_offset, archive->zip.directory_size);
    pstk__zip_begin(&archive->zip, archive->directory);
    struct pstk__zip_member member;
    while ((rc = pstk__zip_next(&archive->zip, &member)) > 0 && archive->n < ARCHIVE_MAX)
        archive->members[archive->n++] = member;
    for (uint32_t i = 0; rc >= 0 && i < archive->n; i++)
        rc = archive_local(archive, &archive->members[i], bytes);
    return rc < 0 ? rc : pstk__zip_check_overlaps(&archive->zip, archive->members, archive->n);
}

static inline void archive_end(struct archive *archive)
{
    free(archive->directory);
}

#endif
