/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format: the table of record formats, and an opened data set as the later stages see it.
 *
 * A data set has samples, numbered from 0. A shard is a run of samples; a file is the unit that is
 * opened and read: a shard of `.pstk` is one file, the one shard of arrays has a file for one field
 * or several. An entry needs the first six functions of struct pstk__format, and those of the
 * others that its files need. Callers use the functions of pstk__source_, which know what an absent
 * function means.
 *
 * Any thread may call any function of an opened source concurrently, except close. file_check,
 * file_path, file_shown, stands, column_read and column_check may read files; the other functions
 * of an opened source are pure, but may use facts that file_check has stored. probe, open and
 * verify take a path, and read files.
 */
#ifndef PSTK_FORMAT_TABLE_H
#define PSTK_FORMAT_TABLE_H

#include "base/codec.h"
#include "base/texts.h"
#include "record/record.h"
#include "store/store.h"

#include <penstock/foreign.h>

#define PSTK__PAGE_SIZE 4096 /* bytes of an index page */
/* Message for a data set of another format than .pstk, which has no columns: its format, its path.
 */
#define PSTK__NO_COLUMNS                                                                           \
    "the format %s has no side columns (pack it: `penstock pack %s OUT`, or penstock.pack in "     \
    "Python, and open OUT)"

/* The position of a sample. */
struct pstk__sample_location {
    uint32_t shard;
    uint64_t record; /* number within the shard */
};

/* The bytes of one file that belong to a sample, or an index page. */
struct pstk__extent {
    uint32_t file;
    uint32_t page;       /* number of an index page; otherwise private to the format */
    uint64_t record;     /* number within the shard; of a page: the first that it lists */
    uint64_t offset;     /* bytes */
    uint64_t size;       /* bytes to read */
    uint64_t whole_size; /* bytes of the whole record in this file, >= size */
    const uint8_t *data; /* the bytes, set by their reader */
};

/* A range of a file with one CRC-32 (ISO-HDLC, that of ZIP), which contains all values of a field.
 * Only verify checks it: it covers no sample by itself. */
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

/* A caller that opens a damaged data set for the samples that are intact. */
struct pstk__salvage {
    /* Receives each file that is missing, unreadable or damaged, on the caller's thread; a non-zero
     * result ends the open with ECANCELED. */
    int (*bad)(void *user, const struct pstk_error *bad);
    void *user;
};

/* The arguments of an open. All pointers are borrowed for the call. */
struct pstk__opening {
    const struct pstk__store *store;
    const char *path;
    const struct pstk_foreign *foreign; /* foreign data settings, checked (foreign.h); NULL:
                                           defaults */
    /* NULL: a damaged file fails the open. Otherwise formats with a scanner (indexed.h) report it,
     * keep its samples before the damage, and continue with the next file. */
    const struct pstk__salvage *salvage;
};

/* An opened data set. Memory is O(shards). Read-only after open. */
struct pstk__source {
    const struct pstk__format *format;
    const char *kind;                /* name of the format for users, static; NULL: format->name */
    const struct pstk__store *store; /* store of its files */
    struct pstk__schema schema;
    struct pstk__record_limits limits; /* limits in the manifest */
    struct pstk_field_stats stats[PSTK_MAX_FIELDS];
    uint64_t n_samples;
    uint64_t n_shards;
    uint64_t n_files;
    uint64_t n_pages;    /* index pages of all shards */
    uint64_t bytes;      /* bytes of all files that hold samples, and of dictionaries */
    uint64_t n_left_out; /* images at the top of a folder with class folders; 0 in other formats */
    uint32_t n_joined;   /* number of data sets that it joins (joined.h); 0: it is a single one */
    uint32_t is_checked; /* 1: every byte has a checksum in its file, and is compared with it */
    uint32_t accepts_damaged; /* 1: accept damaged values, by pstk_foreign.damaged; open leaves it 0
                               */
    char identity[40];
    char *path;               /* owned */
    struct pstk__texts names; /* class names */
    void *state;              /* private to the format */
};

/* The arguments of pstk_verify. */
struct pstk__verify_request {
    const struct pstk__store *store;
    const char *path;
    const struct pstk_foreign *foreign; /* or NULL */
    uint32_t decode;                    /* 1: decode every image in full */
    uint32_t keep_checksums;            /* 1: keep checksums of formats that have none */
    uint32_t n_threads;
    pstk_verify_fn on_bad;        /* or NULL */
    pstk_progress_fn on_progress; /* or NULL */
    void *user;
    struct pstk_verify_report *report; /* zeroed; filled by verify, except n_bad */
};

