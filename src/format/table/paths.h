/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths: the positions of a table and its images. A table is a file that the caller names, or the
 * metadata.csv or metadata.jsonl of a folder, as in Hugging Face's imagefolder.
 */
#ifndef PSTK_TABLE_PATHS_H
#define PSTK_TABLE_PATHS_H

#include "format/format.h"

#include <limits.h>

struct pstk__table_paths {
    char table[PATH_MAX];  /* file of the table */
    char folder[PATH_MAX]; /* folder of that file */
    char root[PATH_MAX];   /* folder that paths are below */
    char real[PATH_MAX];   /* absolute path of root, for absolute paths in the table */
};

/* Fail with EINVAL if a folder that can be read as a data set has a metadata.parquet, which the
 * Python package reads instead: there, the folder has other samples and labels. */
int pstk__table_refuse_parquet(const struct pstk__store *store, const char *folder,
                               struct pstk_error *err);
/* Write the path of the table at `path` to `table`. 1: done; 0: there is none. EINVAL: a folder has
 * two tables, or a table and a metadata.parquet; another error: a file cannot be read. */
int pstk__table_find(const struct pstk__store *store, const char *path, char table[PATH_MAX],
                     struct pstk_error *err);
/* Fill *paths for a table that was found. EINVAL: root_path is too long, or no folder; or an error
 * of the lookup. */
int pstk__table_paths_of(struct pstk__table_paths *paths, const struct pstk__opening *opening,
                         const char table[PATH_MAX], struct pstk_error *err);
/* Write the path below the root of an image to `path`, which has PSTK__VALUES_MAX_PATH bytes.
 * `from`: the path in the table, of `size` bytes. Returns NULL, or the reason of a failure, static
 * storage. */
const char *pstk__table_image_path(const struct pstk__table_paths *paths, const char *from,
                                   uint64_t size, char *path);
/* Return why a path cannot name a file on this system, as a phrase with advice; NULL: no reason is
 * visible. Static storage. */
const char *pstk__table_path_flaw(const char *path);

#endif
