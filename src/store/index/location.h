/* SPDX-License-Identifier: Apache-2.0 */
/*
 * location: where the index of a data set lies, and which process builds it. The index lies next to
 * the data, in the folder `.penstock`, or, if that cannot be written to, in the folder for caches.
 *
 * If many processes open the data set at once, one of them builds (lock.h). The others wait, and
 * report the builder's progress.
 */
#ifndef PSTK_INDEX_LOCATION_H
#define PSTK_INDEX_LOCATION_H

#include "store/index/lock.h"
#include "store/index/writer.h"

/* An index that is being built: one for each call of `build`, on the thread of pstk__index_get. */
struct pstk__index_build {
    struct pstk__index_writer *writer;  /* takes the files */
    struct pstk__inferred_schema found; /* set by `build`; empty before */
    struct pstk__texts classes;         /* filled by `build`, closed after it; empty before */
    pstk_progress_fn progress;          /* see pstk__index_build_advance */
    void *progress_user;
    uint64_t n_done;   /* count reported as done */
    uint64_t n_joined; /* files or samples joined, as the format counts */
    int code; /* error of the first file or sample that could not be added, whose message is in
               *err; or 0 */
    struct pstk_error *err;
};

/* The functions that check and make an index. */
struct pstk__index_work {
    void *user;
    /* Return why an index does not fit the current state of the data set, or NULL: it fits. Static
     * storage. */
    const char *(*differs)(void *user, const struct pstk__index *index);
    /* Add all files. If a folder has no room, the caller calls it again with another build. */
    int (*build)(void *user, struct pstk__index_build *build);
    /* Receives a file that exists but cannot be used; why: static storage. May be NULL. */
    void (*unusable)(void *user, const char *path, const char *why);
    struct pstk__index_watch watch;
    uint64_t patience_ns; /* ns that another builder may make no progress; 0: a minute */
};

/* Count n more as done, and report the sum, of n_total; n_total 0: unknown. Non-zero: end the work
 * with ECANCELED, because progress returned non-zero, or an earlier file could not be added. */
int pstk__index_build_advance(struct pstk__index_build *build, uint64_t n, uint64_t n_total);
/* Return the result of a map that ran for the build and returned r. If an item could not be added,
 * that ended the map: returns its error, whose message is already written. */
int pstk__index_build_result(const struct pstk__index_build *build, int r);

/* Open the index if one fits; otherwise *out is NULL. Returns owned. EINVAL: its path is too long.
 */
int pstk__index_find_fitting(struct pstk__index **out, const struct pstk__index_location *location,
                             const struct pstk__index_work *work, struct pstk_error *err);
/* Open the index, or build it first: next to the data, or in the folder for caches if the data's
 * folder cannot be written to, has no room, or another user builds one there. An index in the cache
 * may be removed while it is open: the opened index holds its file. Returns owned. EACCES, EPERM:
 * no folder can be written to (EACCES on a read-only file system); ENOSPC: no folder has room;
 * ENOENT: the data's folder is missing, and no folder for caches is set; ETIMEDOUT: another process
 * builds it, and makes no progress; EINVAL: a path is too long, or the folder for caches cannot be
 * made, because its parent is missing; ECANCELED: on_progress ended it; other errors of the system,
 * of pstk__index_open and of build. */
int pstk__index_get(struct pstk__index **out, const struct pstk__index_location *location,
                    const struct pstk__index_work *work, struct pstk_error *err);
/* Build an index of a damaged data set in a file without a name, which nobody else sees, and which
 * is gone once *out is closed. Errors as pstk__index_get. */
int pstk__index_get_nameless(struct pstk__index **out, const struct pstk__index_location *location,
                             const struct pstk__index_work *work, struct pstk_error *err);

#endif
