/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "base/little.h"
#include "store/cache/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#define REPORT_EVERY (UINT64_C(8) << 20) /* bytes between two notes of the progress */
#define TRIES 16                         /* tries to open a file that others rename or remove */

/* Invariants: the file at `temporary` belongs to this writer, which holds its lock, unless a person
 * removed it; the ledger counts `reserved` bytes for it, which are the file's size. */
struct pstk__cache_writer {
    struct pstk__cache *cache; /* borrowed */
    int fd;                    /* owned */
    int failed;                /* native errno of a failed write, or 0 */
    char name[PSTK__CACHE_NAME];
    char temporary[PSTK__CACHE_TEMPORARY];
    struct pstk__cache_key key;
    char path[PSTK__CACHE_MAX_PATH]; /* path of the key */
    uint64_t max_size;               /* max bytes of data */
    uint64_t reserved;
    uint64_t size;     /* bytes of data written */
    uint64_t reported; /* bytes of data in the file's last note */
    uint32_t crc;      /* CRC of the block that is being written */
    uint8_t *crcs;     /* CRCs of the blocks before it, as in the file; owned */
};

/* ---- failures -------------------------------------------------------------------------------- */

static int fail_write(struct pstk__cache_writer *writer, int native, struct pstk_error *err)
{
    writer->failed = native;
    return pstk__fail_errno(err, native, PSTK_STAGE_OPEN, "cannot write to the cache %s%s",
                            writer->cache->path, pstk__file_write_advice(native));
}

/* Check the limit of file sizes: a write past it would kill the process. */
static int check_size(const struct pstk__cache *cache, uint64_t size, struct pstk_error *err)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    if (size > PSTK__CACHE_MAX_SIZE)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                          "an entry of the cache %s would have %llu bytes; must be at most 2^60",
                          cache->path, (unsigned long long)size);
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= pstk__cache_file_size(size))
        return 0;
    return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                      "an entry of the cache %s would have %llu bytes; files of this process may "
                      "have %llu (raise ulimit -f)",
                      cache->path, (unsigned long long)pstk__cache_file_size(size),
                      (unsigned long long)limit.rlim_cur);
}

/* ---- begin ----------------------------------------------------------------------------------- */

/* 1: the file is still at the writer's path: nobody has renamed or removed it. */
static int is_in_place(const struct pstk__cache_writer *writer, const struct stat *st)
{
    return pstk__file_is_at(writer->cache->dir, writer->temporary, st);
}

/* Open the writer's file, a new one or a dead writer's, and lock it. 0; -EBUSY: another writer has
 * it; or a negative errno. *size: its bytes. */
static int claim(struct pstk__cache_writer *writer, uint64_t *size)
{
    for (int i = 0; i < TRIES; i++) {
        struct stat st;
        const int fd = pstk__cache_open_locked(writer->cache, writer->temporary, &st);
        if (fd < 0)
            return fd;
        writer->fd = fd;
        int native = 0;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
            native = errno == EWOULDBLOCK ? EBUSY : errno;
        if (!native && is_in_place(writer, &st)) {
            *size = (uint64_t)st.st_size;
            return 0;
        }
        close(
            writer->fd); /* also drops the lock of a file that was renamed to its entry meanwhile */
        writer->fd = -1;
        if (native)
            return -native;
    }
    return -EBUSY;
}

/* Give the empty file its size, and allocate that room if the disk can. 0 or a negative errno. */
static int allocate_file(const struct pstk__cache_writer *writer, uint64_t size)
{
    int r;
    do
        r = fallocate(writer->fd, 0, 0, (off_t)size) < 0 ? -errno : 0;
    while (r == -EINTR);
    if (r == -EOPNOTSUPP || r == -ENOSYS || r == -EINVAL)
        r = ftruncate(writer->fd, (off_t)size) < 0 ? -errno : 0;
    return r;
}

static int is_full(int r)
{
    return r == -ENOSPC || r == -EDQUOT;
}

