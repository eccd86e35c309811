/* SPDX-License-Identifier: Apache-2.0 */
#include "index/home.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS 100000000 /* between two looks of a process that waits */

/* A file of the index that may be, and the file of its lock. */
struct spot {
    char folder[PATH_MAX];
    char index[PATH_MAX];
    char lock[PATH_MAX];
};

/* Write a, b and c end to end. 0, or EINVAL: they are too long for a path. */
static int join(char to[PATH_MAX], const char *a, const char *b, const char *c)
{
    const int n = snprintf(to, PATH_MAX, "%s%s%s", a, b, c);
    return n < 0 || n >= PATH_MAX ? PSTK_EINVAL : 0;
}

/* 0, or EINVAL: a path is too long. */
static int spot_of(const struct pstk__index_home *home, int in_cache, struct spot *spot)
{
    char name[80], path[PATH_MAX];
    snprintf(name, sizeof name, "/%.14s-%016" PRIx64 "%016" PRIx64 "%.12s", home->format,
             home->key[0] ^ (in_cache ? home->place[0] : 0),
             home->key[1] ^ (in_cache ? home->place[1] : 0),
             home->ending ? home->ending : ".index");
    int r = in_cache ? join(spot->folder, home->cache, "/index", "")
                     : join(spot->folder, home->data, "/", PSTK__INDEX_FOLDER);
    if (r == 0)
        r = join(path, spot->folder, name, "");
    if (r == 0)
        r = join(spot->lock, path, ".lock", "");
    if (r == 0)
        memcpy(spot->index, path, sizeof path);
    return r;
}

/* Only this user, root and the owner of the data decide what a loader reads. */
int pstk__index_trusts(uint32_t user, uint32_t data_owner)
{
    return user == geteuid() || user == 0 || user == data_owner;
}

/* 1: the file is of one of those. One that is not there is nobody's. */
static int is_trusted(const struct pstk__index_home *home, const char *path)
{
    struct stat file, data;
    if (stat(path, &file) < 0)
        return 0;
    return pstk__index_trusts(file.st_uid, stat(home->data, &data) == 0 ? data.st_uid : 0);
}

/* 1: *out is an index that fits; 0: there is none there, or an old or damaged one. */
static int open_spot(struct pstk__index **out, const struct pstk__index_home *home,
                     const struct pstk__index_work *work, const struct spot *spot)
{
    struct stat st;
    const char *why = NULL;
    if (lstat(spot->index, &st) < 0)
        return 0;
    if (!is_trusted(home, spot->index))
        why = "it belongs to another user than you, root and the owner of the data";
    else if (pstk__index_open(out, home->store, spot->index, home->key, NULL) < 0)
        why = "it is damaged, or another version of penstock wrote it";
    else
        why = work->differs(work->user, *out);
    if (!why)
        return 1;
    if (work->unusable)
        work->unusable(work->user, spot->index, why);
    pstk__index_close(*out);
    *out = NULL;
    return 0;
}

/* ---- the lock -------------------------------------------------------------------------------- */

static int make_folder(const char *path, mode_t mode)
{
    return mkdir(path, mode) < 0 && errno != EEXIST ? -errno : 0;
}

/* Make the folder for caches, and the folder that it is in: ~/.cache may be missing. */
static int make_cache(const char *path)
{
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash && slash != parent) {
        *slash = 0;
        const int r = make_folder(parent, 0700);
        if (r < 0 && r != -EACCES && r != -EROFS) /* it may be there, and not be for writing */
            return r;
    }
    return make_folder(path, 0777);
}

/* 0 or a negative errno. */
static int make_folders(const struct pstk__index_home *home, int in_cache, const struct spot *spot)
{
    const int r = in_cache ? make_cache(home->cache) : 0;
    /* What others can write to, `penstock cache --clear` does not touch, whatever the umask is. */
    return r < 0 ? r : make_folder(spot->folder, in_cache ? 0755 : 0777);
}

