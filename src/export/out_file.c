/* SPDX-License-Identifier: Apache-2.0 */
#include "export/out_file.h"

#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_SIZE                                                                                \
    (1u << 20) /* bytes; large enough to make the cost of system calls negligible                  \
                */

static int fail(const struct pstk__out_file *file, int native, const char *what,
                struct pstk_error *err)
{
    return pstk__fail_errno(err, native, PSTK_STAGE_WRITE, "%s: cannot %s %s%s", file->folder, what,
                            file->name, pstk__file_write_advice(native));
}

int pstk__out_file_open(struct pstk__out_file *file, int dir, const char *folder, const char *name,
                        struct pstk_error *err)
{
    *file = (struct pstk__out_file){.folder = folder, .fd = -1, .name = strdup(name)};
    file->buffer = malloc(BUFFER_SIZE);
    int r = 0;
    if (!file->name || !file->buffer)
        r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", folder);
    if (r == 0) {
        file->fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd < 0)
            r = errno == EEXIST || errno == ENOTDIR ? PSTK_EEXIST
                                                    : fail(file, errno, "create", err);
    }
    if (r < 0)
        pstk__out_file_drop(file);
    return r;
}

/* Write all bytes after the bytes already written. */
static int write_all(struct pstk__out_file *file, const uint8_t *data, uint64_t size,
                     struct pstk_error *err)
{
    while (size > 0) {
        const size_t piece = size < (1u << 30) ? (size_t)size : 1u << 30;
        const ssize_t n = pwrite(file->fd, data, piece, (off_t)file->n_written);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail(file, n < 0 ? errno : EIO, "write", err);
        data += n;
        size -= (uint64_t)n;
        file->n_written += (uint64_t)n;
    }
    return 0;
}

int pstk__out_file_flush(struct pstk__out_file *file, struct pstk_error *err)
{
    const uint32_t n = file->n_buffered;
    file->n_buffered = 0;
    return write_all(file, file->buffer, n, err);
}

int pstk__out_file_put(struct pstk__out_file *file, const void *data, uint64_t size,
                       struct pstk_error *err)
{
    int r = 0;
    if (size == 0)
        return 0;
    if (size > BUFFER_SIZE - file->n_buffered)
        r = pstk__out_file_flush(file, err);
    if (r < 0)
        return r;
    file->size += size;
    if (size >= BUFFER_SIZE)
        return write_all(file, data, size, err);
    memcpy(file->buffer + file->n_buffered, data, size);
    file->n_buffered += (uint32_t)size;
    return 0;
}

int pstk__out_file_copy(struct pstk__out_file *file, int from, uint64_t offset, uint64_t size,
                        struct pstk_error *err)
{
    int r = pstk__out_file_flush(file, err);
    for (uint64_t done = 0; r == 0 && done < size;) {
        const uint64_t piece = size - done < BUFFER_SIZE ? size - done : BUFFER_SIZE;
        const int64_t n = pstk__file_pread(from, file->buffer, piece, offset + done);
        if (n != (int64_t)piece)
            return fail(file, n < 0 ? (int)-n : EIO, "read back the samples of", err);
        r = write_all(file, file->buffer, piece, err);
        done += piece;
        file->size += piece;
    }
    return r;
}

int pstk__out_file_end(struct pstk__out_file *file, int synced, struct pstk_error *err)
{
    int r = pstk__out_file_flush(file, err);
    if (r == 0 && synced && fsync(file->fd) < 0)
        r = fail(file, errno, "sync", err);
    /* Some file systems report a failed write only at close. */
    if (close(file->fd) < 0 && r == 0 && errno != EINTR)
        r = fail(file, errno, "close", err);
    file->fd = -1;
    pstk__out_file_drop(file);
    return r;
}

void pstk__out_file_drop(struct pstk__out_file *file)
{
    if (file->buffer && file->fd >= 0)
        close(file->fd);
    free(file->name);
    free(file->buffer);
    *file = (struct pstk__out_file){.fd = -1};
}
