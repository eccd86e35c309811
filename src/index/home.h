/* SPDX-License-Identifier: Apache-2.0 */
/*
 * home: where the index of a data set lies, and who builds it. It lies next to the data, in the
 * folder `.penstock`, or where that cannot be written to in the folder for caches.
 *
 * Of many processes that open the data set at once, one builds: it holds a lock on a file next to
 * the index. The kernel drops the lock of a process that dies. The others wait, and report what the
 * builder has done, which it writes into the file of the lock.
 */
#ifndef PSTK_INDEX_HOME_H
#define PSTK_INDEX_HOME_H

#include "index/writer.h"

#define PSTK__INDEX_FOLDER ".penstock"

struct pstk__index_home {
    const struct pstk__store *store;
    const char *data;   /* folder of the data set */
    const char *cache;  /* folder for caches, or NULL */
    const char *format; /* begins the name of the file */
    const char *ending; /* ends it; NULL: ".index" */
    const char *what;   /* it is, for messages; NULL: "index" */
    uint64_t key[2]; /* digest of all that the index depends on, except sizes and times of files */
    uint64_t place[2]; /* digest of the absolute path of the data set, for its name in `cache` */
};

/* How an index is made. */
struct pstk__index_work {
    void *user;
    /* NULL, or why an index does not fit the data set as it is now; static storage. */
    const char *(*differs)(void *user, const struct pstk__index *index);
    /* Add all files. progress: to be called with what was done, on the caller's thread; its result,
     * if not 0, ends the work with ECANCELED. */
    int (*build)(void *user, struct pstk__index_writer *writer, struct pstk__index_found *found,
                 struct pstk__texts *classes, pstk_progress_fn progress, void *progress_user,
                 struct pstk_error *err);
    /* Called for a file that is there but cannot be used; why: static storage. NULL: nothing is. */
    void (*unusable)(void *user, const char *path, const char *why);
    pstk_progress_fn on_progress; /* of the caller, on its thread; or NULL */
    void *progress_user;
};

/* 1: what this user wrote for data of that owner is used; both are user ids. */
int pstk__index_trusts(uint32_t user, uint32_t data_owner);
/* Open the index, if there is one that fits; else *out is NULL. Returns owned. EINVAL: its path is
 * too long. */
int pstk__index_find_fitting(struct pstk__index **out, const struct pstk__index_home *home,
                             const struct pstk__index_work *work, struct pstk_error *err);
/* Open the index, or build it first: next to the data or, where that cannot be written to or has no
 * room for it, in the folder for caches, where it may then be removed: an open one holds its file.
 * Returns owned. EACCES, EROFS as EPERM: no folder can be
 * written to; ENOSPC: no folder has room; ECANCELED: on_progress ended it; others of open and
 * build. */
int pstk__index_get(struct pstk__index **out, const struct pstk__index_home *home,
                    const struct pstk__index_work *work, struct pstk_error *err);
/* Build an index in a file without a name, which is gone once *out is closed: of a data set that is
 * damaged, by nobody else. As pstk__index_get. */
int pstk__index_get_nameless(struct pstk__index **out, const struct pstk__index_home *home,
                             const struct pstk__index_work *work, struct pstk_error *err);

#endif
