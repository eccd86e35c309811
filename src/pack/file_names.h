/* SPDX-License-Identifier: Apache-2.0 */
/* file_names: a list of file names. One thread. */
#ifndef PSTK_FILE_NAMES_H
#define PSTK_FILE_NAMES_H

#include <stdint.h>

/* A list of file names, owned. All zero is empty. `have` needs a sorted list. */
struct pstk__file_names {
    char **names;
    uint64_t n, capacity;
};

/* Append a copy. 0 or -ENOMEM. */
int pstk__file_names_add(struct pstk__file_names *file_names, const char *name);
void pstk__file_names_sort(struct pstk__file_names *file_names);
/* Return 1 if the sorted list has `name`. */
int pstk__file_names_have(const struct pstk__file_names *file_names, const char *name);
void pstk__file_names_free(struct pstk__file_names *file_names);

#endif
