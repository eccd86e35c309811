/* SPDX-License-Identifier: Apache-2.0 */
/* footprint: computes the memory that the blocks of a windowed order take. Pure. */
#ifndef PSTK_FOOTPRINT_H
#define PSTK_FOOTPRINT_H

#include "order/windowed.h"

/* The needs of the blocks of one lane; all 0 for other orders. */
struct pstk__blocks_footprint {
    uint32_t n_ways;   /* ways that this rank reads */
    uint32_t n_frames; /* blocks that may exist at a time */
    uint64_t ahead;  /* samples of a way before its next window at which that window is requested */
    uint64_t memory; /* bytes of the blocks' content, whole pages */
    uint64_t tables; /* bytes of the tables of their rows */
};

/* Bytes that a block keeps of a row, and of each of its extents; at least the sizes in blocks.c. */
#define PSTK__BLOCK_ROW 128u
#define PSTK__BLOCK_EXTENT 208u

/* Measure the blocks of a lane. interleave: settled; world: ranks; rows: of all slots; mean, most:
 * bytes of a record; n_extents: of a sample. Pure. */
void pstk__blocks_measure(struct pstk__blocks_footprint *footprint,
                          const struct pstk__interleave *interleave, uint32_t world, uint64_t rows,
                          uint64_t mean, uint64_t most, uint32_t n_extents);

#endif
