/* SPDX-License-Identifier: Apache-2.0 */
#include "export/dir_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct walk {
    pstk__walk_fn fn;
    void *user;
    uint32_t max_depth;
    char path[PSTK__WALK_PATH];
};

static int walk_into(struct walk *walk, int dir, size_t at, uint32_t depth);

/* Visit an entry, whose name was appended to the path at `at`. */
static int visit(struct walk *walk, int dir, const char *name, size_t at, uint32_t depth)
{
    struct stat status;
    if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISDIR(status.st_mode)) {
        if (depth == walk->max_depth)
            return -ELOOP;
        const int inner = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner < 0)
            return -errno;
        const size_t end = at + strlen(name);
        walk->path[end] = '/';
        const int r = walk_into(walk, inner, end + 1, depth + 1);
        walk->path[end] = 0;
        if (r)
            return r;
    }
    return walk->fn(walk->user, dir, name, walk->path, &status);
}

/* Visit the entries of the directory `dir`, whose path ends at `at`. Takes dir. */
static int walk_into(struct walk *walk, int dir, size_t at, uint32_t depth)
{
    DIR *folder = fdopendir(dir);
    struct dirent *entry;
    int r = 0;
    if (!folder) {
        r = -errno;
        close(dir);
        return r;
    }
    while (r == 0 && (errno = 0, entry = readdir(folder))) {
        const char *name = entry->d_name;
        const size_t size = strlen(name);
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (at + size + 2 > sizeof walk->path) {
            r = -ENAMETOOLONG;
            break;
        }
        memcpy(walk->path + at, name, size + 1);
        r = visit(walk, dir, name, at, depth);
    }
    if (r == 0)
        r = -errno;
    closedir(folder);
    return r;
}

int pstk__dir_walk(int dir, uint32_t max_depth, pstk__walk_fn fn, void *user)
{
    struct walk walk = {.fn = fn, .user = user, .max_depth = max_depth};
    /* Use a new descriptor: a dup shares the position, and closedir would close the caller's. */
    const int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return own < 0 ? -errno : walk_into(&walk, own, 0, 0);
}
