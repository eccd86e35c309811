/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree: finds the directories of a tree and the images in each, for an index. One thread walks a
 * part of a tree; others may walk other parts.
 */
#ifndef PSTK_FOLDER_TREE_H
#define PSTK_FOLDER_TREE_H

#include "base/texts.h"
#include "store/index/writer.h"
#include "store/store.h"

#include <limits.h>

/* Columns of a row: the begin of the sample's values, from the begin of its shard's; their bytes;
 * the bytes of the file; and its time of change. */
enum pstk__folder_column {
    PSTK__FOLDER_VALUES = 0,
    PSTK__FOLDER_VALUES_SIZE = 1,
    PSTK__FOLDER_SIZE = 2,
    PSTK__FOLDER_CHANGED = 3,
    PSTK__FOLDER_COLUMNS = 4,
    /* In a table: bytes of its columns, which follow the values. */
    PSTK__FOLDER_MORE = 4,
    PSTK__FOLDER_TABLE_COLUMNS = 5,
};

/* A directory with the images in it, sorted by name. */
struct pstk__folder_dir {
    char *path;                   /* path below the root, owned; ".": the root */
    int64_t changed_ns;           /* time of change before its names were listed */
    uint64_t bytes;               /* bytes of its images */
    uint64_t largest;             /* bytes of its largest image */
    uint64_t most;                /* bytes of the largest sample's values */
    uint64_t longest;             /* bytes of the longest path */
    uint64_t paths;               /* bytes of all paths */
    uint32_t odd;                 /* 1: a path is not UTF-8 */
    struct pstk__index_rows rows; /* owned */
};

/* A walk. The caller sets the first members; the rest begins as zero. */
struct pstk__folder_walk {
    const struct pstk__store *store; /* borrowed */
    const char *root;                /* borrowed */
    int64_t label;                   /* label of all samples found */
    uint32_t by_content;             /* as in struct pstk_foreign */
    /* Receives the bytes of images found; a non-zero result ends the walk with ECANCELED. May be
     * NULL. */
    int (*progress)(void *user, uint64_t n_bytes);
    void *user;
    struct pstk__folder_dir *dirs; /* directories found, n_dirs; owned */
    uint64_t n_dirs, max_dirs;
    uint64_t n_counted;     /* images of directories whose images are only counted */
    struct pstk_error *err; /* borrowed */
    char path[PATH_MAX];    /* path of the current entry */
};

/* The treatment of a directory's images. */
enum pstk__folder_images {
    PSTK__FOLDER_SKIP = 0,  /* ignored: their files are not checked */
    PSTK__FOLDER_COUNT = 1, /* counted in n_counted */
    PSTK__FOLDER_TAKE = 2,  /* taken as samples */
};

/* Find one directory. folders: receives its subfolders, sorted, or NULL. */
int pstk__folder_walk_one(struct pstk__folder_walk *walk, const char *path,
                          enum pstk__folder_images images, struct pstk__texts *folders);
/* Find a directory and all directories below it, sorted by path. */
int pstk__folder_walk_all(struct pstk__folder_walk *walk, const char *path);
/* 1: the directory or one below it has an image; 0: none has; <0: an error. */
int pstk__folder_has_image(struct pstk__folder_walk *walk, const char *path);
/* Free the results. */
void pstk__folder_walk_close(struct pstk__folder_walk *walk);

#endif
