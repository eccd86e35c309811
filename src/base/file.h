/* SPDX-License-Identifier: Apache-2.0 */
/* file: plain synchronous reads, whole or at an offset. L0. For the slow paths. */
#ifndef PSTK_FILE_H
#define PSTK_FILE_H

#include <penstock/types.h>

/* Read `size` bytes at `offset`; continues short reads and EINTR. Returns the number of bytes read,
 * fewer than size only at the end of the file, or a negative native errno. */
int64_t pstk__file_pread(int fd, void *buffer, uint64_t size, uint64_t offset);

/* Open a regular file for reading; never waits, whatever lies at `path`: a FIFO, a socket, a
 * device. Returns the descriptor, or a negative native errno for pstk__file_fail. */
int pstk__file_open(const char *path);
/* Fail with what pstk__file_open gave (positive) for `what`, "shard /data/0.pstk" or the like,
 * which ends in `path`. What is no regular file is named as what it is: a damaged data set's shard
 * (PSTK_STAGE_SHARD) is EBADMSG, any other ENOTSUP. Returns the code. */
int pstk__file_fail(struct pstk_error *err, int native, int stage, const char *what,
                    const char *path);

/* 1: it is the machine that refuses to open a file, by this native errno, whatever is in it: a
 * limit or a permission. */
int pstk__file_is_refused(int native);

/* Read a whole regular file of at most max_size bytes. Returns owned bytes (free()), never NULL. */
int pstk__file_load(const char *path, uint64_t max_size, void **bytes, uint64_t *size,
                    struct pstk_error *err);

#endif
