/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index: the positions of the samples in a data set of a foreign format, found once and kept in a
 * file. An opened index takes memory for each file of the data set, and none for each sample.
 *
 * The file: a header of 4 KiB; for each file of the data set the values that the scan made of its
 * records, then the pages of its table (table.h), at a multiple of 4 KiB; last the description.
 * Each part has a CRC32C. The writer uses a temporary name, so the file is either complete or
 * absent.
 */
#ifndef PSTK_INDEX_H
#define PSTK_INDEX_H

#include "base/texts.h"
#include "store/index/table.h"
#include "store/store.h"

#include <penstock/format.h>
#include <string.h>

#define PSTK__INDEX_VERSION 1 /* version of the file */
#define PSTK__INDEX_FACTS 8
#define PSTK__INDEX_MAX_VALUE 0xffffffffull /* max bytes of a value */
#define PSTK__INDEX_MAX_RECORD (1ull << 40) /* max bytes of a record: 64 values and their heads */

/* A file of the data set as the scan found it, and its parts of the index. */
struct pstk__index_file {
    uint64_t size;       /* bytes */
    int64_t changed_ns;  /* time of change, as in store.h */
    uint64_t first;      /* sample id of its first record */
    uint64_t values;     /* begin of its records' values, byte of the index file */
    uint64_t values_end; /* end of these values */
    uint64_t pages;      /* begin of its page 0, byte of the index file */
    struct pstk__index_table table;
};

/* A field, and the statistics that the scan made of it. */
struct pstk__index_field {
    struct pstk_field field;
    uint32_t coding;    /* enum pstk__coding, or a number of the format */
    uint32_t reserved;  /* 0 */
    uint64_t n;         /* records that have the field */
    uint64_t max_size;  /* bytes of its largest value in the file */
    uint64_t max_plain; /* bytes of its largest value in the plain coding of the field's kind */
    uint64_t bytes;     /* bytes of all its values in the files */
};

/* The properties of a whole data set that a format infers. */
struct pstk__inferred_schema {
    uint32_t n_fields;
    struct pstk__index_field fields[PSTK_MAX_FIELDS];
    uint64_t max_record;               /* bytes to read all fields of the largest record */
    uint64_t facts[PSTK__INDEX_FACTS]; /* private to the format */
};

/* Return the number of the field with this name, or -1: there is none. */
static inline int pstk__index_find_field(const struct pstk__inferred_schema *found,
                                         const char *name)
{
    for (uint32_t i = 0; i < found->n_fields; i++)
        if (strcmp(found->fields[i].field.name, name) == 0)
            return (int)i;
    return -1;
}

/* Path that opens a held file through its descriptor. */
#define PSTK__INDEX_HELD "/proc/self/fd/%d"

/* An opened index. Read-only after open. */
struct pstk__index {
    char *path; /* path of the index file, owned */
    int held; /* 1 + the owned descriptor of the file that was read, whose name may be gone or lead
                 to another file; 0: open it by path */
    char *location;     /* folder of the data set (location.h), owned, or NULL */
    uint64_t size;      /* bytes of the index file */
    int64_t changed_ns; /* time of change, as in store.h */
    uint64_t n_samples;
    uint64_t n_pages; /* pages of all files */
    uint64_t bytes;   /* bytes of all files of the data set */
    uint32_t n_files;
    struct pstk__index_file *files; /* owned; n_files */
    struct pstk__texts names;       /* names of the files, as the format lists them */
    struct pstk__texts classes;     /* class names, or none */
    struct pstk__inferred_schema found;
    uint64_t digest[2]; /* digest of names, sizes and rows */
};

/* Read the index in the opened file fd, and hold fd; a failure closes it. path: for messages; key:
 * the key that the index must have (location.h). Returns owned. EBADMSG: it is damaged, or has
 * another key or version. */
int pstk__index_open(struct pstk__index **out, const char *path, int fd, const uint64_t key[2],
                     struct pstk_error *err);
/* Fail because the index must be built again. EBADMSG: "the index PATH WHAT; remove it, and it is
 * built again". */
int pstk__index_fail(const struct pstk__index *index, int stage, struct pstk_error *err,
                     const char *what, ...) __attribute__((format(printf, 4, 5)));
/* Write the path that opens the file of an opened index, even if the file lost its name since. 0;
 * EINVAL: the path is longer than `size` allows. */
int pstk__index_file_path(const struct pstk__index *index, char *path, size_t size);
/* Return why the index does not fit files with these names, sizes and times, or NULL: it fits.
 * Static storage. */
const char *pstk__index_differs(const struct pstk__index *index, const struct pstk__texts *names,
                                const uint64_t *sizes, const int64_t *changed_ns);
/* NULL is fine. */
void pstk__index_close(struct pstk__index *index);
/* Return the file that has the sample `id` < n_samples. */
uint32_t pstk__index_find(const struct pstk__index *index, uint64_t id);
/* Return the page with the row of a record, in the table of its file. */
static inline uint64_t pstk__index_page_of(const struct pstk__index_file *file, uint64_t record)
{
    return record / file->table.per_page;
}

/* Add the bytes, read as words, to a digest of two lanes. */
void pstk__index_digest(uint64_t digest[2], const void *bytes, uint64_t size);

#endif
