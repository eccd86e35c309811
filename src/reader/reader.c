/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/reader.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* EINTR and EAGAIN in a row after which a read gives up: far more than any signal storm or short
 * memory pressure causes, and still over soon. */
#define MAX_REFUSED 1000

/*
 * Detect the end of a file for a read that goes past it. An attempt that starts at the end of the
 * last one gets 0 bytes: the end. An attempt that had to start before that (see pstk__reader_start)
 * gets the last bytes again instead: it stalls. The next attempt starts exactly at `done`. A
 * buffered file then answers with more bytes or with 0. A direct file answers 0, or EINVAL for the
 * odd offset. Direct reads stop at an odd offset only at the end of the file, so that is the end
 * too.
 */
int pstk__reader_result(struct pstk__read *read, int32_t got)
{
    if (read->stalled && got == -EINVAL)
        got = 0;
    if (got < 0) {
        if ((got == -EINTR || got == -EAGAIN) && read->n_refused < MAX_REFUSED) {
            read->n_refused++;
            return 0;
        }
        read->result = got;
        return 1;
    }
    uint32_t end = pstk__reader_start(read) + (uint32_t)got;
    read->n_refused = 0;
    read->stalled = got > 0 && end <= read->done;
    if (end > read->done)
        read->done = end;
    if (got > 0 && read->done < read->size)
        return 0;
    read->result = (int32_t)read->done;
    return 1;
}

static int check_config(const struct pstk__reader_config *c, struct pstk_error *err)
{
    if (c->depth < 1 || c->depth > PSTK__MAX_DEPTH)
        return pstk__fail_setting(err, "queue_depth", c->depth, "from 1 to %u", PSTK__MAX_DEPTH);
    if (c->n_files < 1)
        return pstk__fail_setting(err, "n_files", c->n_files, "at least 1");
    if (c->kind > PSTK_READER_THREADS)
        return pstk__fail_setting(err, "reader", c->kind, "from 0 to %d", PSTK_READER_THREADS);
    return 0;
}

int pstk__reader_open(struct pstk__reader **out, const struct pstk__reader_config *c,
                      uint32_t *fallbacks, struct pstk_error *err)
{
    *out = NULL;
    int r = check_config(c, err);
    if (r < 0)
        return r;
    if (c->kind == PSTK_READER_THREADS)
        return pstk__reader_threads.open(out, c, fallbacks, err);
    if (c->no_fds)
        r = pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                       "reader: value is io_uring; must be auto or threads, because the kernel "
                       "cannot read the files of this data set");
    else
        r = pstk__reader_uring.open(out, c, fallbacks, err);
    if (r != PSTK_ENOTSUP || c->kind == PSTK_READER_IO_URING)
        return r;
    *fallbacks |= PSTK_FALLBACK_NO_IO_URING;
    if (err)
        pstk_error_init(err, err->size); /* a refusal with a fallback is not an error */
    return pstk__reader_threads.open(out, c, fallbacks, err);
}

/* ---- alignment of direct I/O --------------------------------------------------------------- */

/* Ask the kernel (6.1 and newer) for the alignment. Returns 1: known; 0: the kernel does not
 * answer; else -errno. */
static int align_by_statx(const char *path, uint32_t *memory_align, uint32_t *offset_align)
{
#ifdef STATX_DIOALIGN
    struct statx status;
    if (statx(AT_FDCWD, path, 0, STATX_DIOALIGN | STATX_TYPE, &status) < 0)
        return errno == ENOSYS || errno == EINVAL ? 0 : -errno;
    if (!(status.stx_mask & STATX_DIOALIGN) || !S_ISREG(status.stx_mode))
        return 0;
    if (status.stx_dio_mem_align == 0 || status.stx_dio_offset_align == 0)
        return -EINVAL; /* an alignment of 0: the kernel refuses O_DIRECT for this file */
    *memory_align = status.stx_dio_mem_align;
    *offset_align = status.stx_dio_offset_align;
    return 1;
#else
    (void)path, (void)memory_align, (void)offset_align;
    return 0;
#endif
}

/* Try a direct read, because some file systems refuse O_DIRECT only at open. Takes fd. */
static int align_by_fd(int fd, uint32_t *memory_align, uint32_t *offset_align)
{
    struct stat st;
    if (fd < 0)
        return -errno;
    int r = fstat(fd, &st) < 0 ? -errno : 0;
    /* Some file systems accept the flag and refuse the read. */
    _Alignas(4096) uint8_t page[4096];
    if (r == 0 && pread(fd, page, sizeof page, 0) < 0 && (errno == EINVAL || errno == EOPNOTSUPP))
        r = -errno;
    close(fd); /* read-only, or unlinked and empty: nothing can be lost */
    if (r < 0)
        return r;
    uint64_t align = st.st_blksize > 512 ? (uint64_t)st.st_blksize : 512;
    /* st_blksize is a preferred size, not an alignment: network file systems answer 1 MiB. */
    if (align > 4096 || (align & (align - 1)))
        align = 4096;
    *memory_align = (uint32_t)align;
    *offset_align = (uint32_t)align;
    return 0;
}

/* Ask a file made in the directory, which itself has no data to read directly: without a name if
 * the file system can, else with one for a moment. */
static int align_in_directory(const char *path, uint32_t *memory_align, uint32_t *offset_align)
{
    int fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) {
        char name[64];
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        int known = align_by_statx(name, memory_align, offset_align);
        if (known == 0 && fcntl(fd, F_SETFL, O_DIRECT) == 0)
            return align_by_fd(fd, memory_align, offset_align);
        int r = known > 0 ? 0 : known < 0 ? known : -errno;
        close(fd);
        return r;
    }
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
        return -errno;
    char name[4096];
    int n = snprintf(name, sizeof name, "%s/.penstock-XXXXXX", path);
    if (n < 0 || (size_t)n >= sizeof name)
        return -ENAMETOOLONG;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = unlink(name) < 0 || fcntl(fd, F_SETFL, O_DIRECT) < 0 ? -errno : 0;
    if (r < 0) {
        close(fd);
        return r;
    }
    return align_by_fd(fd, memory_align, offset_align);
}

int pstk__direct_align(const char *path, uint32_t *memory_align, uint32_t *offset_align)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return align_in_directory(path, memory_align, offset_align);
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    int known = align_by_statx(path, memory_align, offset_align);
    if (known != 0)
        return known > 0 ? 0 : known;
    return align_by_fd(open(path, O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK),
                       memory_align, offset_align);
}
