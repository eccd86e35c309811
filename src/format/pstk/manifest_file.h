/* SPDX-License-Identifier: Apache-2.0 */
/* manifest_file: reads the manifest of a data set from its directory. */
#ifndef PSTK_MANIFEST_FILE_H
#define PSTK_MANIFEST_FILE_H

#include "format/pstk/manifest.h"
#include "store/store.h"

/* Parse the file manifest.json in the directory `path` into *m, as pstk__manifest_parse does.
 * ENOENT, EACCES, ... */
int pstk__manifest_load(struct pstk__manifest *m, const struct pstk__store *store, const char *path,
                        struct pstk_error *err);
/* 1: the file in the directory `path` describes the records that load read into *m, with the same
 * columns or others; 0: it describes others, or there is none; a negative errno: unknown. Never
 * allocates. */
int pstk__manifest_stands(const struct pstk__manifest *m, const struct pstk__store *store,
                          const char *path);
/* As pstk__manifest_stands, for the whole file, its columns included. */
int pstk__manifest_unchanged(const struct pstk__manifest *m, const struct pstk__store *store,
                             const char *path);

#endif
