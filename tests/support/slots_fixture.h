/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots_fixture: pools of slots without a loader. The plan is made by hand: a dense output, a
 * ragged one, and, where there are slots of a device, an image that the device mirrors. The device
 * is an actor: it answers what the test has written down, and records what it was asked.
 */
#ifndef PSTK_TEST_SLOTS_FIXTURE_H
#define PSTK_TEST_SLOTS_FIXTURE_H

#include "batch/slot.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define ACTOR_SLOTS 8

enum { DENSE, RAGGED, MIRROR }; /* outputs; a pool of the host alone has the first two */

#define DENSE_SIZE 8u  /* bytes of a row */
#define RAGGED_SIZE 6u /* at most */
#define ITEM_SIZE 2u
#define MIRROR_SIZE 12u

/* The last end of a slot's lease, written by the thread that ends it. */
struct actor_end {
    uint32_t n_ends, n_streams, quick;
    void *streams[PSTK__MAX_USERS + 2];
};

struct actor {
    struct pstk__device base; /* first member */
    uint8_t *memory;          /* memory of its slots; owned */
    uint64_t slot_size;
    _Atomic int acquires,
        releases; /* results of the calls; releases 1: the first n_kept streams stay */
    uint32_t n_kept;
    _Atomic uint32_t n_acquired, n_closed, n_abandoned;
    void *asked_for; /* the stream of the last acquire; by one thread */
    int was_quick;
    struct actor_end ends[ACTOR_SLOTS];
};

static inline struct actor *actor_of(struct pstk__device *d)
{
    return (struct actor *)(void *)d;
}

static inline int actor_acquire(struct pstk__device *d, uint32_t slot, void *stream, int quick,
                                struct pstk_error *err)
{
    struct actor *a = actor_of(d);
    const int r = atomic_load(&a->acquires);
    (void)slot;
    atomic_fetch_add(&a->n_acquired, 1);
    a->asked_for = stream;
    a->was_quick = quick;
    return r < 0 ? pstk__fail(err, r, PSTK_STAGE_CONSUMER, "the actor refuses") : 0;
}

static inline int actor_release(struct pstk__device *d, const struct pstk__lease_end *end,
                                struct pstk_error *err)
{
    struct actor *a = actor_of(d);
    struct actor_end *e = &a->ends[end->slot];
    const int r = atomic_load(&a->releases);
    e->n_ends++;
    e->quick = (uint32_t)end->quick;
    e->n_streams = *end->n_streams;
    memcpy(e->streams, end->streams, e->n_streams * sizeof *e->streams);
    if (r < 0)
        return pstk__fail(err, r, PSTK_STAGE_DEVICE, "the actor lost slot %u", end->slot);
    *end->n_streams = r == 1 ? a->n_kept : 0;
    return r;
}

static inline void actor_close(struct pstk__device *d)
{
    atomic_fetch_add(&actor_of(d)->n_closed, 1);
}

static inline void actor_abandon(struct pstk__device *d)
{
    atomic_fetch_add(&actor_of(d)->n_abandoned, 1);
}

static inline uint8_t *actor_memory(struct pstk__device *d, uint32_t slot)
{
    return actor_of(d)->memory + slot * actor_of(d)->slot_size;
}

static const struct pstk__device_ops actor_ops = {.has_slots = 1,
                                                  .name = "actor",
                                                  .acquire = actor_acquire,
                                                  .release = actor_release,
                                                  .close = actor_close,
                                                  .abandon = actor_abandon,
                                                  .memory = actor_memory};

struct pools_config {
    uint32_t batch_size, n_slots, n_lanes;
    uint32_t n_device_slots; /* 0: batches are leased from the host's slots */
    uint32_t report_crops, with_reports;
    uint64_t budget; /* bytes of the ragged output; 0: enough */
    pstk_current_stream_fn current_stream;
    const struct pstk__device_ops *ops; /* NULL: the actor's */
};

struct pools {
    struct pstk__plan plan;
    struct pstk__pass passes[3][2]; /* passes of its outputs */
    struct pstk__layout layout;
    struct pstk__numa *numa;
    struct actor actor;
    struct pstk__slots *host, *device; /* device: NULL without slots of its own */
    struct pstk__slots *leased;        /* one of them */
};

