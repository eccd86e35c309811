/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/slot.h"

#include "base/error.h"
#include "base/interpreter.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A tensor as workers write it, or, in a slot of a device, as it is handed out. */
static void tensor_init(struct pstk__slots *pool, struct pstk__slot *s, uint32_t i,
                        const struct pstk__output *o)
{
    struct pstk_tensor *t = &s->tensors[i];
    const int as_rows = !pool->on_device;
    *t = (struct pstk_tensor){.name = pool->names[i],
                              .size = pool->batch_size * (as_rows ? o->row_size : o->final_size),
                              .dtype = as_rows ? o->row_dtype : o->settings.dtype,
                              .layout = as_rows ? o->row_layout : o->settings.layout,
                              .n_dims = o->n_dims,
                              .kind = o->settings.kind};
    memcpy(t->shape, o->shape, sizeof t->shape);
    memcpy(t->strides, o->strides, sizeof t->strides);
}

/* An array of the host layout; a slot of a device has only those that batches tell. */
static void *array_of(const struct pstk__slot *s, uint64_t offset)
{
    return s->memory + offset - (s->pool->on_device ? s->pool->layout.told : 0);
}

static void arrays_init(struct pstk__slots *pool, struct pstk__slot *s,
                        const struct pstk__plan *plan)
{
    const struct pstk__layout *l = &pool->layout;
    for (uint32_t i = 0; i < pool->n_outputs; i++) {
        const struct pstk__output *o = &plan->outputs[i];
        tensor_init(pool, s, i, o);
        if (!pool->on_device)
            s->tensors[i].data = array_of(s, l->rows[i]);
        if (!pool->on_device && pstk__output_has_flips(o))
            s->flips[i] = array_of(s, l->flips[i]);
        if (pstk__output_is_ragged(o))
            s->tensors[i].offsets = s->offsets[i] = array_of(s, l->offsets[i]);
    }
    s->sample_ids = array_of(s, l->ids);
    s->substitute_ids = array_of(s, l->substitutes);
    if (l->crops < l->reports)
        s->crops = array_of(s, l->crops);
    if (l->reports < l->told_end)
        s->reports = array_of(s, l->reports);
}

static int map_slot(struct pstk__slots *pool, struct pstk__slot *s,
                    const struct pstk__slots_config *c, int *bound)
{
    const struct pstk__layout *l = &pool->layout;
    if (pool->on_device) {
        s->memory_size = l->told_end - l->told;
        s->memory = aligned_alloc(256, s->memory_size); /* the layout's alignment */
        if (s->memory)
            memset(s->memory, 0, s->memory_size);
    } else {
        uint32_t node = c->node == UINT32_MAX ? s->lane % c->n_nodes : c->node;
        s->memory_size = l->size;
        s->memory = pstk__numa_map(c->numa, s->memory_size, node, bound);
    }
    return s->memory ? 0 : PSTK_ENOMEM;
}

static void unmap_slot(struct pstk__slots *pool, struct pstk__slot *s)
{
    if (pool->on_device)
        free(s->memory);
    else
        pstk__numa_unmap(s->memory, s->memory_size);
    s->memory = NULL;
}

/* Get and divide the memory of one slot. */
static int slot_init(struct pstk__slots *pool, uint32_t index, const struct pstk__slots_config *c,
                     int *bound, struct pstk_error *err)
{
    struct pstk__slot *s = &pool->slots[index];
    s->pool = pool;
    s->lane = index % c->n_lanes;
    if (map_slot(pool, s, c, bound) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for slot %u of %u (%llu bytes each): lower n_slots or "
                          "batch_size",
                          index, pool->n_slots, (unsigned long long)s->memory_size);
    if (pthread_mutex_init(&s->lock, NULL) != 0) {
        unmap_slot(pool, s);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a lock");
    }
    arrays_init(pool, s, c->plan);
    s->batch = (struct pstk_batch){.size = sizeof s->batch,
                                   .n_tensors = pool->n_outputs,
                                   .tensors = s->tensors,
                                   .n_rows = pool->batch_size,
                                   .sample_ids = s->sample_ids,
                                   .substitute_ids = s->substitute_ids,
                                   .crops = s->crops,
                                   .slot = index,
                                   .tensor_size = sizeof(struct pstk_tensor),
                                   .crop_size = sizeof(struct pstk_crop),
                                   .reports = s->reports,
                                   .report_size = sizeof(struct pstk_report)};
    atomic_init(&s->state, PSTK__SLOT_FREE);
    pool->free_list[s->lane][pool->n_free[s->lane]++] = index;
    return 0;
}

