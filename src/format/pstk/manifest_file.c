/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pstk/manifest_file.h"

#include "base/error.h"
#include "format/pstk/manifest_json.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int check_directory(const char *path, struct pstk_error *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN, "no such file or directory: %s",
                                path)
                   : pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "cannot open %s", path);
    if (!S_ISDIR(st.st_mode))
        return pstk__fail(
            err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
            "%s is a file; must be a directory with a " PSTK__MANIFEST_FILE " and shards", path);
    return 0;
}

int pstk__manifest_load(struct pstk__manifest *m, const struct pstk__store *store, const char *path,
                        struct pstk_error *err)
{
    memset(m, 0, sizeof *m);
    int r = store == &pstk__store_local ? check_directory(path, err) : 0;
    if (r < 0)
        return r;
    char name[PATH_MAX];
    int n = snprintf(name, sizeof name, "%s/" PSTK__MANIFEST_FILE, path);
    if (n < 0 || (size_t)n >= sizeof name)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          path);
    void *bytes;
    uint64_t size;
    r = pstk__store_load(store, name, PSTK__MANIFEST_MAX, &bytes, &size, err);
    if (r == PSTK_ENOENT)
        return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN,
                          "%s has no " PSTK__MANIFEST_FILE
                          ", so it is not a data set (or its packing did not finish)",
                          path);
    if (r < 0)
        return r;
    r = pstk__manifest_parse(m, bytes, size, name, err);
    if (r == 0) {
        m->file_size = size;
        memcpy(m->file_tail, (char *)bytes + size - PSTK__MANIFEST_TAIL, PSTK__MANIFEST_TAIL);
    }
    free(bytes);
    return r;
}

int pstk__manifest_stands(const struct pstk__manifest *m, const struct pstk__store *store,
                          const char *path)
{
    char name[PATH_MAX], tail[PSTK__MANIFEST_TAIL];
    struct pstk__file file;
    uint64_t size;
    int64_t changed_ns;
    int n = snprintf(name, sizeof name, "%s/" PSTK__MANIFEST_FILE, path);
    if (n < 0 || (size_t)n >= sizeof name)
        return -ENAMETOOLONG;
    int r = store->open(store, &file, name);
    if (r < 0)
        return r == -ENOENT || r == -ENOTDIR ? 0 : r;
    r = store->stat(&file, &size, &changed_ns);
    r = r < 0 ? r : size == m->file_size;
    if (r == 1) {
        int64_t got = pstk__file_read(&file, tail, sizeof tail, m->file_size - sizeof tail);
        r = got < 0 ? (int)got : got == sizeof tail && memcmp(tail, m->file_tail, sizeof tail) == 0;
    }
    pstk__file_end(&file);
    return r;
}
