/* SPDX-License-Identifier: Apache-2.0 */
/* Finds entries and reads them. Never allocates. */
#include "base/crc32c.h"
#include "base/file.h"
#include "base/little.h"
#include "store/cache/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define AT_ONCE 512   /* max blocks of one read: 2 MiB */
#define USED_AGAIN 60 /* seconds until an entry is marked as used again */

/* ---- reading --------------------------------------------------------------------------------- */

static int descriptor_of(const struct pstk__file *file)
{
    return (int)(intptr_t)file->state;
}

/* Read all parts, which lie end to end in the file. 0, -EBADMSG at the end of the file, or a
 * negative errno. Changes parts. */
static int read_parts(int fd, struct iovec parts[3], uint64_t offset)
{
    for (int i = 0; i < 3;) {
        if (parts[i].iov_len == 0) {
            i++;
            continue;
        }
        const ssize_t n = preadv(fd, parts + i, 3 - i, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno
                         : -EBADMSG; /* a file that ends is damaged: entries never shrink */
        offset += (uint64_t)n;
        for (size_t left = (size_t)n; left > 0;) {
            const size_t part = left < parts[i].iov_len ? left : parts[i].iov_len;
            parts[i].iov_base = (char *)parts[i].iov_base + part;
            parts[i].iov_len -= part;
            left -= part;
            i += parts[i].iov_len == 0;
        }
    }
    return 0;
}

/* Continue a CRC over the bytes [begin, end) of the concatenated parts. */
static uint32_t crc_of(uint32_t crc, const struct iovec parts[3], uint64_t begin, uint64_t end)
{
    for (int i = 0; i < 3; i++) {
        const uint64_t size = parts[i].iov_len;
        const uint64_t from = begin < size ? begin : size, to = end < size ? end : size;
        if (to > from)
            crc = pstk__crc32c(crc, (const uint8_t *)parts[i].iov_base + from, to - from);
        begin -= from;
        end -= to;
    }
    return crc;
}

/* Read `size` > 0 bytes at offset, which lie in at most AT_ONCE blocks. Also reads the rest of the
 * first and of the last block, for their CRCs. 0 or a negative errno. */
static int read_blocks(int fd, uint64_t extent, void *buffer, uint64_t size, uint64_t offset)
{
    uint8_t before[PSTK__CACHE_BLOCK], after[PSTK__CACHE_BLOCK], crcs[4 * AT_ONCE];
    const uint64_t first = offset / PSTK__CACHE_BLOCK, begin = first * PSTK__CACHE_BLOCK;
    const uint64_t n = pstk__cache_n_blocks(offset + size) - first;
    uint64_t end = (first + n) * PSTK__CACHE_BLOCK;
    end = end < extent ? end : extent;
    const struct iovec parts[3] = {
        {before, offset - begin}, {buffer, size}, {after, end - offset - size}};
    struct iovec left[3], table[3] = {{crcs, 4 * n}};
    memcpy(left, parts, sizeof left);
    int r = read_parts(fd, left, PSTK__CACHE_HEADER + begin);
    if (r == 0)
        r = read_parts(fd, table, pstk__cache_table_at(extent) + 4 * first);
    for (uint64_t i = 0; r == 0 && i < n; i++) {
        const uint64_t from = i * PSTK__CACHE_BLOCK;
        const uint64_t to =
            from + PSTK__CACHE_BLOCK < end - begin ? from + PSTK__CACHE_BLOCK : end - begin;
        if (crc_of(pstk__cache_block_seed(first + i), parts, from, to) != pstk__get32(crcs + 4 * i))
            r = -EBADMSG;
    }
    return r;
}

static int64_t entry_read_at(const struct pstk__file *file, void *buffer, uint64_t size,
                             uint64_t offset)
{
    const uint64_t extent = file->extent;
    if (offset >= extent)
        return 0;
    size = size < extent - offset ? size : extent - offset;
    for (uint64_t done = 0; done < size;) {
        const uint64_t at = offset + done;
        const uint64_t room = AT_ONCE * PSTK__CACHE_BLOCK - at % PSTK__CACHE_BLOCK;
        const uint64_t part = size - done < room ? size - done : room;
        const int r = read_blocks(descriptor_of(file), extent, (char *)buffer + done, part, at);
        if (r < 0)
            return done ? (int64_t)done : r; /* the next read meets the error again */
        done += part;
    }
    return (int64_t)size;
}

/* Get the time of the file that the entry was made from. The time of the entry's own file is that
 * of its last use. */
static int entry_stat(const struct pstk__file *file, uint64_t *size, int64_t *changed_ns)
{
    uint8_t bytes[8];
    const int64_t n = pstk__file_pread(descriptor_of(file), bytes, sizeof bytes, PSTK__CH_CHANGED);
    if (n != (int64_t)sizeof bytes)
        return n < 0 ? (int)n : -EBADMSG;
    *size = file->extent;
    *changed_ns = (int64_t)pstk__get64(bytes);
    return 0;
}

static void entry_close(struct pstk__file *file)
{
    close(descriptor_of(file)); /* read only: nothing can be lost */
}

static int entry_open(const struct pstk__store *store, struct pstk__file *file, const char *path)
{
    (void)store, (void)path;
    *file = (struct pstk__file){.fd = -1};
    return -ENOTSUP; /* entries have keys instead of paths: pstk__cache_find opens them */
}

static const struct pstk__store entries = {
    .name = "cache",
    .open = entry_open,
    .stat = entry_stat,
    .read_at = entry_read_at,
    .close = entry_close,
};

/* ---- finding --------------------------------------------------------------------------------- */

/* 1: the CRCs of the blocks are intact. */
static int is_table_whole(int fd, const struct pstk__cache_header *header)
{
    uint8_t bytes[4 * PSTK__CACHE_BLOCK];
    uint64_t at = pstk__cache_table_at(header->size);
    const uint64_t end = at + 4 * pstk__cache_n_blocks(header->size);
    uint32_t crc = 0;
    while (at < end) {
        const uint64_t size = end - at < sizeof bytes ? end - at : sizeof bytes;
        if (pstk__file_pread(fd, bytes, size, at) != (int64_t)size)
            return 0;
        crc = pstk__crc32c(crc, bytes, size);
        at += size;
    }
    return crc == header->table_crc;
}

enum found { DAMAGED, OTHER, FOUND };

/* Check whether the open file is the entry of this key. *size: bytes of its data. */
static enum found look(int fd, const struct stat *st, const struct pstk__cache_key *key,
                       uint64_t *size)
{
    uint8_t bytes[PSTK__CACHE_HEADER];
    struct pstk__cache_header header;
    if (!S_ISREG(st->st_mode) || !pstk__cache_is_trusted(st) ||
        pstk__file_pread(fd, bytes, sizeof bytes, 0) != (int64_t)sizeof bytes ||
        pstk__cache_header_parse(&header, bytes, (uint64_t)st->st_size) < 0)
        return DAMAGED;
    *size = header.size;
    if (!pstk__cache_key_equal(&header.key, key))
        return OTHER; /* another key has the same name */
    return is_table_whole(fd, &header) ? FOUND : DAMAGED;
}

/* Set the file's time of change, which is the time of its last use. An entry of root's that all may
 * read cannot be marked. */
static void mark_used(int fd, const struct stat *st)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec < st->st_mtim.tv_sec || now.tv_sec - st->st_mtim.tv_sec >= USED_AGAIN) {
        const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, now};
        (void)!futimens(fd, times);
    }
}

