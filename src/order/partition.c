/* SPDX-License-Identifier: Apache-2.0 */
#include "order/partition.h"

uint64_t pstk__partition_rows(const struct pstk__partition *partition)
{
    return (partition->global_batch - 1) / partition->world + 1;
}

static uint64_t samples_left(const struct pstk__partition *partition, uint64_t position)
{
    return position < partition->n ? partition->n - position : 0;
}

uint64_t pstk__partition_n_batches(const struct pstk__partition *partition, uint64_t position)
{
    uint64_t left = samples_left(partition, position);
    uint64_t global = partition->global_batch;
    return left / global + (partition->last_batch != PSTK_LAST_DROP && left % global != 0);
}

/* Return the distance from `position` to the first position at or after it that is rank modulo
 * world; below world. It is the rank itself unless position is not a multiple of world, as may
 * happen after resuming with another number of ranks. */
static uint64_t distance_to_rank(const struct pstk__partition *partition, uint64_t position)
{
    uint64_t at = position % partition->world;
    return partition->rank >= at ? partition->rank - at : partition->rank + partition->world - at;
}

uint32_t pstk__partition_n_valid(const struct pstk__partition *partition, uint64_t position)
{
    uint64_t left = samples_left(partition, position);
    if (left == 0)
        return 0;
    const int is_short = partition->last_batch == PSTK_LAST_SHORT && left < partition->global_batch;
    const uint64_t n = is_short ? left : partition->global_batch;
    const uint64_t first = distance_to_rank(partition, position);
    return first < n ? (uint32_t)((n - first - 1) / partition->world + 1) : 0;
}

uint64_t pstk__partition_row(const struct pstk__partition *partition, uint64_t position,
                             uint32_t row)
{
    uint64_t at = position + distance_to_rank(partition, position) + row * partition->world;
    return at < partition->n ? at : at % partition->n; /* past the end only under PSTK_LAST_PAD */
}
