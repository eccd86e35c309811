/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file: the rows of a table, read from its file one after another. One thread. Memory is that
 * of the longest row. Every message names the table, the line and the byte.
 */
#ifndef PSTK_TABLE_FILE_H
#define PSTK_TABLE_FILE_H

#include "format/table/table.h"
#include "format/file_reader.h"

struct pstk__table_file {
    const struct pstk__table_kind *kind;
    struct pstk__scan scan;
    struct pstk__file_reader reader;
    char *room;                 /* owned; for unescaped text */
    uint64_t room_size;         /* bytes */
    uint64_t end;               /* byte of the file: rows are read up to it */
    uint64_t line;              /* of the next row; the first is 1 */
    uint64_t row_at;            /* byte of the file where the row begins */
    uint64_t row_line;          /* its line */
    struct pstk_error *err;     /* borrowed */
    struct pstk__table_row row; /* the last that was read; borrows the buffer */
};

/* Open a table of `size` bytes. Close it in any case. path: borrowed. */
int pstk__table_file_open(struct pstk__table_file *file, const struct pstk__store *store,
                          const char *path, uint64_t size, struct pstk_error *err);
void pstk__table_file_close(struct pstk__table_file *file);
/* Continue at a row that begins at a byte and a line, and end before byte `end`. */
void pstk__table_file_seek(struct pstk__table_file *file, uint64_t at, uint64_t line, uint64_t end);
/* Read the next row, which is in file->row then; empty lines are passed over. 1; 0: there are no
 * more. EBADMSG, EFBIG, or a failure of reading. */
int pstk__table_file_next(struct pstk__table_file *file);
/* Fail: byte `at` of the row is wrong. Returns EBADMSG. */
int pstk__table_file_fail(struct pstk__table_file *file, uint64_t at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