/* Free all; half-built is fine: a slot without memory was never begun, nor are those behind it. */
static void slots_free(struct pstk__slots *p)
{
    if (p->device) /* first: waits for what it may still use */
        p->device_ops->close(p->device);
    pstk__trace_close(&p->trace);
    for (uint32_t i = 0; p->slots && i < p->n_slots && p->slots[i].memory; i++) {
        unmap_slot(p, &p->slots[i]);
        pthread_mutex_destroy(&p->slots[i].lock);
    }
    for (uint32_t n = 0; n < p->n_lanes; n++)
        free(p->free_list[n]);
    pthread_mutex_destroy(&p->lock);
    free(p->names);
    free(p->slots);
    free(p);
}

static int slots_fill(struct pstk__slots *p, const struct pstk__slots_config *c, int *bound,
                      struct pstk_error *err)
{
    p->slots = calloc(c->n_slots, sizeof *p->slots);
    p->names = calloc(c->plan->n_outputs ? c->plan->n_outputs : 1, sizeof *p->names);
    int r = 0, ok = p->slots && p->names;
    for (uint32_t n = 0; n < c->n_lanes; n++) {
        p->free_list[n] = calloc(c->n_slots, sizeof **p->free_list);
        ok = ok && p->free_list[n];
    }
    if (!ok)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for %u slots", c->n_slots);
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        memcpy(p->names[i], c->plan->outputs[i].name, sizeof *p->names);
        p->row_size[i] = c->plan->outputs[i].row_size;
        p->budget[i] = c->plan->outputs[i].budget;
        p->item_size[i] = c->plan->outputs[i].item_size;
    }
    for (uint32_t i = 0; r == 0 && i < c->n_slots; i++)
        r = slot_init(p, i, c, bound, err);
    return r;
}

int pstk__slots_open(struct pstk__slots **out, const struct pstk__slots_config *c, int *bound,
                     struct pstk_error *err)
{
    *out = NULL;
    struct pstk__slots *p = calloc(1, sizeof *p);
    if (!p)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the slots");
    p->device_ops = c->device_ops;
    p->layout = *c->layout;
    p->on_device = c->on_device;
    p->device_index = c->device_index;
    p->current_stream = c->on_device ? c->current_stream : NULL;
    p->n_slots = c->n_slots;
    p->n_lanes = c->n_lanes;
    p->batch_size = c->plan->batch_size;
    p->n_outputs = c->plan->n_outputs;
    p->owner = (int)getpid();
    atomic_init(&p->n_refs, 1);
    if (pthread_mutex_init(&p->lock, NULL) != 0) {
        free(p);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a lock");
    }
    int r = slots_fill(p, c, bound, err);
    if (r < 0) {
        slots_free(p);
        return r;
    }
    *out = p;
    return 0;
}

void pstk__slots_attach(struct pstk__slots *p, struct pstk__device *device)
{
    p->device = device;
    for (uint32_t k = 0; p->on_device && k < p->n_slots; k++) {
        uint8_t *memory = p->device_ops->memory(device, k);
        for (uint32_t i = 0; i < p->n_outputs; i++) {
            struct pstk_tensor *t = &p->slots[k].tensors[i];
            t->data = memory + p->layout.final[i];
            if (t->offsets)
                t->device_offsets =
                    (const int64_t *)(const void *)(memory + pstk__layout_mirrored(
                                                                 &p->layout, p->layout.offsets[i]));
        }
    }
}

