/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail_calls: preloaded into the command by tests, it makes system calls on chosen files fail.
 * PENSTOCK_FAIL=CALL:END:ERRNO[,...] lets CALL (one of those below) fail with ERRNO
 * on each file whose path ends with END; with no END, on each file. PENSTOCK_STOP=CALL:END[:SIGNAL]
 * sends SIGNAL (SIGINT) to the process at the first such call, which then goes on.
 */
#undef _FILE_OFFSET_BITS /* with it openat is the name of openat64 alone */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* Does the path end with the `size` bytes at `end`? */
static int ends_with(const char *path, const char *end, size_t size)
{
    size_t length = strlen(path);
    return length >= size && memcmp(path + length - size, end, size) == 0;
}

/* Find "CALL:END" at the start of the rule for this path; returns what follows END, or NULL. */
static const char *match(const char *rule, const char *call, const char *path)
{
    size_t n = strlen(call);
    if (strncmp(rule, call, n) != 0 || rule[n] != ':')
        return NULL;
    const char *end = rule + n + 1;
    size_t size = strcspn(end, ":,");
    return ends_with(path, end, size) ? end + size : NULL;
}

/* 0, or the errno value that the call shall fail with. */
static int failure_of(const char *call, const char *path)
{
    static int stopped;
    const char *stop = getenv("PENSTOCK_STOP"), *rule = getenv("PENSTOCK_FAIL");
    const char *after = stop ? match(stop, call, path) : NULL;
    if (after && !__atomic_exchange_n(&stopped, 1, __ATOMIC_SEQ_CST))
        kill(getpid(), *after == ':' ? atoi(after + 1) : SIGINT);
    while (rule && *rule) {
        const char *rest = match(rule, call, path);
        if (rest && *rest == ':')
            return atoi(rest + 1);
        rule += strcspn(rule, ",");
        rule += *rule == ',';
    }
    return 0;
}

static int failure_of_fd(const char *call, int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return failure_of(call, path);
}

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

#define FAIL(failure)                                                                              \
    do {                                                                                           \
        const int failure_ = (failure);                                                            \
        if (failure_) {                                                                            \
            errno = failure_;                                                                      \
            return -1;                                                                             \
        }                                                                                          \
    } while (0)

#pragma GCC visibility push(default)

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    FAIL(failure_of("open", path));
    int (*real)(const char *, int, ...) = next("open");
    return real(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    FAIL(failure_of("open", path));
    int (*real)(const char *, int, ...) = next("open64");
    return real(path, flags, mode);
}

static int open_next(const char *name, int folder, const char *path, int flags, mode_t mode)
{
    FAIL(failure_of("openat", path));
    int (*real)(int, const char *, int, ...) = next(name);
    return real(folder, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_next("openat", folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_next("openat64", folder, path, flags, mode);
}

ssize_t read(int fd, void *buffer, size_t size)
{
    FAIL(failure_of_fd("read", fd));
    ssize_t (*real)(int, void *, size_t) = next("read");
    return real(fd, buffer, size);
}

int fsync(int fd)
{
    FAIL(failure_of_fd("fsync", fd));
    int (*real)(int) = next("fsync");
    return real(fd);
}

int close(int fd)
{
    int native = failure_of_fd("close", fd);
    int (*real)(int) = next("close");
    int r = real(fd);
    FAIL(native);
    return r;
}

int rename(const char *from, const char *to)
{
    FAIL(failure_of("rename", to));
    int (*real)(const char *, const char *) = next("rename");
    return real(from, to);
}

int unlinkat(int folder, const char *path, int flags)
{
    FAIL(failure_of("unlinkat", path));
    int (*real)(int, const char *, int) = next("unlinkat");
    return real(folder, path, flags);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    FAIL(failure_of("linkat", from));
    int (*real)(int, const char *, int, const char *, int) = next("linkat");
    return real(from_folder, from, to_folder, to, flags);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    FAIL(failure_of("renameat", to));
    int (*real)(int, const char *, int, const char *) = next("renameat");
    return real(from_folder, from, to_folder, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    FAIL(failure_of("renameat2", to));
    int (*real)(int, const char *, int, const char *, unsigned) = next("renameat2");
    return real(from_folder, from, to_folder, to, flags);
}

int syncfs(int fd)
{
    FAIL(failure_of_fd("syncfs", fd));
    int (*real)(int) = next("syncfs");
    return real(fd);
}

#pragma GCC visibility pop
