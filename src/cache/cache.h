/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache: a folder of bytes that can be made again: files unpacked, or parts of files fetched.
 *
 * An entry has a key: the file that it was made of, and the bytes of that file. It is complete or
 * it is not there: it is written under another name. Every block of an entry has a CRC32C, which is
 * checked at each read. Several processes share a folder; what one of them writes, all can read.
 * The folder has a size: what was used least recently leaves it first. An entry that leaves while a
 * file of it is open stays readable through that file.
 *
 * A cache never fails a run: what cannot be kept is reported once, and its caller goes on without.
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

/* Open the folder at `path`, made if it is missing, with the folder that it is in. max_bytes: of
 * all entries in it, >= 1. Returns owned. EACCES, EPERM, EROFS, ...: it cannot be written to, or is
 * somebody else's; the message says what to do. */
int pstk__cache_open(struct pstk__cache **out, const char *path, uint64_t max_bytes,
                     struct pstk_error *err);
/* No thread uses it any more. NULL is fine. Files of its entries stay open. */
void pstk__cache_close(struct pstk__cache *cache);
/* Open the entry of a key into *file, for reading its bytes as of any file (store.h), and mark it
 * as used now. 1: it is open; 0: there is none, *file is closed. A damaged or foreign entry is
 * removed where it can be, and counts as none. Reads of the file that find damage return -EBADMSG:
 * the caller has the entry dropped and makes it again. Allocates nothing. */
int pstk__cache_find(struct pstk__cache *cache, const struct pstk__cache_key *key,
                     struct pstk__file *file);
/* Remove the entry of a key, if there is one. */
void pstk__cache_drop(struct pstk__cache *cache, const struct pstk__cache_key *key);
/* Begin the entry of a key, which will have up to `size` bytes: entries that were used least
 * recently leave until it fits. Returns owned. ENOSPC: it is larger than the cache may be, or the
 * disk is full; the message says what to do. */
int pstk__cache_begin(struct pstk__cache_writer **out, struct pstk__cache *cache,
                      const struct pstk__cache_key *key, uint64_t size, struct pstk_error *err);
int pstk__cache_append(struct pstk__cache_writer *writer, const void *bytes, uint64_t size,
                       struct pstk_error *err);
/* Finish: sync, rename. Frees and nulls *writer, also on failure. */
int pstk__cache_commit(struct pstk__cache_writer **writer, struct pstk_error *err);
/* Give up: remove the file. NULL is fine. */
void pstk__cache_abort(struct pstk__cache_writer **writer);

#endif
