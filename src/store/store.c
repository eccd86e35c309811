/* SPDX-License-Identifier: Apache-2.0 */
/* The list of stores, and the functions that work on all of them. */
#include "store/store.h"

#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* max bytes of one read: Linux reads at most 0x7ffff000 */
#define READ_MAX (1u << 30)

const struct pstk__store *pstk__store_of(const char *path)
{
    (void)path; /* one store: every path is a local file's */
    return &pstk__store_local;
}

void pstk__file_end(struct pstk__file *file)
{
    if (file->store)
        file->store->close(file);
    *file = (struct pstk__file){.fd = -1};
}

int pstk__store_is_absent(int r)
{
    return r == -ENOENT || r == -ENOTDIR || r == -EISDIR || r == -EINVAL || r == -ENXIO ||
           r == -ENAMETOOLONG || r == -ELOOP;
}

int pstk__store_find_file(const struct pstk__store *store, const char *path)
{
    struct pstk__file file;
    const int r = store->open(store, &file, path);
    pstk__file_end(&file);
    if (pstk__store_is_absent(r))
        return 0;
    return r == 0 ? 1 : r;
}

int pstk__store_has_file(const struct pstk__store *store, const char *path)
{
    return pstk__store_find_file(store, path) == 1;
}

int64_t pstk__file_read(const struct pstk__file *file, void *buffer, uint64_t size, uint64_t offset)
{
    uint64_t done = 0;
    while (done < size) {
        const uint64_t want = size - done < READ_MAX ? size - done : READ_MAX;
        const int64_t n = file->store->read_at(file, (char *)buffer + done, want, offset + done);
        if (n > 0)
            done += (uint64_t)n;
        else if (n == 0)
            break;
        else if (n != -EINTR && n != -EAGAIN)
            return n;
    }
    return (int64_t)done;
}

int pstk__file_check_same(const struct pstk__file *file, const char *name, uint64_t size,
                          int64_t changed_ns, int stage, struct pstk_error *err)
{
    uint64_t is_size;
    int64_t is_changed_ns;
    const int r = file->store->stat(file, &is_size, &is_changed_ns);
    if (r < 0)
        return pstk__fail_errno(err, -r, stage, "cannot read %s", name);
    if (is_size != size)
        return pstk__fail(err, PSTK_EBADMSG, stage,
                          "%s was changed or replaced since the data set was opened: it has %llu "
                          "bytes, and had %llu: open the data set again",
                          name, (unsigned long long)is_size, (unsigned long long)size);
    return is_changed_ns == changed_ns
               ? 0
               : pstk__fail(err, PSTK_EBADMSG, stage,
                            "%s was changed or replaced since the data set was opened (its time of "
                            "change differs): open the data set again",
                            name);
}

const char *pstk__file_why(const struct pstk__file *file, int native, char text[PSTK__WHY])
{
    char why[PSTK__WHY - 4] = "";
    if (native == EBADMSG && file->store && file->store->explain)
        file->store->explain(file, why, sizeof why);
    snprintf(text, PSTK__WHY, why[0] ? " (%s)" : "%s", why);
    return text;
}

const char *pstk__store_why(const struct pstk__store *store, char text[PSTK__WHY])
{
    char why[PSTK__WHY - 4] = "";
    if (store->explain_open)
        store->explain_open(store, why, sizeof why);
    snprintf(text, PSTK__WHY, why[0] ? " (%s)" : "%s", why);
    return text;
}

int pstk__store_fail_open(const struct pstk__store *store, int native, int stage, const char *what,
                          struct pstk_error *err)
{
    char why[PSTK__WHY];
    return pstk__store_why(store, why)[0]
               ? pstk__fail_native(err, native, stage, "cannot open %s%s", what, why)
               : pstk__fail_errno(err, native, stage, "cannot open %s", what);
}

/* Load the bytes of an opened file. */
static int load(const struct pstk__file *file, const char *path, uint64_t max_size, void **bytes,
                uint64_t *size, struct pstk_error *err)
{
    uint64_t file_size;
    int64_t changed_ns;
    const int rc = file->store->stat(file, &file_size, &changed_ns);
    if (rc < 0)
        return pstk__fail_errno(err, -rc, PSTK_STAGE_OPEN, "cannot read %s", path);
    if (file_size > max_size)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                          "%s has %llu bytes; must be at most %llu", path,
                          (unsigned long long)file_size, (unsigned long long)max_size);
    void *buffer = malloc(file_size ? file_size : 1);
    if (!buffer)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the %llu bytes of %s",
                          (unsigned long long)file_size, path);
    const int64_t n = pstk__file_read(file, buffer, file_size, 0);
    if (n < 0) {
        free(buffer);
        return pstk__fail_errno(err, (int)-n, PSTK_STAGE_OPEN, "cannot read %s", path);
    }
    /* A file that shrank meanwhile gives fewer bytes, and its checksum is then wrong. */
    *bytes = buffer;
    *size = (uint64_t)n;
    return 0;
}

int pstk__store_load(const struct pstk__store *store, const char *path, uint64_t max_size,
                     void **bytes, uint64_t *size, struct pstk_error *err)
{
    struct pstk__file file;
    *bytes = NULL;
    *size = 0;
    int rc = store->open(store, &file, path);
    if (rc == -ENOENT)
        return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN, "no such file: %s", path);
    if (rc < 0)
        return pstk__file_fail(err, -rc, PSTK_STAGE_OPEN, path, path);
    rc = load(&file, path, max_size, bytes, size, err);
    pstk__file_end(&file);
    return rc;
}
