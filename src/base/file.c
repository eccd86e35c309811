/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Linux reads at most 0x7ffff000 bytes at once. */
#define READ_MAX (1u << 30)
#define TRIES 100 /* attempts to find an unused name */

int64_t pstk__file_pread(int fd, void *buffer, uint64_t size, uint64_t offset)
{
    uint64_t done = 0;
    while (done < size) {
        uint64_t want = size - done < READ_MAX ? size - done : READ_MAX;
        ssize_t n = pread(fd, (char *)buffer + done, want, (off_t)(offset + done));
        if (n > 0)
            done += (uint64_t)n;
        else if (n == 0)
            break;
        else if (errno != EINTR && errno != EAGAIN)
            return -errno;
    }
    return (int64_t)done;
}

int pstk__file_pwrite(int fd, const void *bytes, uint64_t size, uint64_t offset)
{
    for (uint64_t done = 0; done < size;) {
        const ssize_t n =
            pwrite(fd, (const char *)bytes + done, size - done, (off_t)(offset + done));
        if (n > 0)
            done += (uint64_t)n;
        else if (n == 0 || errno != EINTR)
            return n < 0 ? errno : ENOSPC;
    }
    return 0;
}

int pstk__file_make_temporary(int dir, char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    char *end = name + strlen(name) - 6;
    uint64_t seed = pstk__clock_ns() ^ (uint64_t)getpid() << 40 ^ (uint64_t)(uintptr_t)name;
    for (int i = 0; i < TRIES; i++) {
        uint64_t number = seed = pstk__mix64(seed + 0x9e3779b97f4a7c15u);
        for (int k = 0; k < 6; k++, number /= sizeof letters - 1)
            end[k] = letters[number % (sizeof letters - 1)];
        const int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || (errno != EEXIST && errno != EINTR))
            return fd < 0 ? -errno : fd;
    }
    return -EEXIST;
}

int pstk__file_is_at(int dir, const char *name, const struct stat *st)
{
    struct stat there;
    return fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && there.st_dev == st->st_dev &&
           there.st_ino == st->st_ino;
}

DIR *pstk__file_list(int dir)
{
    const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder && fd >= 0) {
        const int native = errno;
        close(fd);
        errno = native;
    }
    return folder;
}

const char *pstk__file_write_advice(int native)
{
    return native == ENOSPC || native == EDQUOT ? "; free some space and run again" : "";
}

/* Return the bytes of the path before its last name; 0: the path is a single name. */
static size_t parent_size(const char *path)
{
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n;
}

int pstk__file_fail_make(struct pstk_error *err, int native, int stage, const char *path)
{
    const size_t n = parent_size(path);
    if (native != ENOENT || n == 0)
        return pstk__fail_errno(err, native, stage, "%s: cannot make the directory%s", path,
                                pstk__file_write_advice(native));
    const int r = pstk__fail(err, PSTK_ENOENT, stage,
                             "%s: cannot make it: there is no folder %.*s (make it with mkdir -p)",
                             path, (int)n, path);
    if (err)
        err->native = native;
    return r;
}

int pstk__file_open(const char *path)
{
    /* O_NONBLOCK: opening a FIFO must not wait for its other end. Regular files ignore it. */
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return -errno;
    struct stat st;
    int native = fstat(fd, &st) < 0 ? errno : 0;
    if (!native && !S_ISREG(st.st_mode))
        native = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    if (!native)
        return fd;
    close(fd);
    return -native;
}

/* Return the kind of file at `path` if it is not a regular file, else NULL. */
static const char *kind_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return NULL;
    switch (st.st_mode & S_IFMT) {
    case S_IFREG:
        return NULL;
    case S_IFDIR:
        return "a directory";
    case S_IFIFO:
        return "a FIFO";
    case S_IFSOCK:
        return "a socket";
    default:
        return "a device";
    }
}

int pstk__file_fail(struct pstk_error *err, int native, int stage, const char *what,
                    const char *path)
{
    /* EISDIR, EINVAL: from pstk__file_open; ENXIO: a socket, or a device that does not exist. */
    const char *kind =
        native == EISDIR || native == EINVAL || native == ENXIO ? kind_of(path) : NULL;
    if (kind)
        return pstk__fail(err, stage == PSTK_STAGE_SHARD ? PSTK_EBADMSG : PSTK_ENOTSUP, stage,
                          "%s is %s, not a regular file; restore the file, or remove what is there",
                          what, kind);
    return pstk__fail_errno(err, native, stage, "cannot open %s%s", what,
                            native == EMFILE ? " (raise the limit of open files, ulimit -n)" : "");
}

int pstk__file_is_refused(int native)
{
    return native == EMFILE || native == ENFILE || native == ENOMEM || native == EACCES ||
           native == EPERM;
}
