/* SPDX-License-Identifier: Apache-2.0 */
/* resident: checks whether bytes of a file are in the page cache, without reading or evicting them.
 */
#ifndef PSTK_RESIDENT_H
#define PSTK_RESIDENT_H

#include <stdint.h>

/* Check bytes of an open file: the first 64 pages of the range, or only its first page if this
 * process neither owns nor may write the file. 1: at least one of these pages is in the page cache;
 * 0: none is; -1: the kernel does not report it. */
int pstk__resident(int fd, uint64_t offset, uint64_t size);
/* Return the bytes that this process has caused to be read from storage until now, as far as its
 * file systems count them; UINT64_MAX: unknown. */
uint64_t pstk__resident_bytes_read(void);

#endif
