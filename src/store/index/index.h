/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index: where the samples of a data set of another format begin, found once and kept in a file of
 * its own. An opened index takes memory for each file of the data set, and none for each sample.
 *
 * The file: a header of 4 KiB; for each file of the data set the values that the scan made of its
 * records, then the pages of its table (table.h), at a multiple of 4 KiB; last the description.
 * Each part has a CRC32C. The file is complete or it is not there: it is written under another
 * name.
 */
#ifndef PSTK_INDEX_H
#define PSTK_INDEX_H

#include "base/texts.h"
#include "store/index/table.h"
#include "store/store.h"

#include <penstock/format.h>
#include <string.h>

#define PSTK__INDEX_VERSION 1 /* of the file */
#define PSTK__INDEX_FACTS 8
#define PSTK__INDEX_MAX_VALUE 0xffffffffull /* bytes of a value */
#define PSTK__INDEX_MAX_RECORD (1ull << 40) /* bytes: of 64 values and their heads */

/* A file of the data set as the scan found it, and what the index has of it. */
struct pstk__index_file {
    uint64_t size;       /* bytes */
    int64_t changed_ns;  /* as store.h */
    uint64_t first;      /* sample id of its first record */
    uint64_t values;     /* byte of the index file: where the values of its records begin */
    uint64_t values_end; /* and end */
    uint64_t pages;      /* byte of the index file: its page 0 */
    struct pstk__index_table table;
};

/* A field, and what the scan found of it. */
struct pstk__index_field {
    struct pstk_field field;
    uint32_t coding;    /* enum pstk__coding, or the format's own */
    uint32_t reserved;  /* 0 */
    uint64_t n;         /* records that have it */
    uint64_t max_size;  /* bytes of a value in its file */
    uint64_t max_plain; /* bytes of it in the plain coding of the field's kind */
    uint64_t bytes;     /* of all values in their files */
};

/* What a format finds out about a data set as a whole. */
struct pstk__inferred_schema {
    uint32_t n_fields;
    struct pstk__index_field fields[PSTK_MAX_FIELDS];
    uint64_t max_record;               /* bytes that reading all fields of a record takes */
    uint64_t facts[PSTK__INDEX_FACTS]; /* the format's own */
};

/* The number of the field with a name; -1: there is none. */
static inline int pstk__index_find_field(const struct pstk__inferred_schema *found,
                                         const char *name)
{
    for (uint32_t i = 0; i < found->n_fields; i++)
        if (strcmp(found->fields[i].field.name, name) == 0)
            return (int)i;
    return -1;
}

/* The path that opens a file which is held, from its descriptor. */
#define PSTK__INDEX_HELD "/proc/self/fd/%d"

/* An opened index. Read-only after open. */
struct pstk__index {
    char *path; /* owned; of the index file */
    int held;   /* owned; 1 more than the descriptor of the file that was read: its name may lead to
                   another one by now, or it has none; 0: it is opened by its path */
    char *location;     /* owned; the folder next to whose data it may lie (location.h), or NULL */
    uint64_t size;      /* bytes of it */
    int64_t changed_ns; /* as store.h */
    uint64_t n_samples;
    uint64_t n_pages; /* of all files */
    uint64_t bytes;   /* of all files of the data set */
    uint32_t n_files;
    struct pstk__index_file *files; /* owned, n_files */
    struct pstk__texts names;       /* of the files, as the format lists them */
    struct pstk__texts classes;     /* class names, or none */
    struct pstk__inferred_schema found;
    uint64_t digest[2]; /* of names, sizes and rows */
};

/* Read the index in an opened file, `path` in messages, and hold its descriptor; a failure closes
 * it. key: what the index must be of (location.h). Returns owned. EBADMSG: it is damaged, or of
 * another key or version. */
int pstk__index_open(struct pstk__index **out, const char *path, int fd, const uint64_t key[2],
                     struct pstk_error *err);
/* Fail: the index must be built again. EBADMSG: "the index PATH WHAT; remove it, and it is built
 * again". */
int pstk__index_fail(const struct pstk__index *index, int stage, struct pstk_error *err,
                     const char *what, ...) __attribute__((format(printf, 4, 5)));
/* The path that opens the file of an opened index, also where it lost its name since. 0; EINVAL: it
 * is longer than `size` allows. */
int pstk__index_file_path(const struct pstk__index *index, char *path, size_t size);
/* NULL, or why the index does not fit files with these names, sizes and times; static storage. */
const char *pstk__index_differs(const struct pstk__index *index, const struct pstk__texts *names,
                                const uint64_t *sizes, const int64_t *changed_ns);
/* NULL is fine. */
void pstk__index_close(struct pstk__index *index);
/* The file that has sample id < n_samples. */
uint32_t pstk__index_find(const struct pstk__index *index, uint64_t id);
/* Page of the row of a record, in its file's table. */
static inline uint64_t pstk__index_page_of(const struct pstk__index_file *file, uint64_t record)
{
    return record / file->table.per_page;
}

/* Add words to a digest of two lanes. */
void pstk__index_digest(uint64_t digest[2], const void *bytes, uint64_t size);

#endif
