/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"

#include "error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALIGN 64u /* of every array in a slot: a cache line, and the widest vector */

/* a + b, or UINT64_MAX. */
static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* a * b, or UINT64_MAX. */
static uint64_t product(uint64_t a, uint64_t b)
{
    return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static uint64_t aligned(uint64_t size)
{
    return size > UINT64_MAX - ALIGN ? UINT64_MAX : (size + ALIGN - 1) / ALIGN * ALIGN;
}

uint64_t pstk__slot_size(const struct pstk__plan *plan, uint32_t with_crops)
{
    uint64_t b = plan->batch_size, size = 0;
    for (uint32_t i = 0; i < plan->n_outputs; i++) {
        const struct pstk__output *o = &plan->outputs[i];
        /* Ragged rows are written a whole row_size apart, then moved together. */
        size = sum(size, aligned(product(b, o->row_size)));
        if (o->settings.kind == PSTK_OUTPUT_BYTES)
            size = sum(size, aligned((b + 1) * sizeof(int64_t)));
        if (with_crops)
            size = sum(size, aligned(b * sizeof(struct pstk_crop)));
    }
    return sum(size, 2 * aligned(b * sizeof(uint64_t)));
}

/* The next `size` bytes of a slot's mapping. */
static void *carve(struct pstk__slot *s, uint64_t *used, uint64_t size)
{
    void *p = s->memory + *used;
    *used += aligned(size);
    assert(*used <= s->memory_size);
    return p;
}

static void tensor_init(struct pstk__slots *pool, struct pstk__slot *s, uint32_t i,
                        const struct pstk__output *o, uint64_t *used)
{
    struct pstk_tensor *t = &s->tensors[i];
    uint64_t b = pool->batch_size;
    *t = (struct pstk_tensor){.name = pool->names[i],
                              .data = carve(s, used, b * o->row_size),
                              .size = b * o->row_size,
                              .dtype = o->settings.dtype,
                              .layout = o->settings.layout,
                              .n_dims = o->n_dims,
                              .kind = o->settings.kind};
    memcpy(t->shape, o->shape, sizeof t->shape);
    memcpy(t->strides, o->strides, sizeof t->strides);
    if (o->settings.kind == PSTK_OUTPUT_BYTES) {
        s->offsets[i] = carve(s, used, (b + 1) * sizeof(int64_t));
        t->offsets = s->offsets[i];
    }
}

/* Map and divide the memory of one slot. */
static int slot_init(struct pstk__slots *pool, uint32_t index, const struct pstk__slots_config *c,
                     int *bound, struct pstk_error *err)
{
    struct pstk__slot *s = &pool->slots[index];
    s->pool = pool;
    s->lane = index % c->n_lanes;
    uint64_t size = pstk__slot_size(c->plan, c->with_crops);
    s->memory = pstk__numa_map(c->numa, size, s->lane % c->n_nodes, bound);
    if (!s->memory)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for slot %u of %u (%llu bytes each): lower n_slots or "
                          "batch_size",
                          index, pool->n_slots, (unsigned long long)size);
    s->memory_size = size;
    if (pthread_mutex_init(&s->lock, NULL) != 0) {
        pstk__numa_unmap(s->memory, size);
        s->memory = NULL;
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a lock");
    }
    uint64_t used = 0, b = pool->batch_size;
    for (uint32_t i = 0; i < pool->n_outputs; i++)
        tensor_init(pool, s, i, &c->plan->outputs[i], &used);
    s->sample_ids = carve(s, &used, b * sizeof(uint64_t));
    s->substitute_ids = carve(s, &used, b * sizeof(uint64_t));
    if (c->with_crops)
        s->crops = carve(s, &used, pool->n_outputs * b * sizeof(struct pstk_crop));
    s->batch = (struct pstk_batch){.size = sizeof s->batch,
                                   .n_tensors = pool->n_outputs,
                                   .tensors = s->tensors,
                                   .n_rows = pool->batch_size,
                                   .sample_ids = s->sample_ids,
                                   .substitute_ids = s->substitute_ids,
                                   .crops = s->crops,
                                   .slot = index};
    atomic_init(&s->state, PSTK__SLOT_FREE);
    int r = pool->device_ops->register_slot(pool->device, s->memory, size, err);
    if (r < 0)
        return r;
    pool->free_list[s->lane][pool->n_free[s->lane]++] = index;
    return 0;
}

