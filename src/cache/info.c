/* SPDX-License-Identifier: Apache-2.0 */
/* What the folder of a cache holds, and emptying it, for people. */
#include "base/error.h"
#include "cache/folder.h"

#include <penstock/foreign.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define INDEX_FOLDER "index" /* next to that of the entries: index/home.c */
#define INDEX_END ".index"
/* Parquet tables that the Python package has rewritten, each in a folder of its own, and a folder
 * with their indexes: bindings/python/penstock/tables.py. */
#define TABLE_FOLDER "tables"
#define TABLE_END ".jsonl"
#define TYPES_END ".fields" /* next to a table: they are no file to count */

/* Files of indexes and of rewritten tables. Not their locks, nor what is being built. */
struct indexes {
    uint64_t n, bytes;
};

static int has_end(const char *name, const char *end)
{
    const size_t n = strlen(name), n_end = strlen(end);
    return n > n_end && strcmp(name + n - n_end, end) == 0;
}

/* Open a folder in another one (AT_FDCWD: a path). NULL: *r is 0 where there is none, or a negative
 * errno. */
static DIR *open_folder(int at, const char *name, int *r)
{
    const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *r = fd >= 0 || errno == ENOENT ? 0 : -errno;
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !folder) {
        close(fd);
        *r = -ENOMEM;
    }
    return folder;
}

/* Add the indexes and tables in a folder, and remove them if is_removed: then only what was removed
 * counts. Closes the folder. */
static void each_file(DIR *folder, int is_removed, struct indexes *indexes)
{
    const struct dirent *entry;
    while ((entry = readdir(folder))) {
        const char *name = entry->d_name;
        const int is_types = has_end(name, TYPES_END);
        struct stat st;
        if ((!is_types && !has_end(name, INDEX_END) && !has_end(name, TABLE_END)) ||
            fstatat(dirfd(folder), name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
            (is_removed && unlinkat(dirfd(folder), name, 0) < 0))
            continue;
        indexes->n += !is_types;
        indexes->bytes += (uint64_t)st.st_size;
    }
    closedir(folder);
}

/* Those in the folders of a folder; its links are passed over. */
static void each_folder(DIR *folder, int is_removed, struct indexes *indexes)
{
    const struct dirent *entry;
    int r;
    while ((entry = readdir(folder))) {
        const int is_parent = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        DIR *inside = is_parent ? NULL : open_folder(dirfd(folder), entry->d_name, &r);
        if (inside)
            each_file(inside, is_removed, indexes);
    }
    closedir(folder);
}

/* Count the indexes and tables, and remove them if is_removed. Without such folders there are none.
 * 0 or a negative errno. */
static int each_index(const char *cache_path, int is_removed, struct indexes *indexes)
{
    char path[PATH_MAX];
    int r;
    *indexes = (struct indexes){0};
    const int n = snprintf(path, sizeof path, "%s/" INDEX_FOLDER, cache_path);
    if (n < 0 || (size_t)n >= sizeof path - sizeof TABLE_FOLDER)
        return -ENAMETOOLONG;
    DIR *folder = open_folder(AT_FDCWD, path, &r);
    if (folder)
        each_file(folder, is_removed, indexes);
    if (r < 0)
        return r;
    snprintf(path, sizeof path, "%s/" TABLE_FOLDER, cache_path);
    folder = open_folder(AT_FDCWD, path, &r);
    if (folder)
        each_folder(folder, is_removed, indexes);
    return r;
}

/* 0: nothing lies where the entries would. */
static int has_entries(const char *cache_path)
{
    char path[PATH_MAX];
    struct stat st;
    const int n = snprintf(path, sizeof path, "%s/" PSTK__CACHE_FOLDER, cache_path);
    return n < 0 || (size_t)n >= sizeof path || lstat(path, &st) == 0 || errno != ENOENT;
}

static int check(const char *cache_path, const struct pstk_cache_info *info, struct pstk_error *err)
{
    if (!cache_path || !cache_path[0])
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "cache_path: value is empty; must be the path of a folder");
    if (info && info->size != sizeof *info)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "info: its size is not set, or is that of another version; set it by "
                          "sizeof");
    return 0;
}

static int fail_list(const char *path, int r, struct pstk_error *err)
{
    return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot list the cache %s", path);
}

