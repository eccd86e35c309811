/* SPDX-License-Identifier: Apache-2.0 */
/* build: the points of all files of a data set, found or opened; what is kept of them. */
#ifndef PSTK_UNPACK_BUILD_H
#define PSTK_UNPACK_BUILD_H

#include "store/unpack/table.h"

/* 1: some file is named as compressed ones are, or the first that is not empty begins so. <0: it
 * cannot be read. */
int pstk__unpack_is_needed(const struct pstk__unpack_files *files, struct pstk_error *err);
/* Set packings, sizes and points of all files. */
int pstk__unpack_build(struct pstk__packed_files *table, const struct pstk__unpack_files *files,
                       struct pstk_error *err);

#endif
