/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format: the table of record formats, and what an opened data set is to the hops after it. L2.
 * `.pstk` is the first entry (pstk/open.c); foreign formats fit the same table. All functions
 * but open, shard_check and stands are pure over the opened source, so any thread may call them at
 * once.
 */
#ifndef PSTK_FORMAT_TABLE_H
#define PSTK_FORMAT_TABLE_H

#include "base/codec.h"
#include "record/record.h"
#include "base/texts.h"

#define PSTK__PAGE_SIZE 4096 /* bytes of an index page */

/* Bytes of a shard file. */
struct pstk__extent {
    uint32_t shard;
    uint32_t page;       /* index page number, where it is one */
    uint64_t record;     /* within the shard */
    uint64_t offset;     /* bytes */
    uint64_t size;       /* bytes to read */
    uint64_t whole_size; /* of the record, >= size */
};

struct pstk__format;

/* An opened data set. Memory is O(shards). Read-only after open. */
struct pstk__source {
    const struct pstk__format *format;
    struct pstk__schema schema;
    struct pstk__record_limits limits; /* from the manifest */
    struct pstk_field_stats stats[PSTK_MAX_FIELDS];
    uint64_t n_samples;
    uint64_t n_shards;
    uint64_t n_pages; /* index pages in all */
    uint64_t bytes;   /* shards and dictionaries */
    char identity[40];
    char *path;               /* owned */
    struct pstk__texts names; /* class names */
    void *state;              /* the format's own */
};

struct pstk__format {
    const char *name;
    /* 1: `path` is of this format; 0: it is not; <0: ENOENT, EACCES, ... */
    int (*probe)(const char *path, struct pstk_error *err);
    /* Open; returns owned. Reads the manifest only, no shard. */
    int (*open)(struct pstk__source **out, const char *path, struct pstk_error *err);
    void (*close)(struct pstk__source *s);
    /* Which shard and record holds sample id < n_samples. O(log shards). */
    void (*locate)(const struct pstk__source *s, uint64_t id, uint32_t *shard, uint64_t *record);
    /* First sample id and number of records of a shard. */
    void (*range)(const struct pstk__source *s, uint32_t shard, uint64_t *first, uint64_t *n);
    /* The index page that tells the extent of a record; size 0 where none is needed. */
    void (*page)(const struct pstk__source *s, uint32_t shard, uint64_t record,
                 struct pstk__extent *page);
    /* Check the bytes of that page. */
    int (*page_check)(const struct pstk__source *s, const struct pstk__extent *page,
                      const void *bytes, struct pstk_error *err);
    /* Extent of a record from its checked page; with head_only, size covers the head alone. */
    int (*extent)(const struct pstk__source *s, uint32_t shard, uint64_t record, const void *page,
                  int head_only, struct pstk__extent *out, struct pstk_error *err);
    /* Checked view of a record's bytes (e->size of them). */
    int (*parse)(const struct pstk__source *s, const struct pstk__extent *e, const void *bytes,
                 struct pstk__record *out, struct pstk_error *err);
    /* Dictionary of a field in a shard, or NULL. */
    const struct pstk__dictionary *(*dictionary)(const struct pstk__source *s, uint32_t shard,
                                                 uint32_t field);
    /* Path of a shard file, and its name alone for messages (static in s). */
    int (*shard_path)(const struct pstk__source *s, uint32_t shard, char *path, size_t size);
    const char *(*shard_name)(const struct pstk__source *s, uint32_t shard);
    /* Check a freshly opened shard file (buffered fd): size, header, agreement with the manifest.
     */
    int (*shard_check)(const struct pstk__source *s, uint32_t shard, int fd,
                       struct pstk_error *err);
    /* Once a file of it could not be opened or did not pass its check: is what stands at the path
     * still the data set that was opened? 0: yes, or nobody can tell; ENOENT, with a message: it
     * was replaced or removed. Never allocates. */
    int (*stands)(const struct pstk__source *s, struct pstk_error *err);
};

extern const struct pstk__format pstk__format_pstk;

/* Find the format of `path` and open it: ENOENT, ENOTSUP (no format knows it), ... */
int pstk__source_open(struct pstk__source **out, const char *path, struct pstk_error *err);
void pstk__source_close(struct pstk__source *s);

#endif
