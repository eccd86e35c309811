/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cache/folder.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "base/little.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define LOCK_NAME "lock"
#define LOCK_SIZE 16       /* bytes: CRC32C of the rest, version, bytes of all files */
#define NAP_NS 2000000     /* ns between two tries to lock */
#define MANY 256           /* entries above which eviction frees some room ahead */
#define UNKNOWN UINT64_MAX /* a ledger's bytes: must be counted */

int pstk__cache_is_trusted(const struct stat *st)
{
    return (st->st_uid == geteuid() || st->st_uid == 0) && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

int pstk__cache_is_ours(int fd, const char magic[8], int is_temporary)
{
    static const uint8_t none[16] = {0};
    uint8_t bytes[16] = {0};
    const int64_t n = pstk__file_pread(fd, bytes, sizeof bytes, 0);
    if (n < 0)
        return 0;
    if (is_temporary && memcmp(bytes + PSTK__SIDECAR_MAGIC, none, 8) == 0)
        return n == (int64_t)sizeof bytes || memcmp(bytes, none, 8) == 0;
    return memcmp(bytes + PSTK__SIDECAR_MAGIC, magic, 8) == 0;
}

/* ---- the ledger ------------------------------------------------------------------------------ */

int pstk__cache_open_locked(const struct pstk__cache *cache, const char *name, struct stat *st)
{
    const int fd =
        openat(cache->dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return -errno;
    int native = fstat(fd, st) < 0 ? errno : 0;
    if (!native && (!S_ISREG(st->st_mode) || !pstk__cache_is_trusted(st)))
        native = EPERM;
    /* A umask may leave a file that nobody can open again. */
    if (!native && (st->st_mode & 0600) != 0600 && fchmod(fd, 0600) < 0)
        native = errno;
    if (!native)
        return fd;
    close(fd);
    return -native;
}

static int wait_for_lock(int fd, uint64_t patience_ns)
{
    const uint64_t end = pstk__clock_ns() + patience_ns;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return -errno;
        if (pstk__clock_ns() >= end)
            return -EAGAIN;
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
    return 0;
}

int pstk__cache_lock(const struct pstk__cache *cache, uint64_t patience_ns,
                     struct pstk__cache_ledger *ledger)
{
    uint8_t bytes[LOCK_SIZE];
    struct stat st;
    *ledger = (struct pstk__cache_ledger){.fd = pstk__cache_open_locked(cache, LOCK_NAME, &st),
                                          .bytes = UNKNOWN};
    if (ledger->fd < 0)
        return ledger->fd;
    const int r = wait_for_lock(ledger->fd, patience_ns);
    if (r < 0) {
        close(ledger->fd);
        ledger->fd = -1;
        return r;
    }
    if (pread(ledger->fd, bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes &&
        pstk__get32(bytes) == pstk__crc32c(0, bytes + 4, sizeof bytes - 4) &&
        pstk__get32(bytes + 4) == PSTK__CACHE_VERSION)
        ledger->bytes = pstk__get64(bytes + 8);
    return 0;
}

void pstk__cache_add(struct pstk__cache_ledger *ledger, uint64_t bytes)
{
    if (ledger->bytes != UNKNOWN)
        ledger->bytes += bytes;
}

void pstk__cache_subtract(struct pstk__cache_ledger *ledger, uint64_t bytes)
{
    if (ledger->bytes != UNKNOWN)
        ledger->bytes -= bytes < ledger->bytes ? bytes : ledger->bytes;
}

int pstk__cache_count(const struct pstk__cache_ledger *ledger)
{
    uint8_t bytes[LOCK_SIZE];
    struct rlimit limit;
    /* A write past the limit would kill the program. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < LOCK_SIZE)
        return -EFBIG;
    if (ledger->bytes == UNKNOWN)
        return ftruncate(ledger->fd, 0) < 0 ? -errno : 0;
    pstk__put32(bytes + 4, PSTK__CACHE_VERSION);
    pstk__put64(bytes + 8, ledger->bytes);
    pstk__put32(bytes, pstk__crc32c(0, bytes + 4, sizeof bytes - 4));
    return pwrite(ledger->fd, bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes ? 0 : -errno;
}

void pstk__cache_unlock(struct pstk__cache_ledger *ledger)
{
    if (ledger->fd < 0)
        return;
    if (pstk__cache_count(ledger) < 0 && ftruncate(ledger->fd, 0) < 0)
        ledger->bytes =
            UNKNOWN; /* the old sum stays, which is not too low: additions were counted before */
    flock(ledger->fd, LOCK_UN); /* a forked child shares the lock */
    close(ledger->fd);
    ledger->fd = -1;
}

int pstk__cache_fail_lock(const struct pstk__cache *cache, int native, struct pstk_error *err)
{
    if (native == EAGAIN)
        return pstk__fail(err, PSTK_ETIMEDOUT, PSTK_STAGE_OPEN,
                          "another process has had the cache %s locked for 10 s; find out whether "
                          "it is stopped, or set cache_path to another folder",
                          cache->path);
    if (native == ENOSYS || native == EOPNOTSUPP || native == ENOLCK)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "files in the cache %s cannot be locked (errno %d); set cache_path to a "
                          "folder on a local disk",
                          cache->path, native);
    return pstk__fail_errno(err, native, PSTK_STAGE_OPEN,
                            "cannot write to the cache %s (set cache_path to a folder that can be "
                            "written to)",
                            cache->path);
}

/* ---- the files ------------------------------------------------------------------------------- */

/* A complete entry. */
struct item {
    int64_t used_ns; /* time of its last use */
    uint64_t size;
    char name[PSTK__CACHE_NAME];
};

struct items {
    struct item *of; /* owned */
    size_t n, max;
    uint64_t bytes;     /* bytes of all files, those being written included */
    uint64_t n_writing; /* files being written */
};

enum kind { NO_FILE, ENTRY, TEMPORARY };

static enum kind kind_of(const char *name)
{
    const size_t digits = strspn(name, "0123456789abcdef");
    if (digits != PSTK__CACHE_NAME - 1)
        return NO_FILE;
    return name[digits] == 0 ? ENTRY : strcmp(name + digits, ".tmp") == 0 ? TEMPORARY : NO_FILE;
}

/* 1: the file is a dead writer's: it has the magic or zeros, and no living writer holds its lock.
 */
static int is_left(const struct pstk__cache *cache, const char *name)
{
    const int fd = openat(cache->dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    const int is_free = flock(fd, LOCK_EX | LOCK_NB) == 0;
    const int is_ours = is_free && pstk__cache_is_ours(fd, PSTK__CACHE_MAGIC, 1);
    if (is_free)
        flock(fd, LOCK_UN);
    close(fd);
    return is_ours;
}

/* Remove a file if it is an entry. 0; -ENOENT: it is foreign, or is gone; or a negative errno. */
static int remove_entry(const struct pstk__cache *cache, const char *name)
{
    const int fd =
        openat(cache->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == ELOOP ? -ENOENT : -errno;
    const int is_ours = pstk__cache_is_ours(fd, PSTK__CACHE_MAGIC, 0);
    close(fd);
    if (!is_ours)
        return -ENOENT;
    return unlinkat(cache->dir, name, 0) < 0 ? -errno : 0;
}

static int keep_item(struct items *items, const char *name, const struct stat *st)
{
    if (items->n == items->max) {
        const size_t max = items->max ? 2 * items->max : 256;
        struct item *of = realloc(items->of, max * sizeof *of);
        if (!of)
            return -ENOMEM;
        items->of = of;
        items->max = max;
    }
    struct item *item = &items->of[items->n++];
    *item = (struct item){.used_ns = pstk__file_changed_ns(st), .size = (uint64_t)st->st_size};
    memcpy(item->name, name, sizeof item->name);
    return 0;
}

typedef int (*see_fn)(void *user, const char *name, enum kind kind, const struct stat *st);

/* Call `see` for each file; a non-zero result ends it. 0, that result, or a negative errno. */
static int each_file(const struct pstk__cache *cache, see_fn see, void *user)
{
    DIR *directory = pstk__file_list(cache->dir);
    if (!directory)
        return -errno;
    int r = 0;
    const struct dirent *entry;
    while (r == 0 && (errno = 0, entry = readdir(directory))) {
        struct stat st;
        const enum kind kind = kind_of(entry->d_name);
        if (kind != NO_FILE && fstatat(cache->dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            !S_ISDIR(st.st_mode))
            r = see(user, entry->d_name, kind, &st);
        errno = 0;
    }
    if (r == 0 && errno)
        r = -errno;
    closedir(directory);
    return r;
}

/* A see_fn: add the time of the last write for a file that is being made, and 1 for a complete one.
 */
static int add_motion(void *user, const char *name, enum kind kind, const struct stat *st)
{
    uint64_t *sum = user;
    (void)name;
    if (kind != TEMPORARY)
        ++*sum;
    else if (st->st_size > 0)
        *sum += (uint64_t)pstk__file_changed_ns(st);
    return 0;
}

uint64_t pstk__cache_motion(struct pstk__cache *cache)
{
    uint64_t sum = 0;
    each_file(cache, add_motion, &sum); /* a folder that cannot be read counts as no motion */
    return sum;
}

struct gathering {
    const struct pstk__cache *cache;
    struct items items;
};

/* A see_fn: gather the entries, and remove the files of dead writers. Under the lock. */
static int gather(void *user, const char *name, enum kind kind, const struct stat *st)
{
    struct gathering *gathering = user;
    struct items *items = &gathering->items;
    const uint64_t size = (uint64_t)st->st_size;
    if (kind == TEMPORARY && is_left(gathering->cache, name) &&
        unlinkat(gathering->cache->dir, name, 0) == 0)
        return 0;
    items->bytes += size < UNKNOWN - 1 - items->bytes ? size : 0;
    items->n_writing += kind == TEMPORARY;
    return kind == TEMPORARY ? 0 : keep_item(items, name, st);
}

static int by_use(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return x->used_ns != y->used_ns ? (x->used_ns > y->used_ns) - (x->used_ns < y->used_ns)
                                    : strcmp(x->name, y->name);
}

/* Count all files, and sort the entries by use, the least recently used first. The caller frees
 * items->of, also after a failure. 0 or a negative errno. */
static int gather_all(const struct pstk__cache *cache, struct pstk__cache_ledger *ledger,
                      struct items *items)
{
    struct gathering gathering = {.cache = cache};
    const int r = each_file(cache, gather, &gathering);
    *items = gathering.items;
    if (r < 0)
        return r;
    ledger->bytes = items->bytes;
    if (items->n)
        qsort(items->of, items->n, sizeof *items->of, by_use);
    return 0;
}

/* Remove entries in this order until at most max_bytes are left. Returns the bytes removed. */
static uint64_t remove_items(const struct pstk__cache *cache, struct pstk__cache_ledger *ledger,
                             const struct items *items, uint64_t max_bytes)
{
    uint64_t removed = 0;
    for (size_t i = 0; i < items->n && ledger->bytes > max_bytes; i++)
        if (remove_entry(cache, items->of[i].name) == 0) {
            pstk__cache_subtract(ledger, items->of[i].size);
            removed += items->of[i].size;
        }
    return removed;
}

/* Fail because no entry can be evicted. EBUSY: others still write theirs, so try again later. */
static int fail_full(const struct pstk__cache *cache, const struct pstk__cache_ledger *ledger,
                     const struct items *items, uint64_t bytes, struct pstk_error *err)
{
    return pstk__fail(
        err, items->n_writing ? PSTK_EBUSY : PSTK_ENOSPC, PSTK_STAGE_OPEN,
        "the cache %s has no room for %llu bytes: %llu of at most %llu %s; raise cache_size",
        cache->path, (unsigned long long)bytes, (unsigned long long)ledger->bytes,
        (unsigned long long)cache->max_bytes,
        items->n_writing ? "are being written" : "cannot be removed");
}

int pstk__cache_make_room(const struct pstk__cache *cache, struct pstk__cache_ledger *ledger,
                          uint64_t bytes, struct pstk_error *err)
{
    const uint64_t max = cache->max_bytes;
    if (bytes > max)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                          "%llu bytes are more than the cache %s may have, %llu; raise cache_size, "
                          "or set cache_path to a folder with more space",
                          (unsigned long long)bytes, cache->path, (unsigned long long)max);
    if (ledger->bytes <= max - bytes)
        return 0;
    struct items items = {0};
    const int r = gather_all(cache, ledger, &items);
    /* With many entries, free a sixteenth ahead: otherwise each new entry would sort them all. */
    const uint64_t slack = items.n > MANY ? (max - bytes) / 16 : 0;
    if (r == 0 && ledger->bytes > max - bytes)
        remove_items(cache, ledger, &items, max - bytes - slack);
    free(items.of);
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot list the cache %s", cache->path);
    return ledger->bytes > max - bytes ? fail_full(cache, ledger, &items, bytes, err) : 0;
}

int64_t pstk__cache_evict(const struct pstk__cache *cache, struct pstk__cache_ledger *ledger,
                          uint64_t bytes)
{
    struct items items = {0};
    const int r = gather_all(cache, ledger, &items);
    uint64_t removed = 0;
    if (r == 0)
        removed =
            remove_items(cache, ledger, &items, ledger->bytes > bytes ? ledger->bytes - bytes : 0);
    free(items.of);
    return r < 0 ? r : (int64_t)removed;
}

int pstk__cache_empty(const struct pstk__cache *cache, struct pstk__cache_ledger *ledger,
                      struct pstk__cache_sum *removed, uint64_t *n_refused)
{
    struct items items = {0};
    int r = gather_all(cache, ledger, &items);
    *removed = (struct pstk__cache_sum){0};
    *n_refused = 0;
    for (size_t i = 0; r == 0 && i < items.n; i++) {
        const int gone = remove_entry(cache, items.of[i].name);
        *n_refused += gone < 0 && gone != -ENOENT;
        if (gone < 0)
            continue;
        pstk__cache_subtract(ledger, items.of[i].size);
        removed->n_entries++;
        removed->bytes += items.of[i].size;
    }
    free(items.of);
    return r;
}

/* 1: a file has the name, and is `seen` unless that is NULL; *st: its description. */
static int lies_there(const struct pstk__cache *cache, const char *name, const struct stat *seen,
                      struct stat *st)
{
    if (fstatat(cache->dir, name, st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno != ENOENT;
    return !seen || (st->st_dev == seen->st_dev && st->st_ino == seen->st_ino);
}

int pstk__cache_remove(const struct pstk__cache *cache, const char *name, const struct stat *seen,
                       uint64_t patience_ns)
{
    struct pstk__cache_ledger ledger;
    struct stat st = {0};
    if (pstk__cache_lock(cache, patience_ns, &ledger) < 0)
        return !lies_there(cache, name, seen, &st);
    int is_gone = !lies_there(cache, name, seen, &st);
    if (!is_gone && !S_ISDIR(st.st_mode) && unlinkat(cache->dir, name, 0) == 0) {
        pstk__cache_subtract(&ledger, (uint64_t)st.st_size);
        is_gone = 1;
    }
    pstk__cache_unlock(&ledger);
    return is_gone;
}

/* A see_fn: add the file to a pstk__cache_sum. */
static int sum_up(void *user, const char *name, enum kind kind, const struct stat *st)
{
    struct pstk__cache_sum *sum = user;
    (void)name;
    *(kind == ENTRY ? &sum->n_entries : &sum->n_writing) += 1;
    *(kind == ENTRY ? &sum->bytes : &sum->writing_bytes) += (uint64_t)st->st_size;
    return 0;
}

int pstk__cache_survey(const struct pstk__cache *cache, struct pstk__cache_sum *sum)
{
    *sum = (struct pstk__cache_sum){0};
    return each_file(cache, sum_up, sum);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Make the folder `path` for caches, and the folder of its entries. Only this user may list the
 * latter, because the contents may be secret. */
static int make_folders(const char *path, const char *entries)
{
    const int r = pstk__sidecar_make_cache(path);
    return r < 0 ? r : pstk__sidecar_make_folder(entries, 0700);
}

/* Return half of the disk's room for entries: of its free bytes and the bytes of the present
 * entries. */
static uint64_t auto_size(const struct pstk__cache *cache)
{
    struct statvfs disk;
    struct pstk__cache_sum sum;
    const uint64_t taken = pstk__cache_survey(cache, &sum) < 0 ? 0 : sum.bytes;
    if (fstatvfs(cache->dir, &disk) < 0)
        return 1; /* nothing fits: begin fails with the reason */
    const uint64_t bytes = ((uint64_t)disk.f_bavail * disk.f_frsize + taken) / 2;
    return bytes ? bytes : 1;
}

/* Remove the files of killed writers, if nobody holds the lock and the folder can be written to. */
static void tidy(const struct pstk__cache *cache)
{
    struct pstk__cache_sum sum;
    struct pstk__cache_ledger ledger;
    if (pstk__cache_survey(cache, &sum) < 0 || sum.n_writing == 0 ||
        pstk__cache_lock(cache, 0, &ledger) < 0)
        return;
    struct items items = {0};
    gather_all(cache, &ledger, &items);
    free(items.of);
    pstk__cache_unlock(&ledger);
}

int pstk__cache_fail_trust(const char *path, const struct stat *st, struct pstk_error *err)
{
    if (st->st_uid != geteuid() && st->st_uid != 0)
        return pstk__fail(err, PSTK_EPERM, PSTK_STAGE_OPEN,
                          "the cache %s belongs to user %u, not to this one; set cache_path to a "
                          "folder of your own",
                          path, (unsigned)st->st_uid);
    return pstk__fail(err, PSTK_EPERM, PSTK_STAGE_OPEN,
                      "others can write to the cache %s; remove their permission (chmod go-w), or "
                      "set cache_path to another folder",
                      path);
}

static int open_folder(struct pstk__cache *cache, const char *path, int is_made,
                       struct pstk_error *err)
{
    const int n = snprintf(cache->path, sizeof cache->path, "%s/" PSTK__CACHE_FOLDER, path);
    if (n < 0 || (size_t)n >= sizeof cache->path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "cache_path: value is too long: %.400s...", path);
    const int made = is_made ? make_folders(path, cache->path) : 0;
    if (made < 0)
        return pstk__fail_errno(err, -made, PSTK_STAGE_OPEN,
                                "cannot make the cache %s (set cache_path to a folder that can be "
                                "written to)",
                                cache->path);
    cache->dir = open(cache->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (cache->dir < 0)
        return pstk__fail_errno(err, errno, PSTK_STAGE_OPEN,
                                "cannot open the cache %s (it must be a folder, not a link to one; "
                                "set cache_path to another folder)",
                                cache->path);
    struct stat st;
    if (fstat(cache->dir, &st) < 0)
        return pstk__fail_errno(err, errno, PSTK_STAGE_OPEN,
                                "cannot read the attributes of the cache %s", cache->path);
    return pstk__cache_is_trusted(&st) ? 0 : pstk__cache_fail_trust(cache->path, &st, err);
}

int pstk__cache_open(struct pstk__cache **out, const char *path, uint64_t max_bytes,
                     struct pstk_error *err)
{
    return pstk__cache_open_folder(out, path, max_bytes, 1, err);
}

int pstk__cache_open_folder(struct pstk__cache **out, const char *path, uint64_t max_bytes,
                            int is_made, struct pstk_error *err)
{
    *out = NULL;
    struct pstk__cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the cache %s", path);
    cache->dir = -1;
    const int r = open_folder(cache, path, is_made, err);
    if (r < 0) {
        pstk__cache_close(cache);
        return r;
    }
    if (is_made)
        tidy(cache);
    cache->max_bytes = max_bytes ? max_bytes : auto_size(cache);
    *out = cache;
    return 0;
}

void pstk__cache_close(struct pstk__cache *cache)
{
    if (!cache)
        return;
    if (cache->dir >= 0)
        close(cache->dir);
    free(cache);
}
