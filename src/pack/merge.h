/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge: parts that were packed one by one become one data set. It implements pstk_merge, and what
 * the writer commits where its records are those of finished parts. One thread.
 */
#ifndef PSTK_MERGE_H
#define PSTK_MERGE_H

#include "format/pstk/manifest.h"
#include "pack/staging.h"

/* Join the parts into the directory that `s` holds, and commit it; closing `s` is the caller's.
 * like: a manifest whose schema and names the parts must have, and whose note, if it has one, is
 * taken instead of the first part's. */
int pstk__merge_into(struct pstk__staging *staging, const struct pstk__manifest *like,
                     const char *const *parts, uint32_t n_parts, struct pstk_error *err);

#endif