/* Fill in the entries of the cache, and the disk. */
static int look(const struct pstk__cache *cache, struct pstk_cache_info *info,
                struct pstk_error *err)
{
    struct pstk__cache_sum sum;
    struct statvfs disk;
    const int r = pstk__cache_survey(cache, &sum);
    if (r < 0)
        return fail_list(cache->path, r, err);
    info->n_entries = sum.n_entries;
    info->bytes = sum.bytes;
    info->n_writing = sum.n_writing;
    info->writing_bytes = sum.writing_bytes;
    info->max_bytes = cache->max_bytes;
    if (fstatvfs(cache->dir, &disk) == 0)
        info->free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    return 0;
}

/* The limit and the disk of a folder without entries, if there is one. */
static void look_at_disk(const char *cache_path, struct pstk_cache_info *info)
{
    struct statvfs disk;
    if (statvfs(cache_path, &disk) < 0)
        return;
    info->free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (info->max_bytes == PSTK_NONE)
        info->max_bytes = info->free_bytes / 2;
}

int pstk_cache_get_info(const char *cache_path, uint64_t cache_size, struct pstk_cache_info *info,
                        struct pstk_error *err)
{
    int r = check(cache_path, info, err);
    if (r < 0)
        return r;
    if (!info)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "info: value is NULL");
    struct pstk__cache *cache;
    struct indexes indexes;
    *info = (struct pstk_cache_info){.size = sizeof *info,
                                     .max_bytes = cache_size ? cache_size : PSTK_NONE,
                                     .free_bytes = PSTK_NONE};
    r = each_index(cache_path, 0, &indexes);
    if (r < 0)
        return fail_list(cache_path, r, err);
    info->n_indexes = indexes.n;
    info->index_bytes = indexes.bytes;
    if (!has_entries(cache_path)) {
        look_at_disk(cache_path, info);
        return 0;
    }
    r = pstk__cache_open_folder(&cache, cache_path, cache_size, 0, err);
    if (r < 0)
        return r;
    r = look(cache, info, err);
    pstk__cache_close(cache);
    return r;
}

/* Remove the entries. */
static int clear(const struct pstk__cache *cache, struct pstk_cache_info *removed,
                 struct pstk_error *err)
{
    struct pstk__cache_ledger ledger;
    struct pstk__cache_sum before, after;
    int r = pstk__cache_lock(cache, PSTK__CACHE_PATIENCE_NS, &ledger);
    if (r == -EAGAIN)
        return pstk__fail(err, PSTK_EBUSY, PSTK_STAGE_OPEN,
                          "another process has had the cache %s locked for 10 s", cache->path);
    if (r < 0)
        return pstk__cache_fail_lock(cache, -r, err);
    r = pstk__cache_survey(cache, &before);
    const int64_t evicted = r < 0 ? r : pstk__cache_evict(cache, &ledger, UINT64_MAX);
    r = evicted < 0 ? (int)evicted : pstk__cache_survey(cache, &after);
    pstk__cache_unlock(&ledger);
    if (r < 0)
        return fail_list(cache->path, r, err);
    removed->n_entries = before.n_entries - after.n_entries;
    removed->bytes = (uint64_t)evicted;
    if (after.n_entries > 0)
        return pstk__fail(err, PSTK_EPERM, PSTK_STAGE_OPEN,
                          "%llu entries of the cache %s cannot be removed; look at who owns them",
                          (unsigned long long)after.n_entries, cache->path);
    return 0;
}

int pstk_cache_clear(const char *cache_path, struct pstk_cache_info *removed,
                     struct pstk_error *err)
{
    struct pstk__cache *cache;
    struct indexes indexes;
    struct pstk_cache_info own = {.size = sizeof own};
    int r = check(cache_path, removed, err);
    if (r < 0)
        return r;
    if (has_entries(cache_path)) {
        r = pstk__cache_open_folder(&cache, cache_path, 1, 0, err);
        if (r == 0)
            r = clear(cache, &own, err);
        pstk__cache_close(cache);
    }
    if (r == 0) {
        r = each_index(cache_path, 1, &indexes);
        own.n_indexes = indexes.n;
        own.index_bytes = indexes.bytes;
        if (r < 0)
            r = fail_list(cache_path, r, err);
    }
    if (removed)
        *removed = own;
    return r;
}
