/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/buffer.h"

#include <errno.h>
#include <stdlib.h>

#define PIECE_ALIGN                                                                                \
    4096 /* alignment of pieces, bytes: the largest usual need of O_DIRECT, and a page */

int pstk__buffer_open(struct pstk__buffer *buffer, void *memory, uint64_t size, uint32_t n_pieces)
{
    *buffer = (struct pstk__buffer){.base = memory, .size = size, .n_pieces = n_pieces};
    buffer->pieces = calloc(n_pieces, sizeof *buffer->pieces);
    return buffer->pieces ? 0 : -ENOMEM;
}

void pstk__buffer_close(struct pstk__buffer *buffer)
{
    free(buffer->pieces);
    *buffer = (struct pstk__buffer){0};
}

/* Take back the oldest pieces, up to the first that is in use. */
static void reclaim(struct pstk__buffer *buffer)
{
    while (buffer->first != buffer->last) {
        struct pstk__piece *piece = &buffer->pieces[buffer->first % buffer->n_pieces];
        /* Acquire: pairs with put; the user's reads of the data come before this thread overwrites
         * it. */
        if (!atomic_load_explicit(&piece->free, memory_order_acquire))
            break;
        buffer->tail = piece->end;
        buffer->first++;
    }
}

struct pstk__piece *pstk__buffer_get(struct pstk__buffer *buffer, uint64_t size)
{
    reclaim(buffer);
    if (buffer->last - buffer->first == buffer->n_pieces)
        return NULL;
    size = (size + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
    if (buffer->first ==
        buffer->last) /* empty: start over at the bottom, which is still in the cache */
        buffer->head = buffer->tail = 0;
    uint64_t at = buffer->head % buffer->size;
    uint64_t skip = at + size > buffer->size ? buffer->size - at : 0;
    if (buffer->head + skip + size - buffer->tail > buffer->size)
        return NULL;
    struct pstk__piece *piece = &buffer->pieces[buffer->last++ % buffer->n_pieces];
    buffer->head += skip;
    piece->data = buffer->base + buffer->head % buffer->size;
    buffer->head += size;
    piece->end = buffer->head;
    atomic_store_explicit(&piece->free, 0, memory_order_relaxed);
    return piece;
}

void pstk__buffer_put(struct pstk__piece *piece)
{
    atomic_store_explicit(&piece->free, 1, memory_order_release);
}
