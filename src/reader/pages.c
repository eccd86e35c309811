/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/pages.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>

/*
 * Invariants. A frame is in a hash chain iff `known`. A frame is in the list of unpinned frames iff
 * n_pins is 0. A LOADING frame is pinned. The list runs from the frame to use next to the page used
 * last; frames without a page stand at its old end.
 */
struct pstk__pages {
    struct pstk__page *frames;   /* n_frames */
    struct pstk__page **buckets; /* n_buckets, a power of two >= n_frames */
    uint64_t n_frames;
    uint64_t n_buckets;
    struct pstk__page *oldest, *newest; /* ends of the list of unpinned frames */
};

/* Mix the page's numbers (the finaliser of MurmurHash3): page numbers come in runs, and the low
 * bits choose the bucket. */
static struct pstk__page **bucket(const struct pstk__pages *pages, const struct pstk__extent *page)
{
    uint64_t h = (uint64_t)page->file << 32 | page->page;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return &pages->buckets[(h ^ h >> 33) & (pages->n_buckets - 1)];
}

static void unlink_frame(struct pstk__pages *pages, struct pstk__page *page)
{
    *(page->older ? &page->older->newer : &pages->oldest) = page->newer;
    *(page->newer ? &page->newer->older : &pages->newest) = page->older;
    page->older = NULL;
    page->newer = NULL;
}

static void link_newest(struct pstk__pages *pages, struct pstk__page *page)
{
    page->older = pages->newest;
    page->newer = NULL;
    *(pages->newest ? &pages->newest->newer : &pages->oldest) = page;
    pages->newest = page;
}

static void link_oldest(struct pstk__pages *pages, struct pstk__page *page)
{
    page->older = NULL;
    page->newer = pages->oldest;
    *(pages->oldest ? &pages->oldest->older : &pages->newest) = page;
    pages->oldest = page;
}

/* Take a frame out of the table: get no longer finds it. */
static void forget(struct pstk__pages *pages, struct pstk__page *page)
{
    page->state = PSTK__PAGE_EMPTY;
    if (!page->known)
        return;
    struct pstk__page **at = bucket(pages, &page->extent);
    while (*at != page)
        at = &(*at)->hash_next;
    *at = page->hash_next;
    page->hash_next = NULL;
    page->known = 0;
}

int pstk__pages_open(struct pstk__pages **out, void *memory, uint64_t size, struct pstk_error *err)
{
    *out = NULL;
    uint64_t n = size / PSTK__PAGE_SIZE;
    if (!memory || n < 1)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "index_memory: value is %llu; must be at least %d, one page of the index",
                          (unsigned long long)size, PSTK__PAGE_SIZE);
    struct pstk__pages *pages = calloc(1, sizeof *pages);
    if (!pages)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the index cache");
    pages->n_frames = n;
    pages->n_buckets = 1;
    while (pages->n_buckets < n)
        pages->n_buckets *= 2;
    pages->frames = calloc(n, sizeof *pages->frames);
    pages->buckets = calloc(pages->n_buckets, sizeof(struct pstk__page *));
    if (!pages->frames || !pages->buckets) {
        pstk__pages_close(pages);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for the frames of the index cache (%llu); lower index_memory",
                          (unsigned long long)n);
    }
    for (uint64_t i = 0; i < n; i++) {
        pages->frames[i].data = (uint8_t *)memory + i * PSTK__PAGE_SIZE;
        link_newest(pages, &pages->frames[i]);
    }
    *out = pages;
    return 0;
}

void pstk__pages_close(struct pstk__pages *pages)
{
    if (!pages)
        return;
    free(pages->frames);
    free(pages->buckets);
    free(pages);
}

struct pstk__page *pstk__pages_get(struct pstk__pages *pages, const struct pstk__extent *page)
{
    struct pstk__page **head = bucket(pages, page);
    struct pstk__page *p = *head;
    while (p && (p->extent.file != page->file || p->extent.page != page->page))
        p = p->hash_next;
    if (p) {
        if (p->n_pins++ == 0)
            unlink_frame(pages, p);
        return p;
    }
    p = pages->oldest;
    if (!p)
        return NULL;
    forget(pages, p);
    unlink_frame(pages, p);
    p->extent = *page;
    p->n_pins = 1;
    p->known = 1;
    p->hash_next = *head;
    *head = p;
    return p;
}

void pstk__pages_unpin(struct pstk__pages *pages, struct pstk__page *page)
{
    assert(page->n_pins > 0);
    if (--page->n_pins)
        return;
    assert(page->state != PSTK__PAGE_LOADING);
    if (page->state == PSTK__PAGE_READY) {
        link_newest(pages, page);
        return;
    }
    forget(pages, page);
    link_oldest(pages, page);
}

void pstk__pages_drop(struct pstk__pages *pages, struct pstk__page *page)
{
    forget(pages, page);
    if (page->n_pins)
        return;
    unlink_frame(pages, page);
    link_oldest(pages, page);
}
