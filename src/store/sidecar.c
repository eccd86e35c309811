/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sidecar.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "base/little.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint32_t pstk__sidecar_crc(const uint8_t *head, uint64_t size)
{
    return pstk__crc32c(0, head + PSTK__SIDECAR_VERSION, size - PSTK__SIDECAR_VERSION);
}

void pstk__sidecar_seal(uint8_t *head, uint64_t size, const char magic[8], uint32_t version)
{
    memcpy(head + PSTK__SIDECAR_MAGIC, magic, 8);
    pstk__put32(head + PSTK__SIDECAR_VERSION, version);
    pstk__put32(head + PSTK__SIDECAR_CRC, pstk__sidecar_crc(head, size));
}

enum pstk__sidecar_state pstk__sidecar_check(const uint8_t *head, uint64_t size,
                                             const char magic[8], uint32_t version)
{
    if (memcmp(head + PSTK__SIDECAR_MAGIC, magic, 8) != 0)
        return PSTK__SIDECAR_IS_OTHER;
    if (pstk__get32(head + PSTK__SIDECAR_VERSION) != version)
        return PSTK__SIDECAR_IS_OF_ANOTHER_VERSION;
    return pstk__get32(head + PSTK__SIDECAR_CRC) == pstk__sidecar_crc(head, size)
               ? PSTK__SIDECAR_IS_WHOLE
               : PSTK__SIDECAR_IS_DAMAGED;
}

static int fail_write(const struct pstk__sidecar *file, int native, struct pstk_error *err)
{
    return pstk__fail_errno(err, native, PSTK_STAGE_OPEN, "cannot write the %s %s%s", file->what,
                            file->path, pstk__file_write_advice(native));
}

int pstk__sidecar_fail_memory(const char *what, const char *path, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the %s %s", what, path);
}

int pstk__sidecar_open(struct pstk__sidecar *file, const char *what, int dir, const char *path,
                       struct pstk_error *err)
{
    *file = (struct pstk__sidecar){.what = what, .fd = -1, .dir = dir};
    const int n = snprintf(file->path, sizeof file->path, "%s", path);
    /* The random name keeps writers apart if files cannot be locked. */
    const int m = snprintf(file->temporary, sizeof file->temporary,
                           "%s" PSTK__SIDECAR_TEMPORARY "XXXXXX", pstk__sidecar_name(path));
    const int is_long =
        n < 0 || (size_t)n >= sizeof file->path || m < 0 || (size_t)m >= sizeof file->temporary;
    const int fd = is_long ? -1 : pstk__file_make_temporary(dir, file->temporary);
    if (fd < 0)
        file->temporary[0] = 0;
    else
        file->fd = fd;
    if (is_long)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          path);
    return fd < 0 ? fail_write(file, -fd, err) : 0;
}

int pstk__sidecar_unname(struct pstk__sidecar *file, struct pstk_error *err)
{
    if (unlinkat(file->dir, file->temporary, 0) < 0)
        return fail_write(file, errno, err);
    file->temporary[0] = 0;
    return 0;
}

int pstk__sidecar_write(struct pstk__sidecar *file, const void *bytes, uint64_t size,
                        uint64_t offset, struct pstk_error *err)
{
    const int native = pstk__file_pwrite(file->fd, bytes, size, offset);
    return native ? fail_write(file, native, err) : 0;
}

int pstk__sidecar_publish(struct pstk__sidecar *file, struct pstk_error *err)
{
    /* Let everybody read the file, as they may read the data: a temporary file is private. */
    if (fchmod(file->fd, 0644) < 0 || fsync(file->fd) < 0 ||
        renameat(file->dir, file->temporary, file->dir, pstk__sidecar_name(file->path)) < 0)
        return fail_write(file, errno, err);
    file->temporary[0] = 0;
    return 0;
}

void pstk__sidecar_close(struct pstk__sidecar *file)
{
    if (file->temporary[0])
        unlinkat(file->dir, file->temporary, 0); /* a file that stays only wastes room */
    if (file->fd >= 0)
        close(file->fd);
    file->temporary[0] = 0;
    file->fd = -1;
}

const char *pstk__sidecar_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int pstk__sidecar_is_left(const struct stat *st, int64_t seconds)
{
    return st->st_mtim.tv_sec + seconds < time(NULL);
}

/* 1: the name belongs to a temporary file whose final name ends in `ending`. */
static int is_temporary(const char *name, const char *ending)
{
    const char *at = strstr(name, PSTK__SIDECAR_TEMPORARY);
    const size_t n = strlen(ending);
    return at && (size_t)(at - name) >= n && memcmp(at - n, ending, n) == 0;
}

void pstk__sidecar_remove_left(int dir, const char *ending, int64_t seconds)
{
    DIR *folder = pstk__file_list(dir);
    const struct dirent *entry;
    struct stat st;
    while (folder && (entry = readdir(folder)))
        if (is_temporary(entry->d_name, ending) &&
            fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            pstk__sidecar_is_left(&st, seconds))
            unlinkat(dir, entry->d_name, 0); /* a file that stays only wastes room */
    if (folder)
        closedir(folder);
}

int pstk__sidecar_make_folder(const char *path, mode_t mode)
{
    return mkdir(path, mode) < 0 && errno != EEXIST ? -errno : 0;
}

int pstk__sidecar_make_cache(const char *path)
{
    char parent[PATH_MAX];
    int above = 0;
    snprintf(parent, sizeof parent, "%s", path);
    size_t n = strlen(parent);
    while (n > 1 && parent[n - 1] == '/')
        parent[--n] = 0;
    char *slash = strrchr(parent, '/');
    if (slash && slash != parent) {
        *slash = 0;
        above = pstk__sidecar_make_folder(parent, 0700);
        if (above < 0 && above != -EACCES && above != -EROFS) /* it may exist and be read-only */
            return above;
    }
    const int r = pstk__sidecar_make_folder(path, 0777);
    return r == -ENOENT && above < 0 ? above : r;
}
