/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sets: shards whose names count them, "train-00003-of-00010": which are missing.
 */
#ifndef PSTK_SETS_H
#define PSTK_SETS_H

#include "format/format.h"

/* What a name says of its set. */
struct pstk__set_name {
    size_t prefix;   /* bytes before the number */
    const char *end; /* what follows the count */
    uint32_t number, count;
    int width; /* digits of the number */
};

/* 1: the name counts its set, NUMBER below COUNT; 0: it does not. */
int pstk__set_parse(struct pstk__set_name *out, const char *name);
/* Report each run of shards that are missing, if the path is a folder or has * or ?: else whoever
 * named the files has chosen among them. 0, or ECANCELED: `bad` says stop, or ENOMEM. */
int pstk__sets_check(const struct pstk__source *source, const char *path,
                     int (*bad)(void *user, const struct pstk_error *bad), void *user,
                     struct pstk_error *err);

#endif
