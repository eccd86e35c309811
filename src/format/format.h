/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format: the table of record formats, and an opened data set as the later stages see it.
 *
 * A data set has samples, numbered from 0. A shard is a run of samples; a file is the unit that is
 * opened and read: a shard of `.pstk` is one file, the one shard of arrays has a file for one field
 * or several. An entry needs the first six functions of struct pstk__format; it has those of the
 * others that its files need. Callers use the functions of pstk__source_, which know what an absent
 * function means.
 *
 * Any thread may call any function of an opened source, several at once, except close. file_check,
 * file_path, file_shown, stands, column_read and column_check may read files; the others of an
 * opened source are pure, where file_check may have kept what it found. probe, open and verify take
 * a path, and read files.
 */
#ifndef PSTK_FORMAT_TABLE_H
#define PSTK_FORMAT_TABLE_H

#include "base/codec.h"
#include "base/texts.h"
#include "record/record.h"
#include "store/store.h"

#include <penstock/foreign.h>

#define PSTK__PAGE_SIZE 4096 /* bytes of an index page */
/* Why a data set of another format than .pstk has no column: its format, its path. */
#define PSTK__NO_COLUMNS                                                                           \
    "the format %s has no side columns (pack it: `penstock pack %s OUT`, or penstock.pack in "     \
    "Python, and open OUT)"

/* Where a sample stands. */
struct pstk__sample_location {
    uint32_t shard;
    uint64_t record; /* within the shard */
};

/* Bytes of one file that belong to a sample, or an index page. */
struct pstk__extent {
    uint32_t file;
    uint32_t page;       /* index page number, of an index page; else the format's own */
    uint64_t record;     /* within the shard; of a page the first that it lists */
    uint64_t offset;     /* bytes */
    uint64_t size;       /* bytes to read */
    uint64_t whole_size; /* of the record in this file, >= size */
    const uint8_t *data; /* where the bytes are; the reader of the bytes sets it */
};

/* Bytes of a file that have a CRC-32 (ISO-HDLC: that of ZIP) as a whole, all values of a field
 * among them. Only verify checks it: it covers no sample by itself. */
struct pstk__cover {
    uint32_t file;
    uint32_t crc32;
    uint64_t offset; /* bytes */
    uint64_t size;   /* bytes, >= 1 */
};

/* A set of fields, by number in the schema. */
_Static_assert(PSTK_MAX_FIELDS <= 64, "a bit for each field");
#define PSTK__ALL_FIELDS UINT64_MAX

struct pstk__format;
struct pstk__index;

/* Who opens a damaged data set for what is left of it. */
struct pstk__salvage {
    /* Called for each file that is missing, unreadable or damaged; a non-zero result ends the open
     * with ECANCELED. On the caller's thread. */
    int (*bad)(void *user, const struct pstk_error *bad);
    void *user;
};

/* What is opened. All pointers borrow for the call of open. */
struct pstk__opening {
    const struct pstk__store *store;
    const char *path;
    const struct pstk_foreign *foreign; /* checked (foreign.h), or NULL: its defaults */
    /* NULL: a file that is damaged fails the open. Else formats with a scanner (indexed.h) report
     * it, keep its samples that lie before the damage, and go on with the next file. */
    const struct pstk__salvage *salvage;
};

/* An opened data set. Memory is O(shards). Read-only after open. */
struct pstk__source {
    const struct pstk__format *format;
    const char *kind;                /* the format's name for users, static; NULL: format->name */
    const struct pstk__store *store; /* where its files lie */
    struct pstk__schema schema;
    struct pstk__record_limits limits; /* from the manifest */
    struct pstk_field_stats stats[PSTK_MAX_FIELDS];
    uint64_t n_samples;
    uint64_t n_shards;
    uint64_t n_files;
    uint64_t n_pages;         /* index pages in all */
    uint64_t bytes;           /* of all files that hold samples, and dictionaries */
    uint64_t n_left_out;      /* images at the top of a folder with class folders; of others 0 */
    uint32_t n_joined;        /* data sets that it joins (joined.h); 0: it is one */
    uint32_t is_checked;      /* 1: every byte has a checksum in its file, and is compared */
    uint32_t accepts_damaged; /* 1: as pstk_foreign.damaged says; open leaves it 0 */
    char identity[40];
    char *path;               /* owned */
    struct pstk__texts names; /* class names */
    void *state;              /* the format's own */
};

/* What pstk_verify was asked. */
struct pstk__verify_request {
    const struct pstk__store *store;
    const char *path;
    const struct pstk_foreign *foreign; /* or NULL */
    uint32_t decode;                    /* 1: decode every image in full */
    uint32_t keep_checksums;            /* 1: keep some where the format has none */
    uint32_t n_threads;
    pstk_verify_fn on_bad;        /* or NULL */
    pstk_progress_fn on_progress; /* or NULL */
    void *user;
    struct pstk_verify_report *report; /* zeroed; filled by verify, except n_bad */
};

