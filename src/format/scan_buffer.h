/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_buffer: a part of a file in memory, which follows a scan through the file. One thread.
 */
#ifndef PSTK_FORMAT_SCAN_BUFFER_H
#define PSTK_FORMAT_SCAN_BUFFER_H

#include "store/store.h"

#define PSTK__SCAN_BUFFER_SIZE 262144 /* max bytes of the part */

/* A buffer. All zero is closed. */
struct pstk__scan_buffer {
    uint8_t *bytes;    /* owned; PSTK__SCAN_BUFFER_SIZE */
    uint64_t begin, n; /* range of the file in the buffer */
    uint64_t read;     /* bytes of one read, at most PSTK__SCAN_BUFFER_SIZE */
};

/* Open a buffer. 0 or ENOMEM. */
int pstk__scan_buffer_open(struct pstk__scan_buffer *buffer, uint64_t read);
/* Return bytes at .. at + size - 1 of the file, size <= PSTK__SCAN_BUFFER_SIZE, valid until the
 * next call. NULL: *n is the number of them that the file has, or a negative errno. */
const uint8_t *pstk__scan_buffer_at(struct pstk__scan_buffer *buffer, const struct pstk__file *file,
                                    uint64_t at, uint64_t size, int64_t *n);
void pstk__scan_buffer_close(struct pstk__scan_buffer *buffer);

#endif
