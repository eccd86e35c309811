/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing: the files that a path names: one file, all files of a folder with certain names, or a
 * pattern. A pattern has numbers in braces ({000..127}) or alternatives ({a,b}), or its last part
 * has the shell's wildcards, `?` and `*`. Each file has its size and time of change.
 */
#ifndef PSTK_FORMAT_LISTING_H
#define PSTK_FORMAT_LISTING_H

#include "base/texts.h"
#include "store/store.h"

struct pstk__listing {
    char *folder;             /* folder that the names are below, owned */
    struct pstk__texts names; /* names in the order of the pattern; in a folder sorted by their
                                 bytes */
    uint64_t *sizes;          /* owned, names.n */
    int64_t *changed_ns;      /* owned, names.n */
    uint64_t digest[2];       /* digest of the entries of the data set's own list, or 0 */
};

/* 1: the name, or the last part of a path, matches `wanted`, as below. any_case: 1: ignore the case
 * of letters. */
int pstk__listing_is_wanted(const char *wanted, const char *name, int any_case);

/* In these functions, braces in the name of a folder on the disk are no pattern; `wanted` is the
 * end of a name (".tar"), or a glob ("*-of-*"), or several of these with a space between. */

/* 1: the path has braces, or wildcards in its last part, that are not in a folder's name. */
int pstk__listing_is_pattern(const struct pstk__store *store, const char *path);
/* 1: the path is a file with such a name, a folder with such a file, or a pattern that looks so; 0:
 * it is not; <0: it cannot be read. */
int pstk__listing_probe(const struct pstk__store *store, const char *path, const char *wanted,
                        struct pstk_error *err);
/* List the files of a path that was probed. ENOENT: a pattern matches nothing, or a file is
 * missing. On failure *listing is empty. */
int pstk__listing_open(struct pstk__listing *listing, const struct pstk__store *store,
                       const char *path, const char *wanted, struct pstk_error *err);
/* As pstk__listing_open, for a damaged data set: a file that cannot be opened is no failure, and
 * has the size and the time 0. */
int pstk__listing_salvage(struct pstk__listing *listing, const struct pstk__store *store,
                          const char *path, const char *wanted, struct pstk_error *err);
/* List the files of these names below a folder; copies both. ENOENT: one is missing. On failure
 * *listing is empty, and *missing is the number of the file that could not be opened, or PSTK_NONE.
 * missing NULL: as pstk__listing_salvage. */
int pstk__listing_of(struct pstk__listing *listing, const struct pstk__store *store,
                     const char *folder, const struct pstk__texts *names, uint64_t *missing,
                     struct pstk_error *err);
/* Find a compressed file in a listed folder whose name matches `packed`, and whose unpacked form is
 * not listed: "a.tar.gz" without "a.tar". 1: `name` is its name; 0: there is none, or the path is
 * no folder; <0: ENOMEM, ... */
int pstk__listing_lone(const struct pstk__listing *listing, const struct pstk__store *store,
                       const char *path, const char *packed, char *name, size_t size);
void pstk__listing_close(struct pstk__listing *listing);
/* List all names in a folder that do not begin with a dot, sorted by their bytes. 0 or a negative
 * errno: EFBIG, there are more than 2^24. */
int pstk__listing_names(struct pstk__texts *names, const struct pstk__store *store,
                        const char *path);

#endif
