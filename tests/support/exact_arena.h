/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exact_arena: an arena of as many bytes as were promised to be enough, up to its alignment and no
 * page more, dirty, so that what needs more or relies on zeros is seen.
 */
#ifndef PSTK_TEST_EXACT_ARENA_H
#define PSTK_TEST_EXACT_ARENA_H

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#define EXACT_ARENA_DIRTY                                                                          \
    (1u << 20) /* bytes: to touch all that a huge image may need takes long                        \
                */

static void exact_arena_close(struct pstk__arena *a)
{
    const size_t page = 4096;
    a->size = (a->size + page - 1) / page * page; /* as it was mapped */
    pstk__arena_close(a);
}

/* `a` is open, or all zeros; size > 0. */
static void exact_arena_open(struct pstk__arena *a, uint64_t size, int fill)
{
    const uint64_t whole = (size + 63) / 64 * 64;
    const uint64_t dirty = whole < EXACT_ARENA_DIRTY ? whole : EXACT_ARENA_DIRTY;
    if (a->size != whole) {
        exact_arena_close(a);
        if (pstk__arena_open(a, whole) < 0)
            abort();
        a->size = whole;
    }
    pstk__arena_reset(a, 0);
    memset(pstk__arena_get(a, dirty), fill, dirty);
    pstk__arena_reset(a, 0);
}

#endif
