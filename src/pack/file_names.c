/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/file_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pstk__file_names_add(struct pstk__file_names *file_names, const char *name)
{
    if (file_names->n == file_names->capacity) {
        uint64_t capacity = file_names->capacity ? 2 * file_names->capacity : 64;
        char **names = realloc(file_names->names, capacity * sizeof *names);
        if (!names)
            return -ENOMEM;
        file_names->names = names;
        file_names->capacity = capacity;
    }
    size_t size = strlen(name) + 1;
    char *copy = malloc(size);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, name, size);
    file_names->names[file_names->n++] = copy;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void pstk__file_names_sort(struct pstk__file_names *file_names)
{
    if (file_names->n)
        qsort(file_names->names, file_names->n, sizeof *file_names->names, compare_names);
}

int pstk__file_names_have(const struct pstk__file_names *file_names, const char *name)
{
    return file_names->n && bsearch(&name, file_names->names, file_names->n,
                                    sizeof *file_names->names, compare_names);
}

void pstk__file_names_free(struct pstk__file_names *file_names)
{
    for (uint64_t i = 0; i < file_names->n; i++)
        free(file_names->names[i]);
    free(file_names->names);
    *file_names = (struct pstk__file_names){0};
}