static inline void pools_plan(struct pools *pools, const struct pools_config *c)
{
    struct pstk__plan *p = &pools->plan;
    const uint32_t b = c->batch_size;
    const struct pstk__pass passes[3][2] = {
        [DENSE] = {{.what = PSTK__PASS_COPY, .out = {PSTK_I64, 0, 0, DENSE_SIZE}}},
        [RAGGED] = {{.what = PSTK__PASS_COPY, .out = {PSTK_U16, 0, 0, RAGGED_SIZE}}},
        [MIRROR] = {{.what = PSTK__PASS_RESIZE, .out = {PSTK_U8, PSTK_NHWC, 3, MIRROR_SIZE}},
                    {.what = PSTK__PASS_FINISH,
                     .on_device = 1,
                     .in = {PSTK_U8, PSTK_NHWC, 3, MIRROR_SIZE},
                     .out = {PSTK_F16, PSTK_NCHW, 3, MIRROR_SIZE * 2}}},
    };
    memcpy(pools->passes, passes, sizeof passes);
    *p = (struct pstk__plan){.batch_size = b,
                             .n_outputs = c->n_device_slots ? 3 : 2,
                             .on_device = c->n_device_slots > 0};
    p->outputs[DENSE] = (struct pstk__output){.kind = PSTK_OUTPUT_SCALAR,
                                              .dtype = PSTK_I64,
                                              .name = "dense",
                                              .n_dims = 1,
                                              .shape = {b},
                                              .strides = {1},
                                              .passes = pools->passes[DENSE],
                                              .n_passes = 1,
                                              .n_worker_passes = 1,
                                              .budget = (uint64_t)b * DENSE_SIZE};
    p->outputs[RAGGED] =
        (struct pstk__output){.kind = PSTK_OUTPUT_RAGGED,
                              .dtype = PSTK_U16,
                              .name = "ragged",
                              .n_dims = 1,
                              .shape = {(int64_t)b * RAGGED_SIZE / ITEM_SIZE},
                              .strides = {1},
                              .passes = pools->passes[RAGGED],
                              .n_passes = 1,
                              .n_worker_passes = 1,
                              .ragged.item_size = ITEM_SIZE,
                              .budget = c->budget ? c->budget : (uint64_t)b * RAGGED_SIZE};
    p->outputs[MIRROR] = (struct pstk__output){.kind = PSTK_OUTPUT_IMAGE,
                                               .dtype = PSTK_F16,
                                               .settings.image.layout = 1,
                                               .name = "mirror",
                                               .n_dims = 4,
                                               .shape = {b, 3, 2, 2},
                                               .strides = {12, 4, 2, 1},
                                               .passes = pools->passes[MIRROR],
                                               .n_passes = 2,
                                               .n_worker_passes = 1,
                                               .image.height = 2,
                                               .image.width = 2,
                                               .budget = (uint64_t)b * MIRROR_SIZE};
}

static inline int pools_open_slots(struct pools *p, const struct pools_config *c,
                                   struct pstk_error *err)
{
    struct pstk__slots_config s = {.plan = &p->plan,
                                   .layout = &p->layout,
                                   .numa = p->numa,
                                   .device_ops = c->ops ? c->ops : &actor_ops,
                                   .n_slots = c->n_slots,
                                   .n_nodes = 1,
                                   .n_lanes = c->n_lanes ? c->n_lanes : 1,
                                   .node = UINT32_MAX,
                                   .current_stream = c->current_stream};
    int bound = 1, r = pstk__slots_open(&p->host, &s, &bound, err);
    p->leased = p->host;
    if (r < 0 || !c->n_device_slots)
        return r;
    s.n_slots = c->n_device_slots;
    s.n_lanes = 1;
    s.on_device = 1;
    r = pstk__slots_open(&p->device, &s, &bound, err);
    p->leased = p->device;
    return r;
}

static inline void pools_close(struct pools *p)
{
    if (p->device)
        pstk__slots_unref(p->device);
    if (p->host)
        pstk__slots_unref(p->host);
    p->device = p->host = p->leased = NULL;
    pstk__numa_close(p->numa);
    p->numa = NULL;
    free(p->actor.memory);
    p->actor.memory = NULL;
}

/* Open the pools; the actor is attached. 0, or an error and nothing is left. */
static inline int pools_open(struct pools *p, const struct pools_config *c)
{
    const struct pstk__numa_config numa = {.topology = "core:1 pu:1", .local_world = 1};
    *p = (struct pools){.actor = {.base = {.ops = &actor_ops}}};
    pools_plan(p, c);
    pstk__layout_init(&p->layout, &p->plan, c->report_crops, c->with_reports);
    int r = pstk__numa_open(&p->numa, &numa, NULL);
    if (r == 0)
        r = pools_open_slots(p, c, NULL);
    p->actor.slot_size = p->layout.device_size;
    if (r == 0 && c->n_device_slots)
        p->actor.memory = aligned_alloc(256, c->n_device_slots * p->layout.device_size);
    if (r < 0)
        pools_close(p);
    else if (!c->ops)
        pstk__slots_attach(p->leased, &p->actor.base);
    return r;
}

static inline uint32_t state_of(const struct pstk__slot *s)
{
    return atomic_load(&s->state);
}

/* Return the number of a pool's slots in a state. */
static inline uint32_t n_in(const struct pstk__slots *p, uint32_t state)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_slots; i++)
        n += state_of(&p->slots[i]) == state;
    return n;
}

/* Return a READY batch, filled, with n valid rows. The rows are ragged by nothing. */
static inline struct pstk__slot *fill_empty(struct pstk__slots *host, uint32_t lane)
{
    struct pstk__slot *s = pstk__slot_begin(host, lane);
    if (!s)
        return NULL;
    s->batch.n_valid = 0;
    pstk__slot_done(s);
    return s;
}

/* Load an empty batch, and return its slot of the device, which is LOADED. */
static inline struct pstk__slot *load_empty(struct pools *p)
{
    struct pstk__slot *to = pstk__slot_load(p->device), *from = to ? fill_empty(p->host, 0) : NULL;
    if (!from)
        return NULL;
    pstk__slot_copy(from);
    pstk__slot_loaded(to, from);
    pstk__slot_copied(from);
    return to;
}

/* Return a slot that may be leased, of the pool that is leased from. */
static inline struct pstk__slot *deliver_empty(struct pools *p)
{
    return p->device ? load_empty(p) : fill_empty(p->host, 0);
}

#endif
