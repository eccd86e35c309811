/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest: the parts of a data set, and their invariants. manifest_json.h parses and prints it,
 * manifest_file.h loads it. Every invariant below holds in a parsed manifest; the same function
 * checks a manifest that is to be printed.
 */
#ifndef PSTK_MANIFEST_H
#define PSTK_MANIFEST_H

#include "base/texts.h"
#include "format/pstk/column_fact.h"
#include "format/pstk/task.h"

#define PSTK__MANIFEST_FILE "manifest.json"
#define PSTK__MANIFEST_HEAD "{\"format\":\"penstock\"," /* first bytes of every manifest */
#define PSTK__MANIFEST_MAX (256u << 20) /* max bytes of the file: over a million shards */
#define PSTK__MANIFEST_TAIL 22  /* bytes of the file's checksum at its end, as FORMAT.md says */
#define PSTK__MAX_FILE_NAME 200 /* max bytes of a shard's or dictionary's name */
#define PSTK__MAX_SAMPLES (1ull << 40)  /* max records of a data set */
#define PSTK__MAX_DICTIONARY (1u << 24) /* max bytes of a dictionary file */
#define PSTK__MAX_COLUMN_FILES 96 /* bytes of the text in a column's file names, its 0 included */
#define PSTK__MAX_COLUMN_FILE 240 /* bytes of a column's file name, its 0 included */

struct pstk__manifest_dictionary {
    char *file;     /* owned */
    uint32_t field; /* number in the schema; the field's codec is zstd */
    uint32_t crc;   /* CRC of the file */
    uint64_t bytes; /* bytes of the file, 1 .. PSTK__MAX_DICTIONARY */
};

struct pstk__manifest_shard {
    char *file;         /* owned; all files of a manifest have different names */
    uint64_t n_records; /* 1 .. 2^32-1 */
    uint64_t bytes;     /* bytes of the file; a multiple of 4096, at most 2^44 */
    uint32_t header_crc;
    uint32_t index_crc;
    uint32_t n_dictionaries;
    uint32_t *dictionaries; /* numbers in the manifest's list, at most one for each field; owned */
};

/* A side column. Its file of each shard is STEM.FILES.pcol; STEM: the shard's name without ".pstk".
 */
struct pstk__manifest_column {
    char name[PSTK_MAX_COLUMN_NAME];    /* unique among the columns */
    char files[PSTK__MAX_COLUMN_FILES]; /* part of its files' names, unique among the columns */
    uint32_t dtype;                     /* enum pstk_dtype */
    uint32_t fact;                      /* enum pstk_column_fact */
    uint32_t field;                     /* number in the schema; ADDED: 0 */
    uint32_t n_header_crcs, crc_capacity;
    uint32_t *header_crcs; /* CRCs of its files' headers, one for each shard; owned */
};

struct pstk__manifest {
    struct pstk__schema schema;
    struct pstk_field_stats stats[PSTK_MAX_FIELDS]; /* maxima <= 2^32-1 */
    char identity[40];                              /* 32 hex digits */
    uint32_t part, n_parts; /* part < n_parts; 0 of 0: a part of unknown number */
    struct pstk__task task; /* the task of a part of unknown number; otherwise zero, or only pack_id
                             */
    char *note;             /* owned, UTF-8; NULL = "" */
    struct pstk__texts names;                       /* class names, UTF-8 */
    struct pstk__manifest_dictionary *dictionaries; /* owned */
    uint32_t n_dictionaries, dictionary_capacity;
    struct pstk__manifest_shard *shards; /* owned */
    uint32_t n_shards, shard_capacity;
    struct pstk__manifest_column *columns; /* owned */
    uint32_t n_columns;                    /* at most PSTK__MAX_COLUMNS */
    uint64_t n_samples;                    /* sum of shards[].n_records, <= PSTK__MAX_SAMPLES */
    uint64_t bytes;                        /* sum of bytes of shards and dictionaries */
    uint64_t file_size;                    /* bytes of the file that load read; otherwise 0 */
    char file_tail[PSTK__MANIFEST_TAIL];   /* last bytes of that file */
    uint64_t records_size; /* bytes of that file up to the end of "shards", if all that describes
                              records lies before that end; otherwise 0 */
    uint32_t records_crc;  /* CRC of these bytes */
};

/* Free a manifest, and leave it empty, which is all zero. */
void pstk__manifest_free(struct pstk__manifest *m);

/* Make room for exactly n shards and dictionaries in an empty list: growing would make more. */
int pstk__manifest_reserve(struct pstk__manifest *m, uint32_t n_shards, uint32_t n_dictionaries,
                           struct pstk_error *err);
/* Append a copy of *dictionary or *shard, with its names and lists, and add it to the sums. */
int pstk__manifest_add_dictionary(struct pstk__manifest *m,
                                  const struct pstk__manifest_dictionary *dictionary,
                                  struct pstk_error *err);
int pstk__manifest_add_shard(struct pstk__manifest *m, const struct pstk__manifest_shard *shard,
                             struct pstk_error *err);
/* Append a copy of a column, without its CRCs. ENOMEM. */
int pstk__manifest_add_column(struct pstk__manifest *m, const struct pstk__manifest_column *column,
                              struct pstk_error *err);
/* Remove column i. */
void pstk__manifest_remove_column(struct pstk__manifest *m, uint32_t i);
/* Append the header CRC of a column's file for the next shard. ENOMEM. */
int pstk__manifest_add_column_crc(struct pstk__manifest_column *column, uint32_t crc,
                                  struct pstk_error *err);
/* Return the number of the column with this name, or -1: there is none. */
int pstk__manifest_find_column(const struct pstk__manifest *m, const char *name);
/* Write the name of a column's file for the shard file `shard`. 0; EINVAL: it does not fit, which
 * the check of a manifest excludes. */
int pstk__manifest_column_file(const struct pstk__manifest_column *column, const char *shard,
                               char file[PSTK__MAX_COLUMN_FILE]);
/* Replace the class names or the note by copies. EINVAL: not UTF-8. NULL note: "". */
int pstk__manifest_set_names(struct pstk__manifest *m, const char *const *names, uint64_t n,
                             struct pstk_error *err);
/* Replace the class names by copies of those of `from`. */
int pstk__manifest_copy_names(struct pstk__manifest *m, const struct pstk__manifest *from,
                              struct pstk_error *err);
int pstk__manifest_set_note(struct pstk__manifest *m, const char *note, struct pstk_error *err);

/* Check the invariants. code: the error for a broken one, EBADMSG or EINVAL; its message names the
 * key. */
int pstk__manifest_check(const struct pstk__manifest *m, const char *name, int code,
                         struct pstk_error *err);
/* Set the limits of the records: the maxima of the manifest, but no more than the shards can hold,
 * or decoders take. So memory sized by them is never larger than the files warrant. */
void pstk__manifest_limits(const struct pstk__manifest *m, struct pstk__record_limits *limits);
/* Fail with "NAME: the manifest: ..."; returns code. */
int pstk__manifest_wrong(const char *name, int code, struct pstk_error *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* 1: `text` is UTF-8, as names and note must be. */
int pstk__manifest_text_ok(const char *text);
/* 1: `name` may be a shard's or dictionary's file name: [A-Za-z0-9_.-]+, no leading dot, at most
 * PSTK__MAX_FILE_NAME bytes. */
int pstk__manifest_file_name_ok(const char *name);

#endif
