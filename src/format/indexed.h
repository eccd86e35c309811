/* SPDX-License-Identifier: Apache-2.0 */
/*
 * indexed: what formats share whose samples are found by an index (index/). An entry has a scanner,
 * and these functions in its table. Every file of the data set is a shard; the index is one file
 * more, whose number follows theirs, and whose pages list the rows.
 */
#ifndef PSTK_FORMAT_INDEXED_H
#define PSTK_FORMAT_INDEXED_H

#include "format/format.h"
#include "format/listing.h"
#include "store/index/writer.h"
#include "store/unpack/unpack.h"

/* A file being scanned. */
struct pstk__scan {
    const struct pstk__store *store;
    const char *name; /* as the data set lists it, for messages */
    const char *path;
    uint64_t size;                      /* bytes, as listed */
    uint64_t number;                    /* in the list of files */
    const void *own;                    /* what the scanner's list read, or NULL */
    const struct pstk_foreign *foreign; /* what the caller asks for, or NULL */
    /* Report n more bytes as done; a non-zero result: stop with ECANCELED. NULL: nobody asks. */
    int (*progress)(void *user, uint64_t n_bytes);
    void *user;
};

/* How a format finds the records of a file. All functions except list may be called by several
 * threads at once. */
struct pstk__scanner {
    const struct pstk__format *format;
    uint32_t version;   /* of what a scan finds: an index of another version is built again */
    const char *wanted; /* names of files, as listing.h has them: ".tar"; unused where there is a
                           list */
    uint32_t may_be_packed; /* 1: files may be compressed (unpack.h); scans read them unpacked */
    /* 1: a file with these first bytes is not compressed, whatever it looks like; NULL: nobody
     * knows. */
    int (*is_plain)(const uint8_t *head, uint64_t n);
    /* As of struct pstk__unpack_files; user: what `list` read. NULL: nothing is known. */
    void (*known)(const void *own, uint64_t i, uint32_t *packing, uint64_t *unpacked);
    const char *packed; /* names of compressed files, which of a folder that has `wanted` ones are
                           not read; NULL: there are none such */
    /* List the files of a data set that lists them itself; NULL: list them by `wanted`. Add to
     * the listing's digest all that records depend on and names, sizes and times do not show. *own:
     * what scans and the source need of that list; returns owned (free()). */
    int (*list)(struct pstk__listing *listing, void **own, const struct pstk__opening *opening,
                struct pstk_error *err);
    /* Find the fields by the first records of a file, with the codings of their values. `wanted`:
     * fields that the caller names, which are kept even where no record of these has them. Where it
     * fails, *found has the fields of the records before the damage, or none. */
    int (*infer)(const struct pstk__scan *scan, const struct pstk_foreign *wanted,
                 struct pstk__inferred_schema *found, struct pstk_error *err);
    /* Columns of a row; NULL: scan sets rows->n_columns, to the same for all files. */
    uint32_t (*n_columns)(const struct pstk__inferred_schema *found);
    /* Find all records of a file: append their rows, and add up what was found, in fields whose n,
     * sizes and bytes begin at 0, and in facts: the largest of all files counts. Where it fails,
     * rows and sums are those of the records before the damage. */
    int (*scan)(const struct pstk__scan *scan, struct pstk__index_rows *rows,
                struct pstk__inferred_schema *found, struct pstk_error *err);
    /* Set the coding of a field for the kind that the caller wants; ENOTSUP, with a message. */
    int (*retype)(struct pstk__index_field *field, const struct pstk_field *wanted,
                  struct pstk_error *err);
    /* Fail: what the caller asks for leaves no sample in the files. own: what `list` read. 0: the
     * files have none. NULL: nothing can be asked for that does so. */
    int (*fail_none)(const struct pstk__index *index, const void *own, const char *path,
                     struct pstk_error *err);
};

/* The state of such a source. */
struct pstk__indexed {
    const struct pstk__scanner *scanner;
    char *folder;              /* owned; the names of the files are below it */
    struct pstk__index *index; /* owned */
    void *own; /* owned; of the scanner's list, or the format's after it is open; or NULL */
    struct pstk__unpack *unpack; /* owned; NULL: no file is compressed */
    char kind[16];               /* the format's name for users, where there is `unpack` */
};

/* Entries of a format's table. */
int pstk__indexed_open(struct pstk__source **out, const struct pstk__scanner *scanner,
                       const struct pstk__opening *opening, struct pstk_error *err);
void pstk__indexed_close(struct pstk__source *source);
/* Set what the source has of an index that was opened, with these fields: for formats that open
 * theirs by themselves. */
int pstk__indexed_describe(struct pstk__source *source, const struct pstk__inferred_schema *found,
                           struct pstk_error *err);
/* Threads that build an index. */
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
/* The number in a column of a record's row, from its checked page. */
static inline uint64_t pstk__indexed_cell(const struct pstk__source *source,
                                          const struct pstk__sample_location *at, const void *page,
                                          uint32_t column)
{
    return pstk__index_table_get(&pstk__indexed_index(source)->files[at->shard].table, page,
                                 at->record, column);
}
/* Begin to parse a record whose first byte that was read is at `offset`: all of *out, with fields
 * that have no data. */
void pstk__indexed_begin(const struct pstk__source *source, const struct pstk__sample_location *at,
                         uint64_t offset, struct pstk__record *out);
/* Fail: damage in bytes of a record. Returns EBADMSG. */
int pstk__indexed_fail(const struct pstk__source *source, const struct pstk__sample_location *at,
                       uint64_t offset, uint64_t length, struct pstk_error *err, const char *fmt,
                       ...) __attribute__((format(printf, 6, 7)));
/* Fail: the index names bytes for a record that its file does not have. Returns EBADMSG. */
int pstk__indexed_fail_extent(const struct pstk__source *source,
                              const struct pstk__sample_location *at, uint64_t offset,
                              uint64_t size, struct pstk_error *err);

#endif