/* Open the lock's file, making what is missing. Returns the descriptor or a negative errno. */
static int open_lock(const struct pstk__index_home *home, int in_cache, const struct spot *spot)
{
    const int r = make_folders(home, in_cache, spot);
    if (r < 0)
        return r;
    const int fd = open(spot->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    return fd < 0 ? -errno : fd;
}

/* What the builder has written into the file of its lock. */
static void look_at_builder(int fd, uint64_t *n_done, uint64_t *n_total)
{
    uint8_t words[16];
    *n_done = *n_total = 0;
    if (pread(fd, words, sizeof words, 0) == (ssize_t)sizeof words) {
        *n_done = pstk__get64(words);
        *n_total = pstk__get64(words + 8);
    }
}

/* Wait until this process holds the lock; *is_locked: 0 where files cannot be locked. 0; ECANCELED;
 * or a negative errno. */
static int wait_for_lock(int fd, const struct pstk__index_work *work, int *is_locked)
{
    *is_locked = 1;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EINTR)
            continue;
        *is_locked = errno == EWOULDBLOCK;
        if (!*is_locked)
            return errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK ? 0 : -errno;
        uint64_t n_done, n_total;
        look_at_builder(fd, &n_done, &n_total);
        if (work->on_progress && work->on_progress(work->progress_user, n_done, n_total))
            return PSTK_ECANCELED;
        nanosleep(&(struct timespec){.tv_nsec = PATIENCE_NS}, NULL);
    }
    return 0;
}

/* ---- building -------------------------------------------------------------------------------- */

/* Reports to the caller, and now and then to those who wait. */
struct reporter {
    const struct pstk__index_work *work;
    int fd;
    uint64_t next_ns;
};

