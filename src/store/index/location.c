/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/location.h"

#include "base/error.h"
#include "store/patience.h"
#include "store/sidecar.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 1: /proc leads to the file of a descriptor; 0: there is no /proc. */
static int is_reachable(int fd)
{
    char path[64];
    struct stat st, again;
    snprintf(path, sizeof path, PSTK__INDEX_HELD, fd);
    return fstat(fd, &st) == 0 && stat(path, &again) == 0 && again.st_ino == st.st_ino &&
           again.st_dev == st.st_dev;
}

/* Keep the descriptor of the file that was checked and read: `penstock cache --clear` may remove or
 * replace the index at any time. Without /proc, readers open it by name each time. */
static void hold(struct pstk__index *index)
{
    const int fd = index->held - 1;
    if (is_reachable(fd))
        return;
    close(fd);
    index->held = 0;
}

/* As pstk__index_open, for a file that has a name, so it can be read even without /proc. */
static int open_index(struct pstk__index **out, const char *path, int fd, const uint64_t key[2],
                      struct pstk_error *err)
{
    const int r = pstk__index_open(out, path, fd, key, err);
    if (r == 0)
        hold(*out);
    return r;
}

/* Open the index at a spot. 1: *out is an index that fits; 0: there is none, or it is old or
 * damaged. */
static int open_spot(struct pstk__index **out, const struct pstk__index_location *location,
                     const struct pstk__index_work *work, const struct pstk__index_spot *spot)
{
    const char *why;
    const int fd = pstk__index_spot_read(location, spot, &why);
    if (fd >= 0) {
        if (open_index(out, spot->index, fd, location->key, NULL) < 0)
            why = "it is damaged, or another version of penstock wrote it";
        else
            why = work->differs(work->user, *out);
        if (!why)
            return 1;
    }
    if (!why)
        return 0;
    if (work->unusable)
        work->unusable(work->user, spot->index, why);
    pstk__index_close(*out);
    *out = NULL;
    return 0;
}

/* ---- building -------------------------------------------------------------------------------- */

/* Passes progress to the caller, and to the processes that wait. */
struct reporter {
    const struct pstk__index_watch *watch;
    struct pstk__index_lock *lock;
};

static int report(void *user, uint64_t n_done, uint64_t n_total)
{
    const struct reporter *reporter = user;
    const struct pstk__index_watch *watch = reporter->watch;
    if (reporter->lock)
        pstk__index_lock_note(reporter->lock, n_done, n_total);
    return watch->on_progress ? watch->on_progress(watch->user, n_done, n_total) : 0;
}

int pstk__index_build_advance(struct pstk__index_build *build, uint64_t n, uint64_t n_total)
{
    build->n_done += n;
    return build->code < 0 || build->progress(build->progress_user, build->n_done, n_total);
}

int pstk__index_build_result(const struct pstk__index_build *build, int r)
{
    return build->code < 0 ? build->code : r;
}

/* A request for an index, and the result at the last spot. */
struct attempt {
    const struct pstk__index_location *location;
    const struct pstk__index_work *work;
    int is_refused; /* 1: another spot may be tried */
    struct pstk__index_refusal refusal;
    struct pstk_error *err;
};

/* Build an index, and open the file that was written. */
static int build(struct pstk__index **out, struct attempt *attempt,
                 const struct pstk__index_wait *at, struct pstk__index_lock *lock)
{
    int fd = -1;
    struct reporter reporter = {&attempt->work->watch, lock};
    struct pstk__index_build to = {
        .progress = report, .progress_user = &reporter, .err = attempt->err};
    int r = pstk__index_writer_open(&to.writer, at->dir, at->spot->index, attempt->err);
    attempt->is_refused = r < 0 && r != PSTK_ENOMEM;
    if (r == 0)
        r = attempt->work->build(attempt->work->user, &to);
    pstk__index_lock_finishes(lock);
    if (r == 0)
        r = pstk__index_writer_commit(&to.writer, attempt->location->key, &to.found, &to.classes,
                                      &fd, attempt->err);
    attempt->is_refused |= r == PSTK_ENOSPC;
    attempt->refusal = (struct pstk__index_refusal){r == PSTK_ENOSPC ? ENOSPC : EACCES, NULL};
    pstk__index_writer_abort(&to.writer);
    pstk__texts_close(&to.classes);
    return r < 0 ? r : open_index(out, at->spot->index, fd, attempt->location->key, attempt->err);
}