struct pstk__format {
    const char *name;
    const char *needs; /* required contents of a directory of this format, for messages: "a
                          manifest.json and ..." */
    const char *files; /* single files that are data sets of this format, for messages; NULL: none
                        */
    /* Names of its files in a folder, as in listing.h; other_names: those that it reads if there
     * are none of these. NULL: it reads the folder in full, or a file in it lists the others. */
    const char *names, *other_names;
    const char *file;  /* noun for one of its files in messages: "shard" */
    uint32_t checksum; /* enum pstk__checksum: the checksum of a value outside of a record's head */
    uint32_t version;  /* version of its files that this library reads; 0: it has none */
    uint32_t has_heads;     /* 1: the head of a record, read alone, locates its values */
    uint32_t has_parts;     /* 1: it is packed in parts that merge joins */
    uint32_t has_directory; /* 1: a file of this format in a directory decides what the data set is,
                               so that others in it are none: a manifest, an index, a table of
                               images */
    uint32_t has_file_each; /* 1: each sample has a file, with its id as number; one more file is
                               last */

    /* 1: `path` is of this format; 0: it is not; <0: ENOENT, EACCES, ... */
    int (*probe)(const struct pstk__store *store, const char *path, struct pstk_error *err);
    /* Open a data set; returns owned, with store and path set. Reads only its description, and no
     * sample. */
    int (*open)(struct pstk__source **out, const struct pstk__opening *opening,
                struct pstk_error *err);
    void (*close)(struct pstk__source *source);
    /* Find sample id < n_samples. O(log shards). */
    void (*locate)(const struct pstk__source *source, uint64_t id,
                   struct pstk__sample_location *at);
    /* Find the bytes of a sample to read for the values of `fields`, a set: out[n_extents],
     * disjoint, without data. `page`: the bytes of its checked index page. For the empty set, these
     * are the bytes that parsing needs: the head of a record, or none. */
    int (*extent)(const struct pstk__source *source, const struct pstk__sample_location *at,
                  uint64_t fields, const void *page, struct pstk__extent *out,
                  struct pstk_error *err);
    /* Make a checked view of a sample from those extents, with data. Values outside of the extents
     * have no data. Values of other fields than `fields` need none, and their errors are ignored.
     */
    int (*parse)(const struct pstk__source *source, const struct pstk__sample_location *at,
                 uint64_t fields, const struct pstk__extent *extents, uint32_t n_extents,
                 struct pstk__record *out, struct pstk_error *err);

    /* ---- optional: NULL where a format has nothing of the kind ---- */

