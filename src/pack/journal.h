/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal: the names of the files that a writer makes or replaces in a directory, so that what a
 * killed one left can be distinguished from what a user put there. Used by staging. One thread.
 *
 * The file `.tmp-writer`, one name a line, each synced before its file is made. It is there as long
 * as a writer is at work, and after one was killed.
 */
#ifndef PSTK_JOURNAL_H
#define PSTK_JOURNAL_H

#include "pack/file_names.h"

#include <penstock/types.h>

#define PSTK__JOURNAL_FILE ".tmp-writer"

struct pstk__journal {
    int fd;        /* -1: none */
    uint64_t size; /* bytes written */
};

/* Begin one in the directory `dir`. EEXIST, without a message: there is one. `path` is for
 * messages, here and below. */
int pstk__journal_begin(struct pstk__journal *journal, int dir, const char *path,
                        struct pstk_error *err);
/* Add a name. */
int pstk__journal_add(struct pstk__journal *journal, const char *name, const char *path,
                      struct pstk_error *err);
/* All names added are on the medium when this returns: now their files may be made. */
int pstk__journal_sync(struct pstk__journal *journal, const char *path, struct pstk_error *err);
/* Close; the file stays. Idempotent. */
void pstk__journal_close(struct pstk__journal *journal);
/* Names that a journal in `dir` holds, added to *names; a last line that was cut is left out, as
 * its file was never made. 1: there is one; 0: none; or an error. */
int pstk__journal_read(int dir, const char *path, struct pstk__file_names *names,
                       struct pstk_error *err);

#endif
