/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle: the naive loader, one thread, one sample at a time, nothing kept from batch to batch. It
 * shares the sample stage with the library (which has its own oracle) and nothing after it.
 */
#ifndef PSTK_TEST_ORACLE_H
#define PSTK_TEST_ORACLE_H

#include "dataset/dataset.h"
#include "order/order.h"
#include "sample/sample.h"
#include "support/sample_set.h"

struct oracle {
    struct pstk_settings s;
    struct pstk_dataset *dataset;
    struct pstk__plan *plan;
    struct pstk__sampler *sampler;
    uint8_t *row[PSTK__MAX_OUTPUTS];
    uint8_t *buffer;
};

static inline int oracle_open(struct oracle *o, const struct pstk_settings *s,
                              struct pstk_error *err)
{
    *o = (struct oracle){.s = *s};
    int r = pstk_dataset_open(&o->dataset, s->path, NULL, err);
    if (r < 0)
        return r;
    const struct pstk__source *source = pstk__dataset_source(o->dataset);
    r = pstk__plan_open(&o->plan, s, source, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < o->plan->n_outputs; i++)
        o->row[i] = calloc(1, pstk__output_rows(&o->plan->outputs[i])->row_size + 1);
    o->buffer = malloc(source->limits.max_size);
    return pstk__sampler_open(&o->sampler, o->plan, err);
}

static inline void oracle_close(struct oracle *o)
{
    pstk__sampler_close(o->sampler);
    for (uint32_t i = 0; o->plan && i < o->plan->n_outputs; i++)
        free(o->row[i]);
    free(o->buffer);
    pstk__plan_close(o->plan);
    pstk_dataset_close(&o->dataset);
}

/* Sample ids of the batch at (epoch, position); returns how many are valid. */
static inline uint32_t oracle_ids(const struct oracle *o, uint64_t epoch, uint64_t position,
                                  uint64_t *ids)
{
    const struct pstk_settings *s = &o->s;
    static struct pstk__order order;
    uint64_t n = pstk__dataset_source(o->dataset)->n_samples, world = s->ranks.world;
    struct pstk__order_shape shape = {
        .kind = s->order.kind,
        .interleave = {
            .n = n, .ways = s->order.ways, .block = s->order.block, .window = s->order.window}};
    pstk__interleave_settle(&shape.interleave);
    pstk__order_init(&order, &shape, s->seed, epoch);
    uint32_t n_valid = 0;
    for (uint32_t i = 0; i < s->batch_size; i++) {
        /* The rank's first position at or after the batch's, then every world-th. */
        uint64_t k = position;
        while (k % world != s->ranks.rank)
            k++;
        k += i * world;
        if (k >= n && s->last_batch == PSTK_LAST_PAD)
            k %= n;
        if (k < n)
            ids[n_valid++] = pstk__order_at(&order, k);
    }
    return n_valid;
}

static inline int oracle_row(struct oracle *o, uint64_t id, uint64_t epoch, struct pstk__row *rows)
{
    struct pstk__record record;
    uint32_t shard;
    struct pstk_error err;
    struct pstk__sample_key key = {.sample_id = id, .epoch = epoch};
    const struct pstk__room room = {o->buffer, pstk__dataset_source(o->dataset)->limits.max_size};
    pstk_error_init(&err, sizeof err);
    for (uint32_t i = 0; i < o->plan->n_outputs; i++)
        rows[i] = (struct pstk__row){.data = o->row[i]};
    int r = pstk__dataset_read(o->dataset, id, PSTK__ALL_FIELDS, &room, &record, &shard, &err);
    if (r == 0)
        r = pstk__sample_write(o->sampler, &record, shard, &key, rows, &err);
    if (r < 0)
        printf("# oracle: %s\n", err.message);
    return r;
}

/* Ragged: bytes of what the offsets count. */
static inline uint64_t oracle_item_size(const struct pstk_tensor *t)
{
    uint64_t size = pstk_dtype_size(t->dtype);
    for (uint32_t d = 1; d < t->n_dims; d++)
        size *= (uint64_t)t->shape[d];
    return size;
}

static inline int oracle_row_equal(const struct oracle *o, const struct pstk_batch *b, uint32_t row,
                                   const struct pstk__row *rows)
{
    for (uint32_t i = 0; i < b->n_tensors; i++) {
        const struct pstk_tensor *t = &b->tensors[i];
        uint64_t size = pstk__output_rows(&o->plan->outputs[i])->row_size, at = row * size;
        if (t->offsets) {
            uint64_t item = oracle_item_size(t);
            at = item * (uint64_t)t->offsets[row];
            size = item * (uint64_t)(t->offsets[row + 1] - t->offsets[row]);
            if (size != rows[i].size)
                return 0;
        }
        if (memcmp((const uint8_t *)t->data + at, rows[i].data, size) != 0)
            return 0;
    }
    return 1;
}

/* Rows past n_valid are zero, and empty where ragged. */
static inline int oracle_rest_zero(const struct oracle *o, const struct pstk_batch *b)
{
    for (uint32_t i = 0; i < b->n_tensors; i++) {
        const struct pstk_tensor *t = &b->tensors[i];
        uint64_t size = pstk__output_rows(&o->plan->outputs[i])->row_size;
        const uint8_t *p = t->data;
        if (t->offsets) {
            if (t->offsets[b->n_valid] != t->offsets[b->n_rows] ||
                t->offsets[b->n_rows] != t->shape[0] ||
                oracle_item_size(t) * (uint64_t)t->shape[0] != t->size)
                return 0;
            continue;
        }
        for (uint64_t k = b->n_valid * size; k < b->n_rows * size; k++)
            if (p[k] != 0)
                return 0;
    }
    return 1;
}

/* Return whether the batch is what the naive loop gives, byte for byte. Says what differs. */
static inline int oracle_equal(struct oracle *o, const struct pstk_batch *b)
{
    uint64_t *ids = calloc(o->s.batch_size, sizeof *ids);
    uint32_t n = oracle_ids(o, b->epoch, b->position, ids);
    struct pstk__row rows[PSTK__MAX_OUTPUTS];
    int equal = n == b->n_valid && memcmp(ids, b->sample_ids, n * sizeof *ids) == 0;
    if (!equal)
        printf("# ids differ at epoch %llu, position %llu\n", (unsigned long long)b->epoch,
               (unsigned long long)b->position);
    for (uint32_t row = 0; equal && row < n; row++) {
        equal = oracle_row(o, ids[row], b->epoch, rows) == 0 && oracle_row_equal(o, b, row, rows);
        if (!equal)
            printf("# row %u (sample %llu) differs\n", row, (unsigned long long)ids[row]);
    }
    if (equal && !oracle_rest_zero(o, b)) {
        printf("# rows past the valid ones are not zero\n");
        equal = 0;
    }
    free(ids);
    return equal;
}

#endif
