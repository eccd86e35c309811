/* SPDX-License-Identifier: Apache-2.0 */
#include "export/classes.h"

#include <penstock/types.h>

#include <stdlib.h>
#include <string.h>

/* Compare by bytes; a name that another begins with comes first. */
static int compare(const char *a, size_t size, const char *b)
{
    const int order = strncmp(a, b, size);
    return order ? order : b[size] ? -1 : 0;
}

/* Where the class is, or would be. */
static size_t find(const struct pstk__export_classes *classes, const char *name, size_t size)
{
    size_t first = 0, end = classes->n;
    while (first < end) {
        const size_t middle = first + (end - first) / 2;
        if (compare(name, size, classes->at[middle].name) > 0)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

static int insert(struct pstk__export_classes *classes, size_t i, const char *name, size_t size,
                  uint64_t label)
{
    if (classes->n == classes->room) {
        const size_t room = classes->room ? 2 * classes->room : 64;
        struct pstk__export_class *at = realloc(classes->at, room * sizeof *at);
        if (!at)
            return PSTK_ENOMEM;
        classes->at = at;
        classes->room = room;
    }
    char *own = strndup(name, size);
    if (!own)
        return PSTK_ENOMEM;
    memmove(classes->at + i + 1, classes->at + i, (classes->n - i) * sizeof *classes->at);
    classes->at[i] = (struct pstk__export_class){.name = own, .label = label};
    classes->n++;
    return 0;
}

int pstk__export_classes_add(struct pstk__export_classes *classes, const char *name, size_t size,
                             uint64_t label)
{
    const size_t i = find(classes, name, size);
    int r = 0;
    if (i == classes->n || compare(name, size, classes->at[i].name) != 0)
        r = insert(classes, i, name, size, label);
    if (r == 0)
        classes->at[i].n++;
    return r;
}

uint64_t pstk__export_classes_n_renumbered(const struct pstk__export_classes *classes)
{
    uint64_t n = 0;
    for (size_t i = 0; i < classes->n; i++)
        n += classes->at[i].label == i ? 0 : classes->at[i].n;
    return n;
}

void pstk__export_classes_free(struct pstk__export_classes *classes)
{
    for (size_t i = 0; i < classes->n; i++)
        free(classes->at[i].name);
    free(classes->at);
    *classes = (struct pstk__export_classes){0};
}
