/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column_file: opens a column's file of one shard through the store, compares it with the manifest,
 * and reads ranges of its values. Used by reading, verification and merging. One thread at a time
 * for each open file.
 */
#ifndef PSTK_COLUMN_FILE_H
#define PSTK_COLUMN_FILE_H

#include "format/pstk/column.h"
#include "format/pstk/manifest.h"
#include "store/store.h"

/* Bytes of the buffer of pstk__column_file_read: the pages of one read. */
#define PSTK__COLUMN_READ (64 * PSTK__COLUMN_PAGE)

struct pstk__column_file {
    struct pstk__file file;
    struct pstk__column_header header;
    char name[PSTK__MAX_COLUMN_FILE];
};

/* The position of a column file in its data set. */
struct pstk__column_location {
    const struct pstk__store *store;
    const char *path; /* directory of the data set */
    const struct pstk__manifest *manifest;
    uint32_t column, shard;
};

/* Open the file, and compare its size and header with the manifest. EBADMSG: it is damaged, or
 * another file; ENOENT: there is none. An error names the file. On failure nothing is open. */
int pstk__column_file_open(struct pstk__column_file *out,
                           const struct pstk__column_location *location, struct pstk_error *err);
/* Read the values of records first .. first + n - 1 of the shard, n >= 1, into out. `buffer` has
 * PSTK__COLUMN_READ bytes. Checks every page that it reads. */
int pstk__column_file_read(const struct pstk__column_file *file, uint64_t first, uint64_t n,
                           void *out, void *buffer, struct pstk_error *err);
/* Read the pages from `page` up to, not including, `end`, at most PSTK__COLUMN_READ bytes. Returns
 * the number of pages, or an error that names the file. */
int64_t pstk__column_file_pages(const struct pstk__column_file *file, uint64_t page, uint64_t end,
                                void *buffer, struct pstk_error *err);
void pstk__column_file_close(struct pstk__column_file *file);

#endif
