/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbered: file names with a number and a count, "train-00003-of-00010". Names that differ in the
 * number alone are those of a set: which of its files are missing.
 */
#ifndef PSTK_NUMBERED_H
#define PSTK_NUMBERED_H

#include "format/format.h"

/* What a name has of its set. */
struct pstk__numbered_name {
    size_t prefix;   /* bytes before the number */
    const char *end; /* what follows the count */
    uint32_t number, count;
    int width; /* digits of the number */
};

/* 1: the name counts its set, NUMBER below COUNT; 0: it does not. */
int pstk__numbered_parse(struct pstk__numbered_name *out, const char *name);
/* Report each run of shards that are missing, if the path is a folder or has * or ?: else whoever
 * named the files has chosen among them. 0, or ECANCELED: `bad` says stop, or ENOMEM. */
int pstk__numbered_check(const struct pstk__source *source, const char *path,
                         int (*bad)(void *user, const struct pstk_error *bad), void *user,
                         struct pstk_error *err);

#endif
