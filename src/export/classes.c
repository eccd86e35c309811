/* SPDX-License-Identifier: Apache-2.0 */
#include "export/classes.h"

#include <penstock/types.h>

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Compare names by bytes; a prefix comes before the longer name. */
static int compare(const void *a, const void *b)
{
    const struct pstk__export_class *one = a, *other = b;
    const int order =
        memcmp(one->name, other->name, one->size < other->size ? one->size : other->size);
    return order ? order : (one->size > other->size) - (one->size < other->size);
}

static int compare_places(const void *a, const void *b)
{
    return compare(*(struct pstk__export_class *const *)a, *(struct pstk__export_class *const *)b);
}

/* Add a class with no samples yet. Returns NULL if there is no memory. */
static struct pstk__export_class *add_class(struct pstk__export_classes *classes,
                                            const struct pstk__export_class *found)
{
    if (classes->n == classes->room) {
        const size_t room = classes->room ? 2 * classes->room : 64;
        struct pstk__export_class **at = realloc(classes->at, room * sizeof(void *));
        if (!at)
            return NULL;
        classes->at = at;
        classes->room = room;
    }
    struct pstk__export_class *class = malloc(sizeof *class + found->size);
    if (!class)
        return NULL;
    char *name = (char *)(class + 1);
    memcpy(name, found->name, found->size);
    *class = *found;
    class->name = name;
    if (!tsearch(class, &classes->tree, compare)) {
        free(class);
        return NULL;
    }
    classes->at[classes->n++] = class;
    return class;
}

int pstk__export_classes_add(struct pstk__export_classes *classes, const char *name, size_t size,
                             uint64_t label)
{
    const struct pstk__export_class wanted = {.name = name, .size = size, .label = label};
    struct pstk__export_class *const *node = tfind(&wanted, &classes->tree, compare);
    struct pstk__export_class *class = node ? *node : add_class(classes, &wanted);
    if (!class)
        return PSTK_ENOMEM;
    if (class->label != label)
        return PSTK_EEXIST;
    class->n++;
    return 0;
}

uint64_t pstk__export_classes_n_renumbered(struct pstk__export_classes *classes)
{
    uint64_t n = 0;
    if (classes->n)
        qsort(classes->at, classes->n, sizeof(void *), compare_places);
    for (size_t i = 0; i < classes->n; i++)
        n += classes->at[i]->label == i ? 0 : classes->at[i]->n;
    return n;
}

void pstk__export_classes_free(struct pstk__export_classes *classes)
{
    tdestroy(classes->tree, free);
    free(classes->at);
    *classes = (struct pstk__export_classes){0};
}
