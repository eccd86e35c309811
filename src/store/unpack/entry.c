/* SPDX-License-Identifier: Apache-2.0 */
/* entry: files that are unpacked as a whole into the cache, once. */
#include "base/error.h"
#include "store/cache/entry.h"
#include "store/cache/folder.h"
#include "store/unpack/table.h"
#include "store/unpack/whole.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOTED_EVERY (16u << 20) /* max bytes between two notes of an entry's progress */

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

/* Report a folder for caches that cannot be used, or may be too small, as a wrong setting: the data
 * is neither damaged nor absent. Other errors stay. */
static int as_setting(int r, struct pstk_error *err)
{
    switch (r) {
    case PSTK_EACCES:
    case PSTK_EEXIST:
    case PSTK_EFBIG:
    case PSTK_ENOENT:
    case PSTK_ENOTSUP:
    case PSTK_EPERM:
        if (err) {
            err->code = PSTK_EINVAL;
            err->native = 0;
        }
        return PSTK_EINVAL;
    default:
        return r;
    }
}

/* Return the cache, which is opened when it is first needed. Any thread. */
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
    return as_setting(r, err);
}

/* ---- making one ------------------------------------------------------------------------------ */

/* The state of making one entry. */
struct maker {
    const struct pstk__packed_files *table;
    struct pstk__cache_writer *writer;
};

static int is_stopped(const struct pstk__packed_files *table)
{
    return atomic_load_explicit(&table->is_stopped, memory_order_relaxed);
}

/* A take callback of struct pstk__whole_job. */
static int append(void *user, const void *bytes, uint64_t n, struct pstk_error *err)
{
    const struct maker *maker = user;
    return is_stopped(maker->table) ? PSTK_ECANCELED
                                    : pstk__cache_append(maker->writer, bytes, n, err);
}

/* A progress callback of struct pstk__whole_job. */
static int ends(void *user, uint64_t n)
{
    const struct maker *maker = user;
    (void)n;
    return is_stopped(maker->table);
}

/* Make an entry whose writer is open. */
static int fill(const struct pstk__packed_files *table, uint64_t i, const char *path,
                struct pstk__cache_writer **writer, struct pstk_error *err)
{
    const struct pstk__access_points_of *of = &table->at[i].of;
    struct maker maker = {table, *writer};
    struct pstk__whole_job job = {.store = table->store,
                                  .path = path,
                                  .name = pstk__texts_get(&table->names, i),
                                  .packing = of->packing,
                                  .size = of->size,
                                  .changed_ns = of->changed_ns,
                                  .unpacked = of->unpacked,
                                  .take = append,
                                  .take_user = &maker,
                                  .progress = ends,
                                  .user = &maker};
    int r = pstk__whole_unpack(&job, err);
    if (r == 0)
        r = pstk__cache_commit(writer, err);
    pstk__cache_abort(writer);
    return r;
}

/* ---- waiting for another --------------------------------------------------------------------- */

static uint64_t patience_of(const struct pstk__packed_files *table, uint64_t i,
                            const struct pstk__packed_wait *wait)
{
    /* These stages show no progress: a block of snappy is read as a whole before its first byte is
     * unpacked, syncing a large entry may take the disk long, and another entry may have to end
     * before there is room. */
    const uint64_t size = table->at[i].of.unpacked;
    const int is_slow = table->at[i].of.packing == PSTK__WHOLE_SNAPPY || !wait->is_making ||
                        (size > NOTED_EVERY && wait->making.n_done + NOTED_EVERY >= size);
    return table->patience_ns * (is_slow ? PSTK__PATIENCE_SLOW : 1);
}

static int fail_wait(const struct pstk__packed_files *table, uint64_t i,
                     const struct pstk__cache_key *key, const struct pstk__packed_wait *wait,
                     struct pstk_error *err)
{
    const uint64_t seconds = wait->patience.idle_ns / 1000000000;
    char name[PSTK__CACHE_NAME], begin[300] = "";
    if (!wait->is_making) { /* begin's message names the reason for the wait */
        if (err)
            snprintf(begin, sizeof begin, "%.299s", err->message);
        return pstk__fail(err, PSTK_ETIMEDOUT, PSTK_STAGE_OPEN,
                          "%s/%s cannot be unpacked into the cache: %s (for %" PRIu64 " s)",
                          table->folder, pstk__texts_get(&table->names, i), begin, seconds);
    }
    pstk__cache_key_name(key, name);
    return pstk__fail(err, PSTK_ETIMEDOUT, PSTK_STAGE_OPEN,
                      "another process or loader is unpacking %s/%s into the cache, but has made "
                      "no progress for %" PRIu64 " s: it wrote %" PRIu64
                      " bytes to %s/" PSTK__CACHE_FOLDER
                      "/%s.tmp; end that process (fuser prints it) or remove that file, and open "
                      "the data set again",
                      table->folder, pstk__texts_get(&table->names, i), seconds,
                      wait->making.n_done, table->cache_path, name);
}

/* Wait a little for an entry that another process or thread makes, or for room. 0: check again; <0.
 * A thread that gives up stores its observation, so that the next thread that wants the file waits
 * less. */
