/* SPDX-License-Identifier: Apache-2.0 */
/* footprint: how much the blocks of a windowed order take. Pure. */
#ifndef PSTK_FOOTPRINT_H
#define PSTK_FOOTPRINT_H

#include "order/windowed.h"

/* What the blocks of one lane need; all 0 for other orders. */
struct pstk__blocks_footprint {
    uint32_t n_ways;   /* that this rank reads */
    uint32_t n_frames; /* blocks that may be there at a time */
    uint64_t ahead;    /* samples of a way before its next window, at which that is asked for */
    uint64_t memory;   /* bytes of their content, whole pages */
    uint64_t tables;   /* bytes of what is known of their rows */
};

/* Bytes of what a block knows of a row, and of each of its extents; at least those of blocks.c. */
#define PSTK__BLOCK_ROW 128u
#define PSTK__BLOCK_EXTENT 208u

/* interleave: settled; world: ranks; rows: of all slots; mean, most: bytes of a record; n_extents:
 * of one. Pure. */
void pstk__blocks_measure(struct pstk__blocks_footprint *footprint,
                          const struct pstk__interleave *interleave, uint32_t world, uint64_t rows,
                          uint64_t mean, uint64_t most, uint32_t n_extents);

#endif
