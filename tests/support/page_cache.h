/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_cache: a page cache of our own, for tests whose link wraps pread, preadv2 and fstatfs. It
 * has all, nothing, half, or what is gone when the worker comes.
 */
#ifndef PSTK_TEST_PAGE_CACHE_H
#define PSTK_TEST_PAGE_CACHE_H

#include <errno.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

enum cache {
    AS_IT_IS, /* the kernel's */
    RESIDENT,
    COLD,
    MIXED,   /* a part of each read, which may be all or nothing */
    REFUSED, /* the file system does not know RWF_NOWAIT */
    TMPFS,   /* nor does this one, which has no other storage */
    GONE,    /* after the probe */
    EMPTY,   /* after the probe, and the kernel says 0 instead of EAGAIN */
    N_CACHES
};

static _Atomic int cache;
static _Atomic uint32_t seed, n_probes, n_reads_now; /* reads of one byte; reads of more */
static _Atomic uint64_t bytes_now;                   /* given to reads of more than one */
static _Atomic uint32_t nap_us;                      /* duration of a worker's read */

/* The memory that workers' reads wrote to, the latest ones. */
#define N_TARGETS 4096u
static _Atomic uintptr_t targets[N_TARGETS];
static _Atomic uint32_t n_targets;

/* Reads that overlap these bytes of this file give `fault`: a negative errno, or 0: the file ends
 * at the first of them. */
static _Atomic uint64_t fault_begin, fault_end;
static _Atomic uint64_t fault_inode; /* 0: none */
static _Atomic int fault;

static inline void reset(enum cache as)
{
    atomic_store(&cache, as);
    atomic_store(&n_probes, 0);
    atomic_store(&n_reads_now, 0);
    atomic_store(&bytes_now, 0);
    atomic_store(&nap_us, 0);
    for (uint32_t i = 0; i < N_TARGETS; i++)
        atomic_store(&targets[i], 0);
}

ssize_t __real_pread(int fd, void *data, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset)
{
    struct stat st;
    const uint64_t at = (uint64_t)offset, begin = atomic_load(&fault_begin);
    const int meets = atomic_load(&fault_inode) && at < atomic_load(&fault_end) &&
                      at + size > begin && fstat(fd, &st) == 0 &&
                      st.st_ino == atomic_load(&fault_inode);
    if (meets && atomic_load(&fault) < 0) {
        errno = -atomic_load(&fault);
        return -1;
    }
    return meets ? at < begin ? __real_pread(fd, data, begin - at, offset) : 0
                 : __real_pread(fd, data, size, offset);
}
ssize_t __wrap_pread64(int fd, void *data, size_t size, off_t offset)
    __attribute__((alias("__wrap_pread")));

static ssize_t refuse(int native)
{
    errno = native;
    return -1;
}

/* A draw that depends on the place and the seed alone, but differs when it is asked again. */
static uint64_t draw(off_t offset)
{
    static _Atomic uint32_t turn;
    uint64_t x = ((uint64_t)offset << 20 ^ atomic_load(&seed)) + atomic_fetch_add(&turn, 1);
    x *= 0x9E3779B97F4A7C15u;
    return x ^ x >> 31;
}

static size_t size_of(const struct iovec *parts, int n)
{
    size_t size = 0;
    for (int i = 0; i < n; i++)
        size += parts[i].iov_len;
    return size;
}

/* Read `size` bytes at most into the parts. */
static ssize_t read_parts(int fd, const struct iovec *parts, int n, size_t size, off_t offset)
{
    size_t done = 0;
    for (int i = 0; i < n && done < size; i++) {
        const size_t left = size - done, want = left < parts[i].iov_len ? left : parts[i].iov_len;
        const ssize_t got = __wrap_pread(fd, parts[i].iov_base, want, offset + (off_t)done);
        if (got < 0)
            return done ? (ssize_t)done : got;
        done += (size_t)got;
        if ((size_t)got < want)
            break;
    }
    return (ssize_t)done;
}

static ssize_t read_mixed(int fd, const struct iovec *parts, int n, off_t offset)
{
    const uint64_t x = draw(offset);
    const size_t size = size_of(parts, n);
    const size_t most = x & 1 ? size : x & 2 ? 0 : (size_t)(x >> 8) % size;
    return most ? read_parts(fd, parts, n, most, offset) : refuse(EAGAIN);
}

static ssize_t read_now(int fd, const struct iovec *parts, int n, off_t offset, int flags)
{
    const size_t size = size_of(parts, n);
    if (!(flags & RWF_NOWAIT))
        return read_parts(fd, parts, n, size, offset);
    switch (atomic_load(&cache)) {
    case COLD:
        return refuse(EAGAIN);
    case MIXED:
        return read_mixed(fd, parts, n, offset);
    case REFUSED:
    case TMPFS:
        return refuse(EOPNOTSUPP);
    case GONE:
    case EMPTY:
        if (size > 1)
            return atomic_load(&cache) == GONE ? refuse(EAGAIN) : 0;
    }
    return read_parts(fd, parts, n, size, offset);
}

ssize_t __real_preadv2(int fd, const struct iovec *parts, int n, off_t offset, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *parts, int n, off_t offset, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *parts, int n, off_t offset, int flags)
{
    const int is_probe = size_of(parts, n) <= 1;
    const int is_rest = flags == 0 && atomic_load(&cache) != TMPFS; /* after one that gave less */
    if (!is_rest)
        atomic_fetch_add(is_probe ? &n_probes : &n_reads_now, 1);
    if (!is_probe && atomic_load(&nap_us) > 0)
        usleep(atomic_load(&nap_us));
    for (int i = 0; i < n; i++)
        atomic_store(&targets[atomic_fetch_add(&n_targets, 1) % N_TARGETS],
                     (uintptr_t)parts[i].iov_base);
    const ssize_t r = atomic_load(&cache) == AS_IT_IS ? __real_preadv2(fd, parts, n, offset, flags)
                                                      : read_now(fd, parts, n, offset, flags);
    if (!is_probe && !is_rest && r > 0)
        atomic_fetch_add(&bytes_now, (uint64_t)r);
    return r;
}
ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int n, off_t offset, int flags)
    __attribute__((alias("__wrap_preadv2")));

int __wrap_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs)
{
    (void)fd;
    *fs = (struct statfs){.f_type = atomic_load(&cache) == TMPFS ? TMPFS_MAGIC : EXT4_SUPER_MAGIC};
    return 0;
}
int __wrap_fstatfs64(int fd, struct statfs *fs) __attribute__((alias("__wrap_fstatfs")));

/* Return 1 if a worker's read has written to this memory lately. */
static inline int is_target(const void *memory)
{
    for (uint32_t i = 0; i < N_TARGETS; i++)
        if (atomic_load(&targets[i]) == (uintptr_t)memory)
            return 1;
    return 0;
}

#endif
