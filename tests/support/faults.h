/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults: the nth call of a kind fails. The program is linked with the linker's --wrap for each
 * function below (`faults` in tests/meson.build); calls inside shared libraries are not
 * touched. Include in one file of a program.
 */
#ifndef PSTK_FAULTS_H
#define PSTK_FAULTS_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum fault_kind {
    FAULT_NONE,
    FAULT_MEMORY, /* malloc, calloc, realloc */
    FAULT_WRITE,  /* pwrite */
    FAULT_READ,   /* pread */
    FAULT_SYNC,   /* fsync */
    FAULT_RENAME, /* renameat */
    FAULT_LINK,   /* linkat */
    FAULT_OPEN,   /* open, openat, mkdir */
    FAULT_THREAD, /* pthread_create */
    FAULT_REMOVE, /* unlinkat */
    FAULT_DEATH,  /* any of them that changes files: the process is killed in its place */
    N_FAULTS
};

static struct {
    int kind;                         /* set while no other thread runs */
    int native;                       /* errno to give */
    int always;                       /* 1: every call from the nth on fails */
    void (*before)(const void *user); /* not NULL: done once before the nth call, which succeeds */
    const void *user;
    void (*on_read)(size_t size); /* called before each read; NULL: nothing is */
    size_t min_size;              /* reads and writes of fewer bytes do not count */
    atomic_int left;              /* calls before the one that fails */
    atomic_int fired;             /* calls that failed */
} fault;

static inline void fault_arm(int kind, int n, int native)
{
    fault.native = native;
    fault.always = 0;
    fault.before = NULL;
    atomic_store(&fault.left, n);
    atomic_store(&fault.fired, 0);
    fault.kind = kind;
}

/* Returns how many calls failed. */
static inline int fault_disarm(void)
{
    fault.kind = FAULT_NONE;
    return atomic_load(&fault.fired);
}

static int fault_meets(int kind)
{
    return fault.kind == kind || (fault.kind == FAULT_DEATH && kind != FAULT_MEMORY &&
                                  kind != FAULT_READ && kind != FAULT_THREAD);
}

static int fault_due(int kind)
{
    if (!fault_meets(kind))
        return 0;
    int left = atomic_fetch_sub(&fault.left, 1);
    if (left > 0 || (left < 0 && !fault.always))
        return 0;
    if (fault.kind == FAULT_DEATH)
        raise(SIGKILL);
    atomic_fetch_add(&fault.fired, 1);
    if (fault.before) {
        fault.kind = FAULT_NONE;
        fault.before(fault.user);
        return 0;
    }
    errno = fault.native;
    return 1;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return fault_due(FAULT_MEMORY) ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return fault_due(FAULT_MEMORY) ? NULL : __real_calloc(n, size);
}

void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size)
{
    return fault_due(FAULT_MEMORY) ? NULL : __real_realloc(p, size);
}

static void announce(int kind, size_t size)
{
    if (kind == FAULT_READ && fault.on_read)
        fault.on_read(size);
}

/* Both names: _FILE_OFFSET_BITS decides which of them a caller gets. */
#define WRAP_IO(name, type, kind)                                                                  \
    ssize_t __real_##name(int fd, type data, size_t size, off_t offset);                           \
    ssize_t __wrap_##name(int fd, type data, size_t size, off_t offset);                           \
    ssize_t __wrap_##name(int fd, type data, size_t size, off_t offset)                            \
    {                                                                                              \
        announce(kind, size);                                                                      \
        return size >= fault.min_size && fault_due(kind) ? -1                                      \
                                                         : __real_##name(fd, data, size, offset);  \
    }
WRAP_IO(pwrite, const void *, FAULT_WRITE)
WRAP_IO(pwrite64, const void *, FAULT_WRITE)
WRAP_IO(pread, void *, FAULT_READ)
WRAP_IO(pread64, void *, FAULT_READ)

#define WRAP_OPEN(name)                                                                            \
    int __real_##name(const char *path, int flags, mode_t mode);                                   \
    int __wrap_##name(const char *path, int flags, mode_t mode);                                   \
    int __wrap_##name(const char *path, int flags, mode_t mode)                                    \
    {                                                                                              \
        return fault_due(FAULT_OPEN) ? -1 : __real_##name(path, flags, mode);                      \
    }
WRAP_OPEN(open)
WRAP_OPEN(open64)

#define WRAP_OPENAT(name)                                                                          \
    int __real_##name(int dir, const char *path, int flags, mode_t mode);                          \
    int __wrap_##name(int dir, const char *path, int flags, mode_t mode);                          \
    int __wrap_##name(int dir, const char *path, int flags, mode_t mode)                           \
    {                                                                                              \
        return fault_due(FAULT_OPEN) ? -1 : __real_##name(dir, path, flags, mode);                 \
    }
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    return fault_due(FAULT_OPEN) ? -1 : __real_mkdir(path, mode);
}

/* Nothing is written to the disk: no test can see that it was, and thousands of calls take minutes.
 * A descriptor that fsync refuses is refused. */
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && flags & O_PATH)
        errno = EBADF;
    return flags < 0 || flags & O_PATH || fault_due(FAULT_SYNC) ? -1 : 0;
}

int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    return fault_due(FAULT_RENAME) ? -1 : __real_renameat(from_dir, from, to_dir, to);
}

int __real_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    return fault_due(FAULT_LINK) ? -1 : __real_linkat(from_dir, from, to_dir, to, flags);
}

int __real_unlinkat(int dir, const char *path, int flags);
int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_unlinkat(int dir, const char *path, int flags)
{
    return fault_due(FAULT_REMOVE) ? -1 : __real_unlinkat(dir, path, flags);
}

int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg)
{
    return fault_due(FAULT_THREAD) ? EAGAIN : __real_pthread_create(t, a, run, arg);
}

#endif