    /* Return the number of a sample's extents for `fields`, the same for all samples; absent: 1. */
    uint32_t (*n_extents)(const struct pstk__source *source, uint64_t fields);
    /* Set the first sample id and the number of records of a shard; absent: one shard has all. */
    void (*range)(const struct pstk__source *source, uint32_t shard, uint64_t *first, uint64_t *n);
    /* Set the index page that has the extent of a sample, and check the bytes of a page; absent:
     * none. */
    void (*page)(const struct pstk__source *source, const struct pstk__sample_location *at,
                 struct pstk__extent *page);
    int (*page_check)(const struct pstk__source *source, const struct pstk__extent *page,
                      const void *bytes, struct pstk_error *err);
    /* Return the dictionary of a field in a shard, or NULL. */
    const struct pstk__dictionary *(*dictionary)(const struct pstk__source *source, uint32_t shard,
                                                 uint32_t field);
    /* Return the positions of each field's values, for a format that stores the values of a field
     * consecutively in a file. */
    const struct pstk__field_file *(*field_files)(const struct pstk__source *source);
    /* Return the checksum over all values of a field; NULL, or absent: it has none. */
    const struct pstk__cover *(*cover)(const struct pstk__source *source, uint32_t field);
    /* Return the name of the hash that the data set lists for a whole file (base/hash.h), and set
     * *digits as listed; NULL, or absent: none. Only verify checks it. */
    const char *(*file_hash)(const struct pstk__source *source, uint32_t file, const char **digits);
    /* Return the max or mean bytes of a sample that a reader reads for the values of `fields`. */
    uint64_t (*read_size)(const struct pstk__source *source, uint64_t fields, int is_max);
    /* Return the data set, of those joined, that has a file; *file becomes its number there. */
    const struct pstk__source *(*part)(const struct pstk__source *source, uint32_t *file);
    /* Return the name of a file below the data set's path, static in the source; NULL, or absent:
     * that path is the only file. */
    const char *(*file_name)(const struct pstk__source *source, uint32_t file);
    /* Write the displayed name of a file into `name`. Replaces file_name in a format whose names
     * are not in memory. */
    void (*file_shown)(const struct pstk__source *source, uint32_t file, char *name, size_t size);
    /* Write the path of a file; absent: the file's name below the data set's path. EINVAL: it is
     * too long; or another error of the lookup. */
    int (*file_path)(const struct pstk__source *source, uint32_t file, char *path, size_t size);
    /* Check a newly opened file: its size, its header, and whether they agree with what open read.
     */
    int (*file_check)(const struct pstk__source *source, uint32_t number,
                      const struct pstk__file *file, struct pstk_error *err);
    /* Check whether the opened data set still lies at the path, after one of its files could not be
     * opened or did not pass its check. 0: yes, or unknown, or the check has the better message;
     * ENOENT, with a message: it was replaced or removed. Never allocates. */
    int (*stands)(const struct pstk__source *source, struct pstk_error *err);
    /* Return the opened index of a format that finds samples by one; absent: it needs none. */
    const struct pstk__index *(*index)(const struct pstk__source *source);
    /* Side columns; a format has all of these functions or none. n_columns: their number. column:
     * the facts about column i, except the bytes of its files. These bytes take a step for each
     * shard. */
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
     * as a whole the fields that have a cover. */
    int64_t (*verify)(const struct pstk__verify_request *request, struct pstk_error *err);
};

/* ---- callers of the table ---- */

/* Find the format of `path`. ENOENT, ENOTSUP (no format knows it), ... */
int pstk__format_find(const struct pstk__format **out, const struct pstk__store *store,
                      const char *path, struct pstk_error *err);
/* As pstk__format_find, for opening->foreign, which was checked: with by_content, a folder that no
 * format knows counts as a folder of images. */
int pstk__format_find_as(const struct pstk__format **out, const struct pstk__opening *opening,
                         struct pstk_error *err);
/* Check the settings for a foreign data set; NULL is fine. */
int pstk__foreign_check(const struct pstk_foreign *foreign, struct pstk_error *err);
/* Return cache_size; 0: auto. */
uint64_t pstk__foreign_cache_size(const struct pstk_foreign *foreign);
/* Find the format of `path`, and open it. foreign: borrowed, or NULL for its defaults. */
int pstk__source_open(struct pstk__source **out, const char *path,
                      const struct pstk_foreign *foreign, struct pstk_error *err);
/* As pstk__source_open, for a damaged data set. ENODATA: no sample is left. */
int pstk__source_salvage(struct pstk__source **out, const char *path,
                         const struct pstk_foreign *foreign, const struct pstk__salvage *salvage,
                         struct pstk_error *err);
void pstk__source_close(struct pstk__source *source);

static inline uint32_t pstk__source_n_extents(const struct pstk__source *source, uint64_t fields)
{
    return source->format->n_extents ? source->format->n_extents(source, fields) : 1;
}
/* Set *page to the index page of a sample; page->size 0: the format has no index pages. */
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
/* Return the max and the mean bytes of a sample that a reader reads for the values of `fields`. */
uint64_t pstk__source_max_read(const struct pstk__source *source, uint64_t fields);
uint64_t pstk__source_mean_read(const struct pstk__source *source, uint64_t fields);
void pstk__source_range(const struct pstk__source *source, uint32_t shard, uint64_t *first,
                        uint64_t *n);
/* Return the name of a file without its path, for messages: static in the source, or in `buffer`.
 */
#define PSTK__MAX_SHOWN 1024 /* bytes, its 0 included; a longer name is cut */
const char *pstk__source_file_name(const struct pstk__source *source, uint32_t file,
                                   char buffer[PSTK__MAX_SHOWN]);
/* Write the path of a file. EINVAL: it is too long. */
int pstk__source_file_path(const struct pstk__source *source, uint32_t file, char *path,
                           size_t size);
int pstk__source_stands(const struct pstk__source *source, struct pstk_error *err);

#endif
