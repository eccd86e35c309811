/* SPDX-License-Identifier: Apache-2.0 */
/* writer: makes the file of an index. One thread. */
#ifndef PSTK_INDEX_WRITER_H
#define PSTK_INDEX_WRITER_H

#include "store/index/index.h"

/* What a scan finds in one file of the data set: a row for each record, in their order. */
struct pstk__index_rows {
    uint64_t *cells; /* owned; n * n_columns */
    uint8_t *values; /* owned; what the format made of the records */
    uint64_t n, n_columns;
    uint64_t n_values;              /* bytes */
    uint64_t max_cells, max_values; /* room */
};

/* Append a row of rows->n_columns numbers. 0 or ENOMEM. */
int pstk__index_rows_add(struct pstk__index_rows *rows, const uint64_t *cells);
/* Append bytes to the values; *at: where they begin. 0 or ENOMEM. */
int pstk__index_rows_value(struct pstk__index_rows *rows, const void *bytes, uint64_t size,
                           uint64_t *at);
/* Frees; leaves empty rows. */
void pstk__index_rows_close(struct pstk__index_rows *rows);

struct pstk__index_writer;

/* Begin an index file that will be at `path`, in another file of its directory, `dir`, which is
 * borrowed until the end. Returns owned. EACCES, EPERM, ENOENT, ...: the directory cannot be
 * written to. */
int pstk__index_writer_open(struct pstk__index_writer **out, int dir, const char *path,
                            struct pstk_error *err);
/* The same, but the file never has a name: it is gone once nobody has it open, and lies in the
 * directory of `path`. */
int pstk__index_writer_open_nameless(struct pstk__index_writer **out, int dir, const char *path,
                                     struct pstk_error *err);
/* The directory of the file; the caller's of open. */
int pstk__index_writer_dir(const struct pstk__index_writer *writer);
/* The path that the file will have. */
const char *pstk__index_writer_path(const struct pstk__index_writer *writer);
/* Append what was found in the next file of the data set, whose name, size and time these are. */
int pstk__index_writer_add(struct pstk__index_writer *writer, const char *name, uint64_t size,
                           int64_t changed_ns, const struct pstk__index_rows *rows,
                           struct pstk_error *err);
/* Finish: describe; sync and rename, if the file has a name. classes: class names, or empty. *fd is
 * its descriptor, returned owned, or -1. Frees and nulls *writer, also on failure. */
int pstk__index_writer_commit(struct pstk__index_writer **writer, const uint64_t key[2],
                              const struct pstk__inferred_schema *found,
                              const struct pstk__texts *classes, int *fd, struct pstk_error *err);
/* Give up: remove the file. NULL is fine. */
void pstk__index_writer_abort(struct pstk__index_writer **writer);

#endif
