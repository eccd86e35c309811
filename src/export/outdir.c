/* SPDX-License-Identifier: Apache-2.0 */
#include "export/outdir.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "export/dir_walk.h"
#include "store/export_mark.h"
#include "store/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY ".tmp-"
#define ASIDE ".old-" /* prefix of an export being replaced without an exchange of names */
#define MARK_NEW ".tmp-" PSTK__EXPORT_MARK
/* The first bytes of a mark. */
#define MARK_BEGUN "{\"format\":\"penstock-export\",\"version\":1,\"complete\":false"
#define MARK_DONE "{\"format\":\"penstock-export\",\"version\":1,\"complete\":true,\"n_files\":"

static int fail_path(const struct pstk__outdir *outdir, int native, const char *what,
                     const char *name, struct pstk_error *err)
{
    return pstk__fail_errno(err, native, PSTK_STAGE_WRITE, "%s: cannot %s %s%s", outdir->path, what,
                            name, pstk__file_write_advice(native));
}

/* ---- what a directory holds ------------------------------------------------------------------ */

/* Mix 64 bits (the finalizer of SplitMix64). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static int ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), n_end = strlen(end);
    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

/* Return 1 if a reader of penstock made the file and can make it again: an index, or a file that is
 * kept with one, in the folder for them. */
static int is_index(const char *name, const char *path, const struct stat *status)
{
    static const char folder[] = PSTK__SIDECAR_FOLDER "/";
    const size_t n = strlen(path) - strlen(name), n_folder = sizeof folder - 1;
    if (!S_ISREG(status->st_mode) || n < n_folder ||
        memcmp(path + n - n_folder, folder, n_folder) != 0 ||
        (n > n_folder && path[n - n_folder - 1] != '/'))
        return 0;
    return ends_with(name, PSTK__SIDECAR_INDEX) || ends_with(name, PSTK__SIDECAR_POINTS) ||
           ends_with(name, PSTK__SIDECAR_CHECKSUMS) || ends_with(name, PSTK__SIDECAR_LOCK);
}

static int count_entry(void *user, int dir, const char *name, const char *path,
                       const struct stat *status)
{
    struct pstk__outdir_files *files = user;
    (void)dir;
    const uint64_t size = S_ISREG(status->st_mode) ? (uint64_t)status->st_size : 0;
    if (S_ISDIR(status->st_mode) || strcmp(path, PSTK__EXPORT_MARK) == 0)
        return 0;
    if (is_index(name, path, status)) {
        files->n_indexes++;
        return 0;
    }
    const uint64_t n = strlen(path);
    const uint64_t crc = pstk__crc32c(0, path, n);
    files->n++;
    files->bytes += size;
    files->digest += mix(mix(crc << 32 | pstk__crc32c(1, path, n)) + size);
    return 0;
}

static int measure(int dir, struct pstk__outdir_files *files)
{
    *files = (struct pstk__outdir_files){0};
    return pstk__dir_walk(dir, PSTK__OUTDIR_DEPTH, count_entry, files);
}

int pstk__outdir_measure(const struct pstk__outdir *outdir, struct pstk__outdir_files *files,
                         struct pstk_error *err)
{
    const int r = measure(outdir->dir, files);
    return r < 0 ? fail_path(outdir, -r, "read", "the directory", err) : 0;
}

