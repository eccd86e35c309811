/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staging: the directory of a data set while it is being made. Used by writer and merge.
 *
 * A file is created as `.tmp-NAME`, synced, and renamed to NAME; `manifest.json` comes last, and
 * only with it is there a data set. A journal (journal.h) lists what is made, and what the data set
 * that is replaced had. Of a killed process the next staging of the same directory removes exactly
 * what its journal lists and the manifest there, if any, does not; a directory with other files in
 * it but no data set is refused. The directory is locked (flock) from open to close; where the file
 * system has no locks, a journal that stands there means that another writer may be at work, and
 * nothing is removed. One thread.
 */
#ifndef PSTK_STAGING_H
#define PSTK_STAGING_H

#include "format/pstk/manifest.h"
#include "pack/journal.h"

#include <penstock/types.h>

/* Bytes of a file name, the terminating 0 included; with ".tmp-" before it still below NAME_MAX,
 * 255. */
#define PSTK__STAGING_NAME 240

/* Closed: all zero, dir and journal.fd -1. Open: the journal in the directory lists made_names and
 * old_names, each from before its file was touched; until `committed`, close removes made_names. */
struct pstk__staging {
    char *path;           /* owned, as the caller gave it, for messages */
    int dir;              /* owned, holds the lock; -1 when closed */
    int made;             /* 1: open made the directory, so abort removes it */
    int committed;        /* 1: the manifest has its name; nothing is removed any more */
    uint32_t generation;  /* in the names of what is written, so that it meets no older file */
    uint32_t n_leftovers; /* files of a killed writer that open removed */
    int has_journal;      /* 1: the journal in the directory is ours */
    struct pstk__journal journal;
    /* NULL, or called after each piece of a file that is copied, with its bytes so far; a non-zero
     * result stops with ECANCELED, without a message. To be set after open. */
    int (*on_copy)(void *user, uint64_t n_bytes);
    void *user;                         /* of on_copy */
    struct pstk__file_names made_names; /* final names of the files made here */
    struct pstk__file_names old_names;  /* files of the data set that is replaced; sorted */
};

/* Make or take over the directory. EEXIST: it holds a data set and !overwrite, or files that are
 * not ours; EBUSY: another writer is at work in it. On failure *s is closed. */
int pstk__staging_open(struct pstk__staging *staging, const char *path, int overwrite,
                       struct pstk_error *err);
/* Name of a new file: "STEM.pstk", or "STEM.gN.pstk" next to files of an older generation. */
int pstk__staging_name(const struct pstk__staging *staging, char *name, size_t size,
                       const char *stem, const char *suffix, struct pstk_error *err);
/* Create `.tmp-NAME` for writing; *fd is the caller's to close. */
int pstk__staging_create(struct pstk__staging *staging, const char *name, int *fd,
                         struct pstk_error *err);
/* Write all bytes at `offset`, through EINTR and short writes. */
int pstk__staging_write(const struct pstk__staging *staging, const char *name, int fd,
                        const void *data, uint64_t size, uint64_t offset, struct pstk_error *err);
/* Sync, close *fd (also on failure; then -1) and give the file its name. */
int pstk__staging_publish(struct pstk__staging *staging, const char *name, int *fd,
                          struct pstk_error *err);
/* A whole file at once: create, write, publish. */
int pstk__staging_put(struct pstk__staging *staging, const char *name, const void *data,
                      uint64_t size, struct pstk_error *err);
/* Hard-link the file `from` as `name`, or copy it where linking is refused. EEXIST, without a
 * message: the name is taken. */
int pstk__staging_link(struct pstk__staging *staging, const char *from, const char *name,
                       struct pstk_error *err);
/* Sync the directory, print the manifest into its place, sync again, remove what the old data set
 * had. EINVAL: the manifest does not hold its invariants.
 * After failure close removes all, unless the manifest has its name already: then the data set is
 * whole, but may not survive a power failure. */
int pstk__staging_commit(struct pstk__staging *staging, const struct pstk__manifest *manifest,
                         struct pstk_error *err);
/* Remove what was made here, unless committed; unlock; free. Idempotent. */
void pstk__staging_close(struct pstk__staging *staging);

#endif
