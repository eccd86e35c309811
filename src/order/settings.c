/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of orders: they check settings, then call the pure ones. */
#include "order/explain.h"
#include "order/order.h"
#include "order/schedule.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Largest numbers of samples, and of rows of a global batch, that the public functions accept:
 * their sums stay below 2^63. */
#define LIMIT ((uint64_t)1 << 62)

/* The smallest size of a program's settings: up to the last member of the first version. */
#define SIZE_MIN offsetof(struct pstk_order_settings, global_batch_size)

/* Copy the caller's settings, whose later members may be missing. Returns 0 or EINVAL. */
static int settings_of(const struct pstk_order_settings *from, struct pstk_order_settings *to)
{
    *to = (struct pstk_order_settings){0};
    if (!from || from->size < SIZE_MIN)
        return PSTK_EINVAL;
    memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
    return to->world && to->reserved == 0 ? 0 : PSTK_EINVAL;
}

/* Fill a partition from copied settings, except its schedule. Returns 0 or EINVAL. */
static int partition_of(const struct pstk_order_settings *s, struct pstk__partition *partition)
{
    const uint64_t global =
        s->global_batch_size ? s->global_batch_size : (uint64_t)s->batch_size * s->world;
    if (s->n_samples > LIMIT || global > LIMIT || global < s->world || s->rank >= s->world)
        return PSTK_EINVAL;
    if (s->order > PSTK_ORDER_WINDOWED || s->last_batch > PSTK_LAST_SHORT)
        return PSTK_EINVAL;
    if (s->ways > PSTK__WAYS_MAX || s->block > PSTK__BLOCK_MAX || s->window > PSTK__WINDOW_MAX)
        return PSTK_EINVAL;
    if (s->order != PSTK_ORDER_WINDOWED && (s->ways || s->block || s->window))
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

/* Return the shape of the order of copied settings. */
static struct pstk__order_shape shape_of(const struct pstk_order_settings *s)
{
    struct pstk__order_shape shape = {
        .kind = s->order,
        .interleave = {.n = s->n_samples, .ways = s->ways, .block = s->block, .window = s->window}};
    pstk__interleave_settle(&shape.interleave);
    return shape;
}

/* Fill a partition with its schedule, which the caller frees. Returns 0, EINVAL or ENOMEM. */
static int scheduled_of(const struct pstk_order_settings *from, struct pstk_order_settings *s,
                        struct pstk__partition *partition, struct pstk__schedule **schedule)
{
    *schedule = NULL;
    int r = settings_of(from, s);
    if (r == 0)
        r = partition_of(s, partition);
    if (r == 0 && s->n_samples)
        r = pstk__schedule_open(schedule, partition, s->batch_schedule, s->n_batch_steps,
                                s->global_batch_size ? 1 : s->world, NULL);
    if (r == 0)
        partition->schedule = *schedule;
    return r;
}

uint64_t pstk_order_n_batches(const struct pstk_order_settings *settings, uint64_t position)
{
    struct pstk_order_settings s;
    struct pstk__partition partition;
    struct pstk__schedule *schedule;
    if (scheduled_of(settings, &s, &partition, &schedule) < 0)
        return 0;
    const uint64_t n = pstk__schedule_n_batches(&partition, s.epoch, position);
    free(schedule);
    return n;
}

uint64_t pstk_order_rows(const struct pstk_order_settings *settings, uint64_t position)
{
    struct pstk_order_settings s;
    struct pstk__partition partition;
    struct pstk__schedule *schedule;
    if (scheduled_of(settings, &s, &partition, &schedule) < 0)
        return 0;
    partition = pstk__schedule_at(&partition, s.epoch, position, NULL);
    free(schedule);
    return partition.global_batch;
}

int64_t pstk_order_batch(const struct pstk_order_settings *settings, uint64_t position,
                         uint64_t *ids)
{
    struct pstk_order_settings s;
    struct pstk__partition partition;
    struct pstk__schedule *schedule;
    const int r = ids ? scheduled_of(settings, &s, &partition, &schedule) : PSTK_EINVAL;
    if (r < 0)
        return r;
    const int is_over = pstk__schedule_n_batches(&partition, s.epoch, position) == 0;
    partition = pstk__schedule_at(&partition, s.epoch, position, NULL);
    free(schedule);
    if (is_over)
        return 0;
    struct pstk__order order;
    const struct pstk__order_shape shape = shape_of(&s);
    pstk__order_init(&order, &shape, s.seed, s.epoch);
    uint32_t n_valid = pstk__partition_n_valid(&partition, position);
    for (uint32_t row = 0; row < n_valid; row++)
        ids[row] = pstk__order_at(&order, pstk__partition_row(&partition, position, row));
    return n_valid;
}

int pstk_order_settle(struct pstk_order_settings *settings)
{
    struct pstk_order_settings s;
    struct pstk__partition partition;
    int r = settings_of(settings, &s);
    if (r == 0)
        r = partition_of(&s, &partition);
    if (r < 0 || settings->size < sizeof s)
        return PSTK_EINVAL;
    if (s.order == PSTK_ORDER_WINDOWED) {
        const struct pstk__order_shape shape = shape_of(&s);
        settings->ways = shape.interleave.ways;
        settings->block = shape.interleave.block;
        settings->window = shape.interleave.window;
    }
    return 0;
}

/* Explain the blocks of a windowed order. */
static void explain_blocks(const struct pstk_order_settings *s, struct pstk_order_explanation *out)
{
    const struct pstk__order_shape shape = shape_of(s);
    struct pstk__interleave_share share;
    pstk__interleave_explain(&shape.interleave, s->world, &share);
    out->ways = shape.interleave.ways;
    out->block = shape.interleave.block;
    out->window = shape.interleave.window;
    out->advised_ways = pstk__interleave_advise(&shape.interleave, s->world);
    out->n_mixed = share.n_mixed;
    out->n_blocks = (s->n_samples - 1) / shape.interleave.block + 1;
    out->ways_of_rank = share.ways;
    out->ranks_of_way = share.ranks;
    out->blocks_of_rank = share.blocks;
    out->n_readings = share.n_readings;
}

int pstk_order_explain(const struct pstk_order_settings *settings,
                       struct pstk_order_explanation *explanation)
{
    struct pstk_order_settings s;
    struct pstk__partition partition;
    struct pstk__schedule *schedule;
    struct pstk_order_explanation out = {.size = 0};
    int r = explanation && explanation->size >= sizeof explanation->size ? 0 : PSTK_EINVAL;
    if (r == 0)
        r = scheduled_of(settings, &s, &partition, &schedule);
    if (r < 0)
        return r;
    const uint32_t size = explanation->size;
    if (s.n_samples) {
        out.n_mixed = s.order == PSTK_ORDER_FULL ? s.n_samples : 1;
        out.n_readings = 1;
        out.n_batches = pstk__schedule_n_batches(&partition, s.epoch, 0);
        if (out.n_batches) {
            uint64_t last;
            partition = pstk__schedule_last(&partition, s.epoch, &last);
            out.last_rows = pstk__partition_n_valid(&partition, last);
        }
        if (s.order == PSTK_ORDER_WINDOWED)
            explain_blocks(&s, &out);
    }
    free(schedule);
    out.size = size;
    memcpy(explanation, &out, size < sizeof out ? size : sizeof out);
    return 0;
}
