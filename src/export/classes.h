/* SPDX-License-Identifier: Apache-2.0 */
/* classes: the classes of an export's samples, in the numbering of the target's readers: by sorted
 * names. */
#ifndef PSTK_EXPORT_CLASSES_H
#define PSTK_EXPORT_CLASSES_H

#include <stddef.h>
#include <stdint.h>

struct pstk__export_class {
    const char *name; /* name, without a 0 at its end; in the same allocation */
    size_t size;      /* bytes of the name */
    uint64_t label;   /* number of the class in the data set */
    uint64_t n;       /* samples */
};

/* All zero is empty. */
struct pstk__export_classes {
    void *tree;                     /* tree of tsearch(3), by name; owns the classes */
    struct pstk__export_class **at; /* classes in the order of their first samples; owned */
    size_t n, room;
};

/* Count a sample of a class, whose name has `size` bytes. 0, ENOMEM, or EEXIST: another class has
 * that name. O(log n). */
int pstk__export_classes_add(struct pstk__export_classes *classes, const char *name, size_t size,
                             uint64_t label);
/* Count the samples whose class gets another number from readers than its label. Sorts `at` by
 * name. */
uint64_t pstk__export_classes_n_renumbered(struct pstk__export_classes *classes);
void pstk__export_classes_free(struct pstk__export_classes *classes);

#endif
