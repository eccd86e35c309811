/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/buffer.h"

#include <errno.h>
#include <stdlib.h>

#define RING_ALIGN 4096 /* of pieces: O_DIRECT's largest usual need, and a page */

int pstk__ring_open(struct pstk__ring *r, void *memory, uint64_t size, uint32_t n_pieces)
{
    *r = (struct pstk__ring){.base = memory, .size = size, .n_pieces = n_pieces};
    r->pieces = calloc(n_pieces, sizeof *r->pieces);
    return r->pieces ? 0 : -ENOMEM;
}

void pstk__ring_close(struct pstk__ring *r)
{
    free(r->pieces);
    *r = (struct pstk__ring){0};
}

/* Take back the oldest pieces, as far as they are free. */
static void reclaim(struct pstk__ring *r)
{
    while (r->first != r->last) {
        struct pstk__piece *p = &r->pieces[r->first % r->n_pieces];
        /* Acquire: pairs with put; its reads of the data come before our overwriting it. */
        if (!atomic_load_explicit(&p->free, memory_order_acquire))
            break;
        r->tail = p->end;
        r->first++;
    }
}

struct pstk__piece *pstk__ring_get(struct pstk__ring *r, uint64_t size)
{
    reclaim(r);
    if (r->last - r->first == r->n_pieces)
        return NULL;
    size = (size + RING_ALIGN - 1) / RING_ALIGN * RING_ALIGN;
    if (r->first == r->last) /* empty: start over at the bottom, which is warm in the cache */
        r->head = r->tail = 0;
    uint64_t at = r->head % r->size;
    uint64_t skip = at + size > r->size ? r->size - at : 0;
    if (r->head + skip + size - r->tail > r->size)
        return NULL;
    struct pstk__piece *p = &r->pieces[r->last++ % r->n_pieces];
    r->head += skip;
    p->data = r->base + r->head % r->size;
    r->head += size;
    p->end = r->head;
    atomic_store_explicit(&p->free, 0, memory_order_relaxed);
    return p;
}

void pstk__ring_put(struct pstk__piece *p)
{
    atomic_store_explicit(&p->free, 1, memory_order_release);
}
