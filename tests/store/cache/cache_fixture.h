/* SPDX-License-Identifier: Apache-2.0 */
/* cache_fixture: keys and entries whose bytes follow from a number. */
#ifndef PSTK_CACHE_FIXTURE_H
#define PSTK_CACHE_FIXTURE_H

#include "store/cache/folder.h"
#include "support/fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#define B PSTK__CACHE_BLOCK

static struct pstk__cache_key key_of(uint32_t i)
{
    static const struct pstk__cache_key key = {
        .path = "/data/shard.tar", .made = "unpacked", .size = 1000, .changed_ns = -7, .end = 900};
    struct pstk__cache_key own = key;
    own.begin = i;
    return own;
}

static uint8_t byte_of(uint32_t i, uint64_t at)
{
    return (uint8_t)((at * 2654435761u + i * 97) >> 13);
}

/* Append `size` bytes of entry i, in parts of `part` bytes. */
static int append_bytes(struct pstk__cache_writer *writer, uint32_t i, uint64_t size, uint64_t part,
                        struct pstk_error *err)
{
    static uint8_t bytes[1 << 16];
    int r = 0;
    for (uint64_t at = 0; r == 0 && at < size;) {
        const uint64_t n = size - at < part ? size - at : part;
        for (uint64_t k = 0; k < n; k++)
            bytes[k] = byte_of(i, at + k);
        r = pstk__cache_append(writer, bytes, n, err);
        at += n;
    }
    return r;
}

/* Make entry i of `size` bytes. */
static int make(struct pstk__cache *cache, uint32_t i, uint64_t size, struct pstk_error *err)
{
    struct pstk__cache_writer *writer;
    const struct pstk__cache_key key = key_of(i);
    int r = pstk__cache_begin(&writer, cache, &key, size, err);
    if (r < 0)
        return r;
    r = append_bytes(writer, i, size, 1 << 16, err);
    if (r < 0) {
        pstk__cache_abort(&writer);
        return r;
    }
    return pstk__cache_commit(&writer, err);
}

/* Return 1 where entry i is there, with the right bytes; 0 where it is not there; -1 where it has
 * others. */
static int has(struct pstk__cache *cache, uint32_t i, uint64_t size)
{
    static uint8_t bytes[1 << 20];
    struct pstk__file file;
    const struct pstk__cache_key key = key_of(i);
    if (!pstk__cache_find(cache, &key, &file))
        return 0;
    int is_same = pstk__file_read(&file, bytes, sizeof bytes, 0) == (int64_t)size;
    for (uint64_t at = 0; is_same && at < size; at++)
        is_same = bytes[at] == byte_of(i, at);
    pstk__file_end(&file);
    return is_same ? 1 : -1;
}

/* Return the path of entry i, valid until the 64th call of fixture_path after it. */
static inline const char *path_of(const struct fixture *f, uint32_t i, const char *end)
{
    const struct pstk__cache_key key = key_of(i);
    char name[PSTK__CACHE_NAME], path[80];
    pstk__cache_key_name(&key, name);
    snprintf(path, sizeof path, "c/entries/%s%s", name, end);
    return fixture_path(f, path);
}

static inline int lies_at(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* Wait for a child; returns its exit status, or -1: a signal ended it. */
static inline int status_of(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define PLENTY (UINT64_C(1) << 30)

struct cached {
    struct fixture f;
    struct pstk__cache *cache;
};

static inline int open_cached(struct cached *c, uint64_t max_bytes)
{
    fixture_open(&c->f);
    return pstk__cache_open(&c->cache, fixture_path(&c->f, "c"), max_bytes, &c->f.err);
}

static inline void close_cached(struct cached *c)
{
    pstk__cache_close(c->cache);
    fixture_close(&c->f);
}

#endif
