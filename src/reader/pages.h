/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages: a cache of checked index pages, of fixed size. One thread. It does no I/O: the caller
 * reads into a frame and sets the frame's state.
 */
#ifndef PSTK_PAGES_H
#define PSTK_PAGES_H

#include "format/format.h"
#include "reader/reader.h"

enum pstk__page_state { PSTK__PAGE_EMPTY, PSTK__PAGE_LOADING, PSTK__PAGE_READY };

/* One frame. Pinned frames are not evicted. LOADING implies pinned by its reader. */
struct pstk__page {
    struct pstk__extent extent; /* extent of the page */
    uint32_t state;             /* enum pstk__page_state */
    uint32_t n_pins;        /* number of pins; a frame that is not READY when its last pin goes is
                               forgotten */
    uint8_t *data;          /* PSTK__PAGE_SIZE bytes, page aligned, in the cache's memory */
    struct pstk__read read; /* read of the page; used by the caller, while LOADING */
    uint32_t file;          /* slot of the file; used by the caller, while LOADING */
    uint32_t known;         /* 1 while get finds the frame; used by the cache */
    struct pstk__page *hash_next, *older, *newer; /* links; used by the cache */
};

struct pstk__pages;

/* Open the cache. memory: borrowed, page aligned; size / PSTK__PAGE_SIZE frames (>= 1). */
int pstk__pages_open(struct pstk__pages **out, void *memory, uint64_t size, struct pstk_error *err);
void pstk__pages_close(struct pstk__pages *pages);
/* Pin the frame of a page: READY or LOADING if known, else EMPTY, in a frame freed for it. Returns
 * NULL if every frame is pinned. */
struct pstk__page *pstk__pages_get(struct pstk__pages *pages, const struct pstk__extent *page);
void pstk__pages_unpin(struct pstk__pages *pages, struct pstk__page *page);
/* Forget a page that could not be read or is damaged: it becomes EMPTY, and get no longer finds it.
 * Its frame is reused once its last pin is removed; drop removes none. */
void pstk__pages_drop(struct pstk__pages *pages, struct pstk__page *page);

#endif
