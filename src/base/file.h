/* SPDX-License-Identifier: Apache-2.0 */
/* file: plain local files, opened and read synchronously. */
#ifndef PSTK_FILE_H
#define PSTK_FILE_H

#include <penstock/types.h>

#include <dirent.h>
#include <sys/stat.h>

/* When a file was changed last, in ns since 1970. Unsigned sums: a file may be of the year 2300,
 * whose time then wraps, and differs as before. */
static inline int64_t pstk__file_changed_ns(const struct stat *st)
{
    return (int64_t)((uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec);
}
/* Read `size` bytes at `offset`; continues short reads and EINTR. Returns the number of bytes read,
 * fewer than size only at the end of the file, or a negative native errno. */
int64_t pstk__file_pread(int fd, void *buffer, uint64_t size, uint64_t offset);
/* Write `size` bytes at `offset`; continues short writes and EINTR. 0 or a positive native errno;
 * ENOSPC where a write wrote nothing. */
int pstk__file_pwrite(int fd, const void *bytes, uint64_t size, uint64_t offset);

/* Make a file in the folder `dir` for this user alone, open for reading and writing. name: ends in
 * XXXXXX, which become letters that no file there has. As mkostemp, but nobody who can write next
 * to the folder leads it elsewhere. The descriptor, owned, or a negative native errno. */
int pstk__file_make_temporary(int dir, char *name);
/* 1: what lies at the name in the folder `dir`, itself if it is a link, is the file of *st. */
int pstk__file_is_at(int dir, const char *name, const struct stat *st);
/* Open the names in the folder `dir`, from the first on. Owned, for closedir; NULL: errno says why.
 */
DIR *pstk__file_list(int dir);

/* What follows a message of a write that failed with this native errno: advice when the disk or the
 * quota is full, else "". Static. */
const char *pstk__file_write_advice(int native);
/* Fail for a directory that mkdir refused with this native errno. The message names the parent, if
 * that is missing. Returns the code. */
int pstk__file_fail_make(struct pstk_error *err, int native, int stage, const char *path);

/* Open a regular file for reading; never waits, whatever lies at `path`: a FIFO, a socket, a
 * device. Returns the descriptor, or a negative native errno for pstk__file_fail. */
int pstk__file_open(const char *path);
/* Fail with what pstk__file_open gave (positive) for `what`, "shard /data/0.pstk" or the like,
 * which ends in `path`. The message names what lies there instead of a regular file: a damaged data
 * set's shard (PSTK_STAGE_SHARD) is EBADMSG, any other ENOTSUP. Returns the code. */
int pstk__file_fail(struct pstk_error *err, int native, int stage, const char *what,
                    const char *path);

/* 1: this native errno means that the machine refuses to open a file, whatever its contents: a
 * limit or a permission. */
int pstk__file_is_refused(int native);

#endif