/* The last reference is gone: what is still parked will never be recorded. */
static void abandon_parked(struct pstk__slots *p)
{
    pstk__slots_settle(p, 0, NULL);
    for (uint32_t i = 0; i < p->n_slots; i++)
        if (atomic_load_explicit(&p->slots[i].state, memory_order_relaxed) == PSTK__SLOT_PARKED)
            p->device_ops->abandon(p->device);
}

void pstk__slots_unref(struct pstk__slots *p)
{
    /* Acquire and release: the last one sees all that the others did to the slots. */
    if (atomic_fetch_sub_explicit(&p->n_refs, 1, memory_order_acq_rel) != 1)
        return;
    /* It waits for the streams that use the slots, and a device frees memory by waiting for all
     * that runs on it. */
    void *state = p->device && p->on_device ? pstk__interpreter_leave() : NULL;
    if (p->device)
        abandon_parked(p);
    slots_free(p);
    pstk__interpreter_return(state);
}

int pstk__slots_failed(struct pstk__slots *p, struct pstk_error *err)
{
    pthread_mutex_lock(&p->lock);
    int failed = p->failure.code != 0;
    if (failed)
        *err = p->failure;
    pthread_mutex_unlock(&p->lock);
    return failed;
}

static void change_state(struct pstk__slot *s, uint32_t from, uint32_t to)
{
    uint32_t old = atomic_exchange_explicit(&s->state, to, memory_order_acq_rel);
    assert(old == from);
    (void)old;
    (void)from;
}

static void push_free(struct pstk__slot *s)
{
    struct pstk__slots *p = s->pool;
    pthread_mutex_lock(&p->lock);
    p->free_list[s->lane][p->n_free[s->lane]++] = s->batch.slot;
    /* Under the lock: the loader takes its gates away under it before it frees them. */
    if (p->room[s->lane])
        pstk__gate_knock(p->room[s->lane]);
    pthread_mutex_unlock(&p->lock);
}

/* A free slot of the lane, or NULL. On the host the one that came back last, which caches may have;
 * on a device, which may still use it, the one that came back first. */
static struct pstk__slot *pop_free(struct pstk__slots *p, uint32_t lane)
{
    struct pstk__slot *s = NULL;
    pthread_mutex_lock(&p->lock);
    uint32_t *list = p->free_list[lane];
    if (p->n_free[lane] > 0) {
        const uint32_t left = --p->n_free[lane];
        s = &p->slots[list[p->on_device ? 0 : left]];
        if (p->on_device)
            memmove(list, list + 1, left * sizeof *list);
    }
    pthread_mutex_unlock(&p->lock);
    return s;
}

struct pstk__slot *pstk__slot_begin(struct pstk__slots *p, uint32_t lane)
{
    struct pstk__slot *s = pop_free(p, lane);
    if (!s)
        return NULL;
    change_state(s, PSTK__SLOT_FREE, PSTK__SLOT_FILLING);
    s->failed_row = UINT32_MAX;
    s->batch.n_replaced = s->batch.n_reports = 0;
    atomic_store_explicit(&s->n_palette_images, 0, memory_order_relaxed);
    atomic_store_explicit(&s->n_bytes, 0, memory_order_relaxed);
    return s;
}

void pstk__slot_fail(struct pstk__slot *s, uint32_t row, const struct pstk_error *err)
{
    pthread_mutex_lock(&s->lock);
    if (row < s->failed_row) {
        s->failed_row = row;
        s->error = *err;
    }
    pthread_mutex_unlock(&s->lock);
}

/* With the lock: room for the report of a row, in order; NULL when those kept are all lower. */
static struct pstk_report *report_at(struct pstk__slot *s, uint32_t row)
{
    struct pstk_batch *b = &s->batch;
    const uint32_t most = s->pool->layout.max_reports;
    const uint32_t room = most < PSTK_MAX_REPORTS ? most : PSTK_MAX_REPORTS;
    uint32_t i = b->n_reports;
    while (i > 0 && s->reports[i - 1].row > row)
        i--;
    if (i == room)
        return NULL;
    b->n_reports += b->n_reports < room;
    memmove(&s->reports[i + 1], &s->reports[i], (b->n_reports - 1 - i) * sizeof *s->reports);
    return &s->reports[i];
}