/* Allocate the file's room, and evict entries if the disk, not the cache, is full. */
static int reserve(struct pstk__cache_writer *writer, struct pstk__cache_ledger *ledger,
                   struct pstk_error *err)
{
    const uint64_t size = pstk__cache_file_size(writer->max_size);
    int r = pstk__cache_make_room(writer->cache, ledger, size, err);
    if (r < 0)
        return r;
    pstk__cache_add(ledger, size);
    writer->reserved = size;
    r = pstk__cache_count(ledger);
    if (r == 0 || is_full(r))
        r = allocate_file(writer, size);
    while (is_full(r) && ftruncate(writer->fd, 0) == 0) {
        writer->reserved = 0; /* evict counts all files again, this empty one included */
        if (pstk__cache_evict(writer->cache, ledger, size) <= 0)
            break;
        pstk__cache_add(ledger, size);
        writer->reserved = size;
        r = allocate_file(writer, size);
    }
    if (r == 0)
        r = pstk__cache_count(ledger);
    return r < 0 ? fail_write(writer, -r, err) : 0;
}

/* Remove the file, unless somebody has. Without a ledger the sum stays too high until files are
 * counted again. */
static void discard(struct pstk__cache_writer *writer, struct pstk__cache_ledger *ledger)
{
    struct stat st;
    if (writer->fd < 0)
        return;
    if (fstat(writer->fd, &st) == 0 && is_in_place(writer, &st) &&
        unlinkat(writer->cache->dir, writer->temporary, 0) == 0 && ledger)
        pstk__cache_subtract(ledger, writer->reserved);
    flock(writer->fd, LOCK_UN); /* a forked child shares the lock */
    close(writer->fd);
    writer->fd = -1;
}

/* 1: another writer has made the entry since the caller checked. */
static int is_made(const struct pstk__cache_writer *writer)
{
    struct pstk__file file;
    if (!pstk__cache_find(writer->cache, &writer->key, &file))
        return 0;
    pstk__file_end(&file);
    return 1;
}

/* Take the steps of begin that need the folder's lock. */
static int begin(struct pstk__cache_writer *writer, struct pstk__cache_ledger *ledger,
                 struct pstk_error *err)
{
    uint64_t old = 0;
    int r = claim(writer, &old);
    if (r == -EBUSY)
        return pstk__fail(err, PSTK_EBUSY, PSTK_STAGE_OPEN,
                          "another process makes an entry of the cache %s of %.300s",
                          writer->cache->path, writer->path);
    if (r < 0)
        return pstk__cache_fail_lock(writer->cache, -r, err);
    if (is_made(writer))
        return pstk__fail(err, PSTK_EBUSY, PSTK_STAGE_OPEN,
                          "another process has just made an entry of the cache %s of %.300s",
                          writer->cache->path, writer->path);
    if (old > 0 && ftruncate(writer->fd, 0) < 0)
        return fail_write(writer, errno, err);
    pstk__cache_subtract(ledger, old);
    r = reserve(writer, ledger, err);
    if (r < 0)
        return r;
    writer->crcs = malloc(4 * pstk__cache_n_blocks(writer->max_size) + 1);
    return writer->crcs ? 0
                        : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                                     "no memory for an entry of %llu bytes of the cache %s",
                                     (unsigned long long)writer->max_size, writer->cache->path);
}

static void free_writer(struct pstk__cache_writer **p)
{
    free((*p)->crcs);
    free(*p);
    *p = NULL;
}

