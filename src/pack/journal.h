/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal: the names of the files that a writer makes or replaces in a directory. After a kill they
 * distinguish the writer's files from the user's. Used by staging. One thread.
 *
 * It is the file `.tmp-writer`, with one name a line; each line is synced before its file is made.
 * It exists while a writer is at work, and after one was killed.
 */
#ifndef PSTK_JOURNAL_H
#define PSTK_JOURNAL_H

#include "format/pstk/pstk.h"
#include "pack/file_names.h"

#include <penstock/types.h>

struct pstk__journal {
    int fd;        /* -1: none */
    uint64_t size; /* bytes written */
};

/* Begin a journal in the directory `dir`. EEXIST, without a message: the directory has one. Here
 * and below, `path` is for messages. */
int pstk__journal_begin(struct pstk__journal *journal, int dir, const char *path,
                        struct pstk_error *err);
/* Append a name. Its file may be made only after a sync. */
int pstk__journal_add(struct pstk__journal *journal, const char *name, const char *path,
                      struct pstk_error *err);
/* Sync the journal: afterwards files of all its names may be made. */
int pstk__journal_sync(struct pstk__journal *journal, const char *path, struct pstk_error *err);
/* Close the journal; its file is kept. Idempotent. */
void pstk__journal_close(struct pstk__journal *journal);
/* Add the names of a journal in `dir` to *names. An incomplete last line is ignored: its file was
 * never made. Returns 1 if there is a journal, 0 if there is none, or an error. */
int pstk__journal_read(int dir, const char *path, struct pstk__file_names *names,
                       struct pstk_error *err);

#endif
