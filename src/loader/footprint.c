/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/footprint.h"

#include "format/format.h"
#include "order/explain.h"

#define AHEAD_BYTES                                                                                \
    (8u << 20) /* bytes requested before a window needs them, which keep storage busy */
#define MORE_FRAMES 8u

static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t c;
    return __builtin_mul_overflow(a, b, &c) || c > UINT64_MAX / 4 ? UINT64_MAX / 4 : c;
}

void pstk__blocks_measure(struct pstk__blocks_footprint *footprint,
                          const struct pstk__interleave *interleave, uint32_t world, uint64_t rows,
                          uint64_t mean, uint64_t most, uint32_t n_extents)
{
    const uint64_t window = (uint64_t)interleave->window * interleave->block;
    const uint64_t shared = pstk__common_divisor(interleave->ways, world);
    const uint64_t n_ways = interleave->ways / shared,
                   n_blocks = (interleave->n - 1) / interleave->block + 1;
    const uint64_t least = window / 8 + 1;
    uint64_t ahead = AHEAD_BYTES / product(n_ways, mean ? mean : 1);
    ahead = ahead < least ? least : ahead > window ? window : ahead;
    /* The current windows; the part of the next windows that is requested ahead; the ended windows
     * whose rows are still in slots. */
    uint64_t frames = n_ways * (interleave->window + 1u) +
                      n_ways * interleave->window * ahead / window + n_ways +
                      rows / interleave->block * (world / shared) + MORE_FRAMES;
    frames = frames < 2 * n_blocks + 2 ? frames : 2 * n_blocks + 2;
    /* At most two epochs' records, however large blocks may be. */
    uint64_t records = product(frames, interleave->block);
    records = records < 2 * interleave->n + 2 ? records : 2 * interleave->n + 2;
    const uint64_t content = product(records, mean);
    footprint->n_ways = (uint32_t)n_ways;
    footprint->n_frames = (uint32_t)(frames < UINT32_MAX / 4 ? frames : UINT32_MAX / 4);
    footprint->ahead = ahead;
    /* Blocks differ in size; each ends within a page. */
    footprint->memory =
        (content + content / 8 + frames * PSTK__PAGE_SIZE + 2 * most + PSTK__PAGE_SIZE) /
        PSTK__PAGE_SIZE * PSTK__PAGE_SIZE;
    const uint64_t block = interleave->block < interleave->n ? interleave->block : interleave->n;
    footprint->tables =
        product(product(frames, block), PSTK__BLOCK_ROW + (uint64_t)n_extents * PSTK__BLOCK_EXTENT);
}