int pstk__cache_find(struct pstk__cache *cache, const struct pstk__cache_key *key,
                     struct pstk__file *file)
{
    char name[PSTK__CACHE_NAME];
    struct stat st;
    *file = (struct pstk__file){.fd = -1};
    if (!pstk__cache_key_fits(key))
        return 0;
    pstk__cache_key_name(key, name);
    const int fd =
        openat(cache->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        if (errno == ELOOP) /* a link is never an entry */
            pstk__cache_remove(cache, name, NULL, 0);
        return 0;
    }
    uint64_t size = 0;
    const enum found found = fstat(fd, &st) < 0 ? OTHER : look(fd, &st, key, &size);
    if (found != FOUND) {
        if (found == DAMAGED)
            pstk__cache_remove(cache, name, &st, 0);
        close(fd);
        return 0;
    }
    mark_used(fd, &st);
    *file = (struct pstk__file){
        .store = &entries, .fd = -1, .state = (void *)(intptr_t)fd, .extent = size};
    return 1;
}

int pstk__cache_drop(struct pstk__cache *cache, const struct pstk__cache_key *key,
                     const struct pstk__file *file)
{
    char name[PSTK__CACHE_NAME];
    struct stat st;
    if (!pstk__cache_key_fits(key))
        return 1;
    if (file && (file->store != &entries || fstat(descriptor_of(file), &st) < 0))
        return 0;
    pstk__cache_key_name(key, name);
    return pstk__cache_remove(cache, name, file ? &st : NULL, PSTK__CACHE_PATIENCE_NS);
}
