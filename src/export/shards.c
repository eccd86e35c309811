/* SPDX-License-Identifier: Apache-2.0 */
#include "export/shards.h"

#include "base/error.h"

#include <stdio.h>

int pstk__shards_is_full(const struct pstk__shards *shards, uint64_t size)
{
    const uint64_t most = shards->export->shard_size;
    return shards->n_samples > 0 && (shards->file.size + shards->tail_size > most ||
                                     size > most - shards->file.size - shards->tail_size);
}

void pstk__shards_name(const struct pstk__shards *shards, uint64_t i, char name[PSTK__SHARD_NAME])
{
    snprintf(name, PSTK__SHARD_NAME, "%s%0*llu%s", shards->prefix, shards->n_digits,
             (unsigned long long)i, shards->suffix);
}

static int begin(struct pstk__shards *shards, struct pstk_error *err)
{
    char name[PSTK__SHARD_NAME];
    pstk__shards_name(shards, shards->n, name);
    shards->n++;
    return pstk__outdir_create(&shards->export->files, &shards->file, name, err);
}

int pstk__shards_add(struct pstk__shards *shards, const void *data, uint64_t size,
                     struct pstk_error *err)
{
    int r = shards->n_samples == 0 ? begin(shards, err) : 0;
    if (r == 0)
        r = pstk__out_file_put(&shards->file, data, size, err);
    shards->n_samples += r == 0;
    return r;
}

int pstk__shards_end(struct pstk__shards *shards, const void *tail, uint64_t size,
                     struct pstk_error *err)
{
    if (shards->n_samples == 0)
        return 0;
    shards->n_samples = 0;
    shards->export->result.n_shards++;
    const int r = pstk__out_file_put(&shards->file, tail, size, err);
    if (r < 0)
        return r;
    return pstk__out_file_end(&shards->file, 1, err);
}
