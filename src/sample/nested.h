/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nested: which items of a field go with the boxes of a sample that are left. An item belongs to a
 * box, or, where fields of lengths stand between them, to an item that does: the corners of
 * polygons of objects. Pure.
 */
#ifndef PSTK_NESTED_H
#define PSTK_NESTED_H

#include "augment/boxes.h"
#include "sample/plan.h"

/* The value of a field of lengths: how many items below each of its own has. */
struct pstk__lengths {
    const void *data;
    uint64_t n, at; /* at: those that were counted */
    uint32_t dtype;
};

struct pstk__nested {
    struct pstk__lengths levels[PSTK__MAX_LEVELS];        /* from the boxes down */
    uint32_t n_levels;                                    /* 0: each box has one item */
    uint64_t n_items, at;                                 /* at: those that were counted */
    const struct pstk__boxes *boxes;                      /* NULL: all items are left */
    void (*each)(void *user, uint64_t first, uint64_t n); /* items that are left, in their order */
    void *user;
};

/* Call `each` for all items that are left; `at` are 0. Returns 0, or -1: the lengths do not add up
 * to the items. */
int pstk__nested_each(struct pstk__nested *nested);

#endif