static int remove_entry(void *user, int dir, const char *name, const char *path,
                        const struct stat *status)
{
    (void)user;
    if (strcmp(path, PSTK__EXPORT_MARK) == 0) /* last: it identifies the owner of the files */
        return 0;
    return unlinkat(dir, name, S_ISDIR(status->st_mode) ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT
               ? -errno
               : 0;
}

/* Remove the entries of a directory. Returns 0 or a negative errno. */
static int empty(int dir)
{
    const int r = pstk__dir_walk(dir, PSTK__OUTDIR_DEPTH, remove_entry, NULL);
    if (r < 0)
        return r;
    return unlinkat(dir, PSTK__EXPORT_MARK, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* Remove the directory `name` in `parent` and its entries. Returns 0 or a negative errno. */
static int remove_tree(int parent, const char *name, int dir)
{
    const int r = empty(dir);
    if (r < 0)
        return r;
    return unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

enum holds {
    HOLDS_NOTHING,
    HOLDS_BEGUN,  /* an unfinished export */
    HOLDS_EXPORT, /* a finished export, unchanged since */
    HOLDS_CHANGED,
    HOLDS_OTHER, /* files of another program or person */
};

/* Read the beginning of a directory's mark into text, which ends with 0; "" if it has none. */
static void read_mark(int dir, char text[128])
{
    const int fd = openat(dir, PSTK__EXPORT_MARK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const int64_t n = fd < 0 ? 0 : pstk__file_pread(fd, text, 127, 0);
    text[n > 0 ? n : 0] = 0;
    if (fd >= 0)
        close(fd);
}

/* Find out the contents of a directory: enum holds, or a negative errno. */
static int holds(int dir)
{
    struct pstk__outdir_files files;
    char text[128], expected[128];
    const int r = measure(dir, &files);
    if (r < 0 && r != -ELOOP && r != -ENAMETOOLONG)
        return r;
    read_mark(dir, text);
    if (!text[0])
        return r == 0 && files.n + files.n_indexes == 0 ? HOLDS_NOTHING : HOLDS_OTHER;
    if (strncmp(text, MARK_BEGUN, strlen(MARK_BEGUN)) == 0)
        return HOLDS_BEGUN;
    if (strncmp(text, MARK_DONE, strlen(MARK_DONE)) != 0)
        return HOLDS_OTHER;
    snprintf(expected, sizeof expected, MARK_DONE "%" PRIu64 ",\"digest\":\"%016" PRIx64 "\"",
             files.n, files.digest);
    return r == 0 && strncmp(text, expected, strlen(expected)) == 0 ? HOLDS_EXPORT : HOLDS_CHANGED;
}

/* ---- open ------------------------------------------------------------------------------------ */

static int fail_standing(const struct pstk__outdir *outdir, const char *what,
                         struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EEXIST, PSTK_STAGE_WRITE, "%s %s", outdir->path, what);
}

/* Check that the entry at the path, if there is one, may be replaced. */
static int check_standing(const struct pstk__outdir *outdir, struct pstk_error *err)
{
    struct stat status;
    if (fstatat(outdir->parent, outdir->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : fail_path(outdir, errno, "look at", "it", err);
    if (!outdir->overwrite)
        return fail_standing(outdir,
                             "exists already; choose another path, or set overwrite to "
                             "replace it if it is an export",
                             err);
    const int dir =
        openat(outdir->parent, outdir->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return fail_standing(
            outdir,
            "is not a directory that an export made, so it is not replaced; choose another path",
            err);
    const int held = holds(dir);
    close(dir);
    if (held < 0)
        return fail_path(outdir, -held, "read", "the directory", err);
    if (held == HOLDS_CHANGED)
        return fail_standing(outdir,
                             "is an export, but files in it were added, removed or changed since, "
                             "so it is not replaced: remove it yourself, or choose another path",
                             err);
    return held == HOLDS_OTHER
               ? fail_standing(
                     outdir,
                     "holds files that no export made, so it is not replaced; choose another path",
                     err)
               : 0;
}

/* Split the path into its parent, which it opens, and its name. */
static int find_parent(struct pstk__outdir *outdir, struct pstk_error *err)
{
    char *slash = strrchr(outdir->path, '/');
    const char *name = slash ? slash + 1 : outdir->path;
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                          "out: value is '%s'; must be the path of a directory to make",
                          outdir->path);
    outdir->name = strdup(name);
    char *parent = slash ? strndup(outdir->path, (size_t)(slash - outdir->path + 1)) : strdup(".");
    int r = 0;
    if (!outdir->name || !parent ||
        asprintf(&outdir->temporary, TEMPORARY "%s", outdir->name) < 0) {
        outdir->temporary = NULL;
        r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", outdir->path);
    } else {
        outdir->parent = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (outdir->parent < 0)
            r = errno == ENOENT
                    ? pstk__file_fail_make(err, errno, PSTK_STAGE_WRITE, outdir->path)
                    : pstk__fail_errno(err, errno, PSTK_STAGE_WRITE,
                                       "%s: cannot open the directory that is to hold it",
                                       outdir->path);
    }
    free(parent);
    return r;
}

/* Lock the directory. 1: locked; 0: the file system has no locks. */
static int lock(struct pstk__outdir *outdir, struct pstk_error *err)
{
    struct stat here, there;
    int r;
    while ((r = flock(outdir->dir, LOCK_EX | LOCK_NB)) < 0 && errno == EINTR)
        ;
    const int is_busy = r < 0 && errno == EWOULDBLOCK;
    if (is_busy || fstat(outdir->dir, &here) < 0 ||
        fstatat(outdir->parent, outdir->temporary, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
        here.st_ino != there.st_ino || here.st_dev != there.st_dev)
        return pstk__fail(
            err, PSTK_EBUSY, PSTK_STAGE_WRITE,
            "%s: another export is writing there (in %s); wait for it, or choose another path",
            outdir->path, outdir->temporary);
    return r == 0;
}

/* Remove the files that a killed export left in the directory. */
static int clear_leftovers(struct pstk__outdir *outdir, struct pstk_error *err)
{
    outdir->dir =
        openat(outdir->parent, outdir->temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (outdir->dir < 0)
        return fail_path(outdir, errno, "open", outdir->temporary, err);
    const int locked = lock(outdir, err);
    if (locked < 0)
        return locked;
    const int held = holds(outdir->dir);
    if (held == HOLDS_OTHER || (!locked && held != HOLDS_NOTHING))
        return pstk__fail(err, held == HOLDS_OTHER ? PSTK_EEXIST : PSTK_EBUSY, PSTK_STAGE_WRITE,
                          "%s: the directory %s next to it %s; remove it yourself, or choose "
                          "another path",
                          outdir->path, outdir->temporary,
                          held == HOLDS_OTHER ? "holds files that no export made"
                                              : "may belong to an export that is still writing, "
                                                "and this file system has no locks");
    const int r = held < 0 ? held : empty(outdir->dir);
    outdir->had_leftovers = held != HOLDS_NOTHING;
    return r < 0 ? fail_path(outdir, -r, "remove what is in", outdir->temporary, err) : 0;
}

static int make(struct pstk__outdir *outdir, struct pstk_error *err)
{
    struct pstk__out_file mark;
    int r = 0;
    if (mkdirat(outdir->parent, outdir->temporary, 0777) == 0) {
        outdir->dir = openat(outdir->parent, outdir->temporary,
                             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = outdir->dir < 0 ? fail_path(outdir, errno, "open", outdir->temporary, err)
                            : lock(outdir, err);
        if (outdir->dir < 0)
            unlinkat(outdir->parent, outdir->temporary, AT_REMOVEDIR);
    } else if (errno == EEXIST) {
        r = clear_leftovers(outdir, err);
    } else {
        r = fail_path(outdir, errno, "make the directory", outdir->temporary, err);
    }
    if (r < 0)
        return r;
    outdir->made = 1;
    r = pstk__out_file_open(&mark, outdir->dir, outdir->path, PSTK__EXPORT_MARK, err);
    if (r < 0)
        return r;
    r = pstk__out_file_put(&mark, MARK_BEGUN "}\n", strlen(MARK_BEGUN "}\n"), err);
    const int ended = pstk__out_file_end(&mark, 0, r < 0 ? NULL : err);
    return r < 0 ? r : ended;
}

int pstk__outdir_open(struct pstk__outdir *outdir, const char *path, int overwrite,
                      struct pstk_error *err)
{
    *outdir = (struct pstk__outdir){.parent = -1, .dir = -1, .overwrite = overwrite};
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    outdir->path = strndup(path, n);
    int r = outdir->path
                ? find_parent(outdir, err)
                : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", path);
    if (r == 0)
        r = check_standing(outdir, err);
    if (r == 0)
        r = make(outdir, err);
    if (r < 0)
        pstk__outdir_close(outdir);
    return r;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Make the directories of a name. */
static int make_folders(struct pstk__outdir *outdir, const char *name, struct pstk_error *err)
{
    char *path = strdup(name);
    int r = 0;
    if (!path)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", outdir->path);
    for (char *slash = strchr(path, '/'); r == 0 && slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdirat(outdir->dir, path, 0777) < 0 && errno != EEXIST)
            r = errno == ENOTDIR ? PSTK_EEXIST
                                 : fail_path(outdir, errno, "make the directory", path, err);
        *slash = '/';
    }
    free(path);
    return r;
}

int pstk__outdir_create(struct pstk__outdir *outdir, struct pstk__out_file *file, const char *name,
                        struct pstk_error *err)
{
    const int r = strchr(name, '/') ? make_folders(outdir, name, err) : 0;
    return r < 0 ? r : pstk__out_file_open(file, outdir->dir, outdir->path, name, err);
}

int pstk__outdir_rename(struct pstk__outdir *outdir, const char *from, const char *to,
                        struct pstk_error *err)
{
    return renameat(outdir->dir, from, outdir->dir, to) < 0
               ? fail_path(outdir, errno, "rename to", to, err)
               : 0;
}

int pstk__outdir_remove(struct pstk__outdir *outdir, const char *name, struct pstk_error *err)
{
    return unlinkat(outdir->dir, name, 0) < 0 ? fail_path(outdir, errno, "remove", name, err) : 0;
}

/* ---- commit ---------------------------------------------------------------------------------- */

static int write_mark(struct pstk__outdir *outdir, const struct pstk__outdir_files *files,
                      const struct pstk__bytes *rest, struct pstk_error *err)
{
    struct pstk__out_file mark;
    char text[256];
    const int n = snprintf(text, sizeof text,
                           MARK_DONE "%" PRIu64 ",\"digest\":\"%016" PRIx64 "\",\"bytes\":%" PRIu64,
                           files->n, files->digest, files->bytes);
    int r = pstk__out_file_open(&mark, outdir->dir, outdir->path, MARK_NEW, err);
    if (r < 0)
        return r;
    r = pstk__out_file_put(&mark, text, (uint64_t)n, err);
    if (r == 0)
        r = pstk__out_file_put(&mark, rest->data, rest->size, err);
    if (r == 0)
        r = pstk__out_file_put(&mark, "}\n", 2, err);
    const int ended = pstk__out_file_end(&mark, 1, r < 0 ? NULL : err);
    r = r < 0 ? r : ended;
    return r < 0 ? r : pstk__outdir_rename(outdir, MARK_NEW, PSTK__EXPORT_MARK, err);
}

/* Remove the directory `name` next to the path, if it is an export's. Errors are not reported: the
 * export is complete, and the next one tries again. */
static void remove_replaced(struct pstk__outdir *outdir, const char *name)
{
    const int dir = openat(outdir->parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return;
    const int held = holds(dir);
    if (held == HOLDS_EXPORT || held == HOLDS_BEGUN || held == HOLDS_NOTHING)
        remove_tree(outdir->parent, name, dir);
    close(dir);
}

/* Replace the entry at the path if names cannot be exchanged. A kill between the two steps leaves
 * both directories, under names that begin with a dot. */
static int move_aside(struct pstk__outdir *outdir, struct pstk_error *err)
{
    char *aside;
    if (asprintf(&aside, ASIDE "%s", outdir->name) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", outdir->path);
    int r = 0;
    remove_replaced(outdir, aside);
    if (renameat(outdir->parent, outdir->name, outdir->parent, aside) < 0)
        r = fail_path(outdir, errno, "rename it to", aside, err);
    else if (renameat(outdir->parent, outdir->temporary, outdir->parent, outdir->name) < 0) {
        r = fail_path(outdir, errno, "rename", outdir->temporary, err);
        renameat(outdir->parent, aside, outdir->parent, outdir->name);
    } else {
        outdir->made = 0;
        remove_replaced(outdir, aside);
    }
    free(aside);
    return r;
}

/* Rename the directory to its name. Renaming a directory can replace only an empty one. */
static int take_name(struct pstk__outdir *outdir, struct pstk_error *err)
{
    const int parent = outdir->parent;
    /* Check again: the entry at the path may have changed since the export began. */
    int r = check_standing(outdir, err);
    if (r < 0)
        return r;
    if (renameat(parent, outdir->temporary, parent, outdir->name) == 0) {
        outdir->made = 0;
        return 0;
    }
    if (!outdir->overwrite || (errno != ENOTEMPTY && errno != EEXIST))
        return fail_path(outdir, errno, "rename to", outdir->name, err);
    if (renameat2(parent, outdir->temporary, parent, outdir->name, RENAME_EXCHANGE) < 0)
        return errno == EINVAL || errno == ENOSYS
                   ? move_aside(outdir, err)
                   : fail_path(outdir, errno, "exchange names with", outdir->name, err);
    outdir->made = 0;
    remove_replaced(outdir, outdir->temporary);
    return 0;
}

/* A parent that may not be read cannot be synced; that is no error. */
static int sync_parent(const struct pstk__outdir *outdir, struct pstk_error *err)
{
    return fsync(outdir->parent) < 0 && errno != EINVAL && errno != EBADF && errno != EACCES
               ? fail_path(outdir, errno, "sync", "the directory that holds it", err)
               : 0;
}

int pstk__outdir_commit(struct pstk__outdir *outdir, const struct pstk__outdir_files *files,
                        const struct pstk__bytes *rest, struct pstk_error *err)
{
    int r = write_mark(outdir, files, rest, err);
    if (r == 0 && outdir->sync_all && syncfs(outdir->dir) < 0)
        r = fail_path(outdir, errno, "sync", "its files", err);
    if (r == 0 && fsync(outdir->dir) < 0)
        r = fail_path(outdir, errno, "sync", "the directory", err);
    if (r == 0)
        r = take_name(outdir, err);
    return r < 0 ? r : sync_parent(outdir, err);
}

void pstk__outdir_close(struct pstk__outdir *outdir)
{
    if (outdir->made && outdir->dir >= 0)
        remove_tree(outdir->parent, outdir->temporary, outdir->dir);
    if (outdir->dir >= 0)
        close(outdir->dir);
    if (outdir->parent >= 0)
        close(outdir->parent);
    free(outdir->path);
    free(outdir->name);
    free(outdir->temporary);
    *outdir = (struct pstk__outdir){.parent = -1, .dir = -1};
}
