/* SPDX-License-Identifier: Apache-2.0 */
/*
 * indexed: the shared part of formats that find samples by an index (index/). An entry has a
 * scanner, and these functions in its table. Every file of the data set is a shard; the index is
 * one more file, whose number follows theirs, and whose pages list the rows.
 */
#ifndef PSTK_FORMAT_INDEXED_H
#define PSTK_FORMAT_INDEXED_H

#include "format/format.h"
#include "format/listing.h"
#include "store/index/writer.h"
#include "store/unpack/unpack.h"

/* A file that is scanned. */
struct pstk__scan {
    const struct pstk__store *store;
    const char *name; /* name in the data set, for messages */
    const char *path;
    uint64_t size;                      /* bytes, as listed */
    uint64_t number;                    /* number in the list of files */
    const void *own;                    /* result of the scanner's list, or NULL */
    const struct pstk_foreign *foreign; /* settings of the caller, or NULL */
    /* Report n more bytes as done; a non-zero result ends with ECANCELED. May be NULL. */
    int (*progress)(void *user, uint64_t n_bytes);
    void *user;
};

/* The functions that find the records of a file. Several threads may call all functions except list
 * at once. */
struct pstk__scanner {
    const struct pstk__format *format;
    uint32_t version; /* version of a scan's results: an index of another version is built again */
    const char *wanted;     /* names of files, as in listing.h: ".tar"; unused if there is a list */
    uint32_t may_be_packed; /* 1: files may be compressed (unpack.h); scans read them unpacked */
    /* 1: a file with these first bytes is not compressed, even if they look so; NULL: unknown. */
    int (*is_plain)(const uint8_t *head, uint64_t n);
    /* As in struct pstk__unpack_files; own: the result of `list`. NULL: nothing is known. */
    void (*known)(const void *own, uint64_t i, uint32_t *packing, uint64_t *unpacked);
    const char *packed; /* names of compressed files, which are not read in a folder that has
                           `wanted` ones; NULL: none */
    /* List the files of a data set that has its own list; NULL: list them by `wanted`. Add to the
     * listing's digest all that records depend on and that names, sizes and times do not show.
     * *own: the part of that list that scans and the source need, returned owned (free()). */
    int (*list)(struct pstk__listing *listing, void **own, const struct pstk__opening *opening,
                struct pstk_error *err);
    /* Find the fields by the first records of a file, with the codings of their values. `wanted`:
     * fields that the caller names, which are kept even if no record of these has them. On failure,
     * *found has the fields of the records before the damage, or none. */
    int (*infer)(const struct pstk__scan *scan, const struct pstk_foreign *wanted,
                 struct pstk__inferred_schema *found, struct pstk_error *err);
    /* Return the columns of a row; NULL: scan sets rows->n_columns, to the same for all files. */
    uint32_t (*n_columns)(const struct pstk__inferred_schema *found);
    /* Find all records of a file. Append their rows, and add to the fields' n, sizes and bytes,
     * which begin at 0, and to facts: the largest of all files counts. On failure, rows and sums
     * are those of the records before the damage. */
    int (*scan)(const struct pstk__scan *scan, struct pstk__index_rows *rows,
                struct pstk__inferred_schema *found, struct pstk_error *err);
    /* Set the coding of a field for the kind that the caller wants; ENOTSUP, with a message. */
    int (*retype)(struct pstk__index_field *field, const struct pstk_field *wanted,
                  struct pstk_error *err);
    /* Fail because the settings of the caller leave no sample in the files. own: the result of
     * `list`. 0: the files have none anyway. NULL: no setting does so. */
    int (*fail_none)(const struct pstk__index *index, const void *own, const char *path,
                     struct pstk_error *err);
};

/* The state of such a source. */
struct pstk__indexed {
    const struct pstk__scanner *scanner;
    char *folder;              /* folder that the names of the files are below, owned */
    struct pstk__index *index; /* owned */
    void *own; /* result of the scanner's list, or the format's own after open; owned, or NULL */
    struct pstk__unpack *unpack; /* owned; NULL: no file is compressed */
    char kind[16];               /* name of the format for users, if there is `unpack` */
};

/* Entries of a format's table. */
int pstk__indexed_open(struct pstk__source **out, const struct pstk__scanner *scanner,
                       const struct pstk__opening *opening, struct pstk_error *err);
void pstk__indexed_close(struct pstk__source *source);
/* Set the parts of a source that follow from an opened index with these fields: for formats that
 * open their index themselves. */
int pstk__indexed_describe(struct pstk__source *source, const struct pstk__inferred_schema *found,
                           struct pstk_error *err);
/* Return the number of threads that build an index. */
uint32_t pstk__indexed_threads(const struct pstk__opening *opening);
void pstk__indexed_locate(const struct pstk__source *source, uint64_t id,
                          struct pstk__sample_location *at);
void pstk__indexed_range(const struct pstk__source *source, uint32_t shard, uint64_t *first,
                         uint64_t *n);
void pstk__indexed_page(const struct pstk__source *source, const struct pstk__sample_location *at,
                        struct pstk__extent *page);
int pstk__indexed_page_check(const struct pstk__source *source, const struct pstk__extent *page,
                             const void *bytes, struct pstk_error *err);
const char *pstk__indexed_file_name(const struct pstk__source *source, uint32_t file);
int pstk__indexed_file_path(const struct pstk__source *source, uint32_t file, char *path,
                            size_t size);
int pstk__indexed_file_check(const struct pstk__source *source, uint32_t number,
                             const struct pstk__file *file, struct pstk_error *err);

/* Also an entry of its table. */
static inline const struct pstk__index *pstk__indexed_index(const struct pstk__source *source)
{
    return ((const struct pstk__indexed *)source->state)->index;
}
/* Return the number in a column of a record's row, from its checked page. */
static inline uint64_t pstk__indexed_cell(const struct pstk__source *source,
                                          const struct pstk__sample_location *at, const void *page,
                                          uint32_t column)
{
    return pstk__index_table_get(&pstk__indexed_index(source)->files[at->shard].table, page,
                                 at->record, column);
}
/* Begin to parse a record whose first byte read is at `offset`: sets all of *out, with fields that
 * have no data. */
void pstk__indexed_begin(const struct pstk__source *source, const struct pstk__sample_location *at,
                         uint64_t offset, struct pstk__record *out);
/* Fail because of damage in bytes of a record. Returns EBADMSG. */
int pstk__indexed_fail(const struct pstk__source *source, const struct pstk__sample_location *at,
                       uint64_t offset, uint64_t length, struct pstk_error *err, const char *fmt,
                       ...) __attribute__((format(printf, 6, 7)));
/* Fail because the index names bytes for a record that its file does not have. Returns EBADMSG. */
int pstk__indexed_fail_extent(const struct pstk__source *source,
                              const struct pstk__sample_location *at, uint64_t offset,
                              uint64_t size, struct pstk_error *err);

#endif
