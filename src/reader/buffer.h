/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer: I/O memory, handed out in order, given back in any order. One thread gets and reclaims;
 * any thread gives back. Space becomes free when all older pieces were given back too, so a piece
 * that is held long blocks the buffer. A worker holds a piece for one decode.
 *
 * Invariants: pieces lie one after another from tail to head, modulo size. A piece never wraps: the
 * rest of the buffer before its start is skipped and counted as part of the piece.
 */
#ifndef PSTK_BUFFER_H
#define PSTK_BUFFER_H

#include <stdatomic.h>
#include <stdint.h>

/* One piece of the buffer. */
struct pstk__piece {
    uint8_t *data;
    uint64_t end;          /* `head` of the buffer after this piece */
    _Atomic uint32_t free; /* 1: given back */
};

struct pstk__buffer {
    uint8_t *base;              /* borrowed memory, page aligned */
    uint64_t size;              /* bytes */
    uint64_t head;              /* bytes ever handed out, skips included */
    uint64_t tail;              /* bytes ever reclaimed; head - tail <= size */
    struct pstk__piece *pieces; /* n_pieces, used in turn; owned */
    uint64_t n_pieces;
    uint64_t first, last; /* pieces in use: [first, last), modulo n_pieces */
};

/* Open the buffer. memory: borrows for its life. n_pieces: largest number of pieces at a time. 0 or
 * -ENOMEM. */
int pstk__buffer_open(struct pstk__buffer *buffer, void *memory, uint64_t size, uint32_t n_pieces);
void pstk__buffer_close(struct pstk__buffer *buffer);
/* Get a piece of `size` bytes, page aligned. size is at most half of the buffer, so that every
 * piece fits once older ones are given back. Returns NULL while there is no room. */
struct pstk__piece *pstk__buffer_get(struct pstk__buffer *buffer, uint64_t size);
/* Give a piece back. Any thread. */
void pstk__buffer_put(struct pstk__piece *piece);

#endif
