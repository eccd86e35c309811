/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windowed: an order whose reads are contiguous. (seed, epoch, position) -> sample id, pure, O(1).
 *
 *   sample ids   |block 0|block 1|block 2| ... |last, perhaps short|      `block` samples each
 *        blocks in a new random order in each epoch: the line
 *   line         |block 7|block 2|last|block 9| ...                  |
 *        cut into `ways` equal pieces
 *   ways      |  way 0     |  way 1     |  ...  | way C-1|
 *        each cut into windows of `window` blocks' samples, mixed inside
 *   order        position p is the sample number p / C of way p modulo C
 *
 * Way s changes windows s / C of a window earlier than way 0, so that the ways do not ask
 * for new blocks all at once. The rows of a block are rotated, in each epoch by another number, so
 * that a short window does not have the same rows in every epoch. A window lies in window + 1
 * blocks at most (one more where the short last block lies inside it), so a reader that holds these
 * reads each byte once. A rank that has the positions r modulo R has whole ways where R divides
 * C. ORDER.md has the definition as numbers, and the proof that it is a bijection.
 */
#ifndef PSTK_WINDOWED_H
#define PSTK_WINDOWED_H

#include "order/permutation.h"

#include <penstock/order.h>

/* The limits: products of all three with a position stay below 2^64. */
#define PSTK__WAYS_MAX ((uint32_t)PSTK_MAX_WAYS)
#define PSTK__BLOCK_MAX ((uint32_t)PSTK_MAX_BLOCK)
#define PSTK__WINDOW_MAX ((uint32_t)PSTK_MAX_WINDOW)

/* The inputs of a windowed order; constant for a data set. */
struct pstk__interleave {
    uint64_t n;      /* samples, >= 1, at most 2^62 */
    uint32_t ways;   /* >= 1 */
    uint32_t block;  /* samples, >= 1 */
    uint32_t window; /* blocks, >= 1 */
};

/* The order of one epoch. Plain data; init is O(1024). */
struct pstk__windowed {
    struct pstk__interleave interleave;
    uint64_t n_blocks;        /* the last has interleave.n - (n_blocks - 1) * block samples */
    uint64_t n_last;          /* samples of the last block, 1 to block */
    uint64_t last;            /* position of the last block in the line of blocks */
    uint64_t n_way, n_longer; /* samples of a way; the first n_longer ways have one more */
    uint64_t n_window;        /* samples of a whole window */
    uint64_t window_key;      /* key of the windows' permutations */
    uint64_t row_key;         /* key of the blocks' rotations */
    struct pstk__permutation blocks; /* position in the line -> number of the block */
    struct pstk__feistel mixer;      /* network of a whole window */
};

/* The location of a position. */
struct pstk__interleave_location {
    uint64_t id;
    uint64_t line; /* position of its block in the line of blocks */
    uint32_t row;  /* row in the block: id = id of the block's first sample + row */
    uint32_t way;
    uint64_t window; /* number of the window in the way */
};

/* A stretch of the line of blocks, from first to last inclusive. */
struct pstk__interleave_blocks {
    uint64_t first, last;
};

/* Fill in ways, block and window where they are 0, from n alone. */
void pstk__interleave_settle(struct pstk__interleave *interleave);
void pstk__windowed_init(struct pstk__windowed *windowed, const struct pstk__interleave *interleave,
                         uint64_t seed, uint64_t epoch);
/* Return the sample id at position k < n. */
uint64_t pstk__windowed_at(const struct pstk__windowed *windowed, uint64_t k);
/* Find the location of position k, without the id. */
void pstk__windowed_line(const struct pstk__windowed *windowed, uint64_t k,
                         struct pstk__interleave_location *out);
/* Find the location of position k, with the id. */
void pstk__windowed_locate(const struct pstk__windowed *windowed, uint64_t k,
                           struct pstk__interleave_location *out);

/* ---- for who reads by blocks ---- */

/* Return the samples of a way. */
uint64_t pstk__windowed_way(const struct pstk__windowed *windowed, uint32_t way);
/* Return the windows of a way; the first and the last may be short. */
uint64_t pstk__windowed_n_windows(const struct pstk__windowed *windowed, uint32_t way);
/* Return the window that holds sample i of a way. */
uint64_t pstk__windowed_window(const struct pstk__windowed *windowed, uint32_t way, uint64_t i);
/* Find the samples of a window: number of the first in the way, and how many. */
void pstk__windowed_span(const struct pstk__windowed *windowed, uint32_t way, uint64_t window,
                         uint64_t *first, uint64_t *n);
/* Return the blocks that hold a window. */
struct pstk__interleave_blocks pstk__windowed_blocks(const struct pstk__windowed *windowed,
                                                     uint32_t way, uint64_t window);
/* Find the samples of a block of the line: id of the first, and how many. */
void pstk__windowed_block(const struct pstk__windowed *windowed, uint64_t line, uint64_t *first,
                          uint32_t *n);

#endif
