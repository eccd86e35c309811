/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree: the directories of a tree and the images in each, as an index is to have them. One thread
 * walks a part of a tree; others may walk other parts.
 */
#ifndef PSTK_FOLDER_TREE_H
#define PSTK_FOLDER_TREE_H

#include "base/texts.h"
#include "store/index/writer.h"
#include "store/store.h"

#include <limits.h>

/* Columns of a row: where the values of the sample begin, from those of its shard on; their bytes;
 * bytes of the file; and its time of change. */
enum pstk__folder_column {
    PSTK__FOLDER_VALUES = 0,
    PSTK__FOLDER_VALUES_SIZE = 1,
    PSTK__FOLDER_SIZE = 2,
    PSTK__FOLDER_CHANGED = 3,
    PSTK__FOLDER_COLUMNS = 4,
    /* Of a table: bytes of its columns, which follow the values. */
    PSTK__FOLDER_MORE = 4,
    PSTK__FOLDER_TABLE_COLUMNS = 5,
};

/* A directory with the images in it, sorted by name. */
struct pstk__folder_dir {
    char *path;                   /* owned; below the root; ".": the root */
    int64_t changed_ns;           /* before its names were listed */
    uint64_t bytes;               /* of its images */
    uint64_t largest;             /* bytes of an image */
    uint64_t most;                /* bytes of a sample's values */
    uint64_t longest;             /* bytes of a path */
    uint64_t paths;               /* bytes of all paths */
    uint32_t odd;                 /* 1: a path is not UTF-8 */
    struct pstk__index_rows rows; /* owned */
};

/* Who walks. Zeroed, except the first members. */
struct pstk__folder_walk {
    const struct pstk__store *store; /* borrowed */
    const char *root;                /* borrowed */
    int64_t label;                   /* of all samples found */
    uint32_t by_content;             /* as of struct pstk_foreign */
    /* Called with the bytes of images found; a result that is not 0 ends the walk with ECANCELED.
     * NULL: nobody asks. */
    int (*progress)(void *user, uint64_t n_bytes);
    void *user;
    struct pstk__folder_dir *dirs; /* owned; what was found, n_dirs */
    uint64_t n_dirs, max_dirs;
    uint64_t n_counted;     /* images of directories whose images are only counted */
    struct pstk_error *err; /* borrowed */
    char path[PATH_MAX];    /* of what is looked at */
};

/* What becomes of the images of a directory. */
enum pstk__folder_images {
    PSTK__FOLDER_SKIP = 0,  /* nothing: they are not looked at */
    PSTK__FOLDER_COUNT = 1, /* n_counted counts them */
    PSTK__FOLDER_TAKE = 2,  /* they are samples */
};

/* Find one directory. folders: its subfolders, sorted; NULL: nobody asks. */
int pstk__folder_walk_one(struct pstk__folder_walk *walk, const char *path,
                          enum pstk__folder_images images, struct pstk__texts *folders);
/* Find a directory and all below it, sorted by path. */
int pstk__folder_walk_all(struct pstk__folder_walk *walk, const char *path);
/* 1: the directory or one below it has an image; 0: none has. */
int pstk__folder_has_image(struct pstk__folder_walk *walk, const char *path);
/* Frees what was found. */
void pstk__folder_walk_close(struct pstk__folder_walk *walk);

#endif
