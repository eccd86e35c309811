/* SPDX-License-Identifier: Apache-2.0 */
/* shards: numbered files of whole samples, each of which is closed before it is larger than the
 * export's shard_size, but has one sample at least. */
#ifndef PSTK_EXPORT_SHARDS_H
#define PSTK_EXPORT_SHARDS_H

#include "export/export.h"

#define PSTK__SHARD_NAME 64 /* bytes, with the terminating 0 */

/* Zero it, then set the first members. */
struct pstk__shards {
    struct pstk__export *export; /* borrowed */
    const char *prefix, *suffix; /* of a name, around the number of n_digits digits; borrowed */
    int n_digits;
    uint64_t tail_size; /* bytes that end_shard appends */

    struct pstk__out_file file; /* of the open shard */
    uint64_t n;                 /* shards begun; the open one is the last */
    uint64_t n_samples;         /* in the open one; 0: none is open */
};

/* Write the name of shard i. */
void pstk__shards_name(const struct pstk__shards *shards, uint64_t i, char name[PSTK__SHARD_NAME]);
/* 1: a sample of `size` bytes needs another shard than the open one, which the target has to end
 * first. */
int pstk__shards_is_full(const struct pstk__shards *shards, uint64_t size);
/* Append a sample, to a new shard if none is open. */
int pstk__shards_add(struct pstk__shards *shards, const void *data, uint64_t size,
                     struct pstk_error *err);
/* Close the open shard, with these last bytes; none open is fine. */
int pstk__shards_end(struct pstk__shards *shards, const void *tail, uint64_t size,
                     struct pstk_error *err);

#endif