int pstk__cache_begin(struct pstk__cache_writer **out, struct pstk__cache *cache,
                      const struct pstk__cache_key *key, uint64_t size, struct pstk_error *err)
{
    *out = NULL;
    if (!pstk__cache_key_fits(key))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "a path of the cache %s is too long: %.200s...", cache->path,
                          key->path ? key->path : "");
    int r = check_size(cache, size, err);
    if (r < 0)
        return r;
    struct pstk__cache_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the cache %s",
                          cache->path);
    writer->cache = cache;
    writer->fd = -1;
    writer->max_size = size;
    writer->key = *key;
    memcpy(writer->path, key->path, strlen(key->path) + 1);
    writer->key.path = writer->path;
    pstk__cache_key_name(key, writer->name);
    snprintf(writer->temporary, sizeof writer->temporary, "%s.tmp", writer->name);
    struct pstk__cache_ledger ledger;
    r = pstk__cache_lock(cache, PSTK__CACHE_PATIENCE_NS, &ledger);
    if (r < 0) {
        free_writer(&writer);
        return pstk__cache_fail_lock(cache, -r, err);
    }
    r = begin(writer, &ledger, err);
    if (r < 0)
        discard(writer, &ledger);
    pstk__cache_unlock(&ledger);
    if (r < 0)
        free_writer(&writer);
    *out = writer;
    return r;
}

