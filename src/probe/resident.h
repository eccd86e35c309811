/* SPDX-License-Identifier: Apache-2.0 */
/* resident: whether bytes of a file are in the page cache, without reading or evicting them. */
#ifndef PSTK_RESIDENT_H
#define PSTK_RESIDENT_H

#include <stdint.h>

/* Look at bytes of an open file; of many the first 256 KiB. 1: at least one page of them is in the
 * page cache; 0: none is; -1: the kernel does not say. */
int pstk__resident(int fd, uint64_t offset, uint64_t size);
/* Bytes that this process has had read from storage until now, as far as its file systems count
 * them; UINT64_MAX: unknown. */
uint64_t pstk__resident_bytes_read(void);

#endif
