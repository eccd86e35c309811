/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outdir: the directory of an export while it is being written. One thread.
 *
 * It is `.tmp-NAME`, next to the path NAME that the commit gives it, and locked (flock) until
 * close. Its file penstock-export.json, the mark, states that it is an export: either incomplete,
 * or complete with a digest of the names and sizes of all other files, except indexes that readers
 * made later.
 *
 * The next export therefore removes the files of a killed one. It replaces a finished one only if
 * nobody added or changed a file in it. A directory without the mark is never removed, nor is the
 * target of a symbolic link.
 */
#ifndef PSTK_EXPORT_OUTDIR_H
#define PSTK_EXPORT_OUTDIR_H

#include "base/bytes.h"
#include "export/out_file.h"

#include <penstock/types.h>

#define PSTK__OUTDIR_DEPTH 32 /* maximum nesting of directories below it */

/* Closed: all zero, except parent and dir, which are -1. */
struct pstk__outdir {
    char *path;        /* as the caller gave it, without slashes at the end, for messages; owned */
    char *name;        /* last part of the path; owned */
    char *temporary;   /* ".tmp-" and the name; owned */
    int parent;        /* directory that contains both; owned */
    int dir;           /* owned; holds the lock */
    int made;          /* 1: open made the directory; close removes it */
    int overwrite;     /* 1: the commit may replace the directory at the path */
    int had_leftovers; /* 1: open removed files that a killed export had left */
    int sync_all; /* 1: the commit syncs the file system, because files were not synced when they
                     ended */
};

/* The count of all files of a directory, without its mark and without the indexes that readers make
 * in it. */
struct pstk__outdir_files {
    uint64_t n;
    uint64_t bytes;
    uint64_t digest; /* digest of their paths and sizes, in any order */
    uint64_t n_indexes;
};

/* Make the directory. EEXIST: `path` exists and may not be replaced; EBUSY: another export is at
 * work there. On failure *outdir is closed. */
int pstk__outdir_open(struct pstk__outdir *outdir, const char *path, int overwrite,
                      struct pstk_error *err);
/* Create a file, and the directories in its name. EEXIST, without a message: the name exists, or a
 * file has the name of one of its directories. */
int pstk__outdir_create(struct pstk__outdir *outdir, struct pstk__out_file *file, const char *name,
                        struct pstk_error *err);
/* Rename a file of the directory. */
int pstk__outdir_rename(struct pstk__outdir *outdir, const char *from, const char *to,
                        struct pstk_error *err);
/* Remove a file of the directory. */
int pstk__outdir_remove(struct pstk__outdir *outdir, const char *name, struct pstk_error *err);
/* Count the files of the directory. */
int pstk__outdir_measure(const struct pstk__outdir *outdir, struct pstk__outdir_files *files,
                         struct pstk_error *err);
/* Write the mark of a complete export, with `rest` as further members of its object; sync all;
 * rename the directory to its name, and sync the parent. A failure after the rename leaves a
 * complete export. */
int pstk__outdir_commit(struct pstk__outdir *outdir, const struct pstk__outdir_files *files,
                        const struct pstk__bytes *rest, struct pstk_error *err);
/* Remove the directory unless it was committed; free. Idempotent. */
void pstk__outdir_close(struct pstk__outdir *outdir);

#endif