int pstk__cache_making(struct pstk__cache *cache, const struct pstk__cache_key *key,
                       struct pstk__cache_progress *progress)
{
    char name[PSTK__CACHE_NAME], temporary[PSTK__CACHE_TEMPORARY];
    uint8_t note[8];
    struct stat st;
    *progress = (struct pstk__cache_progress){0};
    if (!pstk__cache_key_fits(key))
        return 0;
    pstk__cache_key_name(key, name);
    snprintf(temporary, sizeof temporary, "%s.tmp", name);
    const int fd = openat(cache->dir, temporary, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    int is_made = flock(fd, LOCK_EX | LOCK_NB) < 0;
    if (!is_made)
        flock(fd, LOCK_UN);
    is_made = is_made && fstat(fd, &st) == 0 && st.st_size > 0;
    if (is_made) {
        const uint64_t size = (uint64_t)st.st_size;
        progress->n_total = size > PSTK__CACHE_HEADER ? size - PSTK__CACHE_HEADER : 0;
        progress->changed_ns = pstk__file_changed_ns(&st);
        if (pstk__file_pread(fd, note, sizeof note, PSTK__CH_SIZE) == (int64_t)sizeof note)
            progress->n_done =
                pstk__get64(note) < progress->n_total ? pstk__get64(note) : progress->n_total;
    }
    close(fd);
    return is_made;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int write_at(struct pstk__cache_writer *writer, const void *bytes, uint64_t size,
                    uint64_t offset, struct pstk_error *err)
{
    const int native = pstk__file_pwrite(writer->fd, bytes, size, offset);
    return native ? fail_write(writer, native, err) : 0;
}

static void end_block(struct pstk__cache_writer *writer)
{
    pstk__put32(writer->crcs + 4 * ((writer->size - 1) / PSTK__CACHE_BLOCK), writer->crc);
}

/* Continue the CRCs of blocks over the bytes that follow at writer->size. */
static void digest(struct pstk__cache_writer *writer, const uint8_t *bytes, uint64_t size)
{
    while (size > 0) {
        const uint64_t in_block = writer->size % PSTK__CACHE_BLOCK;
        const uint64_t room = PSTK__CACHE_BLOCK - in_block;
        const uint64_t part = size < room ? size : room;
        if (in_block == 0)
            writer->crc = pstk__cache_block_seed(writer->size / PSTK__CACHE_BLOCK);
        writer->crc = pstk__crc32c(writer->crc, bytes, part);
        writer->size += part;
        if (part == room)
            end_block(writer);
        bytes += part;
        size -= part;
    }
}

int pstk__cache_append(struct pstk__cache_writer *writer, const void *bytes, uint64_t size,
                       struct pstk_error *err)
{
    if (writer->failed)
        return fail_write(writer, writer->failed, err);
    if (size > writer->max_size - writer->size) {
        writer->failed = EFBIG;
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                          "an entry of the cache %s of %.300s has more bytes than the %llu that "
                          "were announced",
                          writer->cache->path, writer->path, (unsigned long long)writer->max_size);
    }
    const int r = write_at(writer, bytes, size, PSTK__CACHE_HEADER + writer->size, err);
    if (r < 0)
        return r;
    digest(writer, bytes, size);
    if (writer->size - writer->reported < REPORT_EVERY)
        return 0;
    /* A note of the progress, at the position of the header, for processes that wait. The file is
     * no entry until it has its magic. */
    uint8_t note[8];
    pstk__put64(note, writer->size);
    writer->reported = writer->size;
    return write_at(writer, note, sizeof note, PSTK__CH_SIZE, err);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Write the header and the CRCs. The bytes between data and CRCs are 0, because the file was empty.
 */
static int finish(struct pstk__cache_writer *writer, struct pstk_error *err)
{
    uint8_t bytes[PSTK__CACHE_HEADER];
    const uint64_t table_size = 4 * pstk__cache_n_blocks(writer->size);
    if (writer->size % PSTK__CACHE_BLOCK)
        end_block(writer);
    const struct pstk__cache_header header = {.key = writer->key,
                                              .size = writer->size,
                                              .table_crc =
                                                  pstk__crc32c(0, writer->crcs, table_size)};
    int r = write_at(writer, writer->crcs, table_size, pstk__cache_table_at(writer->size), err);
    if (r < 0)
        return r;
    pstk__cache_header_encode(&header, bytes);
    r = write_at(writer, bytes, sizeof bytes, 0, err);
    if (r < 0)
        return r;
    return fsync(writer->fd) < 0 ? fail_write(writer, errno, err) : 0;
}

/* Truncate the file to the bytes used, rename it, and count. Under the lock: a process that counted
 * the files in between would count the change twice. Without the ledger, because another held its
 * lock too long, the sum stays too high until files are counted again. */
static int publish(struct pstk__cache_writer *writer, struct pstk__cache_ledger *ledger,
                   struct pstk_error *err)
{
    const int dir = writer->cache->dir;
    const uint64_t size = pstk__cache_file_size(writer->size);
    struct stat st, old;
    if (fstat(writer->fd, &st) < 0)
        return fail_write(writer, errno, err);
    if (!is_in_place(writer, &st)) /* the path leads to no file, or to another writer's */
        return pstk__fail(err, PSTK_EBUSY, PSTK_STAGE_OPEN,
                          "an entry of the cache %s of %.300s was removed while it was written",
                          writer->cache->path, writer->path);
    if (size != writer->reserved &&
        (ftruncate(writer->fd, (off_t)size) < 0 || fsync(writer->fd) < 0))
        return fail_write(writer, errno, err);
    const uint64_t old_size =
        fstatat(dir, writer->name, &old, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)old.st_size : 0;
    if (renameat(dir, writer->temporary, dir, writer->name) < 0)
        return fail_write(writer, errno, err);
    if (ledger)
        pstk__cache_subtract(ledger, old_size + writer->reserved - size);
    flock(writer->fd, LOCK_UN);
    close(writer->fd);
    writer->fd = -1;
    return 0;
}

int pstk__cache_commit(struct pstk__cache_writer **p, struct pstk_error *err)
{
    struct pstk__cache_writer *writer = *p;
    struct pstk__cache_ledger ledger;
    int r = writer->failed ? fail_write(writer, writer->failed, err) : finish(writer, err);
    if (r < 0) {
        pstk__cache_abort(p);
        return r;
    }
    const int locked = pstk__cache_lock(writer->cache, PSTK__CACHE_PATIENCE_NS, &ledger);
    struct pstk__cache_ledger *held = locked < 0 ? NULL : &ledger;
    r = publish(writer, held, err);
    if (r < 0)
        discard(writer, held);
    if (held)
        pstk__cache_unlock(held);
    free_writer(p);
    return r;
}

void pstk__cache_abort(struct pstk__cache_writer **p)
{
    struct pstk__cache_ledger ledger;
    if (!*p)
        return;
    const int locked = pstk__cache_lock((*p)->cache, PSTK__CACHE_PATIENCE_NS, &ledger);
    discard(*p, locked < 0 ? NULL : &ledger);
    if (locked == 0)
        pstk__cache_unlock(&ledger);
    free_writer(p);
}
