/* SPDX-License-Identifier: Apache-2.0 */
/* files: how many files a data set has, and what they are called: shards, or arrays' files. */
#ifndef PSTK_CLI_FILES_H
#define PSTK_CLI_FILES_H

#include <penstock/format.h>

#include "unit.h"

/* "shard" or "file". */
const char *files_noun(const struct pstk_dataset_info *info);
/* Of a format without shards: each field has a file of its own. */
uint64_t files_count(const struct pstk_dataset_info *info);
#define FILES_SIZE (UNIT_SIZE + 8)
/* Return "1 shard", "59 shards", "2 files". */
const char *files_text(const struct pstk_dataset_info *info, char text[FILES_SIZE]);

#endif
