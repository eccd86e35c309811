/* SPDX-License-Identifier: Apache-2.0 */
/* entry: files that are unpacked as a whole, once, into the cache. */
#include "base/error.h"
#include "unpack/table.h"
#include "unpack/whole.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PATIENCE_NS 100000000 /* between two looks at an entry that another makes */

static int fail_without(const struct pstk__packed_files *table, uint64_t i, const char *why,
                        struct pstk_error *err)
{
    return pstk__fail(
        err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
        "%s/%s is compressed by %s as a whole, so it is unpacked once, into the cache; "
        "%s, or unpack the files yourself",
        table->folder, pstk__texts_get(&table->names, i),
        pstk__whole_of(table->at[i].of.packing)->name, why);
}

/* The cache, which is opened where it is needed first. Any thread. */
static int get_cache(struct pstk__packed_files *table, uint64_t i, struct pstk__cache **cache,
                     struct pstk_error *err)
{
    if (!table->cache_path)
        return fail_without(table, i, "no folder for caches is set: set cache_path", err);
    pthread_mutex_lock(&table->opening);
    const int r = table->cache
                      ? 0
                      : pstk__cache_open(&table->cache, table->cache_path, table->cache_size, err);
    *cache = table->cache;
    pthread_mutex_unlock(&table->opening);
    return r;
}

/* A take of struct pstk__whole_job. */
static int append(void *user, const void *bytes, uint64_t n, struct pstk_error *err)
{
    return pstk__cache_append(user, bytes, n, err);
}

/* Make an entry, whose writer is open. */
static int fill(const struct pstk__packed_files *table, uint64_t i, const char *path,
                struct pstk__cache_writer **writer, struct pstk_error *err)
{
    const struct pstk__points_of *of = &table->at[i].of;
    struct pstk__whole_job job = {.store = table->store,
                                  .path = path,
                                  .name = pstk__texts_get(&table->names, i),
                                  .packing = of->packing,
                                  .size = of->size,
                                  .unpacked = of->unpacked,
                                  .take = append,
                                  .take_user = *writer};
    int r = pstk__whole_unpack(&job, err);
    if (r == 0)
        r = pstk__cache_commit(writer, err);
    pstk__cache_abort(writer);
    return r;
}

int pstk__packed_entry(struct pstk__packed_files *table, uint64_t i,
                       const struct pstk__file *damaged, struct pstk__file *file,
                       struct pstk_error *err)
{
    const struct pstk__points_of *of = &table->at[i].of;
    char path[PATH_MAX], real[PATH_MAX];
    struct pstk__cache *cache = NULL;
    int r = get_cache(table, i, &cache, err);
    if (r == 0 && pstk__packed_path(table, i, path, sizeof path) < 0)
        r = pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...", path);
    const struct pstk__cache_key key = {.path = r == 0 && realpath(path, real) ? real : path,
                                        .made = "unpacked",
                                        .size = of->size,
                                        .changed_ns = of->changed_ns,
                                        .begin = 0,
                                        .end = of->size};
    if (r == 0 && damaged && !pstk__cache_drop(cache, &key, damaged))
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                       "the entry of the cache %s of %s is damaged, and cannot be removed just now",
                       table->cache_path, path);
    while (r == 0 && !pstk__cache_find(cache, &key, file)) {
        struct pstk__cache_writer *writer;
        r = pstk__cache_begin(&writer, cache, &key, of->unpacked, err);
        if (r == PSTK_EBUSY) {
            nanosleep(&(struct timespec){.tv_nsec = PATIENCE_NS}, NULL);
            r = 0;
        } else if (r == 0) {
            r = fill(table, i, path, &writer, err);
        }
    }
    return r;
}
