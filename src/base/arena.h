/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena: a worker's scratch memory. Addresses are reserved at open; allocation moves a mark, reset
 * moves it back. Pages become writable when the mark first passes them, and are touched only when
 * they are used. So a kernel that counts writable pages (vm.overcommit_memory=2) counts the memory
 * that images have needed, not the memory that the largest could need. One thread.
 */
#ifndef PSTK_ARENA_H
#define PSTK_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct pstk__arena {
    uint8_t *base; /* owned mapping */
    size_t size;   /* bytes */
    size_t open;   /* writable bytes from base on; never less than used */
    size_t used;   /* mark; <= size */
    size_t peak;   /* highest mark since open */
    size_t high;   /* highest mark since the last trim */
};

/* Reserve `size` bytes. 0 or -ENOMEM (arena is then empty and may be closed). */
int pstk__arena_open(struct pstk__arena *a, size_t size);
void pstk__arena_close(struct pstk__arena *a);
/* Allocate `size` bytes, 64-byte aligned, not zeroed. NULL when the arena is full, or the kernel
 * refuses the pages. */
void *pstk__arena_get(struct pstk__arena *a, size_t size);
/* Free everything that was allocated after `mark` (an earlier a->used). */
void pstk__arena_reset(struct pstk__arena *a, size_t mark);

/* Give pages beyond `keep` bytes back to the kernel if they were used since the last trim, so that
 * one huge image does not stay resident. The caller has nothing allocated beyond keep. */
void pstk__arena_trim(struct pstk__arena *a, size_t keep);

#endif
