/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_buffer: a part of a file in memory, which follows a scan that goes through the file. One
 * thread.
 */
#ifndef PSTK_FORMAT_SCAN_BUFFER_H
#define PSTK_FORMAT_SCAN_BUFFER_H

#include "store/store.h"

#define PSTK__SCAN_BUFFER_SIZE 262144 /* bytes of the part at most */

/* All zero is closed. */
struct pstk__scan_buffer {
    uint8_t *bytes;    /* owned; PSTK__SCAN_BUFFER_SIZE */
    uint64_t begin, n; /* bytes of the file that it has */
    uint64_t read;     /* bytes to read at once, at most PSTK__SCAN_BUFFER_SIZE */
};

/* 0 or ENOMEM. */
int pstk__scan_buffer_open(struct pstk__scan_buffer *buffer, uint64_t read);
/* Bytes at .. at + size - 1 of the file, size <= PSTK__SCAN_BUFFER_SIZE, until the next call. NULL:
 * *n is how many of them the file has, or a negative errno. */
const uint8_t *pstk__scan_buffer_at(struct pstk__scan_buffer *buffer, const struct pstk__file *file,
                                    uint64_t at, uint64_t size, int64_t *n);
void pstk__scan_buffer_close(struct pstk__scan_buffer *buffer);

#endif
