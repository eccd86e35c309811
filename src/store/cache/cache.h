/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache: a folder of bytes that can be made again: files unpacked, or parts of files fetched.
 *
 * An entry has a key: the file that it was made of, and the bytes of that file. It is complete or
 * it is not there: it is written under another name. Every block of an entry has a CRC32C, which is
 * checked at each read. Several processes share a folder; what one of them writes, all can read.
 * The folder has a size: what was used least recently leaves it first. An entry that leaves while a
 * file of it is open, in any process, stays readable through that file, and takes its room on the
 * disk until that is closed: so the size bounds the files that lie in the folder, not the bytes
 * that the disk has less. Whoever keeps entries open (format/files.h) may thus fill a disk whose
 * folder is small; nothing here can give that room back, and begin fails with ENOSPC.
 *
 * A failure is an error of the call, whose message says what to do; whether it ends the run is the
 * caller's choice. A file that can only be read unpacked cannot be read without its entry.
 */
#ifndef PSTK_CACHE_H
#define PSTK_CACHE_H

#include "store/store.h"

struct pstk__cache;
struct pstk__cache_writer;

/* What an entry was made of, and how. */
struct pstk__cache_key {
    const char *path;    /* absolute path of the file; borrowed */
    const char *made;    /* what was made of it: "unpacked", static storage */
    uint64_t size;       /* bytes of the file */
    int64_t changed_ns;  /* as store.h */
    uint64_t begin, end; /* bytes of the file that it was made of; end is not one of them */
};

/* Open the cache in the folder `path` (pstk_foreign.cache_path), made if it is missing, with the
 * folder that it is in; entries lie in its folder `entries`. max_bytes: of the files of all entries
 * in it; 0: half of what the disk has free now, with what entries take. Returns owned. What killed
 * writers left is removed. A folder that can be read but not written to opens; begin gives the
 * reason. EACCES, EROFS, ...: it cannot be made; EPERM: it is another user's, or others can write
 * to it; the message says what to do. */
int pstk__cache_open(struct pstk__cache **out, const char *path, uint64_t max_bytes,
                     struct pstk_error *err);
/* No thread uses it any more, and no writer is open. NULL is fine. Files of its entries stay open.
 */
void pstk__cache_close(struct pstk__cache *cache);
/* Open the entry of a key into *file, for reading its bytes as of any file (store.h), and mark it
 * as used now. 1: it is open; 0: there is none, *file is closed. A damaged or foreign entry is
 * removed where it can be, and counts as none. Reads of the file that find damage return -EBADMSG:
 * the caller has the entry dropped and makes it again. The time that stat gives is that of the key.
 * Allocates nothing. Any thread. */
int pstk__cache_find(struct pstk__cache *cache, const struct pstk__cache_key *key,
                     struct pstk__file *file);
/* Remove the entry of a key that a read found damaged. file: the open file that was read; one that
 * another has made since stays; NULL: whichever there is. Waits for up to 10 s for a process that
 * has the folder locked. 1: it is gone, so find and begin do not meet it again; 0: it is still
 * there: the folder is locked, or cannot be written to. Any thread. */
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

/* Begin the entry of a key, which will have up to `size` bytes: entries that were used least
 * recently leave until it fits, and the disk sets its room aside. Returns owned. Any thread.
 * EBUSY: another is making it, or has just made it, or others are writing so much that there is no
 * room for it now: wait, find, begin again. ENOSPC: the disk is full; EFBIG: it is larger than the
 * cache may be, than a file may be (ulimit -f), or than 2^60 bytes; EINVAL: the key's path is too
 * long; EACCES, EPERM, EROFS as EACCES: the folder cannot be written to; ENOTSUP: its files cannot
 * be locked; ETIMEDOUT: another process has had it locked for 10 s. Messages say what to do.
 */
int pstk__cache_begin(struct pstk__cache_writer **out, struct pstk__cache *cache,
                      const struct pstk__cache_key *key, uint64_t size, struct pstk_error *err);
/* How far an entry is that is being made. */
struct pstk__cache_progress {
    uint64_t n_done, n_total; /* bytes: noted as written, of about */
    int64_t changed_ns;       /* when bytes were written last, in ns since 1970 */
};
/* 1: the entry of a key is being made; 0: it is not: who only looks whether it could begin does not
 * count. Any thread. */
int pstk__cache_making(struct pstk__cache *cache, const struct pstk__cache_key *key,
                       struct pstk__cache_progress *progress);
/* A number that changes while entries are being made, whichever they are. Any thread. */
uint64_t pstk__cache_motion(struct pstk__cache *cache);
/* Append bytes; the calls for one writer come one after another. EFBIG: more than `size` in all.
 * After a failure only abort, or a commit that fails, may follow. */
int pstk__cache_append(struct pstk__cache_writer *writer, const void *bytes, uint64_t size,
                       struct pstk_error *err);
/* Finish: sync, rename; replaces an older entry of that name. Frees and nulls *writer, also on
 * failure. EBUSY: a person removed the file meanwhile, and another may be making it: find, begin
 * again. */
int pstk__cache_commit(struct pstk__cache_writer **writer, struct pstk_error *err);
/* Give up: remove the file. Frees and nulls *writer; NULL in it is fine. */
void pstk__cache_abort(struct pstk__cache_writer **writer);

#endif