/* Free all; half-built is fine: a slot without memory was never begun, nor are those behind it. */
static void slots_free(struct pstk__slots *p)
{
    for (uint32_t i = 0; p->slots && i < p->n_slots && p->slots[i].memory; i++) {
        struct pstk__slot *s = &p->slots[i];
        p->device_ops->unregister_slot(p->device, s->memory);
        pstk__numa_unmap(s->memory, s->memory_size);
        pthread_mutex_destroy(&s->lock);
    }
    for (uint32_t n = 0; n < p->n_lanes; n++)
        free(p->free_list[n]);
    if (p->device)
        p->device_ops->close(p->device);
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
    int ok = p->slots && p->names;
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
    }
    int r = c->device_ops->open(&p->device, c->device_index, err);
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

void pstk__slots_unref(struct pstk__slots *p)
{
    /* Acquire and release: the last one sees all that the others did to the slots. */
    if (atomic_fetch_sub_explicit(&p->n_refs, 1, memory_order_acq_rel) == 1)
        slots_free(p);
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

struct pstk__slot *pstk__slot_begin(struct pstk__slots *p, uint32_t lane)
{
    pthread_mutex_lock(&p->lock);
    struct pstk__slot *s = NULL;
    if (p->n_free[lane] > 0)
        s = &p->slots[p->free_list[lane][--p->n_free[lane]]];
    pthread_mutex_unlock(&p->lock);
    if (!s)
        return NULL;
    change_state(s, PSTK__SLOT_FREE, PSTK__SLOT_FILLING);
    s->failed_row = UINT32_MAX;
    atomic_store_explicit(&s->n_substituted, 0, memory_order_relaxed);
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

void pstk__slot_rows(struct pstk__slot *s, uint32_t row, struct pstk__row *rows)
{
    const struct pstk__slots *p = s->pool;
    for (uint32_t i = 0; i < p->n_outputs; i++)
        rows[i] = (struct pstk__row){.data = (uint8_t *)s->tensors[i].data + row * p->row_size[i],
                                     .crop = s->crops ? &s->crops[(uint64_t)i * p->batch_size + row]
                                                      : NULL};
}

void pstk__slot_note(struct pstk__slot *s, uint32_t row, const struct pstk__row *rows)
{
    for (uint32_t i = 0; i < s->pool->n_outputs; i++)
        if (s->offsets[i])
            s->offsets[i][row + 1] = (int64_t)rows[i].size;
}

/* Move ragged rows together; sizes become offsets. */
static void pack_ragged(struct pstk__slot *s, uint32_t i)
{
    struct pstk_tensor *t = &s->tensors[i];
    int64_t *offsets = s->offsets[i];
    uint64_t end = 0;
    offsets[0] = 0;
    for (uint32_t row = 0; row < s->batch.n_rows; row++) {
        uint64_t size = row < s->batch.n_valid ? (uint64_t)offsets[row + 1] : 0;
        if (row > 0 && size > 0)
            memmove((uint8_t *)t->data + end, (uint8_t *)t->data + row * s->pool->row_size[i],
                    size);
        end += size;
        offsets[row + 1] = (int64_t)end;
    }
    t->size = end;
    t->shape[0] = (int64_t)end;
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
    s->batch.n_substituted = atomic_load_explicit(&s->n_substituted, memory_order_relaxed);
    change_state(s, PSTK__SLOT_FILLING, PSTK__SLOT_READY);
}

int pstk__slot_lease(struct pstk__slot *s, void *stream, struct pstk_error *err)
{
    struct pstk__slots *p = s->pool;
    int r = p->device_ops->acquire(p->device, &s->batch, stream, err);
    if (r < 0)
        return r;
    change_state(s, PSTK__SLOT_READY, PSTK__SLOT_LEASED);
    atomic_fetch_add_explicit(&p->n_refs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->n_leased, 1, memory_order_relaxed);
    return 0;
}

void pstk__slot_release(struct pstk__slot *s, void *stream)
{
    struct pstk__slots *p = s->pool;
    p->device_ops->release(p->device, &s->batch, stream);
    change_state(s, PSTK__SLOT_LEASED, PSTK__SLOT_FREE);
    atomic_fetch_sub_explicit(&p->n_leased, 1, memory_order_relaxed);
    push_free(s);
    pstk__slots_unref(p);
}

void pstk__slot_drop(struct pstk__slot *s)
{
    uint32_t old = atomic_exchange_explicit(&s->state, PSTK__SLOT_FREE, memory_order_acq_rel);
    assert(old == PSTK__SLOT_FILLING || old == PSTK__SLOT_READY);
    (void)old;
    push_free(s);
}
