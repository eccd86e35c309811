/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nested: the items of a field that remain with a sample's remaining boxes. An item belongs to a
 * box or, through fields of lengths between them, to an item that belongs to one: the corners of
 * polygons of objects. Pure.
 */
#ifndef PSTK_NESTED_H
#define PSTK_NESTED_H

#include "augment/boxes.h"
#include "sample/plan.h"

/* The value of a field of lengths: the number of items that each of its own items has below it. */
struct pstk__lengths {
    const void *data;
    uint64_t n, at; /* at: number of items counted so far */
    uint32_t dtype;
};

struct pstk__nested {
    struct pstk__lengths levels[PSTK__MAX_LEVELS]; /* from the boxes down */
    uint32_t n_levels;                             /* 0: each box has one item */
    uint64_t n_items, at;                          /* at: number of items counted so far */
    const struct pstk__boxes *boxes;               /* NULL: all items remain */
    void (*each)(void *user, uint64_t first,
                 uint64_t n); /* called with the remaining items, in their order */
    void *user;
};

/* Call `each` for all remaining items; the members `at` are 0. Returns 0, or -1 if the lengths do
 * not add up to the items. */
int pstk__nested_each(struct pstk__nested *nested);

#endif
