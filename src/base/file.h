/* SPDX-License-Identifier: Apache-2.0 */
/* file: plain local files, opened and read synchronously. */
#ifndef PSTK_FILE_H
#define PSTK_FILE_H

#include <penstock/types.h>

#include <dirent.h>
#include <sys/stat.h>

/* Return the time of a file's last change, in ns since 1970. Sums are unsigned: a time as late as
 * the year 2300 wraps, and still differs from other times. */
static inline int64_t pstk__file_changed_ns(const struct stat *st)
{
    return (int64_t)((uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec);
}
/* Read `size` bytes at `offset`; continues short reads and EINTR. Returns the number of bytes read,
 * fewer than size only at the end of the file, or a negative native errno. */
int64_t pstk__file_pread(int fd, void *buffer, uint64_t size, uint64_t offset);
/* Write `size` bytes at `offset`; continues short writes and EINTR. 0 or a positive native errno;
 * ENOSPC when a write writes nothing. */
int pstk__file_pwrite(int fd, const void *bytes, uint64_t size, uint64_t offset);

/* Create a file in the folder `dir` for this user only, open for reading and writing. name ends in
 * XXXXXX, which become letters that no file there has. As mkostemp, but another user who can write
 * to the parent cannot redirect it. Returns the descriptor, owned, or a negative native errno. */
int pstk__file_make_temporary(int dir, char *name);
/* Return 1 when the name in the folder `dir` is the file of *st. A link is not followed. */
int pstk__file_is_at(int dir, const char *name, const struct stat *st);
/* Open the folder `dir` to list its names from the first on. Owned, for closedir; NULL: errno says
 * why. */
DIR *pstk__file_list(int dir);

/* Return the advice that ends the message of a failed write, for this native errno: non-empty when
 * the disk or the quota is full, else "". Static. */
const char *pstk__file_write_advice(int native);
/* Fail for a directory that mkdir refused with this native errno. The message names the parent, if
 * it is missing. Returns the code. */
int pstk__file_fail_make(struct pstk_error *err, int native, int stage, const char *path);

/* Open a regular file for reading. It never waits, even if `path` is a FIFO, a socket or a device.
 * Returns the descriptor, or a negative native errno for pstk__file_fail. */
int pstk__file_open(const char *path);
/* Fail with the (positive) errno of pstk__file_open for `what`, "shard /data/0.pstk" or the like,
 * which ends in `path`. The message names the kind of file there if it is not regular: EBADMSG for
 * a data set's shard (PSTK_STAGE_SHARD), else ENOTSUP. Returns the code. */
int pstk__file_fail(struct pstk_error *err, int native, int stage, const char *what,
                    const char *path);

/* Return 1 when this native errno means that the machine refuses to open the file, whatever its
 * contents: a limit or a permission. */
int pstk__file_is_refused(int native);

#endif
