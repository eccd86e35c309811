/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reorder_fixture: a reorder buffer over pools of slots, with the test in place of the readers, the
 * workers and the uploader; and the naive walk over the stream of batches that it is compared with.
 */
#ifndef PSTK_TEST_REORDER_FIXTURE_H
#define PSTK_TEST_REORDER_FIXTURE_H

#include "support/slots_fixture.h"
#include "batch/reorder.h"

/* ---- the naive stream: nothing of order.h -----------------------------------------------------
 */

struct naive_batch {
    uint64_t epoch, position, next_position, index;
    uint32_t n_valid;
};

static inline int naive_exists(const struct pstk__partition *p, uint64_t position)
{
    const uint64_t end = position + p->global_batch;
    return p->last_batch == PSTK_LAST_DROP ? end <= p->n : position < p->n;
}

/* The batch at a cursor, or the first of the next epoch where there is none. */
static inline struct naive_batch naive_first(const struct pstk__partition *p,
                                             struct pstk__cursor at)
{
    const uint64_t global = p->global_batch;
    if (!naive_exists(p, at.position))
        at = (struct pstk__cursor){.epoch = at.epoch + 1};
    struct naive_batch b = {.epoch = at.epoch, .position = at.position};
    b.index = b.position / global;
    b.next_position = b.position;
    while (b.next_position < p->n && b.next_position < b.position + global)
        b.n_valid += b.next_position++ % p->world == p->rank;
    if (p->last_batch == PSTK_LAST_PAD)
        for (uint64_t k = b.next_position; k < b.position + global; k++)
            b.n_valid += k % p->world == p->rank;
    return b;
}

static inline struct naive_batch naive_next(const struct pstk__partition *p,
                                            const struct naive_batch *b)
{
    return naive_first(p, (struct pstk__cursor){b->epoch, b->next_position});
}

static inline int naive_is(const struct naive_batch *b, const struct pstk__slot *s)
{
    return s->batch.epoch == b->epoch && s->batch.position == b->position &&
           s->batch.next_position == b->next_position && s->batch.index == b->index &&
           s->batch.n_valid == b->n_valid;
}

/* ---- a reorder buffer and its pools ----------------------------------------------------------
 */

struct world_config {
    struct pstk__partition partition; /* n, global_batch, rank, world, last */
    struct pstk__cursor start;
    uint32_t n_slots, n_lanes;
    uint32_t n_device_slots; /* 0: no uploader */
};

struct world {
    struct pools p;
    struct pstk__reorder_buffer reorder;
    struct pstk__partition partition;
    struct pstk__cursor start;
    uint64_t waited_ns;
    struct pstk_error err; /* error of the last take */
};

static inline int world_open(struct world *w, const struct world_config *c)
{
    const struct pools_config pools = {.batch_size = (uint32_t)pstk__partition_rows(&c->partition),
                                       .n_slots = c->n_slots,
                                       .n_lanes = c->n_lanes,
                                       .n_device_slots = c->n_device_slots};
    memset(w, 0, sizeof *w);
    w->partition = c->partition;
    w->start = c->start;
    pstk_error_init(&w->err, sizeof w->err);
    int r = pools_open(&w->p, &pools);
    if (r < 0)
        return r;
    r = pstk__reorder_open(&w->reorder, w->p.host, w->p.leased, &c->partition, NULL, c->start,
                           NULL);
    if (r < 0)
        pools_close(&w->p);
    return r;
}

/* A new reorder buffer from another start on the same slots, all of them free: these take long to
 * make. */
static inline int reorder_again(struct world *w, struct pstk__cursor start)
{
    pstk__reorder_close(&w->reorder);
    w->start = start;
    return pstk__reorder_open(&w->reorder, w->p.host, w->p.leased, &w->partition, NULL, start,
                              NULL);
}

static inline void world_close(struct world *w)
{
    pstk__reorder_close(&w->reorder);
    pools_close(&w->p);
}

/* Claim the next batch, as the reader does. */
static inline struct pstk__slot *claim(struct world *w)
{
    struct pstk__slot *s = pstk__slot_begin(w->p.host, 0);
    if (s)
        pstk__reorder_claim(&w->reorder, s);
    return s;
}

/* The last worker of a batch. */
static inline void put_one(struct world *w, struct pstk__slot *s)
{
    pstk__slot_done(s);
    pstk__reorder_put(&w->reorder, s);
}

/* Take the next batch, as the uploader does. Return the slot that it loads, or NULL. */
static inline struct pstk__slot *upload_take(struct world *w, struct pstk__slot **from)
{
    struct pstk__slot *to = pstk__slot_load(w->p.device);
    *from = to ? pstk__reorder_take_filled(&w->reorder) : NULL;
    if (to && !*from)
        pstk__slot_drop(to);
    return *from ? to : NULL;
}

static inline void upload_end(struct pstk__slot *to, struct pstk__slot *from)
{
    pstk__slot_loaded(to, from);
    pstk__slot_copied(from);
}

/* Both; what is loaded is not put in yet. */
static inline struct pstk__slot *upload_begin(struct world *w)
{
    struct pstk__slot *from, *to = upload_take(w, &from);
    if (to)
        upload_end(to, from);
    return to;
}

/* The last worker, then the uploader, for all that it can. */
static inline void put(struct world *w, struct pstk__slot *s)
{
    put_one(w, s);
    while (w->p.device && (s = upload_begin(w)))
        pstk__reorder_put_loaded(&w->reorder, s);
}

/* The consumer, who does not wait. */
static inline int take(struct world *w, struct pstk__slot **s)
{
    return pstk__reorder_take(&w->reorder, s, NULL, 0, &w->waited_ns, &w->err);
}

static inline struct pstk__slot *take_now(struct world *w)
{
    struct pstk__slot *s;
    return take(w, &s) == 1 ? s : NULL;
}

static inline int is_at(struct world *w, uint64_t epoch, uint64_t position)
{
    const struct pstk__cursor c = pstk__reorder_cursor(&w->reorder);
    return c.epoch == epoch && c.position == position;
}

#endif
