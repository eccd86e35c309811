/* SPDX-License-Identifier: Apache-2.0 */
/* Describes and empties the folder of a cache, for commands. */
#include "base/error.h"
#include "store/cache/folder.h"
#include "store/cache/indexes.h"
#include "store/cache/tables.h"

#include <penstock/foreign.h>

#include <errno.h>
#include <stdio.h>
#include <sys/statvfs.h>

/* 0: the folder of the entries does not exist. */
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

/* Set the numbers of the cache's entries, and of the disk. */
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
    info->n_writing += sum.n_writing;
    info->writing_bytes += sum.writing_bytes;
    info->max_bytes = cache->max_bytes;
    if (fstatvfs(cache->dir, &disk) == 0)
        info->free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    return 0;
}

/* The folders that have indexes: one for all data sets, and one for rewritten tables. */
static const char *const index_folders[] = {PSTK__SIDECAR_CACHE,
                                            PSTK__CACHE_TABLES "/" PSTK__SIDECAR_FOLDER};

/* Add the indexes in a folder of the cache. */
static int look_at_indexes(const char *cache_path, const char *folder, struct pstk_cache_info *info,
                           struct pstk_error *err)
{
    struct pstk__cache_indexes indexes;
    int r = pstk__cache_indexes_open(&indexes, cache_path, folder, 0, err);
    if (r < 0)
        return r;
    r = pstk__cache_indexes_count(&indexes);
    pstk__cache_indexes_close(&indexes);
    if (r < 0)
        return fail_list(cache_path, r, err);
    info->n_indexes += indexes.n;
    info->index_bytes += indexes.bytes;
    info->n_checksums += indexes.n_checksums;
    info->checksum_bytes += indexes.checksum_bytes;
    info->n_writing += indexes.n_writing;
    info->writing_bytes += indexes.writing_bytes;
    return 0;
}

/* Set everything except the entries. */
static int look_at_others(const char *cache_path, struct pstk_cache_info *info,
                          struct pstk_error *err)
{
    struct pstk__cache_tables tables;
    int r = pstk__cache_tables_see(&tables, cache_path, 0);
    if (r < 0)
        return fail_list(cache_path, r, err);
    info->n_indexes = tables.n;
    info->index_bytes = tables.bytes;
    for (size_t i = 0; r == 0 && i < sizeof index_folders / sizeof *index_folders; i++)
        r = look_at_indexes(cache_path, index_folders[i], info, err);
    return r;
}

/* Set the limit and the disk's bytes for a folder without entries, if the folder exists. */
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
    *info = (struct pstk_cache_info){.size = sizeof *info,
                                     .max_bytes = cache_size ? cache_size : PSTK_NONE,
                                     .free_bytes = PSTK_NONE};
    r = look_at_others(cache_path, info, err);
    if (r < 0)
        return r;
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

/* Fail because n files could not be removed. */
static int fail_refused(const char *path, const char *what, uint64_t n, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EPERM, PSTK_STAGE_OPEN,
                      "%llu %s of the cache %s cannot be removed; look at who owns them",
                      (unsigned long long)n, what, path);
}

/* Remove the entries. */
static int clear(const struct pstk__cache *cache, struct pstk_cache_info *removed,
                 struct pstk_error *err)
{
    struct pstk__cache_ledger ledger;
    struct pstk__cache_sum sum;
    uint64_t n_refused;
    int r = pstk__cache_lock(cache, PSTK__CACHE_PATIENCE_NS, &ledger);
    if (r == -EAGAIN)
        return pstk__fail(err, PSTK_EBUSY, PSTK_STAGE_OPEN,
                          "another process has had the cache %s locked for 10 s", cache->path);
    if (r < 0)
        return pstk__cache_fail_lock(cache, -r, err);
    r = pstk__cache_empty(cache, &ledger, &sum, &n_refused);
    pstk__cache_unlock(&ledger);
    if (r < 0)
        return fail_list(cache->path, r, err);
    removed->n_entries = sum.n_entries;
    removed->bytes = sum.bytes;
    return n_refused ? fail_refused(cache->path, "entries", n_refused, err) : 0;
}

static int clear_indexes(struct pstk__cache_indexes *indexes, const char *cache_path,
                         int with_checksums, struct pstk_cache_info *removed,
                         struct pstk_error *err)
{
    const int r = pstk__cache_indexes_remove(indexes, with_checksums);
    removed->n_indexes += indexes->n;
    removed->index_bytes += indexes->bytes;
    removed->n_checksums += indexes->n_checksums;
    removed->checksum_bytes += indexes->checksum_bytes;
    if (r < 0)
        return fail_list(cache_path, r, err);
    return indexes->n_refused ? fail_refused(cache_path, "indexes", indexes->n_refused, err) : 0;
}

static int clear_tables(const char *cache_path, struct pstk_cache_info *removed,
                        struct pstk_error *err)
{
    struct pstk__cache_tables tables;
    const int r = pstk__cache_tables_see(&tables, cache_path, 1);
    removed->n_indexes += tables.n;
    removed->index_bytes += tables.bytes;
    if (r < 0)
        return fail_list(cache_path, r, err);
    return tables.n_refused ? fail_refused(cache_path, "tables", tables.n_refused, err) : 0;
}

int pstk_cache_clear(const char *cache_path, uint32_t with_checksums,
                     struct pstk_cache_info *removed, struct pstk_error *err)
{
    struct pstk__cache *cache;
    struct pstk__cache_indexes indexes, of_tables = {.dir = -1};
    struct pstk_cache_info own = {.size = sizeof own};
    int r = check(cache_path, removed, err);
    if (r < 0)
        return r;
    if (with_checksums > 1)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "with_checksums: value is %u; must be 0 or 1", with_checksums);
    /* Remove indexes first: if that is refused, the entries stay as well. */
    r = pstk__cache_indexes_open(&indexes, cache_path, index_folders[0], 1, err);
    if (r == 0)
        r = pstk__cache_indexes_open(&of_tables, cache_path, index_folders[1], 1, err);
    if (r == 0 && has_entries(cache_path)) {
        r = pstk__cache_open_folder(&cache, cache_path, 1, 0, err);
        if (r == 0)
            r = clear(cache, &own, err);
        pstk__cache_close(cache);
    }
    if (r == 0)
        r = clear_indexes(&indexes, cache_path, (int)with_checksums, &own, err);
    if (r == 0)
        r = clear_indexes(&of_tables, cache_path, (int)with_checksums, &own, err);
    if (r == 0)
        r = clear_tables(cache_path, &own, err);
    pstk__cache_indexes_close(&indexes);
    pstk__cache_indexes_close(&of_tables);
    if (removed)
        *removed = own;
    return r;
}