static int report(void *user, uint64_t n_done, uint64_t n_total)
{
    struct reporter *reporter = user;
    const uint64_t now = pstk__clock_ns();
    if (now >= reporter->next_ns) {
        uint8_t words[16];
        pstk__put64(words, n_done);
        pstk__put64(words + 8, n_total);
        /* Advice alone: those who wait show no progress where the disk refuses it. */
        if (pwrite(reporter->fd, words, sizeof words, 0) < 0)
            reporter->next_ns = UINT64_MAX;
        else
            reporter->next_ns = now + PATIENCE_NS;
    }
    return reporter->work->on_progress
               ? reporter->work->on_progress(reporter->work->progress_user, n_done, n_total)
               : 0;
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

/* Remove what killed builders of this index left. Only while the lock is held. */
static void remove_leftovers(const struct spot *spot)
{
    const char *name = strrchr(spot->index, '/') + 1;
    const size_t n = strlen(name);
    DIR *folder = opendir(spot->folder);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (strncmp(entry->d_name, name, n) == 0 && strncmp(entry->d_name + n, ".tmp-", 5) == 0)
            unlinkat(dirfd(folder), entry->d_name, 0); /* what stays wastes room alone */
    if (folder)
        closedir(folder);
}

/* *is_refused becomes 1 when the folder cannot be written to, or has too little room. */
static int build(const struct pstk__index_home *home, const struct pstk__index_work *work,
                 const struct spot *spot, int lock, int *is_refused, struct pstk_error *err)
{
    struct reporter reporter = {.work = work, .fd = lock};
    struct pstk__index_build to = {.progress = report, .progress_user = &reporter, .err = err};
    int r = pstk__index_writer_open(&to.writer, spot->index, err);
    *is_refused = r < 0 && r != PSTK_ENOMEM;
    if (r == 0)
        r = work->build(work->user, &to);
    if (r == 0)
        r = pstk__index_writer_commit(&to.writer, home->key, &to.found, &to.classes, err);
    *is_refused |= r == PSTK_ENOSPC;
    pstk__index_writer_abort(&to.writer);
    pstk__texts_close(&to.classes);
    return r;
}

/* Build at a spot, or take the index that another process has built there meanwhile. */
static int build_alone(struct pstk__index **out, const struct pstk__index_home *home,
                       const struct pstk__index_work *work, const struct spot *spot, int lock,
                       int *is_refused, struct pstk_error *err)
{
    int is_locked;
    const int r = wait_for_lock(lock, work, &is_locked);
    if (r == PSTK_ECANCELED)
        return pstk__fail(err, r, PSTK_STAGE_OPEN, "waiting for the index %s was canceled",
                          spot->index);
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot lock %s", spot->lock);
    if (open_spot(out, home, work, spot))
        return 0;
    if (is_locked)
        remove_leftovers(spot);
    const int built = build(home, work, spot, lock, is_refused, err);
    return built < 0 ? built : pstk__index_open(out, home->store, spot->index, home->key, err);
}

static int fail_nowhere(const struct pstk__index_home *home, int native, struct pstk_error *err)
{
    const char *what = home->what ? home->what : "index";
    const int is_full = native == ENOSPC || native == EDQUOT;
    if (is_full && home->cache)
        return pstk__fail_errno(err, native, PSTK_STAGE_OPEN,
                                "the %s of %s has room neither there nor in the cache folder "
                                "%s: free some space in one of them, or set cache_path to a folder "
                                "with more",
                                what, home->data, home->cache);
    if (is_full)
        return pstk__fail_errno(err, native, PSTK_STAGE_OPEN,
                                "the %s of %s has no room in its folder, and no cache folder is "
                                "set: free some space, or set cache_path to a folder with more",
                                what, home->data);
    if (home->cache) {
        const int r = pstk__fail_errno(err, native, PSTK_STAGE_OPEN,
                                       "the %s of %s can be written neither there nor to the cache "
                                       "folder %s (set cache_path to a folder that can be written "
                                       "to)",
                                       what, home->data, home->cache);
        if (r != PSTK_ENOENT)
            return r;
        if (err)
            err->code = PSTK_EINVAL; /* the data is there: the folder is a wrong setting */
        return PSTK_EINVAL;
    }
    return pstk__fail_errno(err, native, PSTK_STAGE_OPEN,
                            "the %s of %s cannot be written to its folder, and no cache folder "
                            "is set: set cache_path",
                            what, home->data);
}

/* Where the index may lie: next to the data, then in the folder for caches. Returns how many. */
static int spots_of(const struct pstk__index_home *home, struct spot spots[2],
                    struct pstk_error *err)
{
    const int n = home->cache ? 2 : 1;
    for (int i = 0; i < n; i++)
        if (spot_of(home, i, &spots[i]) < 0)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                              i ? home->cache : home->data);
    return n;
}

/* An index in the folder for caches may be removed at any time (`penstock cache --clear`): an open
 * one keeps its file. Where that cannot be, it is opened by its name whenever it is read. */
static void hold(struct pstk__index *index, const struct pstk__index_home *home)
{
    char folder[PATH_MAX], path[64];
    struct stat st, again;
    if (index->held || !home->cache || join(folder, home->cache, "/index/", "") < 0 ||
        strncmp(index->path, folder, strlen(folder)) != 0)
        return;
    const int fd = open(index->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return;
    snprintf(path, sizeof path, PSTK__INDEX_HELD, fd);
    /* The file that was read: another may have replaced it since. */
    if (fstat(fd, &st) == 0 && (uint64_t)st.st_size == index->size &&
        pstk__file_changed_ns(&st) == index->changed_ns && stat(path, &again) == 0 &&
        again.st_ino == st.st_ino && again.st_dev == st.st_dev)
        index->held = fd + 1;
    else
        close(fd);
}

/* An opened index knows the folder of its data. */
static int set_home(struct pstk__index **out, const struct pstk__index_home *home, int r,
                    struct pstk_error *err)
{
    if (r < 0 || !*out)
        return r;
    hold(*out, home);
    (*out)->home = strdup(home->data);
    if ((*out)->home)
        return 0;
    pstk__index_close(*out);
    *out = NULL;
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the index of %s",
                      home->data);
}

