/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cache/indexes.h"

#include "base/error.h"
#include "base/file.h"
#include "store/cache/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MAX_FORMAT 14 /* max bytes of the format in an index's name */
#define DIGITS 32     /* digits of a digest */

enum kind { OTHER, INDEX, POINTS, CHECKSUMS };

/* The parts of a file name. */
struct named {
    enum kind kind;
    int is_temporary;
    size_t n; /* bytes of the name without the ending of a temporary file */
};

/* 1: `end` is at *at, and *at is moved past it. */
static int ends(const char **at, const char *end)
{
    const size_t n = strlen(end);
    if (strncmp(*at, end, n) != 0)
        return 0;
    *at += n;
    return 1;
}

static int has_digits(const char **at)
{
    if (strspn(*at, "0123456789abcdef") != DIGITS)
        return 0;
    *at += DIGITS;
    return 1;
}

/* Parse <digits>.points, <format>-<digits>.index or <format>-<digits>.checksums, each perhaps with
 * the ending of a temporary file. */
static struct named parse(const char *name)
{
    struct named named = {.kind = OTHER};
    const char *at = name;
    if (has_digits(&at)) {
        named.kind = ends(&at, PSTK__SIDECAR_POINTS) ? POINTS : OTHER;
    } else {
        const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
        at = name + n;
        if (n >= 1 && n <= MAX_FORMAT && ends(&at, "-") && has_digits(&at))
            named.kind = ends(&at, PSTK__SIDECAR_INDEX)       ? INDEX
                         : ends(&at, PSTK__SIDECAR_CHECKSUMS) ? CHECKSUMS
                                                              : OTHER;
    }
    named.n = (size_t)(at - name);
    named.is_temporary = ends(&at, PSTK__SIDECAR_TEMPORARY);
    if (named.is_temporary && strlen(at) == 6)
        at += 6;
    if (*at)
        named.kind = OTHER;
    return named;
}

/* 1: the builder that held the index's lock is dead. Points have several builders, so nobody may
 * have written to their file for long. *lock: to be held while the file is removed, or -1. */
static int is_dead(int dir, const char *name, const struct named *named, const struct stat *st,
                   int *lock)
{
    char path[NAME_MAX + 8];
    *lock = -1;
    if (named->kind == POINTS)
        return pstk__sidecar_is_left(st, PSTK__SIDECAR_DEAD_SECONDS);
    snprintf(path, sizeof path, "%.*s" PSTK__SIDECAR_LOCK, (int)named->n, name);
    *lock = openat(dir, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return *lock < 0 ? errno == ENOENT : flock(*lock, LOCK_EX | LOCK_NB) == 0;
}

/* Remove one of these files. 1: it is removed; 0: it still exists, or did not exist before. */
static int remove_file(struct pstk__cache_indexes *indexes, const char *name,
                       const struct named *named, const struct stat *st)
{
    int lock = -1, is_gone = 0;
    if (!named->is_temporary || is_dead(indexes->dir, name, named, st, &lock)) {
        is_gone = unlinkat(indexes->dir, name, 0) == 0;
        indexes->n_refused += !is_gone && errno != ENOENT;
    }
    if (lock >= 0) {
        flock(lock, LOCK_UN); /* a forked child shares the lock */
        close(lock);
    }
    return is_gone;
}

static void add(struct pstk__cache_indexes *indexes, const struct named *named,
                const struct stat *st)
{
    const int is_checksums = named->kind == CHECKSUMS;
    *(named->is_temporary ? &indexes->n_writing
      : is_checksums      ? &indexes->n_checksums
                          : &indexes->n) += 1;
    *(named->is_temporary ? &indexes->writing_bytes
      : is_checksums      ? &indexes->checksum_bytes
                          : &indexes->bytes) += (uint64_t)st->st_size;
}

enum task { COUNT, REMOVE, REMOVE_ALL };

static void see(struct pstk__cache_indexes *indexes, const char *name, enum task task)
{
    const struct named named = parse(name);
    struct stat st;
    if (named.kind == OTHER)
        return;
    const int fd =
        openat(indexes->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    const int is_ours = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                        pstk__cache_is_ours(fd,
                                            named.kind == POINTS ? PSTK__SIDECAR_POINTS_MAGIC
                                                                 : PSTK__SIDECAR_INDEX_MAGIC,
                                            named.is_temporary);
    if (fd >= 0)
        close(fd);
    if (!is_ours)
        return;
    if (task == COUNT)
        add(indexes, &named, &st);
    else if ((task == REMOVE_ALL || named.kind != CHECKSUMS || named.is_temporary) &&
             remove_file(indexes, name, &named, &st) && !named.is_temporary)
        add(indexes, &named, &st);
}

static int each_file(struct pstk__cache_indexes *indexes, enum task task)
{
    *indexes = (struct pstk__cache_indexes){.dir = indexes->dir};
    if (indexes->dir < 0)
        return 0;
    DIR *folder = pstk__file_list(indexes->dir);
    if (!folder)
        return -errno;
    const struct dirent *entry;
    while ((errno = 0, entry = readdir(folder)))
        see(indexes, entry->d_name, task);
    const int r = -errno;
    closedir(folder);
    return r;
}

int pstk__cache_indexes_count(struct pstk__cache_indexes *indexes)
{
    return each_file(indexes, COUNT);
}

int pstk__cache_indexes_remove(struct pstk__cache_indexes *indexes, int with_checksums)
{
    return each_file(indexes, with_checksums ? REMOVE_ALL : REMOVE);
}

int pstk__cache_indexes_open(struct pstk__cache_indexes *indexes, const char *cache_path,
                             const char *folder, int is_removing, struct pstk_error *err)
{
    char path[PATH_MAX];
    struct stat st;
    *indexes = (struct pstk__cache_indexes){.dir = -1};
    const int n = snprintf(path, sizeof path, "%s/%s", cache_path, folder);
    if (n < 0 || (size_t)n >= sizeof path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "cache_path: value is too long: %.400s...", cache_path);
    indexes->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (indexes->dir < 0 && errno == ENOENT)
        return 0;
    if (indexes->dir < 0 || fstat(indexes->dir, &st) < 0) {
        const int r =
            pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "cannot list the cache %s", path);
        pstk__cache_indexes_close(indexes);
        return r;
    }
    if (!is_removing || pstk__cache_is_trusted(&st))
        return 0;
    pstk__cache_indexes_close(indexes);
    return pstk__cache_fail_trust(path, &st, err);
}

void pstk__cache_indexes_close(struct pstk__cache_indexes *indexes)
{
    if (indexes->dir >= 0)
        close(indexes->dir);
    indexes->dir = -1;
}
