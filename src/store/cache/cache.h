/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache: a folder of bytes that can be made again: unpacked files, or fetched parts of files.
 *
 * An entry has a key: its source file, and the range of bytes in that file. The writer uses a
 * temporary name, so an entry is either complete or absent. Every block of an entry has a CRC32C,
 * which is checked at each read. Several processes share a folder, and can read each other's
 * entries. The folder has a limit in bytes; the least recently used entries are evicted first. An
 * evicted entry whose file is open in any process stays readable through that file, and takes room
 * on the disk until the file is closed. So the limit bounds the files in the folder, not the disk
 * space used. A caller that keeps entries open (format/files.h) may fill a disk even though the
 * folder is within its limit. The cache cannot free that space, and begin fails with ENOSPC.
 *
 * A failure is an error of the call, and its message has advice; the caller decides whether it ends
 * the run. A file that can only be read unpacked cannot be read without its entry.
 */
#ifndef PSTK_CACHE_H
#define PSTK_CACHE_H

#include "store/store.h"

struct pstk__cache;
struct pstk__cache_writer;

/* The source of an entry, and how it was made. */
struct pstk__cache_key {
    const char *path;    /* absolute path of the file; borrowed */
    const char *made;    /* way in which it was made: "unpacked", static storage */
    uint64_t size;       /* bytes of the file */
    int64_t changed_ns;  /* time of change, as in store.h */
    uint64_t begin, end; /* range of bytes in the file; end is excluded */
};

/* Open the cache in the folder `path` (pstk_foreign.cache_path), and make it and its parent if they
 * are missing; entries lie in its folder `entries`. max_bytes: limit of the files of all entries;
 * 0: half of the sum of the disk's free bytes and the entries' bytes. Returns owned. Removes the
 * files that killed writers left. A read-only folder opens, but begin fails with the reason.
 * EACCES, EROFS, ...: the folder cannot be made; EPERM: it is another user's, or others can write
 * to it; the message says what to do. */
int pstk__cache_open(struct pstk__cache **out, const char *path, uint64_t max_bytes,
                     struct pstk_error *err);
/* Close a cache that no thread uses any more, and that has no open writer. NULL is fine. Files of
 * its entries stay open. */
void pstk__cache_close(struct pstk__cache *cache);
/* Open the entry of a key into *file, whose bytes are read as those of any file (store.h), and mark
 * it as used now. 1: it is open; 0: there is none, and *file is closed. Removes a damaged or
 * foreign entry if possible, and treats it as absent. A read that finds damage returns -EBADMSG:
 * the caller then drops the entry and makes it again. stat gives the time of the key. Never
 * allocates. Any thread. */
int pstk__cache_find(struct pstk__cache *cache, const struct pstk__cache_key *key,
                     struct pstk__file *file);
/* Remove the entry of a key that a read found damaged. file: the open file that was read, so that
 * an entry made by another process since then stays; NULL: any entry of the key. Waits up to 10 s
 * for a process that holds the folder's lock. 1: the entry is removed, so find and begin do not
 * meet it again; 0: it still exists, because the folder is locked or read-only. Any thread. */
int pstk__cache_drop(struct pstk__cache *cache, const struct pstk__cache_key *key,
                     const struct pstk__file *file);

/*
 * Making an entry. One process or thread makes the entry of a key; for others, begin fails with
 * EBUSY at once, and they wait and look again:
 *
 *   while (!pstk__cache_find(cache, &key, &file)) {
 *       r = pstk__cache_begin(&writer, cache, &key, size, err);
 *       if (r == PSTK_EBUSY)   another makes it: show pstk__cache_making, sleep for 0.1 s
 *       else if (r < 0)        go on without the cache
 *       else                   append, commit
 *   }
 *
 * A maker that dies is none any more: the next begin succeeds.
 */

/* Begin the entry of a key, which will have up to `size` bytes: evict the least recently used
 * entries until it fits, and allocate its room on the disk. Returns owned. Any thread. EBUSY:
 * another process is making it, or has just made it, or others write so much that it has no room
 * for now: wait, find, begin again. ENOSPC: the disk is full; EFBIG: it exceeds the limit of the
 * cache, the largest file (ulimit -f), or 2^60 bytes; EINVAL: the key's path is too long; EACCES,
 * EPERM, EROFS as EACCES: the folder is not writable; ENOTSUP: its files cannot be locked;
 * ETIMEDOUT: another process has had it locked for 10 s. Messages have advice. */
int pstk__cache_begin(struct pstk__cache_writer **out, struct pstk__cache *cache,
                      const struct pstk__cache_key *key, uint64_t size, struct pstk_error *err);
/* The progress of an entry that is being made. */
struct pstk__cache_progress {
    uint64_t n_done, n_total; /* bytes noted as written, and the approximate total */
    int64_t changed_ns;       /* time of the last write, ns since 1970 */
};
/* 1: the entry of a key is being made; 0: it is not. A process that only tries to begin does not
 * count. Any thread. */
int pstk__cache_making(struct pstk__cache *cache, const struct pstk__cache_key *key,
                       struct pstk__cache_progress *progress);
/* Return a number that changes while any entry is being made. Any thread. */
uint64_t pstk__cache_motion(struct pstk__cache *cache);
/* Append bytes. Calls for one writer must not overlap. EFBIG: more than `size` in all. After a
 * failure, only abort may follow, or a commit, which fails. */
int pstk__cache_append(struct pstk__cache_writer *writer, const void *bytes, uint64_t size,
                       struct pstk_error *err);
/* Finish: sync and rename; replaces an older entry of that name. Frees and nulls *writer, also on
 * failure. EBUSY: a person removed the file meanwhile, and another writer may be making it: find,
 * begin again. */
int pstk__cache_commit(struct pstk__cache_writer **writer, struct pstk_error *err);
/* Give up, and remove the file. Frees and nulls *writer; *writer may be NULL. */
void pstk__cache_abort(struct pstk__cache_writer **writer);

#endif
