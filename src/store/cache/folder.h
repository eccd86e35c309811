/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder: the files of a cache, their bytes, and the choice of entries to evict.
 *
 * The folder `entries` has the file `lock`, and each entry under a name of 32 digits made of its
 * key; an entry that is being written has ".tmp" after the name. A writer holds a lock (flock) on
 * its file until it is done. The writer of a file without a lock is dead, and the file is removed.
 * A file that is being written has its full size from the start, so that all processes see how much
 * it takes.
 *
 * `lock` holds the sum of the bytes of all files, which changes only under its lock. A killed
 * process leaves this sum too high, never too low: a process adds to it before it makes a file, and
 * subtracts after it removes one. The files are counted again when the sum would exceed the limit.
 */
#ifndef PSTK_CACHE_FOLDER_H
#define PSTK_CACHE_FOLDER_H

#include "store/cache/entry.h"

#include <limits.h>
#include <sys/stat.h>

#define PSTK__CACHE_FOLDER "entries"
#define PSTK__CACHE_TEMPORARY (PSTK__CACHE_NAME + 4) /* bytes of a name with ".tmp" */
/* Longest wait for the lock of `lock`. */
#define PSTK__CACHE_PATIENCE_NS UINT64_C(10000000000)

struct pstk__cache {
    int dir;            /* folder of the entries, owned */
    uint64_t max_bytes; /* limit of the bytes of all its files */
    char path[PATH_MAX];
};

/* The sum of bytes, while the lock of `lock` is held. */
struct pstk__cache_ledger {
    int fd;         /* owned */
    uint64_t bytes; /* bytes of all files; UINT64_MAX: unknown, they must be counted */
};

/* 1: the file or folder is this user's or root's, and no other can write to it. */
int pstk__cache_is_trusted(const struct stat *st);
/* Fail with EPERM because the folder at `path`, described by st, is not trusted. */
int pstk__cache_fail_trust(const char *path, const struct stat *st, struct pstk_error *err);
/* Open a file of this cache that flock locks, and make it if it is missing. Returns the descriptor,
 * owned, or a negative errno; EPERM: it is not trusted. */
int pstk__cache_open_locked(const struct pstk__cache *cache, const char *name, struct stat *st);
/* 1: bytes 8 to 15 of the file are the magic. is_temporary: 8 zeros, no magic yet, also count. */
int pstk__cache_is_ours(int fd, const char magic[8], int is_temporary);
/* Lock, after a wait of at most patience_ns. 0 or a negative errno; -EAGAIN: another process holds
 * the lock. */
int pstk__cache_lock(const struct pstk__cache *cache, uint64_t patience_ns,
                     struct pstk__cache_ledger *ledger);
/* Add bytes to the sum, or subtract them. unlock writes the sum; count writes it at once. */
void pstk__cache_add(struct pstk__cache_ledger *ledger, uint64_t bytes);
void pstk__cache_subtract(struct pstk__cache_ledger *ledger, uint64_t bytes);
int pstk__cache_count(const struct pstk__cache_ledger *ledger);
void pstk__cache_unlock(struct pstk__cache_ledger *ledger);
/* Evict entries until `bytes` more are within the limit. EBUSY: others are writing too much; the
 * caller may try again when they are done. */
int pstk__cache_make_room(const struct pstk__cache *cache, struct pstk__cache_ledger *ledger,
                          uint64_t bytes, struct pstk_error *err);
/* Evict the least recently used entries that together have `bytes`. Files without the magic of
 * entries are foreign, and stay. Returns the bytes removed, 0 if no entry is left, or a negative
 * errno. */
int64_t pstk__cache_evict(const struct pstk__cache *cache, struct pstk__cache_ledger *ledger,
                          uint64_t bytes);
/* Remove an entry; if seen is not NULL, only that very file. Waits for the lock as lock does. 1: it
 * is gone; 0: it is still there. */
int pstk__cache_remove(const struct pstk__cache *cache, const char *name, const struct stat *seen,
                       uint64_t patience_ns);

/* Open the folder as pstk__cache_open does. is_made: make the folders that are missing; otherwise
 * ENOENT if there is none. */
int pstk__cache_open_folder(struct pstk__cache **out, const char *path, uint64_t max_bytes,
                            int is_made, struct pstk_error *err);
/* Fail with the error of lock; native: positive. */
int pstk__cache_fail_lock(const struct pstk__cache *cache, int native, struct pstk_error *err);

/* The numbers and bytes of all files. */
struct pstk__cache_sum {
    uint64_t n_entries, bytes;         /* complete entries, and their bytes */
    uint64_t n_writing, writing_bytes; /* files being written, and their bytes */
};
/* Remove all entries, for a command. removed: the complete entries removed; *n_refused: the number
 * that could not be removed. 0 or a negative errno. */
int pstk__cache_empty(const struct pstk__cache *cache, struct pstk__cache_ledger *ledger,
                      struct pstk__cache_sum *removed, uint64_t *n_refused);
/* Count the files without the lock; they may change meanwhile. 0 or a negative errno. */
int pstk__cache_survey(const struct pstk__cache *cache, struct pstk__cache_sum *sum);

#endif
