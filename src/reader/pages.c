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
struct pstk__index {
    struct pstk__page *frames;   /* n_frames */
    struct pstk__page **buckets; /* n_buckets, a power of two >= n_frames */
    uint64_t n_frames;
    uint64_t n_buckets;
    struct pstk__page *oldest, *newest; /* unpinned */
};

/* A multiplicative mix (the finaliser of MurmurHash3): page numbers come in runs, and the low bits
 * choose the bucket. */
static struct pstk__page **bucket(const struct pstk__index *x, const struct pstk__extent *page)
{
    uint64_t h = (uint64_t)page->shard << 32 | page->page;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return &x->buckets[(h ^ h >> 33) & (x->n_buckets - 1)];
}

static void unlink_frame(struct pstk__index *x, struct pstk__page *p)
{
    *(p->older ? &p->older->newer : &x->oldest) = p->newer;
    *(p->newer ? &p->newer->older : &x->newest) = p->older;
    p->older = NULL;
    p->newer = NULL;
}

static void link_newest(struct pstk__index *x, struct pstk__page *p)
{
    p->older = x->newest;
    p->newer = NULL;
    *(x->newest ? &x->newest->newer : &x->oldest) = p;
    x->newest = p;
}

static void link_oldest(struct pstk__index *x, struct pstk__page *p)
{
    p->older = NULL;
    p->newer = x->oldest;
    *(x->oldest ? &x->oldest->older : &x->newest) = p;
    x->oldest = p;
}

/* Take a frame out of the table: get does not find it any more. */
static void forget(struct pstk__index *x, struct pstk__page *p)
{
    p->state = PSTK__PAGE_EMPTY;
    if (!p->known)
        return;
    struct pstk__page **at = bucket(x, &p->extent);
    while (*at != p)
        at = &(*at)->hash_next;
    *at = p->hash_next;
    p->hash_next = NULL;
    p->known = 0;
}

int pstk__index_open(struct pstk__index **out, void *memory, uint64_t size, struct pstk_error *err)
{
    *out = NULL;
    uint64_t n = size / PSTK__PAGE_SIZE;
    if (!memory || n < 1)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "index_memory is %llu bytes; one page of the index takes %d",
                          (unsigned long long)size, PSTK__PAGE_SIZE);
    struct pstk__index *x = calloc(1, sizeof *x);
    if (!x)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the index cache");
    x->n_frames = n;
    x->n_buckets = 1;
    while (x->n_buckets < n)
        x->n_buckets *= 2;
    x->frames = calloc(n, sizeof *x->frames);
    x->buckets = calloc(x->n_buckets, sizeof(struct pstk__page *));
    if (!x->frames || !x->buckets) {
        pstk__index_close(x);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for the frames of the index cache (%llu); lower index_memory",
                          (unsigned long long)n);
    }
    for (uint64_t i = 0; i < n; i++) {
        x->frames[i].data = (uint8_t *)memory + i * PSTK__PAGE_SIZE;
        link_newest(x, &x->frames[i]);
    }
    *out = x;
    return 0;
}

void pstk__index_close(struct pstk__index *x)
{
    if (!x)
        return;
    free(x->frames);
    free(x->buckets);
    free(x);
}

struct pstk__page *pstk__index_get(struct pstk__index *x, const struct pstk__extent *page)
{
    struct pstk__page **head = bucket(x, page);
    struct pstk__page *p = *head;
    while (p && (p->extent.shard != page->shard || p->extent.page != page->page))
        p = p->hash_next;
    if (p) {
        if (p->n_pins++ == 0)
            unlink_frame(x, p);
        return p;
    }
    p = x->oldest;
    if (!p)
        return NULL;
    forget(x, p);
    unlink_frame(x, p);
    p->extent = *page;
    p->n_pins = 1;
    p->known = 1;
    p->hash_next = *head;
    *head = p;
    return p;
}

void pstk__index_unpin(struct pstk__index *x, struct pstk__page *page)
{
    assert(page->n_pins > 0);
    if (--page->n_pins)
        return;
    assert(page->state != PSTK__PAGE_LOADING);
    if (page->state == PSTK__PAGE_READY) {
        link_newest(x, page);
        return;
    }
    forget(x, page);
    link_oldest(x, page);
}

void pstk__index_drop(struct pstk__index *x, struct pstk__page *page)
{
    forget(x, page);
    if (page->n_pins)
        return;
    unlink_frame(x, page);
    link_oldest(x, page);
}
