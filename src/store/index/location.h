/* SPDX-License-Identifier: Apache-2.0 */
/*
 * location: where the index of a data set lies, and who builds it. It lies next to the data, in the
 * folder `.penstock`, or where that cannot be written to in the folder for caches.
 *
 * Of many processes that open the data set at once, one builds (lock.h). The others wait, and
 * report what the builder has done.
 */
#ifndef PSTK_INDEX_LOCATION_H
#define PSTK_INDEX_LOCATION_H

#include "store/index/lock.h"
#include "store/index/writer.h"

/* An index being built: for one call of `build`, on the thread of pstk__index_get. */
struct pstk__index_build {
    struct pstk__index_writer *writer;  /* where files are added */
    struct pstk__inferred_schema found; /* empty before; set by `build` */
    struct pstk__texts classes;         /* empty before; filled by `build`, closed after it */
    pstk_progress_fn progress;          /* see pstk__index_build_advance */
    void *progress_user;
    uint64_t n_done;   /* reported as done */
    uint64_t n_joined; /* what the format counts: files, or samples */
    int code;          /* of the first of these that could not be added, with its message in *err;
                        * or 0 */
    struct pstk_error *err;
};

/* How an index is made. */
struct pstk__index_work {
    void *user;
    /* NULL, or why an index does not fit the data set as it is now; static storage. */
    const char *(*differs)(void *user, const struct pstk__index *index);
    /* Add all files. May be called again, with another build, where a folder has no room. */
    int (*build)(void *user, struct pstk__index_build *build);
    /* Called for a file that is there but cannot be used; why: static storage. NULL: nothing is. */
    void (*unusable)(void *user, const char *path, const char *why);
    struct pstk__index_watch watch;
    uint64_t patience_ns; /* how long another that builds may make no progress; 0: a minute */
};

/* Count n more as done, and report that, of n_total; 0: nobody knows how many there are. The
 * result, if not 0, is to end the work with ECANCELED: that of progress, or nothing more can be
 * added. */
int pstk__index_build_advance(struct pstk__index_build *build, uint64_t n, uint64_t n_total);
/* The result of a map that ran for the build and returned r: a failure to add what a job found has
 * ended the map, and its message was written before. */
int pstk__index_build_result(const struct pstk__index_build *build, int r);

/* Open the index, if there is one that fits; else *out is NULL. Returns owned. EINVAL: its path is
 * too long. */
int pstk__index_find_fitting(struct pstk__index **out, const struct pstk__index_location *location,
                             const struct pstk__index_work *work, struct pstk_error *err);
/* Open the index, or build it first: next to the data, or in the folder for caches if the data's
 * folder cannot be written to, has no room, or another user builds one there. An index in the cache
 * may be removed while it is open: it holds its file. Returns owned. EACCES, EPERM: no folder can
 * be written to (of a read-only file system EACCES); ENOSPC: no folder has room; ENOENT: the data's
 * folder is missing, and none for caches is set; ETIMEDOUT: another process builds it, and makes no
 * progress; EINVAL: a path is too long, or the folder for caches cannot be made, because what it
 * lies in is missing; ECANCELED: on_progress ended it; others of the system, of pstk__index_open
 * and of build. */
int pstk__index_get(struct pstk__index **out, const struct pstk__index_location *location,
                    const struct pstk__index_work *work, struct pstk_error *err);
/* Build an index in a file without a name, which is gone once *out is closed: of a data set that is
 * damaged, by nobody else. As pstk__index_get. */
int pstk__index_get_nameless(struct pstk__index **out, const struct pstk__index_location *location,
                             const struct pstk__index_work *work, struct pstk_error *err);

#endif