/* Build at a spot, or open the index that another process has built there meanwhile. 1: refused. */
static int build_alone(struct pstk__index **out, struct attempt *attempt,
                       const struct pstk__index_wait *at)
{
    const struct pstk__index_location *location = attempt->location;
    struct pstk__index_lock lock;
    int r = pstk__index_lock_take(&lock, at, &attempt->refusal, attempt->err);
    attempt->is_refused = r > 0;
    if (r == 0 && !open_spot(out, location, attempt->work, at->spot)) {
        if (lock.is_locked)
            pstk__sidecar_remove_left(at->dir, pstk__sidecar_name(at->spot->index),
                                      PSTK__SIDECAR_LOCKED_SECONDS);
        r = build(out, attempt, at, &lock);
    }
    pstk__index_lock_release(&lock);
    return r;
}

/* As build_alone, but the folder of the spot may be read-only: that counts as refused. */
static int build_at(struct pstk__index **out, struct attempt *attempt, int in_cache,
                    const struct pstk__index_spot *spot)
{
    const struct pstk__index_wait at = {
        .location = attempt->location,
        .spot = spot,
        .watch = &attempt->work->watch,
        .dir = pstk__index_spot_open(attempt->location, in_cache, spot, &attempt->refusal),
        .patience_ns = attempt->work->patience_ns ? attempt->work->patience_ns : PSTK__PATIENCE_NS};
    attempt->is_refused = at.dir < 0;
    if (at.dir < 0)
        return 1;
    const int r = build_alone(out, attempt, &at);
    close(at.dir);
    return r;
}

/* Fail because no folder can take the index. why: the reason at the data's folder, if known, or
 * NULL. */
static int fail_nowhere(const struct pstk__index_location *location, int native, const char *why,
                        struct pstk_error *err)
{
    const char *what = pstk__index_what(location);
    const int is_full = native == ENOSPC || native == EDQUOT;
    char because[96] = "";
    if (why)
        snprintf(because, sizeof because, " (%s)", why);
    if (is_full && location->cache)
        return pstk__fail_errno(
            err, native, PSTK_STAGE_OPEN,
            "the %s of %s fits neither into its folder nor into the cache folder %s: free some "
            "space in one of them, or set cache_path to a folder with more space",
            what, location->data, location->cache);
    if (is_full)
        return pstk__fail_errno(
            err, native, PSTK_STAGE_OPEN,
            "the %s of %s does not fit into its folder, and no cache folder is set: free some "
            "space, or set cache_path to a folder with more space",
            what, location->data);
    if (location->cache) {
        const int r =
            pstk__fail_errno(err, native, PSTK_STAGE_OPEN,
                             "the %s of %s can be written neither to its folder%s nor to the cache "
                             "folder %s (set cache_path to a folder that can be written to)",
                             what, location->data, because, location->cache);
        if (r != PSTK_ENOENT)
            return r;
        if (err)
            err->code = PSTK_EINVAL; /* the data exists: the folder for caches is set wrongly */
        return PSTK_EINVAL;
    }
    return pstk__fail_errno(err, native, PSTK_STAGE_OPEN,
                            "the %s of %s cannot be written to its folder%s, and no cache folder "
                            "is set: set cache_path",
                            what, location->data, because);
}

/* List the spots of an index: next to the data, then in the folder for caches. Returns their
 * number. */
static int spots_of(const struct pstk__index_location *location, struct pstk__index_spot spots[2],
                    struct pstk_error *err)
{
    const int n = location->cache ? 2 : 1;
    for (int i = 0; i < n; i++)
        if (pstk__index_spot_of(location, i, &spots[i]) < 0)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                              i ? location->cache : location->data);
    return n;
}

/* Set the folder of the data in an opened index. */
static int set_location(struct pstk__index **out, const struct pstk__index_location *location,
                        int r, struct pstk_error *err)
{
    if (r < 0 || !*out)
        return r;
    (*out)->location = strdup(location->data);
    if ((*out)->location)
        return 0;
    pstk__index_close(*out);
    *out = NULL;
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the index of %s",
                      location->data);
}