void pstk__slot_replace(struct pstk__slot *s, uint32_t row, const struct pstk_error *bad,
                        uint64_t other)
{
    s->substitute_ids[row] = other;
    pthread_mutex_lock(&s->lock);
    s->batch.n_replaced++;
    struct pstk_report *r = report_at(s, row);
    if (r)
        *r = (struct pstk_report){.error = *bad, .substitute_id = other, .row = row};
    pthread_mutex_unlock(&s->lock);
}

/* Say how many were replaced that have no report. */
static void report_others(struct pstk__slot *s)
{
    struct pstk_batch *b = &s->batch;
    if (b->n_replaced == b->n_reports)
        return;
    const struct pstk_error *last = &s->reports[b->n_reports - 1].error;
    const uint32_t n = b->n_replaced - b->n_reports;
    struct pstk_report *r = &s->reports[b->n_reports++];
    *r = (struct pstk_report){.substitute_id = PSTK_NONE, .row = UINT32_MAX};
    pstk_error_init(&r->error, sizeof r->error);
    pstk__fail(&r->error, last->code, last->stage,
               "%u more bad sample%s of the batch at epoch %llu, position %llu %s replaced: only "
               "the first %u of a batch are described",
               n, n == 1 ? "" : "s", (unsigned long long)b->epoch, (unsigned long long)b->position,
               n == 1 ? "was" : "were", PSTK_MAX_REPORTS);
    r->error.epoch = b->epoch;
    r->error.position = b->position;
}

void pstk__slot_rows(struct pstk__slot *s, uint32_t row, struct pstk__row *rows)
{
    const struct pstk__slots *p = s->pool;
    for (uint32_t i = 0; i < p->n_outputs; i++)
        rows[i] = (struct pstk__row){.data = (uint8_t *)s->tensors[i].data + row * p->row_size[i],
                                     .flip = s->flips[i] ? &s->flips[i][row] : NULL,
                                     .crop = s->crops ? &s->crops[(uint64_t)i * p->batch_size + row]
                                                      : NULL};
}

void pstk__slot_note(struct pstk__slot *s, uint32_t row, const struct pstk__row *rows)
{
    uint32_t is_palette = 0;
    for (uint32_t i = 0; i < s->pool->n_outputs; i++) {
        is_palette |= rows[i].is_palette;
        if (s->offsets[i])
            s->offsets[i][row + 1] = (int64_t)rows[i].size;
    }
    if (is_palette)
        atomic_fetch_add_explicit(&s->n_palette_images, 1, memory_order_relaxed);
}

/* Move ragged rows together; sizes become offsets. */
static void pack_ragged(struct pstk__slot *s, uint32_t i)
{
    struct pstk_tensor *t = &s->tensors[i];
    int64_t *offsets = s->offsets[i];
    const uint64_t item_size = s->pool->item_size[i];
    uint64_t end = 0;
    offsets[0] = 0;
    for (uint32_t row = 0; row < s->batch.n_rows; row++) {
        uint64_t size = row < s->batch.n_valid ? (uint64_t)offsets[row + 1] : 0;
        if (row > 0 && size > 0)
            memmove((uint8_t *)t->data + end, (uint8_t *)t->data + row * s->pool->row_size[i],
                    size);
        end += size;
        offsets[row + 1] = (int64_t)(end / item_size);
    }
    t->size = end;
    t->shape[0] = (int64_t)(end / item_size);
    if (end > s->pool->budget[i]) {
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        pstk__fail(&err, PSTK_EFBIG, PSTK_STAGE_DECODE,
                   "output '%s' of the batch at epoch %llu, position %llu has %llu bytes, over its "
                   "budget of %llu: raise bytes_per_batch",
                   t->name, (unsigned long long)s->batch.epoch,
                   (unsigned long long)s->batch.position, (unsigned long long)end,
                   (unsigned long long)s->pool->budget[i]);
        err.epoch = s->batch.epoch;
        err.position = s->batch.position;
        pstk__slot_fail(s, s->batch.n_rows, &err);
    }
}

