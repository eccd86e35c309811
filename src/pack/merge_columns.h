/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_columns: merges the side columns of parts that are joined. The whole has the columns that
 * all parts with records have, with the same name, dtype and meaning; it leaves out the others.
 * Their files are linked as shards are, and each header is checked under its new name.
 */
#ifndef PSTK_MERGE_COLUMNS_H
#define PSTK_MERGE_COLUMNS_H

#include "format/pstk/manifest.h"
#include "pack/staging.h"

/* The facts about a part that the functions below need. */
struct pstk__column_part {
    const char *path;
    const struct pstk__manifest *manifest;
};

/* If `first`, add the columns of *part to `whole`; else remove from `whole` the columns that the
 * part lacks. Not for parts without records. */
int pstk__merge_columns_agree(struct pstk__manifest *whole, const struct pstk__manifest *part,
                              int first, struct pstk_error *err);
/* Link the files of the part's shard i, after its shard was linked and added to `whole` as the last
 * one. */
int pstk__merge_columns_link(struct pstk__staging *staging, struct pstk__manifest *whole,
                             const struct pstk__column_part *part, uint32_t i,
                             struct pstk_error *err);

#endif
