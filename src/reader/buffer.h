/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring: I/O memory, handed out in order, given back in any. L0.
 * One thread gets and reclaims; any thread gives back. Space becomes free when all older pieces
 * were given back too, so a piece that is held long holds up the ring; pieces are held for one
 * decode.
 *
 * Invariants: pieces lie behind one another from tail to head, modulo size; a piece never wraps:
 * the rest of the ring before its start is skipped and counted as its own.
 */
#ifndef PSTK_RING_H
#define PSTK_RING_H

#include <stdatomic.h>
#include <stdint.h>

/* One piece of the ring. */
struct pstk__piece {
    uint8_t *data;
    uint64_t end;          /* mark of the ring behind it */
    _Atomic uint32_t free; /* 1: given back */
};

struct pstk__ring {
    uint8_t *base;              /* borrowed memory, page aligned */
    uint64_t size;              /* bytes */
    uint64_t head;              /* bytes ever handed out, skips included */
    uint64_t tail;              /* bytes ever reclaimed; head - tail <= size */
    struct pstk__piece *pieces; /* n_pieces, a ring of their own; owned */
    uint64_t n_pieces;
    uint64_t first, last; /* pieces in use: [first, last), modulo n_pieces */
};

/* memory: borrows for its life. n_pieces: most pieces at a time. 0 or -ENOMEM. */
int pstk__ring_open(struct pstk__ring *r, void *memory, uint64_t size, uint32_t n_pieces);
void pstk__ring_close(struct pstk__ring *r);
/* A piece of `size` bytes (<= ring size / 2, so that it always fits in the end), page aligned;
 * NULL while there is no room. */
struct pstk__piece *pstk__ring_get(struct pstk__ring *r, uint64_t size);
/* Give back, from any thread. */
void pstk__ring_put(struct pstk__piece *p);

#endif
