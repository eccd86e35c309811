/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/spot.h"

#include "store/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Write a, b and c end to end. 0, or EINVAL: they are too long for a path. */
static int join(char to[PATH_MAX], const char *a, const char *b, const char *c)
{
    const int n = snprintf(to, PATH_MAX, "%s%s%s", a, b, c);
    return n < 0 || n >= PATH_MAX ? PSTK_EINVAL : 0;
}

int pstk__index_spot_of(const struct pstk__index_location *location, int in_cache,
                        struct pstk__index_spot *spot)
{
    char name[80];
    snprintf(name, sizeof name, "/%.14s-%016" PRIx64 "%016" PRIx64 "%.12s", location->format,
             location->key[0] ^ (in_cache ? location->path_digest[0] : 0),
             location->key[1] ^ (in_cache ? location->path_digest[1] : 0),
             location->ending ? location->ending : PSTK__SIDECAR_INDEX);
    int r = in_cache ? join(spot->folder, location->cache, "/" PSTK__SIDECAR_CACHE, "")
                     : join(spot->folder, location->data, "/" PSTK__SIDECAR_FOLDER, "");
    if (r == 0)
        r = join(spot->index, spot->folder, name, "");
    return r < 0 ? r : join(spot->lock, spot->index, PSTK__SIDECAR_LOCK, "");
}

/* ---- reading --------------------------------------------------------------------------------- */

int pstk__index_trusts(uint32_t user, uint32_t data_owner)
{
    return user == geteuid() || user == 0 || user == data_owner;
}

/* As openat, but continues after signals and follows no link. */
static int open_at(int dir, const char *name, int flags)
{
    int fd;
    do
        fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* Open the file. Returns the descriptor, or -1 with *why. */
static int open_index(const struct pstk__index_spot *spot, const char **why)
{
    struct stat st;
    if (lstat(spot->index, &st) < 0)
        return -1; /* needs no descriptor: none may be left */
    const int dir = open_at(AT_FDCWD, spot->folder, O_PATH | O_DIRECTORY);
    if (dir < 0) {
        *why = errno == ENOTDIR || errno == ELOOP ? "its folder is a link" : "it cannot be read";
        return -1;
    }
    const int fd = open_at(dir, pstk__sidecar_name(spot->index), O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno != ENOENT)
        *why = errno == ELOOP || errno == ENXIO ? "it is a link, or no file" : "it cannot be read";
    close(dir);
    return fd;
}

int pstk__index_spot_read(const struct pstk__index_location *location,
                          const struct pstk__index_spot *spot, const char **why)
{
    struct stat file, data;
    *why = NULL;
    const int fd = open_index(spot, why);
    if (fd < 0)
        return -1;
    if (fstat(fd, &file) < 0 || !S_ISREG(file.st_mode))
        *why = "it is a link, or no file";
    else if (!pstk__index_trusts(file.st_uid, stat(location->data, &data) == 0 ? data.st_uid : 0))
        *why = "it belongs to another user than you, root and the owner of the data";
    if (!*why)
        return fd;
    close(fd);
    return -1;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* 1: this user may make files in a folder of `owner`. Root may also in the data owner's folder: in
 * containers everybody is root. An index in any other user's folder has three faults: nobody else
 * would read it, it might contain private data, and it would keep the data's owner from making one.
 */
static int is_for_writing(uid_t owner, uid_t data_owner)
{
    const uid_t user = geteuid();
    return owner == user || owner == 0 || (user == 0 && owner == data_owner);
}

int pstk__index_spot_open(const struct pstk__index_location *location, int in_cache,
                          const struct pstk__index_spot *spot, struct pstk__index_refusal *refusal)
{
    struct stat around, st;
    int is_made = 0;
    int r = in_cache ? pstk__sidecar_make_cache(location->cache) : 0;
    if (r == 0 && stat(in_cache ? location->cache : location->data, &around) < 0)
        r = -errno;
    if (r < 0)
        return pstk__index_refuse(refusal, -r, NULL);
    if (lstat(spot->folder, &st) < 0) {
        if (!in_cache && !is_for_writing(around.st_uid, around.st_uid))
            return pstk__index_refuse(refusal, EACCES, "the folder is another user's");
        /* `penstock cache --clear` skips folders that others can write to, so the cache's folder
         * gets 0755 whatever the umask is. */
        r = pstk__sidecar_make_folder(spot->folder, in_cache ? 0755 : 0777);
        is_made = r == 0;
    }
    if (r < 0)
        return pstk__index_refuse(refusal, -r, NULL);
    const int dir = open_at(AT_FDCWD, spot->folder, O_RDONLY | O_DIRECTORY);
    if (dir < 0)
        return errno == ENOTDIR || errno == ELOOP
                   ? pstk__index_refuse(refusal, EACCES,
                                        "what should be its folder is a link, or no folder")
                   : pstk__index_refuse(refusal, errno, NULL);
    if (fstat(dir, &st) == 0 && is_for_writing(st.st_uid, around.st_uid))
        return dir;
    close(dir);
    if (is_made) /* root may be another user, as on NFS; rmdir fails if the folder has files */
        (void)rmdir(spot->folder);
    return pstk__index_refuse(refusal, EACCES, "its folder is another user's");
}