static int wait_for(struct pstk__packed_files *table, uint64_t i, struct pstk__cache *cache,
                    const struct pstk__cache_key *key, struct pstk__packed_wait *wait,
                    struct pstk_error *err)
{
    struct pstk__packed_wait now = {.patience = wait->patience};
    now.is_making = pstk__cache_making(cache, key, &now.making);
    if (!now.is_making)
        now.motion = pstk__cache_motion(cache);
    const int has_moved = now.is_making != wait->is_making || now.motion != wait->motion ||
                          memcmp(&now.making, &wait->making, sizeof now.making) != 0;
    const uint64_t idle_ns = pstk__patience_look(&now.patience, has_moved);
    *wait = now;
    if (idle_ns >= patience_of(table, i, wait)) {
        pthread_mutex_lock(&table->opening);
        table->at[i].gave_up = now;
        pthread_mutex_unlock(&table->opening);
        return fail_wait(table, i, key, wait, err);
    }
    nanosleep(&(struct timespec){.tv_nsec = PSTK__PATIENCE_LOOK_NS}, NULL);
    return 0;
}

/* Make the key of a file's entry; path and real give room for the paths. */
static int find_key(const struct pstk__packed_files *table, uint64_t i, char path[PATH_MAX],
                    char real[PATH_MAX], struct pstk__cache_key *key, struct pstk_error *err)
{
    const struct pstk__access_points_of *of = &table->at[i].of;
    if (pstk__packed_path(table, i, path, PATH_MAX) < 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          path);
    *key = (struct pstk__cache_key){.path = realpath(path, real) ? real : path,
                                    .made = "unpacked",
                                    .size = of->size,
                                    .changed_ns = of->changed_ns,
                                    .begin = 0,
                                    .end = of->size};
    return 0;
}

int pstk__packed_entry(struct pstk__packed_files *table, uint64_t i,
                       const struct pstk__file *damaged, struct pstk__file *file,
                       struct pstk_error *err)
{
    const struct pstk__access_points_of *of = &table->at[i].of;
    char path[PATH_MAX], real[PATH_MAX];
    struct pstk__cache *cache = NULL;
    struct pstk__cache_key key;
    int r = get_cache(table, i, &cache, err);
    if (r == 0)
        r = find_key(table, i, path, real, &key, err);
    if (r == 0 && damaged && !pstk__cache_drop(cache, &key, damaged))
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                       "the entry of the cache %s of %s is damaged, and cannot be removed just now",
                       table->cache_path, path);
    pthread_mutex_lock(&table->opening);
    struct pstk__packed_wait wait = table->at[i].gave_up;
    pthread_mutex_unlock(&table->opening);
    while (r == 0 && !pstk__cache_find(cache, &key, file)) {
        struct pstk__cache_writer *writer;
        r = is_stopped(table) ? PSTK_ECANCELED
                              : pstk__cache_begin(&writer, cache, &key, of->unpacked, err);
        if (r == 0)
            r = fill(table, i, path, &writer, err);
        else if (r != PSTK_EBUSY)
            r = as_setting(r, err);
        if (r == PSTK_EBUSY)
            r = wait_for(table, i, cache, &key, &wait, err);
    }
    if (r == PSTK_ECANCELED)
        pstk__fail(err, r, PSTK_STAGE_OPEN, "%s is not unpacked: the data set was closed", path);
    return r;
}

/* ---- checking a file that has one ------------------------------------------------------------ */

/* A file that is unpacked again, and the entry that its bytes are compared with. */
struct check {
    const char *path, *name;
    struct pstk__file entry; /* may be closed */
    uint8_t *memory;         /* owned */
    uint64_t size, at;       /* bytes of memory; unpacked bytes compared so far */
};

/* A take callback of struct pstk__whole_job. Stops comparing at a damaged block of the entry, whose
 * reads fail. */
static int compare(void *user, const void *bytes, uint64_t n, struct pstk_error *err)
{
    struct check *check = user;
    const uint8_t *is = bytes;
    for (uint64_t done = 0, part; done < n && check->entry.store; done += part) {
        part = n - done < check->size ? n - done : check->size;
        if (pstk__file_read(&check->entry, check->memory, part, check->at + done) !=
            (int64_t)part) {
            pstk__file_end(&check->entry);
            return 0;
        }
        if (memcmp(check->memory, is + done, part) == 0)
            continue;
        uint64_t same = 0;
        while (is[done + same] == check->memory[same])
            same++;
        pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                   "%s: its contents differ from the first reading, from unpacked byte %" PRIu64
                   " on: the file was damaged or changed in place; copy it again",
                   check->path, check->at + done + same);
        return pstk__fail_at(err, PSTK_EBADMSG, check->name, PSTK_NONE, PSTK_NONE, 0);
    }
    check->at += n;
    return 0;
}

int pstk__packed_check(struct pstk__packed_files *table, uint64_t i,
                       int (*progress)(void *user, uint64_t n), void *user, struct pstk_error *err)
{
    const struct pstk__access_points_of *of = &table->at[i].of;
    char path[PATH_MAX], real[PATH_MAX];
    struct pstk__cache_key key;
    struct pstk__cache *cache;
    int r = get_cache(table, i, &cache, err);
    if (r == 0)
        r = find_key(table, i, path, real, &key, err);
    if (r < 0)
        return r;
    struct check check = {.path = path,
                          .name = pstk__texts_get(&table->names, i),
                          .entry = {.fd = -1},
                          .size = 1u << 16};
    check.memory = malloc(check.size);
    if (!check.memory)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to check %s", path);
    pstk__cache_find(cache, &key, &check.entry);
    struct pstk__whole_job job = {.store = table->store,
                                  .path = path,
                                  .name = check.name,
                                  .packing = of->packing,
                                  .size = of->size,
                                  .changed_ns = of->changed_ns,
                                  .unpacked = of->unpacked,
                                  .take = compare,
                                  .take_user = &check,
                                  .progress = progress,
                                  .user = user};
    r = pstk__whole_unpack(&job, err);
    pstk__file_end(&check.entry);
    free(check.memory);
    return r;
}
