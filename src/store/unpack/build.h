/* SPDX-License-Identifier: Apache-2.0 */
/* build: finds or opens the points of all files of a data set, and keeps facts about them. */
#ifndef PSTK_UNPACK_BUILD_H
#define PSTK_UNPACK_BUILD_H

#include "store/unpack/table.h"

/* 1: some file has the name of a compressed file, or the first file that is not empty begins as
 * one. <0: it cannot be read. */
int pstk__unpack_is_needed(const struct pstk__unpack_files *files, struct pstk_error *err);
/* Set packings, sizes and points of all files. */
int pstk__unpack_build(struct pstk__packed_files *table, const struct pstk__unpack_files *files,
                       struct pstk_error *err);

#endif
