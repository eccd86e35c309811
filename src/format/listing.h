/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing: the files that a path names: one file, all files of a folder with a certain ending, or a
 * pattern. A pattern has numbers in braces ({000..127}), alternatives ({a,b}), or, in its last
 * part,
 * * and ? as a shell has them. Each file has its size and time of change.
 */
#ifndef PSTK_FORMAT_LISTING_H
#define PSTK_FORMAT_LISTING_H

#include "base/texts.h"
#include "store/store.h"

struct pstk__listing {
    char *folder;             /* owned; the names are below it */
    struct pstk__texts names; /* in the order of the pattern; of a folder sorted by their bytes */
    uint64_t *sizes;          /* owned, names.n */
    int64_t *changed_ns;      /* owned, names.n */
};

/* 1: the path is a file with that ending (".tar"), a folder with such a file, or a pattern that
 * ends so; 0: it is not; <0: it cannot be read. */
int pstk__listing_probe(const struct pstk__store *store, const char *path, const char *ending,
                        struct pstk_error *err);
/* List the files of a path that was probed. ENOENT: a pattern matches nothing, or a file is
 * missing. On failure *listing is empty. */
int pstk__listing_open(struct pstk__listing *listing, const struct pstk__store *store,
                       const char *path, const char *ending, struct pstk_error *err);
void pstk__listing_close(struct pstk__listing *listing);
/* All names in a folder that do not begin with a dot, sorted by their bytes. 0 or a negative errno:
 * EFBIG, they are more than 2^24. */
int pstk__listing_names(struct pstk__texts *names, const struct pstk__store *store,
                        const char *path);

#endif
