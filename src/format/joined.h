/* SPDX-License-Identifier: Apache-2.0 */
/*
 * joined: several opened data sets as one. Samples, shards, files and index pages are those of the
 * data sets end to end, in their order. The schema has the fields that are alike in all of them;
 * record views have its numbers. Side columns and class names are left out.
 */
#ifndef PSTK_FORMAT_JOINED_H
#define PSTK_FORMAT_JOINED_H

#include "format/format.h"

/* Join n >= 1 opened data sets, which must differ by their identities. Takes the sources, also on
 * failure. Returns owned. */
int pstk__joined_open(struct pstk__source **out, struct pstk__source **sources, uint32_t n,
                      struct pstk_error *err);
/* Data set number i of a joined one. */
const struct pstk__source *pstk__joined_part(const struct pstk__source *joined, uint32_t i);
/* 0 when the field is in the schema; else EINVAL: two data sets that differ, and in what. */
int pstk__joined_check_field(const struct pstk__source *joined, const char *name,
                             struct pstk_error *err);

#endif
