/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge: joins separately packed parts into one data set. It implements pstk_merge, and the commit
 * of a writer whose records are those of finished parts. One thread.
 */
#ifndef PSTK_MERGE_H
#define PSTK_MERGE_H

#include "format/pstk/manifest.h"
#include "pack/staging.h"

/* The parts to join, as the caller gives them. All pointers: borrows. */
struct pstk__merge_list {
    const char *const *paths;
    uint32_t n;
    const char *pack_id; /* that all must have; "": any */
};

/* Join the parts in the directory of `staging` and commit it; the caller closes `staging`. like: a
 * manifest whose schema and names the parts must have. Its note, if it has one, replaces that of
 * the first part; a task of it becomes that of the whole. */
int pstk__merge_into(struct pstk__staging *staging, const struct pstk__manifest *like,
                     const struct pstk__merge_list *list, struct pstk_error *err);

#endif
