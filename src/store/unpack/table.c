/* SPDX-License-Identifier: Apache-2.0 */
#include "store/unpack/table.h"

#include "base/error.h"
#include "store/index/location.h"
#include "store/sidecar.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int pstk__packed_path(const struct pstk__packed_files *table, uint64_t i, char *path, size_t size)
{
    const int n = snprintf(path, size, "%s/%s", table->folder, pstk__texts_get(&table->names, i));
    return n < 0 || (size_t)n >= size ? PSTK_EINVAL : 0;
}

/* Return the bucket that a path hashes to. */
static uint64_t bucket_of(const struct pstk__packed_files *table, const char *path)
{
    uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
    for (; *path; path++)
        hash = (hash ^ (uint8_t)*path) * 0x100000001b3ull;
    return (hash ^ hash >> 32) & table->mask;
}

uint32_t pstk__packed_find(const struct pstk__packed_files *table, const char *path)
{
    const size_t n = strlen(table->folder);
    if (strncmp(path, table->folder, n) != 0 || path[n] != '/')
        return PSTK__NO_FILE;
    /* The loop ends, because at least half of the buckets are free. */
    for (uint64_t bucket = bucket_of(table, path + n + 1);; bucket = (bucket + 1) & table->mask) {
        const uint32_t number = table->buckets[bucket];
        if (number == PSTK__NO_FILE ||
            strcmp(pstk__texts_get(&table->names, number), path + n + 1) == 0)
            return number;
    }
}

/* Enter all files. A name that is listed twice is entered once: both are the same file. */
static void fill_buckets(struct pstk__packed_files *table)
{
    for (uint64_t bucket = 0; bucket <= table->mask; bucket++)
        table->buckets[bucket] = PSTK__NO_FILE;
    for (uint64_t i = 0; i < table->names.n; i++) {
        uint64_t bucket = bucket_of(table, pstk__texts_get(&table->names, i));
        while (table->buckets[bucket] != PSTK__NO_FILE)
            bucket = (bucket + 1) & table->mask;
        table->buckets[bucket] = (uint32_t)i;
    }
}

/* Set the owner of the folder, and the digest of its path. */
static void find_folder(struct pstk__packed_files *table)
{
    char real[PATH_MAX];
    struct stat st;
    const char *path = realpath(table->folder, real) ? real : table->folder;
    table->path_digest[0] = 3;
    table->path_digest[1] = 4;
    pstk__index_digest(table->path_digest, path, strlen(path));
    table->data_owner = stat(path, &st) == 0 ? st.st_uid : UINT32_MAX;
}

int pstk__packed_open(struct pstk__packed_files *table, const struct pstk__unpack_files *files,
                      struct pstk_error *err)
{
    const uint64_t n = files->names->n;
    *table = (struct pstk__packed_files){
        .store = files->store, .mask = 1, .patience_ns = PSTK__PATIENCE_NS};
    while (table->mask + 1 < 2 * n)
        table->mask = 2 * table->mask + 1;
    table->folder = strdup(files->folder);
    table->cache_path = files->cache ? strdup(files->cache) : NULL;
    table->cache_size = files->cache_size;
    table->has_mutex = pthread_mutex_init(&table->opening, NULL) == 0;
    table->at = calloc(n + 1, sizeof *table->at);
    table->buckets = calloc(table->mask + 1, sizeof *table->buckets);
    if (!table->has_mutex || (files->cache && !table->cache_path) || !table->folder || !table->at ||
        !table->buckets || pstk__texts_open(&table->names, n, files->names->size) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the files of %s",
                          files->folder);
    for (uint64_t i = 0; i < n; i++) {
        const char *name = pstk__texts_get(files->names, i);
        pstk__texts_add(&table->names, name, strlen(name));
        table->at[i].of = (struct pstk__access_points_of){.size = files->sizes[i],
                                                          .changed_ns = files->changed_ns[i],
                                                          .unpacked = files->sizes[i]};
        table->n_bytes += files->sizes[i];
    }
    fill_buckets(table);
    find_folder(table);
    return 0;
}

void pstk__packed_close(struct pstk__packed_files *table)
{
    pstk__cache_close(table->cache);
    if (table->has_mutex)
        pthread_mutex_destroy(&table->opening);
    pstk__texts_close(&table->names);
    free(table->folder);
    free(table->cache_path);
    free(table->points);
    free(table->at);
    free(table->buckets);
    *table = (struct pstk__packed_files){0};
}

int pstk__packed_set_folder(struct pstk__packed_files *table, const char *index_path,
                            struct pstk_error *err)
{
    const char *slash = strrchr(index_path, '/');
    free(table->points);
    table->points = strndup(index_path, slash ? (size_t)(slash - index_path) : 0);
    return table->points ? 0
                         : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                                      "no memory for the files of %s", table->folder);
}

int pstk__packed_access_points(const struct pstk__packed_files *table, uint64_t i, char *path,
                               size_t size)
{
    uint64_t digest[2] = {5, 6};
    char own[PATH_MAX];
    const char *name = pstk__texts_get(&table->names, i);
    pstk__index_digest(digest, name, strlen(name));
    snprintf(own, sizeof own, "%s/%s", table->folder, PSTK__SIDECAR_FOLDER);
    /* The folder for caches has points of several data sets, so their names begin with a digest. */
    const int is_own = strcmp(own, table->points) == 0;
    const int n = snprintf(path, size, "%s/%016" PRIx64 "%016" PRIx64 PSTK__SIDECAR_POINTS,
                           table->points, digest[0] ^ (is_own ? 0 : table->path_digest[0]),
                           digest[1] ^ (is_own ? 0 : table->path_digest[1]));
    return n < 0 || (size_t)n >= size ? PSTK_EINVAL : 0;
}