void pstk__slot_done(struct pstk__slot *s)
{
    const struct pstk__slots *p = s->pool;
    uint32_t n_valid = s->batch.n_valid, n_empty = p->batch_size - n_valid;
    for (uint32_t i = 0; i < p->n_outputs && s->failed_row == UINT32_MAX; i++) {
        if (s->offsets[i])
            pack_ragged(s, i);
        else if (n_empty)
            memset((uint8_t *)s->tensors[i].data + n_valid * p->row_size[i], 0,
                   n_empty * p->row_size[i]);
        if (s->crops && n_empty)
            memset(&s->crops[(uint64_t)i * p->batch_size + n_valid], 0, n_empty * sizeof *s->crops);
    }
    s->batch.n_palette_images = atomic_load_explicit(&s->n_palette_images, memory_order_relaxed);
    report_others(s);
    change_state(s, PSTK__SLOT_FILLING, PSTK__SLOT_READY);
}

void pstk__slot_copy(struct pstk__slot *s)
{
    change_state(s, PSTK__SLOT_READY, PSTK__SLOT_COPYING);
}

void pstk__slot_copied(struct pstk__slot *s)
{
    change_state(s, PSTK__SLOT_COPYING, PSTK__SLOT_FREE);
    push_free(s);
}

struct pstk__slot *pstk__slot_load(struct pstk__slots *p)
{
    struct pstk__slot *s = pop_free(p, 0);
    if (s)
        change_state(s, PSTK__SLOT_FREE, PSTK__SLOT_LOADING);
    return s;
}

void pstk__slot_loaded(struct pstk__slot *s, const struct pstk__slot *from)
{
    const struct pstk__layout *l = &s->pool->layout;
    struct pstk_batch *to = &s->batch;
    s->seq = from->seq;
    s->generation = from->generation;
    s->failed_row = from->failed_row;
    if (from->failed_row != UINT32_MAX)
        s->error = from->error;
    to->n_valid = from->batch.n_valid;
    to->epoch = from->batch.epoch;
    to->position = from->batch.position;
    to->next_position = from->batch.next_position;
    to->index = from->batch.index;
    to->n_replaced = from->batch.n_replaced;
    to->n_reports = from->batch.n_reports;
    to->n_palette_images = from->batch.n_palette_images;
    atomic_store_explicit(&s->n_bytes, atomic_load_explicit(&from->n_bytes, memory_order_relaxed),
                          memory_order_relaxed);
    memcpy(s->memory, from->memory + l->told, l->reports - l->told);
    if (to->n_reports > 0)
        memcpy(s->reports, from->reports, to->n_reports * sizeof *s->reports);
    for (uint32_t i = 0; i < s->pool->n_outputs; i++)
        if (s->offsets[i]) {
            s->tensors[i].size = from->tensors[i].size;
            s->tensors[i].shape[0] = from->tensors[i].shape[0];
        }
    change_state(s, PSTK__SLOT_LOADING, PSTK__SLOT_LOADED);
}

int pstk__slot_lease(struct pstk__slot *s, void *stream, int quick, struct pstk_error *err)
{
    struct pstk__slots *p = s->pool;
    int r = p->device_ops->acquire(p->device, s->batch.slot, stream, quick, err);
    if (r < 0)
        return r;
    change_state(s, p->on_device ? PSTK__SLOT_LOADED : PSTK__SLOT_READY, PSTK__SLOT_LEASED);
    s->n_users = 0; /* nobody else has the slot yet */
    atomic_fetch_add_explicit(&p->n_refs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->n_leased, 1, memory_order_relaxed);
    s->lease = pstk__trace_begin(&p->trace, "lease", s->seq);
    return 0;
}

static int is_user(const struct pstk__slot *s, const void *stream)
{
    for (uint32_t i = 0; i < s->n_users; i++)
        if (s->users[i] == stream)
            return 1;
    return 0;
}

