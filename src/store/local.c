/* SPDX-License-Identifier: Apache-2.0 */
/* Local and mounted files, opened by path and read with pread. */
#include "store/store.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FOLLOWED                                                                               \
    256 /* max entries of unknown type that are checked with stat: each takes some microseconds */

static int local_open(const struct pstk__store *store, struct pstk__file *file, const char *path)
{
    const int fd = pstk__file_open(path);
    *file = (struct pstk__file){.store = fd < 0 ? NULL : store, .fd = fd < 0 ? -1 : fd};
    return fd < 0 ? fd : 0;
}

static int local_stat(const struct pstk__file *file, uint64_t *size, int64_t *changed_ns)
{
    struct stat st;
    if (fstat(file->fd, &st) < 0)
        return -errno;
    *size = (uint64_t)st.st_size;
    *changed_ns = pstk__file_changed_ns(&st);
    return 0;
}

static int local_look(const struct pstk__store *store, const char *path,
                      struct pstk__store_entry *entry)
{
    struct stat st;
    (void)store;
    if (stat(path, &st) < 0)
        return -errno;
    *entry = (struct pstk__store_entry){.kind = S_ISREG(st.st_mode)   ? PSTK__STORE_FILE
                                                : S_ISDIR(st.st_mode) ? PSTK__STORE_FOLDER
                                                                      : PSTK__STORE_OTHER,
                                        .size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0,
                                        .changed_ns = pstk__file_changed_ns(&st),
                                        .device = st.st_dev,
                                        .inode = st.st_ino};
    return 0;
}

static int64_t local_read_at(const struct pstk__file *file, void *buffer, uint64_t size,
                             uint64_t offset)
{
    const ssize_t n = pread(file->fd, buffer, size, (off_t)offset);
    return n < 0 ? -errno : n;
}

static void local_close(struct pstk__file *file)
{
    close(file->fd); /* read only: nothing can be lost */
}

static int local_list(const struct pstk__store *store, const char *path, pstk__store_name_fn each,
                      void *user)
{
    (void)store;
    DIR *directory = opendir(path);
    if (!directory)
        return -errno;
    int rc = 0;
    const struct dirent *entry;
    while (rc == 0 && (errno = 0, entry = readdir(directory)))
        rc = each(user, entry->d_name);
    if (rc == 0)
        rc = -errno;
    closedir(directory);
    return rc;
}

/* 1: the entry is a folder. If the directory gives no type, this checks at most *n_left entries
 * with stat. */
static int is_folder(int directory, const struct dirent *entry, uint32_t *n_left)
{
    struct stat st;
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    if (*n_left == 0)
        return 0;
    --*n_left;
    return fstatat(directory, entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static int local_list_folders(const struct pstk__store *store, const char *path,
                              pstk__store_name_fn each, void *user)
{
    (void)store;
    uint32_t n_left = MAX_FOLLOWED;
    DIR *directory = opendir(path);
    if (!directory)
        return -errno;
    int rc = 0;
    const struct dirent *entry;
    while (rc == 0 && (errno = 0, entry = readdir(directory))) {
        if (entry->d_name[0] != '.' && is_folder(dirfd(directory), entry, &n_left))
            rc = each(user, entry->d_name);
    }
    if (rc == 0)
        rc = -errno;
    closedir(directory);
    return rc;
}

const struct pstk__store pstk__store_local = {
    .name = "files",
    .has_fds = 1,
    .open = local_open,
    .stat = local_stat,
    .read_at = local_read_at,
    .close = local_close,
    .look = local_look,
    .list = local_list,
    .list_folders = local_list_folders,
};
