/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_reads: preloaded into the command by tests and benchmarks, it is a storage of limited speed:
 * the preads of all threads together get PENSTOCK_BYTES_PER_SECOND bytes per second from files that
 * end with .pstk, of which no page cache holds a byte. Reads by io_uring do not pass here: use
 * --reader threads.
 */
#undef _FILE_OFFSET_BITS /* with it pread is the name of pread64 alone */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int is_shard(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof path - 1);
    return n > 5 && memcmp(path + n - 5, ".pstk", 5) == 0;
}

/* Wait until the storage has given `size` more bytes. */
static void wait_for(size_t size)
{
    static _Atomic uint64_t free_at; /* time at which the storage is idle again */
    const char *text = getenv("PENSTOCK_BYTES_PER_SECOND");
    const double rate = text ? atof(text) : 0;
    if (rate <= 0)
        return;
    const uint64_t takes = (uint64_t)((double)size * 1e9 / rate);
    uint64_t before = atomic_load(&free_at), until;
    do {
        const uint64_t now = now_ns();
        until = (before > now ? before : now) + takes;
    } while (!atomic_compare_exchange_weak(&free_at, &before, until));
    const struct timespec time = {.tv_sec = (time_t)(until / 1000000000u),
                                  .tv_nsec = (long)(until % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0)
        ;
}

#pragma GCC visibility push(default)

ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset)
{
    static ssize_t (*real)(int, void *, size_t, off64_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pread64");
    if (is_shard(fd))
        wait_for(size);
    return real(fd, buffer, size, offset);
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
    return pread64(fd, buffer, size, offset);
}

ssize_t preadv64v2(int fd, const struct iovec *parts, int n, off64_t offset, int flags)
{
    static ssize_t (*real)(int, const struct iovec *, int, off64_t, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "preadv64v2");
    if ((flags & RWF_NOWAIT) && is_shard(fd)) {
        errno = EAGAIN;
        return -1;
    }
    return real(fd, parts, n, offset, flags);
}

ssize_t preadv2(int fd, const struct iovec *parts, int n, off_t offset, int flags)
{
    return preadv64v2(fd, parts, n, offset, flags);
}

#pragma GCC visibility pop