int pstk__index_find_fitting(struct pstk__index **out, const struct pstk__index_location *location,
                             const struct pstk__index_work *work, struct pstk_error *err)
{
    struct pstk__index_spot spots[2];
    *out = NULL;
    const int n = spots_of(location, spots, err);
    for (int i = 0; i < n && !*out; i++)
        open_spot(out, location, work, &spots[i]);
    return set_location(out, location, n < 0 ? n : 0, err);
}

static int get(struct pstk__index **out, const struct pstk__index_location *location,
               const struct pstk__index_work *work, struct pstk_error *err)
{
    struct pstk__index_spot spots[2];
    struct attempt attempt = {
        .location = location, .work = work, .refusal = {.native = ENOENT}, .err = err};
    const char *why = NULL;
    *out = NULL;
    const int n = spots_of(location, spots, err);
    if (n < 0)
        return n;
    for (int i = 0; i < n; i++)
        if (open_spot(out, location, work, &spots[i]))
            return 0;
    for (int i = 0; i < n; i++) {
        const int r = build_at(out, &attempt, i, &spots[i]);
        if (!attempt.is_refused || (i + 1 == n && r < 0 && r != PSTK_ENOSPC))
            return r;
        why = i == 0 ? attempt.refusal.why : why;
    }
    return fail_nowhere(location, attempt.refusal.native, why, err);
}

int pstk__index_get(struct pstk__index **out, const struct pstk__index_location *location,
                    const struct pstk__index_work *work, struct pstk_error *err)
{
    return set_location(out, location, get(out, location, work, err), err);
}

/* Fail at open, because reads of pages would fail. */
static int fail_unreachable(const struct pstk__index_location *location, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                      "the %s of %s is a file without a name, which needs /proc: mount /proc, then "
                      "try again",
                      pstk__index_what(location), location->data);
}

/* Build without a lock: nobody else sees the file. */
static int build_nameless(struct pstk__index **out, struct attempt *attempt, int dir,
                          const struct pstk__index_spot *spot)
{
    struct reporter reporter = {&attempt->work->watch, NULL};
    struct pstk__index_build to = {
        .progress = report, .progress_user = &reporter, .err = attempt->err};
    char path[64];
    int fd = -1;
    int r = pstk__index_writer_open_nameless(&to.writer, dir, spot->index, attempt->err);
    attempt->is_refused = r < 0 && r != PSTK_ENOMEM;
    if (r == 0)
        r = attempt->work->build(attempt->work->user, &to);
    if (r == 0)
        r = pstk__index_writer_commit(&to.writer, attempt->location->key, &to.found, NULL, &fd,
                                      attempt->err);
    pstk__index_writer_abort(&to.writer);
    pstk__texts_close(&to.classes);
    if (r < 0)
        return r;
    snprintf(path, sizeof path, PSTK__INDEX_HELD, fd);
    r = pstk__index_open(out, path, fd, attempt->location->key, attempt->err);
    if (r < 0 || is_reachable(fd))
        return r;
    pstk__index_close(*out);
    *out = NULL;
    return fail_unreachable(attempt->location, attempt->err);
}

int pstk__index_get_nameless(struct pstk__index **out, const struct pstk__index_location *location,
                             const struct pstk__index_work *work, struct pstk_error *err)
{
    struct pstk__index_spot spots[2];
    struct attempt attempt = {.location = location, .work = work, .err = err};
    int native = ENOENT;
    const char *why = NULL;
    *out = NULL;
    const int n = spots_of(location, spots, err);
    for (int i = n - 1; i >= 0;
         i--) { /* the folder for caches first: the file should not lie next to the data */
        const int dir = pstk__index_spot_open(location, i, &spots[i], &attempt.refusal);
        if (dir < 0) {
            native = attempt.refusal.native;
            why = attempt.refusal.why;
            continue;
        }
        const int r = build_nameless(out, &attempt, dir, &spots[i]);
        close(dir);
        if (!attempt.is_refused)
            return r;
        native = EACCES;
        why = NULL;
    }
    return n < 0 ? n : fail_nowhere(location, native, why, err);
}
