/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest: manifest.json as a struct, and back. L2; the only user of jansson.
 * A manifest that was parsed holds every invariant below; one that is to be printed is checked by
 * the same function. Memory: parsing takes at most 3.5 times the text, the text included, for it
 * goes value by value: manifest_json.c has the sum.
 */
#ifndef PSTK_MANIFEST_H
#define PSTK_MANIFEST_H

#include "record/record.h"
#include "base/texts.h"

#define PSTK__MANIFEST_FILE "manifest.json"
#define PSTK__MANIFEST_MAX (256u << 20) /* bytes of the file: over a million shards */
#define PSTK__MANIFEST_TAIL 22  /* bytes at the file's end: its checksum, as FORMAT.md says */
#define PSTK__MAX_FILE_NAME 200 /* bytes of a shard's or dictionary's name */
#define PSTK__MAX_SAMPLES (1ull << 40)  /* records of a data set */
#define PSTK__MAX_DICTIONARY (1u << 24) /* bytes of a dictionary file */

struct pstk__manifest_dictionary {
    char *file;     /* owned */
    uint32_t field; /* number in the schema; its codec is zstd */
    uint32_t crc;   /* of the file */
    uint64_t bytes; /* of the file, 1 .. PSTK__MAX_DICTIONARY */
};

struct pstk__manifest_shard {
    char *file;         /* owned; no two files of a manifest have one name */
    uint64_t n_records; /* 1 .. 2^32-1 */
    uint64_t bytes;     /* of the file; a multiple of 4096, at most 2^44 */
    uint32_t header_crc;
    uint32_t index_crc;
    uint32_t n_dictionaries;
    uint32_t *dictionaries; /* owned; numbers into the manifest's list, one a field at most */
};

struct pstk__manifest {
    struct pstk__schema schema;
    struct pstk_field_stats stats[PSTK_MAX_FIELDS]; /* maxima <= 2^32-1 */
    char identity[40];                              /* 32 hex digits */
    uint32_t part, n_parts;                         /* part < n_parts */
    char *note;                                     /* owned, UTF-8; NULL = "" */
    struct pstk__texts names;                       /* class names, UTF-8 */
    struct pstk__manifest_dictionary *dictionaries; /* owned */
    uint32_t n_dictionaries, dictionary_capacity;
    struct pstk__manifest_shard *shards; /* owned */
    uint32_t n_shards, shard_capacity;
    uint64_t n_samples;                  /* sum of shards[].n_records, <= PSTK__MAX_SAMPLES */
    uint64_t bytes;                      /* sum over shards and dictionaries */
    uint64_t file_size;                  /* bytes of the file that load read; else 0 */
    char file_tail[PSTK__MANIFEST_TAIL]; /* the end of that file */
};

/* All zero is an empty manifest; free makes it one again. */
void pstk__manifest_free(struct pstk__manifest *m);

/* Make room for exactly n shards / dictionaries in an empty list, as growing would make more. */
int pstk__manifest_reserve(struct pstk__manifest *m, uint32_t n_shards, uint32_t n_dictionaries,
                           struct pstk_error *err);
/* Append a copy of *d / *s (with their names and lists) and count it in the sums. */
int pstk__manifest_add_dictionary(struct pstk__manifest *m,
                                  const struct pstk__manifest_dictionary *d,
                                  struct pstk_error *err);
int pstk__manifest_add_shard(struct pstk__manifest *m, const struct pstk__manifest_shard *s,
                             struct pstk_error *err);
/* Replace the class names / the note by copies. EINVAL: not UTF-8. NULL note: "". */
int pstk__manifest_set_names(struct pstk__manifest *m, const char *const *names, uint64_t n,
                             struct pstk_error *err);
/* Replace the class names by copies of another's. */
int pstk__manifest_copy_names(struct pstk__manifest *m, const struct pstk__manifest *from,
                              struct pstk_error *err);
int pstk__manifest_set_note(struct pstk__manifest *m, const char *note, struct pstk_error *err);

/* Parse a whole manifest into *m (whatever it held is lost; on failure it is empty). `name` is the
 * file's path, for messages. EBADMSG names what is wrong; ENOTSUP: intact, of a newer version. An
 * empty data set (no shard) is a valid manifest. */
int pstk__manifest_parse(struct pstk__manifest *m, const void *bytes, uint64_t size,
                         const char *name, struct pstk_error *err);
/* The same from the file manifest.json in the directory `path`. ENOENT, EACCES, ... */
int pstk__manifest_load(struct pstk__manifest *m, const char *path, struct pstk_error *err);
/* 1: the file in the directory `path` is the one that load read into *m; 0: it is another, or there
 * is none; a negative errno: it cannot be told. Never allocates. */
int pstk__manifest_stands(const struct pstk__manifest *m, const char *path);
/* Check *m and print it, its checksum at the end. Returns owned bytes (free()) and their number,
 * without a terminating 0. EINVAL: m does not hold its invariants. */
int pstk__manifest_print(const struct pstk__manifest *m, char **bytes, uint64_t *size,
                         struct pstk_error *err);

/* Check the invariants. `code` (EBADMSG, EINVAL) is what a broken one returns, its key named. */
int pstk__manifest_check(const struct pstk__manifest *m, const char *name, int code,
                         struct pstk_error *err);
/* What its records may not exceed: its maxima, or, where these are more than its shards can hold,
 * what the shards can. Those who size memory by them take no more than the files warrant. */
void pstk__manifest_limits(const struct pstk__manifest *m, struct pstk__record_limits *limits);
/* Fail with "NAME: the manifest: ..."; returns code. */
int pstk__manifest_wrong(const char *name, int code, struct pstk_error *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* 1 when `text` is UTF-8, as names and note must be. */
int pstk__manifest_text_ok(const char *text);
/* 1 when `name` may be a shard's or dictionary's file name: [A-Za-z0-9_.-]+, no leading dot, at
 * most PSTK__MAX_FILE_NAME bytes. */
int pstk__manifest_file_name_ok(const char *name);
/* "none", "jpeg", "png", "pixels", or "?" */
const char *pstk__encoding_name(uint32_t encoding);

#endif
