/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan: the index of a table of images. It has a part for each 4 MiB of the table. Each thread that
 * builds it has the rows of one part in memory.
 *
 *
 * The table is read twice. First, one thread finds the begins of the parts, and the names of
 * classes. Then several threads read one part each, and look for its images.
 */
#ifndef PSTK_TABLE_SCAN_H
#define PSTK_TABLE_SCAN_H

#include "format/table/paths.h"
#include "store/index/index.h"

/* Open the index of a table, or build it first. Returns owned. */
int pstk__table_get_index(struct pstk__index **out, const struct pstk__opening *opening,
                          const struct pstk__table_paths *paths, struct pstk_error *err);

#endif
