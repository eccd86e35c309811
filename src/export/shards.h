/* SPDX-License-Identifier: Apache-2.0 */
/* shards: numbered files of whole samples. A shard is closed before it exceeds the export's
 * shard_size, but has at least one sample. */
#ifndef PSTK_EXPORT_SHARDS_H
#define PSTK_EXPORT_SHARDS_H

#include "export/export.h"

#define PSTK__SHARD_NAME 64 /* bytes of a name, with the terminating 0 */

/* Zero it, then set the first members. */
struct pstk__shards {
    struct pstk__export *export; /* borrowed */
    const char *prefix,
        *suffix; /* parts of a name around the number of n_digits digits; borrowed */
    int n_digits;
    uint64_t tail_size; /* bytes that end_shard appends */

    struct pstk__out_file file; /* file of the open shard */
    uint64_t n;                 /* shards begun; the open one is the last */
    uint64_t n_samples;         /* samples in the open shard; 0: none is open */
};

/* Write the name of shard i. */
void pstk__shards_name(const struct pstk__shards *shards, uint64_t i, char name[PSTK__SHARD_NAME]);
/* Return 1 if a sample of `size` bytes does not fit in the open shard; then the target must end
 * that first. */
int pstk__shards_is_full(const struct pstk__shards *shards, uint64_t size);
/* Append a sample, to a new shard if none is open. */
int pstk__shards_add(struct pstk__shards *shards, const void *data, uint64_t size,
                     struct pstk_error *err);
/* Append these last bytes to the open shard and close it. Without an open shard it does nothing. */
int pstk__shards_end(struct pstk__shards *shards, const void *tail, uint64_t size,
                     struct pstk_error *err);

#endif