struct pstk__format {
    const char *name;
    const char *needs; /* what a directory of it holds, for messages: "a manifest.json and ..." */
    const char *files; /* single files that are data sets of it, for messages; NULL: none are */
    /* Names of its files in a folder, as listing.h has them, and those that it reads where there
     * are none of these. NULL: the folder is read in full, or a file in it lists the others. */
    const char *names, *other_names;
    const char *file;   /* what one of its files is, for messages: "shard" */
    uint32_t checksum;  /* enum pstk__checksum: what covers a value outside of a record's head */
    uint32_t version;   /* of its files, which this library reads; 0: it has none */
    uint32_t has_heads; /* 1: the head of a record, read alone, says where its values are */
    uint32_t has_parts; /* 1: packed in parts that merge joins */
    uint32_t has_directory; /* 1: a file of it in a directory says what the data set is, so that
                               others in it are none: a manifest, an index, a table of images */
    uint32_t has_file_each; /* 1: each sample has a file, with its id as number; one more is last */

    /* 1: `path` is of this format; 0: it is not; <0: ENOENT, EACCES, ... */
    int (*probe)(const struct pstk__store *store, const char *path, struct pstk_error *err);
    /* Open; returns owned, with store and path set. Reads what describes the data set, no sample.
     */
    int (*open)(struct pstk__source **out, const struct pstk__opening *opening,
                struct pstk_error *err);
    void (*close)(struct pstk__source *source);
    /* Find sample id < n_samples. O(log shards). */
    void (*locate)(const struct pstk__source *source, uint64_t id,
                   struct pstk__sample_location *at);
    /* Find the bytes to read of a sample for the values of `fields`, a set: out[n_extents], no two
     * with a byte in common, without data. `page`: the bytes of its checked index page. For the
     * empty set these are the bytes that parsing needs: the head of a record, or none. */
    int (*extent)(const struct pstk__source *source, const struct pstk__sample_location *at,
                  uint64_t fields, const void *page, struct pstk__extent *out,
                  struct pstk_error *err);
    /* Make a checked view of a sample from those extents, with data. Values outside the extents
     * have no data, and those of other fields than `fields` need none: what is wrong with them does
     * not count. */
    int (*parse)(const struct pstk__source *source, const struct pstk__sample_location *at,
                 uint64_t fields, const struct pstk__extent *extents, uint32_t n_extents,
                 struct pstk__record *out, struct pstk_error *err);

    /* ---- optional: NULL where a format has nothing of the kind ---- */

    /* How many extents a sample has for `fields`; absent: 1. The same for all samples. */
    uint32_t (*n_extents)(const struct pstk__source *source, uint64_t fields);
    /* First sample id and number of records of a shard; absent: one shard has all. */
    void (*range)(const struct pstk__source *source, uint32_t shard, uint64_t *first, uint64_t *n);
    /* The index page that has the extent of a sample, and the check of its bytes; absent: none. */
    void (*page)(const struct pstk__source *source, const struct pstk__sample_location *at,
                 struct pstk__extent *page);
    int (*page_check)(const struct pstk__source *source, const struct pstk__extent *page,
                      const void *bytes, struct pstk_error *err);
    /* Dictionary of a field in a shard, or NULL. */
    const struct pstk__dictionary *(*dictionary)(const struct pstk__source *source, uint32_t shard,
                                                 uint32_t field);
    /* Where the values of each field lie, for a format that has those of a field one after another
     * in a file. */
    const struct pstk__field_file *(*field_files)(const struct pstk__source *source);
    /* The checksum over all values of a field; NULL, or absent: it has none. */
    const struct pstk__cover *(*cover)(const struct pstk__source *source, uint32_t field);
    /* The name of a hash that the data set lists of a file as a whole (base/hash.h), and *digits,
     * as listed; NULL, or absent: none. Only verify checks it. */
    const char *(*file_hash)(const struct pstk__source *source, uint32_t file, const char **digits);
    /* Bytes of a sample that a reader reads for the values of `fields`: the most, or on average. */
    uint64_t (*read_size)(const struct pstk__source *source, uint64_t fields, int is_max);
    /* The data set of several joined ones that has a file, whose number becomes the one there. */
    const struct pstk__source *(*part)(const struct pstk__source *source, uint32_t *file);
    /* Name of a file below the data set's path, static in the source; NULL, or absent: that path is
     * the one file. */
    const char *(*file_name)(const struct pstk__source *source, uint32_t file);
    /* In its place, for a format whose names are not in memory: write the name, as it is to be
     * shown, into `name`. */
    void (*file_shown)(const struct pstk__source *source, uint32_t file, char *name, size_t size);
    /* Path of a file; absent: the file's name below the data set's path. EINVAL: it is too long; or
     * another error, of looking it up. */
    int (*file_path)(const struct pstk__source *source, uint32_t file, char *path, size_t size);
    /* Check a freshly opened file: size, header, agreement with what open read. */
    int (*file_check)(const struct pstk__source *source, uint32_t number,
                      const struct pstk__file *file, struct pstk_error *err);
    /* Called once a file of the data set could not be opened or did not pass its check: does the
     * opened data set still lie at the path? 0: yes, or nobody can know, or the check has the
     * better message; ENOENT, with a message: it was replaced or removed. Never allocates. */
    int (*stands)(const struct pstk__source *source, struct pstk_error *err);
    /* The opened index of a format that finds samples by one; absent: it needs none. */
    const struct pstk__index *(*index)(const struct pstk__source *source);
    /* Side columns; all of these functions or none. How many; what is known of column i, except the
     * bytes of its files; and these bytes, which take a step for each shard. */
    uint32_t (*n_columns)(const struct pstk__source *source);
    void (*column)(const struct pstk__source *source, uint32_t i, struct pstk_column_info *info);
    uint64_t (*column_bytes)(const struct pstk__source *source, uint32_t i);
    /* Read the values of samples first .. first + n - 1, n >= 1, from files. */
    int (*column_read)(const struct pstk__source *source, uint32_t i, uint64_t first, uint64_t n,
                       void *out, struct pstk_error *err);
    /* Check the header of column i's file of a shard. */
    int (*column_check)(const struct pstk__source *source, uint32_t i, uint32_t shard,
                        struct pstk_error *err);
    /* Read and check every byte, as pstk_verify. Absent: verify reads the samples one by one, and
     * fields that have a cover as a whole. */
    int64_t (*verify)(const struct pstk__verify_request *request, struct pstk_error *err);
};

