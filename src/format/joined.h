/* SPDX-License-Identifier: Apache-2.0 */
/*
 * joined: several opened data sets as one. It concatenates their samples, shards, files and index
 * pages in order. The schema has the fields that are alike in all of them; record views use its
 * numbers. Side columns and class names are left out.
 */
#ifndef PSTK_FORMAT_JOINED_H
#define PSTK_FORMAT_JOINED_H

#include "format/format.h"

/* Join n >= 1 opened data sets, which must have different identities. Takes the sources, also on
 * failure. Returns owned. */
int pstk__joined_open(struct pstk__source **out, struct pstk__source **sources, uint32_t n,
                      struct pstk_error *err);
/* Return data set number i of a joined one. */
const struct pstk__source *pstk__joined_part(const struct pstk__source *joined, uint32_t i);
/* 0: the field is in the schema; otherwise EINVAL, whose message names two data sets and their
 * difference. */
int pstk__joined_check_field(const struct pstk__source *joined, const char *name,
                             struct pstk_error *err);

#endif
