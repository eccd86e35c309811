/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder: the files of a cache, how many bytes they have, and which of them leaves.
 *
 * In the folder `entries` are the file `lock` and, with a name of 32 digits made of its key, each
 * entry; with ".tmp" after the name, an entry that is being written. A writer holds a lock (flock)
 * on its file until it is done: one without a lock is a dead writer's, and is removed. The file of
 * an entry that is being written has its full size from the start, so that all see what it takes.
 *
 * `lock` holds the bytes of all files, which change only while its lock is held. A process that is
 * killed leaves more there than is true, never less: it counts before it makes a file, and after it
 * removes one. The files are counted anew when that sum would exceed the limit.
 */
#ifndef PSTK_CACHE_FOLDER_H
#define PSTK_CACHE_FOLDER_H

#include "store/cache/entry.h"

#include <limits.h>
#include <sys/stat.h>

#define PSTK__CACHE_FOLDER "entries"
#define PSTK__CACHE_TEMPORARY (PSTK__CACHE_NAME + 4) /* bytes of a name with ".tmp" */
/* How long a lock of `lock` is waited for. */
#define PSTK__CACHE_PATIENCE_NS UINT64_C(10000000000)

struct pstk__cache {
    int dir;            /* owned; the folder of the entries */
    uint64_t max_bytes; /* of all files in it */
    char path[PATH_MAX];
};

/* The lock of `lock`, held. */
struct pstk__cache_ledger {
    int fd;         /* owned */
    uint64_t bytes; /* of all files; UINT64_MAX: unknown, they must be counted */
};

/* 1: the file or folder is this user's or root's, and no other can write to it. */
int pstk__cache_is_trusted(const struct stat *st);
/* EPERM: the folder at `path` is not trusted; st: of it. */
int pstk__cache_fail_trust(const char *path, const struct stat *st, struct pstk_error *err);
/* Open a file of this cache that is locked by flock, made if it is missing. Returns the descriptor,
 * owned, or a negative errno; EPERM: it is not trusted. */
int pstk__cache_open_locked(const struct pstk__cache *cache, const char *name, struct stat *st);
/* 1: bytes 8 to 15 of the file are the magic. is_temporary: or it has none yet: they are 0. */
int pstk__cache_is_ours(int fd, const char magic[8], int is_temporary);
/* Lock; waits at most patience_ns. 0 or a negative errno; -EAGAIN: another process has it. */
int pstk__cache_lock(const struct pstk__cache *cache, uint64_t patience_ns,
                     struct pstk__cache_ledger *ledger);
/* What came or went, in bytes; kept by unlock, or at once by count. */
void pstk__cache_add(struct pstk__cache_ledger *ledger, uint64_t bytes);
void pstk__cache_subtract(struct pstk__cache_ledger *ledger, uint64_t bytes);
int pstk__cache_count(const struct pstk__cache_ledger *ledger);
void pstk__cache_unlock(struct pstk__cache_ledger *ledger);
/* Remove entries until `bytes` more are within the limit. EBUSY: others are writing too much; the
 * caller may try again when they are done. */
int pstk__cache_make_room(const struct pstk__cache *cache, struct pstk__cache_ledger *ledger,
                          uint64_t bytes, struct pstk_error *err);
/* Remove the entries that were used least recently until they had `bytes`. Files without the magic
 * of entries are others', and stay. Returns the bytes that were removed, 0 where there are no
 * entries any more, or a negative errno. */
int64_t pstk__cache_evict(const struct pstk__cache *cache, struct pstk__cache_ledger *ledger,
                          uint64_t bytes);
/* Remove an entry; where seen is not NULL, only that very file. Waits for the lock as lock does. 1:
 * it is gone; 0: it is still there. */
int pstk__cache_remove(const struct pstk__cache *cache, const char *name, const struct stat *seen,
                       uint64_t patience_ns);

/* Open the folder as pstk__cache_open does. is_made: make what is missing; else ENOENT where it is
 * not there. */
int pstk__cache_open_folder(struct pstk__cache **out, const char *path, uint64_t max_bytes,
                            int is_made, struct pstk_error *err);
/* Fail with what lock gave (positive). */
int pstk__cache_fail_lock(const struct pstk__cache *cache, int native, struct pstk_error *err);

/* All that lies there. */
struct pstk__cache_sum {
    uint64_t n_entries, bytes;         /* complete entries */
    uint64_t n_writing, writing_bytes; /* being written */
};
/* Remove all entries, for people. removed: complete ones; *n_refused: those that could not be. 0 or
 * a negative errno. */
int pstk__cache_empty(const struct pstk__cache *cache, struct pstk__cache_ledger *ledger,
                      struct pstk__cache_sum *removed, uint64_t *n_refused);
/* Count the files without the lock; they may change meanwhile. 0 or a negative errno. */
int pstk__cache_survey(const struct pstk__cache *cache, struct pstk__cache_sum *sum);

#endif
