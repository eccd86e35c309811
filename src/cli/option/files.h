/* SPDX-License-Identifier: Apache-2.0 */
/* files: the number of files that hold a data set's samples, and whether they are called shards or
 * files. */
#ifndef PSTK_CLI_FILES_H
#define PSTK_CLI_FILES_H

#include <penstock/format.h>

#include "ui/unit.h"

/* Return "shard" or "file". */
const char *files_noun(const struct pstk_dataset_info *info);
/* Return the number of files. In a format without shards each field has its own file. */
uint64_t files_count(const struct pstk_dataset_info *info);
#define FILES_SIZE (UNIT_SIZE + 8)
/* Write "1 shard", "59 shards", "2 files". Returns `text`. */
const char *files_text(const struct pstk_dataset_info *info, char text[FILES_SIZE]);

#endif
