/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/stream.h"

#include "base/error.h"
#include "dataset/members.h"
#include "loader/bucketed.h"
#include "loader/mixture.h"

#include <stdlib.h>

#define U64(x) ((unsigned long long)(x))

int pstk__stream_fail_no_batch(const struct pstk__stream *stream, const struct pstk_settings *s,
                               const char *path, uint64_t global_batch, struct pstk_error *err)
{
    const char *of = stream->members ? "the subset of " : "";
    if (s->global_batch_size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "global_batch_size: %llu rows are more than the %llu samples of %s%s, so "
                          "last_batch=drop leaves no batch: lower it, or set last_batch to pad or "
                          "short",
                          U64(global_batch), U64(stream->partition.n), of, path);
    return pstk__fail(
        err, PSTK_EINVAL, PSTK_STAGE_OPEN,
        "batch_size: %llu rows for each of %u rank%s are more than the %llu samples of %s%s, so "
        "last_batch=drop leaves no batch: lower batch_size, or set last_batch to pad or short",
        U64(global_batch / s->ranks.world), s->ranks.world, s->ranks.world == 1 ? "" : "s",
        U64(stream->partition.n), of, path);
}

/* Find the samples of the subset; *n: the number of positions. */
static int open_subset(struct pstk__stream *stream, const struct pstk_settings *s,
                       struct pstk_dataset *dataset, uint64_t *n, struct pstk_error *err)
{
    const int r = pstk_members_open(&stream->members, dataset, s->subset, err);
    if (r < 0)
        return r;
    stream->picks.subset = pstk__members_subset(stream->members);
    stream->picks.alias = pstk__members_alias(stream->members);
    *n = pstk_members_n_draws(stream->members);
    if (stream->picks.alias && s->order.kind != PSTK_ORDER_FULL)
        return pstk__fail_setting(err, "order", s->order.kind,
                                  "%d (full) with weights, which draw samples at random",
                                  PSTK_ORDER_FULL);
    return 0;
}

/* Find the samples of a mixture, a subset or the whole data set. *n: positions of an epoch. */
static int open_samples(struct pstk__stream *stream, const struct pstk_settings *s,
                        struct pstk_dataset *dataset, uint64_t *n, struct pstk_error *err)
{
    const struct pstk__source *source = pstk__dataset_source(dataset);
    *n = source->n_samples;
    if (s->subset)
        return open_subset(stream, s, dataset, n, err);
    if (!s->mixture)
        return 0;
    const int r = pstk__mixture_make_order(&stream->mixture, stream->members_of, s, source, err);
    if (r == 0)
        *n = stream->mixture->n;
    return r;
}

/* Open batches by a budget; set the number of positions that they keep, and the rows of the largest
 * batch. */
static int open_bucketed(struct pstk__stream *stream, const struct pstk_settings *s,
                         const struct pstk__source *source, struct pstk_error *err)
{
    const struct pstk__bucketed_config c = {
        .settings = s, .source = source, .picks = &stream->picks, .partition = &stream->partition};
    const int r = pstk__bucketed_open(&stream->epochs, &c, err);
    if (r < 0)
        return r;
    const struct pstk__bucketing *bucketing = &stream->epochs->bucketing;
    stream->epochs_memory = pstk__bucketed_memory(stream->epochs, source->n_samples);
    stream->partition.n = bucketing->n_kept;
    stream->max_rows = (uint32_t)bucketing->largest_batch;
    pstk__epochs_make(stream->epochs, s->order.epoch);
    return pstk__bucketed_check_first(stream->epochs, s, err);
}

/* Open batches of rows, or by a budget. */
static int open_batches(struct pstk__stream *stream, const struct pstk_settings *s,
                        const struct pstk__source *source, struct pstk_error *err)
{
    int r = 0;
    stream->max_rows = s->memory.max_batch_size ? s->memory.max_batch_size : s->batch_size;
    if (s->budget)
        r = open_bucketed(stream, s, source, err);
    else if (pstk__partition_n_batches(&stream->partition, 0) == 0)
        r = pstk__stream_fail_no_batch(stream, s, source->path, stream->partition.global_batch,
                                       err);
    if (r == 0)
        r = pstk__schedule_open(&stream->schedule, &stream->partition, s->order.batch_schedule,
                                s->order.n_batch_steps, s->global_batch_size ? 1 : s->ranks.world,
                                err);
    if (r == 0)
        stream->partition.schedule = stream->schedule;
    return r;
}

int pstk__stream_open(struct pstk__stream *stream, const struct pstk_settings *s,
                      struct pstk_dataset *dataset, struct pstk_error *err)
{
    const struct pstk__source *source = pstk__dataset_source(dataset);
    uint64_t n;
    int r = open_samples(stream, s, dataset, &n, err);
    if (r < 0)
        return r;
    stream->partition = (struct pstk__partition){
        .n = n,
        .global_batch =
            s->global_batch_size ? s->global_batch_size : (uint64_t)s->batch_size * s->ranks.world,
        .rank = s->ranks.rank,
        .world = s->ranks.world,
        .last_batch = s->last_batch};
    stream->picks.seed = s->seed;
    stream->picks.mixture = stream->mixture;
    stream->picks.shape = (struct pstk__order_shape){
        .kind = s->order.kind,
        .interleave = {
            .n = n, .ways = s->order.ways, .block = s->order.block, .window = s->order.window}};
    pstk__interleave_settle(&stream->picks.shape.interleave);
    r = open_batches(stream, s, source, err);
    if (r < 0 || s->order.position <= stream->partition.n)
        return r;
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "position: value is %llu; must be at most %llu, the number of samples of "
                      "%s%s",
                      U64(s->order.position), U64(stream->partition.n),
                      s->subset ? "the subset of " : "", source->path);
}

void pstk__stream_close(struct pstk__stream *stream)
{
    pstk_members_close(&stream->members);
    for (uint32_t d = 0; d < PSTK_MAX_DATA_SETS; d++)
        pstk_members_close(&stream->members_of[d]);
    free(stream->mixture);
    free(stream->schedule);
    pstk__epochs_close(stream->epochs);
    *stream = (struct pstk__stream){.max_rows = 0};
}