int pstk__slot_use(struct pstk__slot *s, void *stream, struct pstk_error *err)
{
    int r = 0;
    pthread_mutex_lock(&s->lock);
    if (!is_user(s, stream)) {
        if (s->n_users < PSTK__MAX_USERS)
            s->users[s->n_users++] = stream;
        else
            r = pstk__fail(err, PSTK_ENOBUFS, PSTK_STAGE_CONSUMER,
                           "stream: the batch is used on %u further streams already; for more, "
                           "call pstk_batch_wait before the work and pstk_batch_record after it",
                           PSTK__MAX_USERS);
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* The device could not be told what still uses the slot: it is never used again, and the loader
 * fails. */
static void lose(struct pstk__slot *s, const struct pstk_error *err)
{
    struct pstk__slots *p = s->pool;
    pthread_mutex_lock(&p->lock);
    if (!p->failure.code)
        p->failure = *err;
    if (p->room[s->lane])
        pstk__gate_knock(p->room[s->lane]);
    pthread_mutex_unlock(&p->lock);
}

/* The slot is LEASED, and nobody has it but the caller. ETIMEDOUT: see release in device.h; else 0.
 */
static int end_lease(struct pstk__slot *s, int quick)
{
    struct pstk__slots *p = s->pool;
    const struct pstk__lease_end end = {
        .slot = s->batch.slot, .quick = quick, .streams = s->users, .n_streams = &s->n_users};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int r = p->device_ops->release(p->device, &end, &err);
    if (r < 0 && r != PSTK_ETIMEDOUT) {
        lose(s, &err);
    } else if (r != 0) {
        atomic_fetch_add_explicit(&p->n_parked, 1, memory_order_relaxed);
        change_state(s, PSTK__SLOT_LEASED, PSTK__SLOT_PARKED);
    } else {
        change_state(s, PSTK__SLOT_LEASED, PSTK__SLOT_FREE);
        atomic_fetch_sub_explicit(&p->n_leased, 1, memory_order_relaxed);
        push_free(s);
    }
    return r == PSTK_ETIMEDOUT ? r : 0;
}

int pstk__slots_settle(struct pstk__slots *p, int quick, struct pstk_error *err)
{
    if (atomic_load_explicit(&p->n_parked, memory_order_relaxed) == 0)
        return 0;
    for (uint32_t i = 0; i < p->n_slots; i++) {
        uint32_t parked = PSTK__SLOT_PARKED;
        struct pstk__slot *s = &p->slots[i];
        /* Acquire: pairs with change_state in end_lease, for the streams that are left. */
        if (!atomic_compare_exchange_strong_explicit(&s->state, &parked, PSTK__SLOT_LEASED,
                                                     memory_order_acq_rel, memory_order_relaxed))
            continue;
        atomic_fetch_sub_explicit(&p->n_parked, 1, memory_order_relaxed);
        if (end_lease(s, quick) < 0)
            return pstk__fail(err, PSTK_ETIMEDOUT, PSTK_STAGE_CONSUMER,
                              "no batch was ready within the timeout: another thread was taking or "
                              "giving one back");
    }
    return 0;
}

void pstk__slot_use_current(struct pstk__slot *s)
{
    const struct pstk__slots *p = s->pool;
    void *stream = NULL;
    if (!p->current_stream || p->current_stream(p->device_index, &stream) != 0)
        return;
    if (!is_user(s, stream))
        s->users[s->n_users++] = stream;
}

void pstk__slot_release(struct pstk__slot *s, void *stream)
{
    struct pstk__slots *p = s->pool;
    pstk__trace_end(&p->trace, s->lease);
    pstk__slots_settle(p, 0, NULL);
    if (!is_user(s, stream))
        s->users[s->n_users++] = stream;
    end_lease(s, 0);
    pstk__slots_unref(p);
}

void pstk__slot_drop(struct pstk__slot *s)
{
    uint32_t old = atomic_exchange_explicit(&s->state, PSTK__SLOT_FREE, memory_order_acq_rel);
    assert(old == PSTK__SLOT_FILLING || old == PSTK__SLOT_READY || old == PSTK__SLOT_LOADING ||
           old == PSTK__SLOT_LOADED);
    (void)old;
    push_free(s);
}
