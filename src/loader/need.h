/* SPDX-License-Identifier: Apache-2.0 */
/* need: how much the blocks of a windowed order take. Pure. */
#ifndef PSTK_NEED_H
#define PSTK_NEED_H

#include "order/windowed.h"

/* What the blocks of one lane need; all 0 for other orders. */
struct pstk__blocks_need {
    uint32_t n_strands; /* that this rank reads */
    uint32_t n_frames;  /* blocks that may be there at a time */
    uint64_t ahead;     /* samples of a strand before its next window, at which that is asked for */
    uint64_t memory;    /* bytes of their content, whole pages */
};

/* weave: settled; world: ranks; rows: of all slots; mean, most: bytes of a record. Pure. */
void pstk__blocks_measure(struct pstk__blocks_need *need, const struct pstk__weave *weave,
                          uint32_t world, uint64_t rows, uint64_t mean, uint64_t most);

#endif
