/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file: reads the rows of a table from its file, one after another. One thread. Memory is O(longest
 * row). Messages about a row name the table, the line and the byte.
 */
#ifndef PSTK_TABLE_FILE_H
#define PSTK_TABLE_FILE_H

#include "format/table/table.h"
#include "format/file_reader.h"

struct pstk__table_file {
    const struct pstk__table_kind *kind;
    struct pstk__scan scan;
    struct pstk__file_reader reader;
    char *room;                 /* room for unescaped text, owned */
    uint64_t room_size;         /* bytes */
    uint64_t end;               /* end of the rows to read, byte of the file */
    uint64_t line;              /* line of the next row; the first is 1 */
    uint64_t row_at;            /* begin of the row, byte of the file */
    uint64_t row_line;          /* line of the row */
    struct pstk_error *err;     /* borrowed */
    struct pstk__table_row row; /* last row read; borrows the buffer */
};

/* Open a table of `size` bytes. Call close in any case. path: borrowed. */
int pstk__table_file_open(struct pstk__table_file *file, const struct pstk__store *store,
                          const char *path, uint64_t size, struct pstk_error *err);
void pstk__table_file_close(struct pstk__table_file *file);
/* Continue at a row that begins at byte `at` and at this line, and end before byte `end`. */
void pstk__table_file_seek(struct pstk__table_file *file, uint64_t at, uint64_t line, uint64_t end);
/* Read the next row into file->row; skips empty lines. 1: done; 0: there are no more. EBADMSG,
 * EFBIG, ENOMEM, or a failure of reading. */
int pstk__table_file_next(struct pstk__table_file *file);
/* Fail because byte `at` of the row is wrong. Returns EBADMSG. */
int pstk__table_file_fail(struct pstk__table_file *file, uint64_t at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
