/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staging: the directory of a data set while writer or merge writes it. One thread.
 *
 * A file is created as `.tmp-NAME`, synced, and renamed to NAME. `manifest.json` comes last;
 * without it there is no data set. A journal (journal.h) lists the files being made and the files
 * of the data set being replaced. After a kill, the next staging of the same directory removes the
 * files in the journal, except files that an existing manifest lists. It refuses a directory that
 * holds other files but no data set.
 *
 * It locks the directory (flock) from open to close. On a file system without locks a journal may
 * belong to a writer at work, so nothing is removed and open fails.
 */
#ifndef PSTK_STAGING_H
#define PSTK_STAGING_H

#include "format/pstk/manifest.h"
#include "pack/journal.h"

#include <penstock/types.h>

/* Bytes of a file name, the terminating 0 included; with ".tmp-" before it a name stays below
 * NAME_MAX, 255. */
#define PSTK__STAGING_NAME 240

/* Closed: all zero, except dir and journal.fd, which are -1. Open: the journal on disk lists
 * made_names and old_names, each name before its file is touched. Unless `committed` is 1, close
 * removes made_names. */
struct pstk__staging {
    char *path;           /* owned; as the caller gave it, for messages */
    int dir;              /* owned; holds the lock; -1: closed */
    int made;             /* 1: open made the directory, so close removes it unless committed */
    int committed;        /* 1: the manifest has its name, and made_names stay */
    uint32_t generation;  /* part of new files' names, so that they differ from older ones */
    uint32_t n_leftovers; /* files of a killed writer that open removed */
    int has_journal;      /* 1: this staging made the journal in the directory */
    int is_unsynced;      /* 1: names were announced since the journal's last sync */
    struct pstk__journal journal;
    /* NULL, or called after each copied piece of a file, with the bytes copied so far; a non-zero
     * result stops with ECANCELED, without a message. Set it after open. */
    int (*on_copy)(void *user, uint64_t n_bytes);
    void *user;                         /* argument of on_copy */
    struct pstk__file_names made_names; /* final names of the files made */
    struct pstk__file_names old_names;  /* files of the data set being replaced; sorted */
};

/* Make the directory or take it over. EEXIST: it contains a data set and overwrite is 0, or files
 * that penstock did not write; EBUSY: another writer uses it. On failure *staging is closed. */
int pstk__staging_open(struct pstk__staging *staging, const char *path, int overwrite,
                       struct pstk_error *err);
/* Open the directory of a data set to change its columns, and load its manifest into *m. The shards
 * stay; the commit replaces the manifest and removes the files of dropped columns. EBUSY: another
 * writer uses it. On failure *staging and *m are closed. */
int pstk__staging_edit(struct pstk__staging *staging, const char *path, struct pstk__manifest *m,
                       struct pstk_error *err);
/* Remove the files of column i of `m` at the commit. */
int pstk__staging_drop_column(struct pstk__staging *staging, const struct pstk__manifest *m,
                              uint32_t i, struct pstk_error *err);
/* Return 1 if the directory has an entry of that name. */
int pstk__staging_has(const struct pstk__staging *staging, const char *name);
/* Write the name of a new file: "STEM.pstk", or "STEM.gN.pstk" next to files of an older
 * generation. */
int pstk__staging_name(const struct pstk__staging *staging, char *name, size_t size,
                       const char *stem, const char *suffix, struct pstk_error *err);
/* List a new file in the journal. The next file that is created syncs the journal, once for all
 * names that were announced. Close removes the file, if it was made. */
int pstk__staging_announce(struct pstk__staging *staging, const char *name, struct pstk_error *err);
/* Create `.tmp-NAME` for writing; returns *fd owned. */
int pstk__staging_create(struct pstk__staging *staging, const char *name, int *fd,
                         struct pstk_error *err);
/* Write all bytes at `offset`; continues after EINTR and short writes. */
int pstk__staging_write(const struct pstk__staging *staging, const char *name, int fd,
                        const void *data, uint64_t size, uint64_t offset, struct pstk_error *err);
/* Sync *fd, close it (also on failure; *fd becomes -1) and give the file its name. */
int pstk__staging_publish(struct pstk__staging *staging, const char *name, int *fd,
                          struct pstk_error *err);
/* Create, write and publish a whole file. */
int pstk__staging_put(struct pstk__staging *staging, const char *name, const void *data,
                      uint64_t size, struct pstk_error *err);
/* Hard-link the file `from` as `name`, or copy it if linking is refused. EEXIST, without a message:
 * the name is taken. */
int pstk__staging_link(struct pstk__staging *staging, const char *from, const char *name,
                       struct pstk_error *err);
/* Sync the directory, write the manifest into its place, sync again, remove the files of the old
 * data set. EINVAL: the manifest breaks its invariants. After a failure close removes everything,
 * unless the manifest already has its name: then the data set is complete, but a power failure may
 * undo it. */
int pstk__staging_commit(struct pstk__staging *staging, const struct pstk__manifest *manifest,
                         struct pstk_error *err);
/* Remove the files made here, unless committed; unlock; free. Idempotent. */
void pstk__staging_close(struct pstk__staging *staging);

#endif
