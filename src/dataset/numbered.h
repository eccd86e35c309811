/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbered: finds missing files by file names with a number and a count, "train-00003-of-00010".
 * Names that differ only in the number form a set.
 */
#ifndef PSTK_NUMBERED_H
#define PSTK_NUMBERED_H

#include "format/format.h"

/* The parts of a numbered file name. */
struct pstk__numbered_name {
    size_t prefix;   /* bytes before the number */
    const char *end; /* text after the count */
    uint32_t number, count;
    int width; /* digits of the number */
};

/* Return 1 if the name has a NUMBER below a COUNT, else 0. */
int pstk__numbered_parse(struct pstk__numbered_name *out, const char *name);
/* Report each run of missing shards, if the path is a folder or has * or ?; otherwise the caller
 * has chosen the files. Returns 0, ECANCELED if `bad` returned non-zero, or ENOMEM. */
int pstk__numbered_check(const struct pstk__source *source, const char *path,
                         int (*bad)(void *user, const struct pstk_error *bad), void *user,
                         struct pstk_error *err);

#endif