int pstk__index_find_fitting(struct pstk__index **out, const struct pstk__index_home *home,
                             const struct pstk__index_work *work, struct pstk_error *err)
{
    struct spot spots[2];
    *out = NULL;
    const int n = spots_of(home, spots, err);
    for (int i = 0; i < n && !*out; i++)
        open_spot(out, home, work, &spots[i]);
    return set_home(out, home, n < 0 ? n : 0, err);
}

static int get(struct pstk__index **out, const struct pstk__index_home *home,
               const struct pstk__index_work *work, struct pstk_error *err)
{
    struct spot spots[2];
    int native = ENOENT;
    *out = NULL;
    const int n = spots_of(home, spots, err);
    if (n < 0)
        return n;
    for (int i = 0; i < n; i++)
        if (open_spot(out, home, work, &spots[i]))
            return 0;
    for (int i = 0; i < n; i++) {
        const int lock = open_lock(home, i, &spots[i]);
        int is_refused = 0;
        if (lock < 0) {
            native = -lock;
            continue;
        }
        const int r = build_alone(out, home, work, &spots[i], lock, &is_refused, err);
        flock(lock, LOCK_UN); /* a child that was forked meanwhile has the lock, too */
        close(lock);
        if (!is_refused || (i + 1 == n && r != PSTK_ENOSPC))
            return r;
        native = r == PSTK_ENOSPC ? ENOSPC : EACCES;
    }
    return fail_nowhere(home, native, err);
}

int pstk__index_get(struct pstk__index **out, const struct pstk__index_home *home,
                    const struct pstk__index_work *work, struct pstk_error *err)
{
    return set_home(out, home, get(out, home, work, err), err);
}

/* No lock is taken: nobody else sees the file. */
static int build_nameless(struct pstk__index **out, const struct pstk__index_home *home,
                          const struct pstk__index_work *work, const struct spot *spot,
                          int *is_refused, struct pstk_error *err)
{
    struct reporter reporter = {.work = work, .fd = -1, .next_ns = UINT64_MAX};
    struct pstk__index_build to = {.progress = report, .progress_user = &reporter, .err = err};
    char path[64];
    int fd = -1;
    int r = pstk__index_writer_open_nameless(&to.writer, spot->index, err);
    *is_refused = r < 0 && r != PSTK_ENOMEM;
    if (r == 0)
        r = work->build(work->user, &to);
    if (r == 0)
        r = pstk__index_writer_end_nameless(&to.writer, home->key, &to.found, &fd, err);
    pstk__index_writer_abort(&to.writer);
    pstk__texts_close(&to.classes);
    if (r < 0)
        return r;
    snprintf(path, sizeof path, PSTK__INDEX_HELD, fd);
    r = pstk__index_open(out, home->store, path, home->key, err);
    if (r < 0)
        close(fd);
    else
        (*out)->held = fd + 1;
    return r;
}

int pstk__index_get_nameless(struct pstk__index **out, const struct pstk__index_home *home,
                             const struct pstk__index_work *work, struct pstk_error *err)
{
    struct spot spots[2];
    int native = ENOENT;
    *out = NULL;
    const int n = spots_of(home, spots, err);
    for (int i = n - 1; i >= 0; i--) { /* the folder for caches first: data is only looked at */
        int is_refused = 0;
        const int made = make_folders(home, i, &spots[i]);
        if (made < 0) {
            native = -made;
            continue;
        }
        const int r = build_nameless(out, home, work, &spots[i], &is_refused, err);
        if (!is_refused)
            return r;
        native = EACCES;
    }
    return n < 0 ? n : fail_nowhere(home, native, err);
}
