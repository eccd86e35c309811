/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap: I/O memory, handed out and given back in any order. One thread.
 *
 * First fit over a list of free ranges in the order of their addresses; neighbours are joined.
 * Pieces of blocks have almost one size and live almost equally long, so little memory is lost
 * between them.
 *
 * Invariants: the ranges do not touch each other; they and the pieces handed out make up the
 * memory.
 */
#ifndef PSTK_HEAP_H
#define PSTK_HEAP_H

#include <stdint.h>

struct pstk__heap_range {
    uint64_t offset, size; /* bytes; multiples of a page */
};

struct pstk__heap {
    uint8_t *base;                   /* borrowed memory, page aligned */
    uint64_t size;                   /* bytes */
    uint64_t n_free;                 /* bytes */
    struct pstk__heap_range *ranges; /* free ranges; owned */
    uint32_t n_ranges, room;
};

/* Open the heap. memory: borrows for its life; size: bytes, whole pages. n_pieces: largest number
 * of pieces at a time. 0 or -ENOMEM. */
int pstk__heap_open(struct pstk__heap *heap, void *memory, uint64_t size, uint32_t n_pieces);
void pstk__heap_close(struct pstk__heap *heap);
/* Get `size` bytes (> 0), page aligned. Returns NULL while every free range is smaller. */
uint8_t *pstk__heap_get(struct pstk__heap *heap, uint64_t size);
/* Give memory of get back, with the same size. */
void pstk__heap_put(struct pstk__heap *heap, uint8_t *memory, uint64_t size);

#endif
