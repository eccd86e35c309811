/* SPDX-License-Identifier: Apache-2.0 */
/* writer: writes the file of an index. One thread. */
#ifndef PSTK_INDEX_WRITER_H
#define PSTK_INDEX_WRITER_H

#include "store/index/index.h"

/* The records that a scan finds in one file of the data set: a row for each, in their order. */
struct pstk__index_rows {
    uint64_t *cells; /* owned; n * n_columns */
    uint8_t *values; /* bytes that the format made of the records, owned */
    uint64_t n, n_columns;
    uint64_t n_values;              /* bytes of values */
    uint64_t max_cells, max_values; /* capacity */
};

/* Append a row of rows->n_columns numbers. 0 or ENOMEM. */
int pstk__index_rows_add(struct pstk__index_rows *rows, const uint64_t *cells);
/* Append bytes to the values; *at: the position of the first. 0 or ENOMEM. */
int pstk__index_rows_value(struct pstk__index_rows *rows, const void *bytes, uint64_t size,
                           uint64_t *at);
/* Free the rows, and leave them empty. */
void pstk__index_rows_close(struct pstk__index_rows *rows);

struct pstk__index_writer;

/* Begin an index file that will be at `path`, under a temporary name in its directory `dir`, which
 * is borrowed until the end. Returns owned. EACCES, EPERM, ENOENT, ...: the directory cannot be
 * written to. */
int pstk__index_writer_open(struct pstk__index_writer **out, int dir, const char *path,
                            struct pstk_error *err);
/* As pstk__index_writer_open, for a file in the directory of `path` that never has a name: the
 * system frees it once nobody has it open. */
int pstk__index_writer_open_nameless(struct pstk__index_writer **out, int dir, const char *path,
                                     struct pstk_error *err);
/* Return the directory of the file, which the caller of open owns. */
int pstk__index_writer_dir(const struct pstk__index_writer *writer);
/* Return the path that the file will have. */
const char *pstk__index_writer_path(const struct pstk__index_writer *writer);
/* Append the records of the next file of the data set, which has this name, size and time of
 * change. */
int pstk__index_writer_add(struct pstk__index_writer *writer, const char *name, uint64_t size,
                           int64_t changed_ns, const struct pstk__index_rows *rows,
                           struct pstk_error *err);
/* Finish: write the description; sync and rename if the file has a name. classes: class names, or
 * empty. *fd: its descriptor, returned owned, or -1. Frees and nulls *writer, also on failure. */
int pstk__index_writer_commit(struct pstk__index_writer **writer, const uint64_t key[2],
                              const struct pstk__inferred_schema *found,
                              const struct pstk__texts *classes, int *fd, struct pstk_error *err);
/* Give up, and remove the file. NULL is fine. */
void pstk__index_writer_abort(struct pstk__index_writer **writer);

#endif