/* ---- callers of the table ---- */

/* The format of `path`: ENOENT, ENOTSUP (no format knows it), ... */
int pstk__format_find(const struct pstk__format **out, const struct pstk__store *store,
                      const char *path, struct pstk_error *err);
/* As pstk__format_find, for opening->foreign, which was checked: a folder that nobody knows is one
 * of images where they need no names. */
int pstk__format_find_as(const struct pstk__format **out, const struct pstk__opening *opening,
                         struct pstk_error *err);
/* Check what a caller asks of a foreign data set; NULL is fine. */
int pstk__foreign_check(const struct pstk_foreign *foreign, struct pstk_error *err);
/* cache_size; 0: auto. */
uint64_t pstk__foreign_cache_size(const struct pstk_foreign *foreign);
/* Find the format of `path` and open it. foreign: borrows, or NULL for its defaults. */
int pstk__source_open(struct pstk__source **out, const char *path,
                      const struct pstk_foreign *foreign, struct pstk_error *err);
/* The same of a damaged data set. ENODATA: nothing is left of it. */
int pstk__source_salvage(struct pstk__source **out, const char *path,
                         const struct pstk_foreign *foreign, const struct pstk__salvage *salvage,
                         struct pstk_error *err);
void pstk__source_close(struct pstk__source *source);

static inline uint32_t pstk__source_n_extents(const struct pstk__source *source, uint64_t fields)
{
    return source->format->n_extents ? source->format->n_extents(source, fields) : 1;
}
/* page->size 0: the format has no index pages. */
static inline void pstk__source_page(const struct pstk__source *source,
                                     const struct pstk__sample_location *at,
                                     struct pstk__extent *page)
{
    page->size = 0;
    if (source->format->page)
        source->format->page(source, at, page);
}
static inline const struct pstk__dictionary *
pstk__source_dictionary(const struct pstk__source *source, uint32_t shard, uint32_t field)
{
    return source->format->dictionary ? source->format->dictionary(source, shard, field) : NULL;
}
static inline const struct pstk__cover *pstk__source_cover(const struct pstk__source *source,
                                                           uint32_t field)
{
    return source->format->cover ? source->format->cover(source, field) : NULL;
}
/* 1: every field has a cover. */
int pstk__source_has_covers(const struct pstk__source *source);
/* Bytes of a sample that a reader reads for the values of `fields`: the most, and on average. */
uint64_t pstk__source_max_read(const struct pstk__source *source, uint64_t fields);
uint64_t pstk__source_mean_read(const struct pstk__source *source, uint64_t fields);
void pstk__source_range(const struct pstk__source *source, uint32_t shard, uint64_t *first,
                        uint64_t *n);
/* The name of a file alone, for messages: static in the source, or in `buffer`. */
#define PSTK__MAX_SHOWN 1024 /* bytes, with the 0; a longer name is cut */
const char *pstk__source_file_name(const struct pstk__source *source, uint32_t file,
                                   char buffer[PSTK__MAX_SHOWN]);
/* Its path. EINVAL: it is too long. */
int pstk__source_file_path(const struct pstk__source *source, uint32_t file, char *path,
                           size_t size);
int pstk__source_stands(const struct pstk__source *source, struct pstk_error *err);

#endif
