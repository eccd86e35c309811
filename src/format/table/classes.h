/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes: the set of names in a table's column of labels. One thread gathers them; once they are
 * sorted, several may find numbers in it.
 */
#ifndef PSTK_TABLE_CLASSES_H
#define PSTK_TABLE_CLASSES_H

#include "base/texts.h"

#define PSTK__TABLE_MAX_CLASSES (1u << 20)
#define PSTK__TABLE_MAX_CLASS 1023 /* max bytes of a name */

/* A set of names. All zero is empty. Invariant: `slots` has a power of two of slots, or none, more
 * than twice the names; a slot is 0, or 1 more than the number of the name whose hash leads to it.
 */
struct pstk__table_classes {
    struct pstk__texts names; /* owned */
    uint32_t *slots;          /* owned */
    uint64_t n_slots;
};

/* Add a name, 1 to PSTK__TABLE_MAX_CLASS bytes without a 0, unless the set has it. 0, ENOMEM, or
 * EFBIG: there would be too many. */
int pstk__table_classes_add(struct pstk__table_classes *classes, const char *name, uint64_t size);
/* Number the names in the order of their bytes. 0 or ENOMEM. */
int pstk__table_classes_sort(struct pstk__table_classes *classes);
/* Return the number of a name; names.n: it is not in the set. */
uint64_t pstk__table_classes_find(const struct pstk__table_classes *classes, const char *name,
                                  uint64_t size);
void pstk__table_classes_close(struct pstk__table_classes *classes);

#endif
