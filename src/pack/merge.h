/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge: joins separately packed parts into one data set. It implements pstk_merge, and the commit
 * of a writer that joins finished parts. One thread.
 */
#ifndef PSTK_MERGE_H
#define PSTK_MERGE_H

#include "format/pstk/manifest.h"
#include "pack/staging.h"

/* The parts to join, as the caller gives them. All pointers are borrowed. */
struct pstk__merge_list {
    const char *const *paths;
    uint32_t n;
    const char *pack_id; /* pack id that all parts must have; "": any */
};

/* Join the parts in the directory of `staging` and commit it; the caller closes `staging`. like: a
 * manifest with the schema and names that the parts must have. Its note, if it has one, replaces
 * the first part's note; its task, if it has one, becomes the whole's task. */
int pstk__merge_into(struct pstk__staging *staging, const struct pstk__manifest *like,
                     const struct pstk__merge_list *list, struct pstk_error *err);

#endif
