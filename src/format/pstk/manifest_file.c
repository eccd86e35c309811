/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pstk/manifest_file.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "format/pstk/manifest_json.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PIECE_SIZE                                                                                 \
    4096 /* bytes of one read, on the stack, because a check of a lost file must not allocate */

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

/* 1: the file still begins with the bytes that describe the records; 0: it does not. */
static int records_stand(const struct pstk__manifest *m, const struct pstk__file *file)
{
    char bytes[PIECE_SIZE];
    uint32_t crc = 0;
    for (uint64_t at = 0; at < m->records_size;) {
        const uint64_t left = m->records_size - at;
        const int64_t n = pstk__file_read(file, bytes, left < PIECE_SIZE ? left : PIECE_SIZE, at);
        if (n <= 0)
            return (int)n;
        crc = pstk__crc32c(crc, bytes, (uint64_t)n);
        at += (uint64_t)n;
    }
    return m->records_size > 0 && crc == m->records_crc;
}

/* 1: the file has the size and the end of the one that was loaded; 0: it has not. */
static int is_same(const struct pstk__manifest *m, const struct pstk__file *file)
{
    char tail[PSTK__MANIFEST_TAIL];
    uint64_t size;
    int64_t changed_ns;
    int r = file->store->stat(file, &size, &changed_ns);
    if (r < 0 || size != m->file_size)
        return r < 0 ? r : 0;
    int64_t got = pstk__file_read(file, tail, sizeof tail, m->file_size - sizeof tail);
    return got < 0 ? (int)got : got == sizeof tail && memcmp(tail, m->file_tail, sizeof tail) == 0;
}

/* Call `is` with the manifest that is at `path` now. */
static int ask(const struct pstk__manifest *m, const struct pstk__store *store, const char *path,
               int (*is)(const struct pstk__manifest *m, const struct pstk__file *file))
{
    char name[PATH_MAX];
    struct pstk__file file;
    int n = snprintf(name, sizeof name, "%s/" PSTK__MANIFEST_FILE, path);
    if (n < 0 || (size_t)n >= sizeof name)
        return -ENAMETOOLONG;
    int r = store->open(store, &file, name);
    if (r < 0)
        return r == -ENOENT || r == -ENOTDIR ? 0 : r;
    r = is(m, &file);
    pstk__file_end(&file);
    return r;
}

int pstk__manifest_unchanged(const struct pstk__manifest *m, const struct pstk__store *store,
                             const char *path)
{
    return ask(m, store, path, is_same);
}

int pstk__manifest_stands(const struct pstk__manifest *m, const struct pstk__store *store,
                          const char *path)
{
    const int r = pstk__manifest_unchanged(m, store, path);
    return r == 0 ? ask(m, store, path, records_stand) : r;
}
