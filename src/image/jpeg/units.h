/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/units: visits the blocks of a scan in the order in which they are coded. Pure, inline, so
 * that the visitor is compiled into the loop.
 */
#ifndef PSTK_JPEG_UNITS_H
#define PSTK_JPEG_UNITS_H

#include "image/jpeg/script.h"

struct pstk__jpeg_units {
    const struct pstk__jpeg_frame *frame; /* borrowed, as are the other two */
    const int16_t *const *blocks;         /* blocks of each component of the frame */
    const struct pstk__jpeg_scan *scan;
};

/* The visitor's functions; a result that is not 0 ends the walk. */
struct pstk__jpeg_visitor {
    int (*block)(void *user, uint32_t i,
                 const int16_t *block);          /* codes a block of the scan's component i */
    int (*restart)(void *user, uint32_t number); /* called before a unit; number is 0..7 */
    void *user;
};

static inline __attribute__((always_inline)) int
pstk__jpeg_visit_unit(const struct pstk__jpeg_units *units, uint32_t x, uint32_t y,
                      const struct pstk__jpeg_visitor *visitor)
{
    int r = 0;
    for (uint32_t i = 0; i < units->scan->n_components; i++) {
        const struct pstk__jpeg_component *component =
            &units->frame->component[units->scan->component[i]];
        const int16_t *row =
            units->blocks[units->scan->component[i]] +
            ((size_t)y * component->v * component->stride + (size_t)x * component->h) * 64;
        for (uint32_t k = 0; k < component->v; k++, row += (size_t)component->stride * 64)
            for (uint32_t j = 0; j < component->h; j++)
                if ((r = visitor->block(visitor->user, i, row + (size_t)j * 64)) != 0)
                    return r;
    }
    return 0;
}

/* Visit all blocks. A scan of one component codes the blocks that hold samples, one by one. A scan
 * of several codes h * v blocks of each component in turn, including the padding at the right and
 * at the bottom. */
static inline __attribute__((always_inline)) int
pstk__jpeg_visit(const struct pstk__jpeg_units *units, const struct pstk__jpeg_visitor *visitor)
{
    const struct pstk__jpeg_component *first = &units->frame->component[units->scan->component[0]];
    int is_single = units->scan->n_components == 1;
    uint32_t across = is_single ? first->across : first->stride / first->h;
    uint32_t down = is_single ? first->down : first->rows / first->v;
    uint32_t left = units->scan->restart_interval, n_restarts = 0;
    int r = 0;

    for (uint32_t y = 0; y < down; y++) {
        for (uint32_t x = 0; x < across; x++) {
            if (units->scan->restart_interval != 0 && left-- == 0) {
                if ((r = visitor->restart(visitor->user, n_restarts++ & 7)) != 0)
                    return r;
                left = units->scan->restart_interval - 1;
            }
            if (is_single)
                r = visitor->block(visitor->user, 0,
                                   units->blocks[units->scan->component[0]] +
                                       ((size_t)y * first->stride + x) * 64);
            else
                r = pstk__jpeg_visit_unit(units, x, y, visitor);
            if (r != 0)
                return r;
        }
    }
    return 0;
}

#endif
