/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal: the names of the files that a writer makes or replaces in a directory, so that what a
 * killed one left can be told from what a user put there. L2. Used by staging. One thread.
 *
 * The file `.tmp-writer`, one name a line, each synced before its file is made. It is there as long
 * as a writer is at work, and after one was killed.
 */
#ifndef PSTK_JOURNAL_H
#define PSTK_JOURNAL_H

#include <penstock/types.h>

#define PSTK__JOURNAL_FILE ".tmp-writer"

/* Names, owned. All zero is none. */
struct pstk__names {
    char **names;
    uint64_t n, capacity;
};

/* Append a copy. 0 or -ENOMEM. */
int pstk__names_add(struct pstk__names *n, const char *name);
void pstk__names_sort(struct pstk__names *n);
/* 1 when the sorted names hold `name`. */
int pstk__names_have(const struct pstk__names *n, const char *name);
void pstk__names_free(struct pstk__names *n);

struct pstk__journal {
    int fd;        /* -1: none */
    uint64_t size; /* bytes written */
};

/* Begin one in the directory `dir`. EEXIST, without a message: there is one. `path` is for
 * messages, here and below. */
int pstk__journal_begin(struct pstk__journal *j, int dir, const char *path, struct pstk_error *err);
/* Add a name. */
int pstk__journal_add(struct pstk__journal *j, const char *name, const char *path,
                      struct pstk_error *err);
/* All names added are on the medium when this returns: now their files may be made. */
int pstk__journal_sync(struct pstk__journal *j, const char *path, struct pstk_error *err);
/* Close; the file stays. Idempotent. */
void pstk__journal_close(struct pstk__journal *j);
/* Names that a journal in `dir` holds, added to *names; a last line that was cut is left out, as
 * its file was never made. 1: there is one; 0: none; or an error. */
int pstk__journal_read(int dir, const char *path, struct pstk__names *names,
                       struct pstk_error *err);

#endif
