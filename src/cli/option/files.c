/* SPDX-License-Identifier: Apache-2.0 */
#include "option/files.h"

#include <stdio.h>
#include <string.h>

static int has_shards(const struct pstk_dataset_info *info)
{
    return strcmp(info->format, "pstk") == 0;
}

const char *files_noun(const struct pstk_dataset_info *info)
{
    return has_shards(info) ? "shard" : "file";
}

uint64_t files_count(const struct pstk_dataset_info *info)
{
    return has_shards(info) ? info->n_shards : info->n_files;
}

const char *files_text(const struct pstk_dataset_info *info, char text[FILES_SIZE])
{
    char n[UNIT_SIZE];
    const uint64_t count = files_count(info);
    snprintf(text, FILES_SIZE, "%s %s%s", unit_count(n, count), files_noun(info),
             count == 1 ? "" : "s");
    return text;
}
