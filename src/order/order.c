/* SPDX-License-Identifier: Apache-2.0 */
#include "order/order.h"

#include "base/random.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* The stream of draws that makes the order of an epoch. Seed and epoch go into different places of
 * Philox (key, counter), so that (seed + 1, epoch) and (seed, epoch + 1) have nothing in common.
 */
static struct pstk__random draws_of(uint64_t seed, uint64_t epoch)
{
    uint64_t key = pstk__mix64(seed + 0x6F726465723031u); /* "order01" */
    return (struct pstk__random){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
        .counter = {0, 0, (uint32_t)epoch, (uint32_t)(epoch >> 32)},
    };
}

/* Fisher-Yates: every permutation equally likely. */
static void shuffle_table(uint16_t *table, uint32_t n, struct pstk__random *draws)
{
    for (uint32_t i = 0; i < n; i++)
        table[i] = (uint16_t)i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)pstk__random_below(draws, i);
        uint16_t t = table[i - 1];
        table[i - 1] = table[j];
        table[j] = t;
    }
}

void pstk__order_init(struct pstk__order *order, uint32_t kind, uint64_t n, uint64_t seed,
                      uint64_t epoch)
{
    *order = (struct pstk__order){.kind = kind, .n = n};
    if (kind != PSTK_ORDER_FULL || n < 2)
        return;
    struct pstk__random draws = draws_of(seed, epoch);
    if (n <= PSTK__ORDER_TABLE) {
        shuffle_table(order->table, (uint32_t)n, &draws);
        return;
    }
    /* The bits of n - 1, the largest position: 2^bits < 2 n, so that a walk takes less than two
     * steps on average. Halves of at most 32 bits; the right one is larger by one if they differ.
     */
    uint32_t bits = 64 - (uint32_t)__builtin_clzll(n - 1);
    order->left_bits = bits / 2;
    order->right_bits = bits - order->left_bits;
    for (int i = 0; i < PSTK__ORDER_ROUNDS; i++)
        order->keys[i] = pstk__random_u64(&draws);
}

/* A keyed function to the top bits of a word: two multiplications, so that each bit of x and of the
 * key reaches each bit of the result. */
static inline uint64_t round_of(uint64_t x, uint64_t key)
{
    x = (x + key) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 32) * 0x94D049BB133111EBu;
    return x;
}

/* One step of the walk: a permutation of [0, 2^(left + right)). Each round changes one half by a
 * function of the other half, and the same round undoes it. So the step is a permutation whatever
 * the function and the widths. */
static inline uint64_t feistel(const struct pstk__order *order, uint64_t x)
{
    uint32_t left_shift = 64 - order->left_bits, right_shift = 64 - order->right_bits;
    uint64_t left = x >> order->right_bits;
    uint64_t right = x & (((uint64_t)1 << order->right_bits) - 1);
    for (int i = 0; i < PSTK__ORDER_ROUNDS; i += 2) {
        left ^= round_of(right, order->keys[i]) >> left_shift;
        right ^= round_of(left, order->keys[i + 1]) >> right_shift;
    }
    return left << order->right_bits | right;
}

uint64_t pstk__order_at(const struct pstk__order *order, uint64_t k)
{
    assert(k < order->n);
    if (order->kind != PSTK_ORDER_FULL)
        return k;
    if (order->n <= PSTK__ORDER_TABLE)
        return order->table[k];
    /* The cycle of k, which lies in [0, n), leads back into [0, n): the walk ends, and no two
     * positions end at the same id. */
    do
        k = feistel(order, k);
    while (k >= order->n);
    return k;
}

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

/* Distance from `position` to the first position at or after it that is = rank modulo world; below
 * world. It is the rank itself unless position is not a multiple of world, as may happen after
 * resuming with another number of ranks. */
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

/* The most samples, and rows of a global batch, that the public functions take: their sums stay
 * below 2^63.
 */
#define LIMIT ((uint64_t)1 << 62)

/* The least size of a program's settings: up to the last member of the first version. */
#define SIZE_MIN offsetof(struct pstk_order_settings, global_batch_size)

/* Copy the caller's settings, whose later members may be missing; 0 or EINVAL. */
static int settings_of(const struct pstk_order_settings *from, struct pstk_order_settings *to)
{
    *to = (struct pstk_order_settings){0};
    if (!from || from->size < SIZE_MIN)
        return PSTK_EINVAL;
    memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
    if (!to->world)
        to->world = 1;
    return to->reserved == 0 ? 0 : PSTK_EINVAL;
}

/* Fill a partition from copied settings; 0 or EINVAL. */
static int partition_of(const struct pstk_order_settings *s, struct pstk__partition *partition)
{
    const uint64_t global =
        s->global_batch_size ? s->global_batch_size : (uint64_t)s->batch_size * s->world;
    if (s->n_samples > LIMIT || global > LIMIT || global < s->world || s->rank >= s->world)
        return PSTK_EINVAL;
    if (s->order > PSTK_ORDER_SEQUENTIAL || s->last_batch > PSTK_LAST_SHORT)
        return PSTK_EINVAL;
    if (s->global_batch_size && s->batch_size)
        return PSTK_EINVAL;
    *partition = (struct pstk__partition){
        .n = s->n_samples,
        .global_batch = global,
        .rank = s->rank,
        .world = s->world,
        .last_batch = s->last_batch,
    };
    return 0;
}

uint64_t pstk_order_n_batches(const struct pstk_order_settings *settings, uint64_t position)
{
    struct pstk_order_settings s;
    struct pstk__partition partition;
    if (settings_of(settings, &s) < 0 || partition_of(&s, &partition) < 0)
        return 0;
    return pstk__partition_n_batches(&partition, position);
}

int64_t pstk_order_batch(const struct pstk_order_settings *settings, uint64_t position,
                         uint64_t *ids)
{
    struct pstk_order_settings s;
    struct pstk__partition partition;
    if (settings_of(settings, &s) < 0 || partition_of(&s, &partition) < 0 || !ids)
        return PSTK_EINVAL;
    if (pstk__partition_n_batches(&partition, position) == 0)
        return 0;
    struct pstk__order order;
    pstk__order_init(&order, s.order, s.n_samples, s.seed, s.epoch);
    uint32_t n_valid = pstk__partition_n_valid(&partition, position);
    for (uint32_t row = 0; row < n_valid; row++)
        ids[row] = pstk__order_at(&order, pstk__partition_row(&partition, position, row));
    return n_valid;
}
