/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column_writer: writes the column files of a writer's shards, with values that are derived from
 * the records. It holds the values of the open shard: for each column 1 to 8 bytes a record. One
 * thread. pstk__column_put writes any column file.
 */
#ifndef PSTK_COLUMN_WRITER_H
#define PSTK_COLUMN_WRITER_H

#include "format/pstk/column.h"
#include "format/pstk/manifest.h"
#include "pack/staging.h"

/* The source of the values of a column file. */
struct pstk__column_values {
    /* Return the values of records first .. first + n - 1 of the shard, valid until the next call;
     * NULL: it failed. */
    const void *(*get)(void *user, uint64_t first, uint64_t n, struct pstk_error *err);
    void *user;
};

/* Write and publish a column file. `h` has tag, shard_crc, n_records, dtype and name; the function
 * sets its other members. */
int pstk__column_put(struct pstk__staging *staging, const char *file, struct pstk__column_header *h,
                     const struct pstk__column_values *values, struct pstk_error *err);

/* Closed: all zero. */
struct pstk__column_writer {
    struct pstk__staging *staging;       /* borrowed */
    struct pstk__manifest *manifest;     /* borrowed; its columns are those of `list` */
    struct pstk__derived_column *list;   /* owned */
    struct pstk__written_values *values; /* values of the open shard, by column; owned */
    int *fds;                            /* files being written, by column, or -1; owned */
    uint64_t n_records;                  /* records in the open shard */
};

/* Add the columns that the manifest's schema requires to the manifest, for `add` and `finish`. */
int pstk__column_writer_open(struct pstk__column_writer *writer, struct pstk__staging *staging,
                             struct pstk__manifest *manifest, struct pstk_error *err);
/* Announce the files of a shard that is about to be created. */
int pstk__column_writer_begin(const struct pstk__column_writer *writer, const char *shard,
                              struct pstk_error *err);
/* Add a record. views: as stored, with the data of fixed fields. */
int pstk__column_writer_add(struct pstk__column_writer *writer,
                            const struct pstk__field_view *views, struct pstk_error *err);
/* Write the column files of *shard, whose records were added since the last call. */
int pstk__column_writer_finish(struct pstk__column_writer *writer,
                               const struct pstk__manifest_shard *shard, uint32_t tag,
                               struct pstk_error *err);
void pstk__column_writer_close(struct pstk__column_writer *writer);

#endif
