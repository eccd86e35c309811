/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cache/tables.h"

#include "store/cache/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DIGITS 24 /* digits of a digest */

/* Open a trusted folder in another one; AT_FDCWD: `name` is a path. NULL: *r is 0 if there is none,
 * or a negative errno. */
static DIR *open_folder(int at, const char *name, int *r)
{
    struct stat st;
    const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *r = fd >= 0 || errno == ENOENT ? 0 : -errno;
    DIR *folder =
        fd < 0 || fstat(fd, &st) < 0 || !pstk__cache_is_trusted(&st) ? NULL : fdopendir(fd);
    if (fd >= 0 && !folder)
        close(fd);
    return folder;
}

/* 1: the name is 24 digits and then `end`. */
static int is_named(const char *name, const char *end)
{
    return strspn(name, "0123456789abcdef") == DIGITS && strcmp(name + DIGITS, end) == 0;
}

/* Count or remove the tables in a folder, and close it. */
static void see_folder(DIR *folder, int is_removing, struct pstk__cache_tables *tables)
{
    const struct dirent *entry;
    while ((entry = readdir(folder))) {
        const int is_table = is_named(entry->d_name, ".jsonl");
        struct stat st;
        if ((!is_table && !is_named(entry->d_name, ".fields")) ||
            fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(st.st_mode))
            continue;
        if (is_removing && unlinkat(dirfd(folder), entry->d_name, 0) < 0) {
            tables->n_refused += errno != ENOENT;
            continue;
        }
        tables->n += is_table;
        tables->bytes += (uint64_t)st.st_size;
    }
    closedir(folder);
}

int pstk__cache_tables_see(struct pstk__cache_tables *tables, const char *cache_path,
                           int is_removing)
{
    char path[PATH_MAX];
    int r, of_folder;
    *tables = (struct pstk__cache_tables){.n = 0};
    const int n = snprintf(path, sizeof path, "%s/" PSTK__CACHE_TABLES, cache_path);
    if (n < 0 || (size_t)n >= sizeof path)
        return -ENAMETOOLONG;
    DIR *folder = open_folder(AT_FDCWD, path, &r);
    if (!folder)
        return r;
    const struct dirent *entry;
    while ((entry = readdir(folder))) {
        DIR *place = is_named(entry->d_name, "")
                         ? open_folder(dirfd(folder), entry->d_name, &of_folder)
                         : NULL;
        if (place)
            see_folder(place, is_removing, tables);
    }
    closedir(folder);
    return 0;
}
