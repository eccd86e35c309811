/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/slot.h"

#include "base/error.h"
#include "base/interpreter.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Set a tensor as workers write it or, in a slot of a device, as it is handed out. */
static void tensor_init(struct pstk__slots *pool, struct pstk__slot *slot, uint32_t i,
                        const struct pstk__output *o)
{
    struct pstk_tensor *t = &slot->tensors[i];
    const struct pstk__row_layout *row =
        pool->on_device ? pstk__output_final(o) : pstk__output_rows(o);
    *t = (struct pstk_tensor){.name = pool->outputs[i].name,
                              .size = pool->batch_size * row->row_size,
                              .dtype = row->dtype,
                              .layout = row->layout,
                              .n_dims = o->n_dims,
                              .kind = o->kind};
    memcpy(t->shape, o->shape, sizeof t->shape);
    memcpy(t->strides, o->strides, sizeof t->strides);
    slot->outputs[i].row_size = pstk__output_rows(o)->row_size;
}

/* Return an array of the host layout; a slot of a device has only the arrays that describe the
 * batch. */
static void *array_of(const struct pstk__slot *slot, uint64_t offset)
{
    return slot->memory + offset - (slot->pool->on_device ? slot->pool->layout.about : 0);
}

static void arrays_init(struct pstk__slots *pool, struct pstk__slot *slot,
                        const struct pstk__plan *plan)
{
    const struct pstk__layout *layout = &pool->layout;
    for (uint32_t i = 0; i < pool->n_outputs; i++) {
        const struct pstk__output *o = &plan->outputs[i];
        tensor_init(pool, slot, i, o);
        if (!pool->on_device)
            slot->tensors[i].data = array_of(slot, layout->rows[i]);
        if (!pool->on_device)
            slot->outputs[i].written = array_of(slot, layout->written[i]);
        if (!pool->on_device && pstk__output_has_flips(o))
            slot->outputs[i].flips = array_of(slot, layout->flips[i]);
        if (!pool->on_device && o->callback.input.size > 0)
            slot->outputs[i].inputs = array_of(slot, layout->inputs[i]);
        if (pstk__output_is_ragged(o))
            slot->tensors[i].offsets = slot->outputs[i].offsets =
                array_of(slot, layout->offsets[i]);
    }
    if (!pool->on_device && pstk__plan_mixes(plan))
        slot->mixed = array_of(slot, layout->mixed);
    if (!pool->on_device && pstk__plan_has_targets(plan))
        slot->labels = array_of(slot, layout->labels);
    if (!pool->on_device && pstk__plan_has_mosaic(plan))
        slot->mosaics = array_of(slot, layout->mosaics);
    if (!pool->on_device && plan->has_budget)
        slot->places = array_of(slot, layout->places);
    slot->sample_ids = array_of(slot, layout->ids);
    slot->replacement_ids = array_of(slot, layout->replacements);
    if (plan->n_joined)
        slot->data_sets = array_of(slot, layout->data_sets);
    if (layout->crops < layout->reports)
        slot->crops = array_of(slot, layout->crops);
    if (layout->reports < layout->about_end)
        slot->reports = array_of(slot, layout->reports);
}

static int map_slot(struct pstk__slots *pool, struct pstk__slot *slot,
                    const struct pstk__slots_config *c, int *bound)
{
    const struct pstk__layout *layout = &pool->layout;
    if (pool->on_device) {
        slot->memory_size = layout->about_end - layout->about;
        slot->memory = aligned_alloc(256, slot->memory_size); /* 256: the layout's alignment */
        if (slot->memory)
            memset(slot->memory, 0, slot->memory_size);
    } else {
        uint32_t node = c->node == UINT32_MAX ? slot->lane % c->n_nodes : c->node;
        slot->memory_size = layout->size;
        slot->memory = pstk__numa_map(c->numa, slot->memory_size, node, bound);
    }
    return slot->memory ? 0 : PSTK_ENOMEM;
}

static void unmap_slot(struct pstk__slots *pool, struct pstk__slot *slot)
{
    if (pool->on_device)
        free(slot->memory);
    else
        pstk__numa_unmap(slot->memory, slot->memory_size);
    slot->memory = NULL;
}

/* Allocate and divide the memory of one slot. */
static int slot_init(struct pstk__slots *pool, uint32_t index, const struct pstk__slots_config *c,
                     int *bound, struct pstk_error *err)
{
    struct pstk__slot *slot = &pool->slots[index];
    slot->pool = pool;
    slot->lane = index % c->n_lanes;
    if (map_slot(pool, slot, c, bound) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for slot %u of %u (%llu bytes each): lower n_slots or "
                          "%s",
                          index, pool->n_slots, (unsigned long long)slot->memory_size,
                          c->plan->rows_setting);
    if (pthread_mutex_init(&slot->lock, NULL) != 0) {
        unmap_slot(pool, slot);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a lock");
    }
    slot->n_shaped = pool->batch_size;
    arrays_init(pool, slot, c->plan);
    slot->batch = (struct pstk_batch){.size = sizeof slot->batch,
                                      .n_tensors = pool->n_outputs,
                                      .tensors = slot->tensors,
                                      .n_rows = pool->batch_size,
                                      .sample_ids = slot->sample_ids,
                                      .replacement_ids = slot->replacement_ids,
                                      .crops = slot->crops,
                                      .slot = index,
                                      .tensor_size = sizeof(struct pstk_tensor),
                                      .crop_size = sizeof(struct pstk_crop),
                                      .reports = slot->reports,
                                      .report_size = sizeof(struct pstk_report),
                                      .data_sets = slot->data_sets};
    atomic_init(&slot->state, PSTK__SLOT_FREE);
    pool->free_list[slot->lane][pool->n_free[slot->lane]++] = index;
    return 0;
}

/* Free all slots. A half-built pool is fine: slots from the first one without memory on were never
 * begun. */
static void slots_free(struct pstk__slots *slots)
{
    if (slots->device) /* first: it waits for work that may still use the memory */
        slots->device_ops->close(slots->device);
    pstk__trace_unref(slots->trace);
    for (uint32_t i = 0; slots->slots && i < slots->n_slots && slots->slots[i].memory; i++) {
        unmap_slot(slots, &slots->slots[i]);
        pthread_mutex_destroy(&slots->slots[i].lock);
    }
    for (uint32_t n = 0; n < slots->n_lanes; n++)
        free(slots->free_list[n]);
    pthread_mutex_destroy(&slots->lock);
    free(slots->outputs);
    free(slots->slots);
    free(slots);
}

static int slots_fill(struct pstk__slots *slots, const struct pstk__slots_config *c, int *bound,
                      struct pstk_error *err)
{
    slots->slots = aligned_alloc(_Alignof(struct pstk__slot), c->n_slots * sizeof *slots->slots);
    if (slots->slots)
        memset(slots->slots, 0, c->n_slots * sizeof *slots->slots);
    slots->outputs = calloc(c->plan->n_outputs ? c->plan->n_outputs : 1, sizeof *slots->outputs);
    int r = 0, ok = slots->slots && slots->outputs;
    for (uint32_t n = 0; n < c->n_lanes; n++) {
        slots->free_list[n] = calloc(c->n_slots, sizeof **slots->free_list);
        ok = ok && slots->free_list[n];
    }
    if (!ok)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for %u slots", c->n_slots);
    for (uint32_t i = 0; i < slots->n_outputs; i++) {
        const struct pstk__output *o = &c->plan->outputs[i];
        struct pstk__pool_output *output = &slots->outputs[i];
        memcpy(output->name, o->name, sizeof output->name);
        output->written_size = pstk__output_written_size(o);
        output->input_size = o->callback.input.size;
        output->budget = o->budget;
        output->item_size = o->ragged.item_size;
    }
    for (uint32_t i = 0; r == 0 && i < c->n_slots; i++)
        r = slot_init(slots, i, c, bound, err);
    return r;
}

int pstk__slots_open(struct pstk__slots **out, const struct pstk__slots_config *c, int *bound,
                     struct pstk_error *err)
{
    *out = NULL;
    struct pstk__slots *slots = calloc(1, sizeof *slots);
    if (!slots)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the slots");
    slots->device_ops = c->device_ops;
    slots->layout = *c->layout;
    slots->on_device = c->on_device;
    slots->device_index = c->device_index;
    slots->current_stream = c->on_device ? c->current_stream : NULL;
    slots->n_slots = c->n_slots;
    slots->n_lanes = c->n_lanes;
    slots->batch_size = c->plan->batch_size;
    slots->n_outputs = c->plan->n_outputs;
    slots->owner = (int)getpid();
    atomic_init(&slots->n_refs, 1);
    if (pthread_mutex_init(&slots->lock, NULL) != 0) {
        free(slots);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a lock");
    }
    slots->trace = pstk__trace_ref(c->trace);
    int r = slots_fill(slots, c, bound, err);
    if (r < 0) {
        slots_free(slots);
        return r;
    }
    *out = slots;
    return 0;
}

void pstk__slots_attach(struct pstk__slots *slots, struct pstk__device *device)
{
    slots->device = device;
    for (uint32_t k = 0; slots->on_device && k < slots->n_slots; k++) {
        uint8_t *memory = slots->device_ops->memory(device, k);
        for (uint32_t i = 0; i < slots->n_outputs; i++) {
            struct pstk_tensor *t = &slots->slots[k].tensors[i];
            t->data = memory + slots->layout.final[i];
            if (t->offsets)
                t->device_offsets =
                    (const int64_t *)(const void *)(memory +
                                                    pstk__layout_mirrored(
                                                        &slots->layout, slots->layout.offsets[i]));
        }
    }
}

/* Drop the streams of parked slots: the last reference is gone, and nothing will record them. */
static void abandon_parked(struct pstk__slots *slots)
{
    pstk__slots_settle(slots, 0, NULL);
    for (uint32_t i = 0; i < slots->n_slots; i++)
        if (atomic_load_explicit(&slots->slots[i].state, memory_order_relaxed) == PSTK__SLOT_PARKED)
            slots->device_ops->abandon(slots->device);
}

/* Called by the thread that closes the loader, and by any thread that ends a lease; holding
 * nothing. The last of them frees the pool. */
void pstk__slots_unref(struct pstk__slots *slots)
{
    /* Acquire and release: the last thread sees all that the others did to the slots. */
    if (atomic_fetch_sub_explicit(&slots->n_refs, 1, memory_order_acq_rel) != 1)
        return;
    /* Closing waits for the streams that use the slots, and a device waits for all its work when it
     * frees memory: leave the interpreter meanwhile. */
    void *state = slots->device && slots->on_device ? pstk__interpreter_leave() : NULL;
    if (slots->device)
        abandon_parked(slots);
    slots_free(slots);
    pstk__interpreter_return(state);
}

/* Called by the uploader before each round; holding nothing. Takes the pool's lock. */
int pstk__slots_failed(struct pstk__slots *slots, struct pstk_error *err)
{
    pthread_mutex_lock(&slots->lock);
    int failed = slots->failure.code != 0;
    if (failed)
        *err = slots->failure;
    pthread_mutex_unlock(&slots->lock);
    return failed;
}

/* Go one arrow, on any thread. Acquire and release: the thread that takes the next arrow sees all
 * that the slot's owner wrote before this one. */
static void change_state(struct pstk__slot *slot, uint32_t from, uint32_t to)
{
    uint32_t old = atomic_exchange_explicit(&slot->state, to, memory_order_acq_rel);
    assert(old == from);
    (void)old;
    (void)from;
}

void pstk__slots_watch(struct pstk__slots *slots, uint32_t lane, struct pstk__eventcount *room)
{
    pthread_mutex_lock(&slots->lock);
    slots->room[lane] = room;
    pthread_mutex_unlock(&slots->lock);
}

void pstk__slots_unwatch(struct pstk__slots *slots)
{
    pthread_mutex_lock(&slots->lock);
    memset(slots->room, 0, sizeof slots->room);
    pthread_mutex_unlock(&slots->lock);
}

/* Called with the slot FREE: by the uploader (the copies of a host slot are over), by the thread
 * that ends or settles a lease (any thread of the program), and by the thread that drops a batch (a
 * worker, the uploader, or the consumer, which then holds the reorder buffer's lock). Takes the
 * pool's lock: no caller holds it. */
static void push_free(struct pstk__slot *slot)
{
    struct pstk__slots *slots = slot->pool;
    pthread_mutex_lock(&slots->lock);
    slots->free_list[slot->lane][slots->n_free[slot->lane]++] = slot->batch.slot;
    /* Under the lock, as pstk__slots_unwatch: the eventcount still exists. */
    if (slots->room[slot->lane])
        pstk__eventcount_notify(slots->room[slot->lane]);
    pthread_mutex_unlock(&slots->lock);
}

/* Return a free slot of the lane, or NULL. Called by the lane's reader, or, for slots of a device,
 * by the uploader; holding nothing. On the host it is the slot that came back last, which caches
 * may still hold. On a device, whose streams may still use it, the slot that came back first. */
static struct pstk__slot *pop_free(struct pstk__slots *slots, uint32_t lane)
{
    struct pstk__slot *slot = NULL;
    pthread_mutex_lock(&slots->lock);
    uint32_t *list = slots->free_list[lane];
    if (slots->n_free[lane] > 0) {
        const uint32_t left = --slots->n_free[lane];
        slot = &slots->slots[list[slots->on_device ? 0 : left]];
        if (slots->on_device)
            memmove(list, list + 1, left * sizeof *list);
    }
    pthread_mutex_unlock(&slots->lock);
    return slot;
}

struct pstk__slot *pstk__slot_begin(struct pstk__slots *slots, uint32_t lane)
{
    struct pstk__slot *slot = pop_free(slots, lane);
    if (!slot)
        return NULL;
    change_state(slot, PSTK__SLOT_FREE, PSTK__SLOT_FILLING);
    slot->failed_row = UINT32_MAX;
    slot->batch.n_replacements = slot->batch.n_reports = 0;
    atomic_store_explicit(&slot->n_palette_images, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->n_damaged_images, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->n_dropped_boxes, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->n_bytes, 0, memory_order_relaxed);
    return slot;
}

/* Called by any worker that holds a task of the slot, and by the last one in pack_ragged; holding
 * nothing. Takes the slot's lock. */
void pstk__slot_fail(struct pstk__slot *slot, uint32_t row, const struct pstk_error *err)
{
    pthread_mutex_lock(&slot->lock);
    if (row < slot->failed_row) {
        slot->failed_row = row;
        slot->error = *err;
    }
    pthread_mutex_unlock(&slot->lock);
}

/* Find room for the report of a row, in order of rows. The caller holds the lock. Returns NULL if
 * all kept reports are of lower rows. */
static struct pstk_report *report_at(struct pstk__slot *slot, uint32_t row)
{
    struct pstk_batch *batch = &slot->batch;
    const uint32_t most = slot->pool->layout.max_reports;
    const uint32_t room = most < PSTK_MAX_REPORTS ? most : PSTK_MAX_REPORTS;
    uint32_t i = batch->n_reports;
    while (i > 0 && slot->reports[i - 1].row > row)
        i--;
    if (i == room)
        return NULL;
    batch->n_reports += batch->n_reports < room;
    memmove(&slot->reports[i + 1], &slot->reports[i],
            (batch->n_reports - 1 - i) * sizeof *slot->reports);
    return &slot->reports[i];
}

/* Called by the worker that holds the row's task; holding nothing. Takes the slot's lock for
 * members that rows share; the row's own id needs no lock. */
void pstk__slot_replace(struct pstk__slot *slot, uint32_t row, const struct pstk_error *bad,
                        uint64_t other)
{
    slot->replacement_ids[row] = other;
    pthread_mutex_lock(&slot->lock);
    slot->batch.n_replacements++;
    struct pstk_report *report = report_at(slot, row);
    if (report)
        *report = (struct pstk_report){.error = *bad, .replacement_id = other, .row = row};
    pthread_mutex_unlock(&slot->lock);
}

/* Add one report that counts the replaced samples without a report. */
static void report_others(struct pstk__slot *slot)
{
    struct pstk_batch *batch = &slot->batch;
    if (batch->n_replacements == batch->n_reports)
        return;
    const struct pstk_error *last = &slot->reports[batch->n_reports - 1].error;
    const uint32_t n = batch->n_replacements - batch->n_reports;
    struct pstk_report *report = &slot->reports[batch->n_reports++];
    *report = (struct pstk_report){.replacement_id = PSTK_NONE, .row = UINT32_MAX};
    pstk_error_init(&report->error, sizeof report->error);
    pstk__fail(&report->error, last->code, last->stage,
               "%u more bad sample%s of the batch at epoch %llu, position %llu %s replaced: only "
               "the first %u of a batch are described",
               n, n == 1 ? "" : "s", (unsigned long long)batch->epoch,
               (unsigned long long)batch->position, n == 1 ? "was" : "were", PSTK_MAX_REPORTS);
    report->error.epoch = batch->epoch;
    report->error.position = batch->position;
}

void pstk__slot_rows(struct pstk__slot *slot, uint32_t row, struct pstk__row *rows)
{
    const struct pstk__slots *slots = slot->pool;
    for (uint32_t i = 0; i < slots->n_outputs; i++)
        rows[i] = (struct pstk__row){
            .data = slot->outputs[i].written + row * (slot->outputs[i].offsets
                                                          ? slots->outputs[i].written_size
                                                          : slot->outputs[i].row_size),
            .flip = slot->outputs[i].flips ? &slot->outputs[i].flips[row] : NULL,
            .crop = slot->crops ? &slot->crops[(uint64_t)i * slot->batch.n_rows + row] : NULL,
            .label = slot->labels ? &slot->labels[row] : NULL,
            .input = slot->outputs[i].inputs
                         ? slot->outputs[i].inputs + row * slots->outputs[i].input_size
                         : NULL};
}

/* Called by the worker that holds the row's task; holding nothing. Rows share only the counts: the
 * last worker reads them after the countdown, whose order is enough. */
void pstk__slot_note(struct pstk__slot *slot, uint32_t row, const struct pstk__row *rows)
{
    uint32_t is_palette = 0, is_damaged = 0, n_dropped = 0;
    for (uint32_t i = 0; i < slot->pool->n_outputs; i++) {
        is_palette |= rows[i].is_palette;
        is_damaged |= rows[i].is_damaged;
        n_dropped += rows[i].n_dropped;
        if (slot->outputs[i].offsets)
            slot->outputs[i].offsets[row + 1] = (int64_t)rows[i].size;
    }
    if (is_palette)
        atomic_fetch_add_explicit(&slot->n_palette_images, 1, memory_order_relaxed);
    if (is_damaged)
        atomic_fetch_add_explicit(&slot->n_damaged_images, 1, memory_order_relaxed);
    if (n_dropped > 0)
        atomic_fetch_add_explicit(&slot->n_dropped_boxes, n_dropped, memory_order_relaxed);
}

/* Move the ragged rows of an output together, and turn sizes into offsets. */
static void pack_ragged(struct pstk__slot *slot, uint32_t i)
{
    struct pstk_tensor *t = &slot->tensors[i];
    int64_t *offsets = slot->outputs[i].offsets;
    const uint64_t item_size = slot->pool->outputs[i].item_size;
    uint64_t end = 0;
    offsets[0] = 0;
    for (uint32_t row = 0; row < slot->batch.n_rows; row++) {
        uint64_t size = row < slot->batch.n_valid ? (uint64_t)offsets[row + 1] : 0;
        if (row > 0 && size > 0)
            memmove((uint8_t *)t->data + end, (uint8_t *)t->data + row * slot->outputs[i].row_size,
                    size);
        end += size;
        offsets[row + 1] = (int64_t)(end / item_size);
    }
    t->size = end;
    t->shape[0] = (int64_t)(end / item_size);
    if (end > slot->pool->outputs[i].budget) {
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        pstk__fail(&err, PSTK_EFBIG, PSTK_STAGE_DECODE,
                   "output '%s' of the batch at epoch %llu, position %llu has %llu bytes, more "
                   "than its budget of %llu: raise bytes_per_batch",
                   t->name, (unsigned long long)slot->batch.epoch,
                   (unsigned long long)slot->batch.position, (unsigned long long)end,
                   (unsigned long long)slot->pool->outputs[i].budget);
        err.epoch = slot->batch.epoch;
        err.position = slot->batch.position;
        pstk__slot_fail(slot, slot->batch.n_rows, &err);
    }
}

/* Called by the last worker of the slot's countdown. No other thread uses the slot by then: members
 * that the lock guards while FILLING need no lock. */
void pstk__slot_done(struct pstk__slot *slot)
{
    const struct pstk__slots *slots = slot->pool;
    uint32_t n_valid = slot->batch.n_valid, n_empty = slot->batch.n_rows - n_valid;
    for (uint32_t i = 0; i < slots->n_outputs && slot->failed_row == UINT32_MAX; i++) {
        if (slot->outputs[i].offsets)
            pack_ragged(slot, i);
        else if (n_empty)
            memset((uint8_t *)slot->tensors[i].data + n_valid * slot->outputs[i].row_size, 0,
                   n_empty * slot->outputs[i].row_size);
        if (slot->crops && n_empty)
            memset(&slot->crops[(uint64_t)i * slot->batch.n_rows + n_valid], 0,
                   n_empty * sizeof *slot->crops);
    }
    slot->batch.n_palette_images =
        atomic_load_explicit(&slot->n_palette_images, memory_order_relaxed);
    slot->batch.n_damaged_images =
        atomic_load_explicit(&slot->n_damaged_images, memory_order_relaxed);
    slot->batch.n_dropped_boxes =
        atomic_load_explicit(&slot->n_dropped_boxes, memory_order_relaxed);
    report_others(slot);
    change_state(slot, PSTK__SLOT_FILLING, PSTK__SLOT_READY);
}

void pstk__slot_copy(struct pstk__slot *slot)
{
    change_state(slot, PSTK__SLOT_READY, PSTK__SLOT_COPYING);
}

void pstk__slot_copied(struct pstk__slot *slot)
{
    change_state(slot, PSTK__SLOT_COPYING, PSTK__SLOT_FREE);
    push_free(slot);
}

struct pstk__slot *pstk__slot_load(struct pstk__slots *slots)
{
    struct pstk__slot *slot = pop_free(slots, 0);
    if (slot)
        change_state(slot, PSTK__SLOT_FREE, PSTK__SLOT_LOADING);
    return slot;
}

/* Copy the shapes of another size or number of rows; ragged tensors keep theirs. */
static void take_shapes(struct pstk__slot *slot, const struct pstk__slot *from)
{
    slot->batch.size_index = from->batch.size_index;
    slot->n_shaped = from->n_shaped;
    for (uint32_t i = 0; i < slot->pool->n_outputs; i++) {
        struct pstk_tensor *t = &slot->tensors[i];
        if (slot->outputs[i].offsets)
            continue;
        memcpy(t->shape, from->tensors[i].shape, sizeof t->shape);
        memcpy(t->strides, from->tensors[i].strides, sizeof t->strides);
        t->size = (uint64_t)t->shape[0] * (uint64_t)t->strides[0] * pstk_dtype_size(t->dtype);
    }
}

void pstk__slot_loaded(struct pstk__slot *slot, const struct pstk__slot *from)
{
    const struct pstk__layout *layout = &slot->pool->layout;
    struct pstk_batch *to = &slot->batch;
    slot->seq = from->seq;
    slot->generation = from->generation;
    slot->failed_row = from->failed_row;
    if (from->failed_row != UINT32_MAX)
        slot->error = from->error;
    to->n_rows = from->batch.n_rows;
    to->n_valid = from->batch.n_valid;
    to->epoch = from->batch.epoch;
    to->position = from->batch.position;
    to->next_position = from->batch.next_position;
    to->index = from->batch.index;
    slot->is_last = from->is_last;
    to->n_replacements = from->batch.n_replacements;
    to->n_reports = from->batch.n_reports;
    to->n_palette_images = from->batch.n_palette_images;
    to->n_damaged_images = from->batch.n_damaged_images;
    to->n_dropped_boxes = from->batch.n_dropped_boxes;
    atomic_store_explicit(&slot->n_bytes,
                          atomic_load_explicit(&from->n_bytes, memory_order_relaxed),
                          memory_order_relaxed);
    memcpy(slot->memory, from->memory + layout->about, layout->reports - layout->about);
    if (to->n_reports > 0)
        memcpy(slot->reports, from->reports, to->n_reports * sizeof *slot->reports);
    for (uint32_t i = 0; i < slot->pool->n_outputs; i++)
        if (slot->outputs[i].offsets) {
            slot->tensors[i].size = from->tensors[i].size;
            slot->tensors[i].shape[0] = from->tensors[i].shape[0];
        }
    if (to->size_index != from->batch.size_index || slot->n_shaped != from->n_shaped)
        take_shapes(slot, from);
    change_state(slot, PSTK__SLOT_LOADING, PSTK__SLOT_LOADED);
}

int pstk__slot_lease(struct pstk__slot *slot, void *stream, int quick, struct pstk_error *err)
{
    struct pstk__slots *slots = slot->pool;
    int r = slots->device_ops->acquire(slots->device, slot->batch.slot, stream, quick, err);
    if (r < 0)
        return r;
    change_state(slot, slots->on_device ? PSTK__SLOT_LOADED : PSTK__SLOT_READY, PSTK__SLOT_LEASED);
    slot->n_users = 0; /* no other thread uses the slot yet */
    atomic_fetch_add_explicit(&slots->n_refs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&slots->n_leased, 1, memory_order_relaxed);
    slot->lease = pstk__trace_begin_across(slots->trace, "lease", slot->seq);
    if (pstk__trace_timeline(slots->trace))
        slot->leased_ns = pstk__clock_ns();
    return 0;
}

static int is_user(const struct pstk__slot *slot, const void *stream)
{
    for (uint32_t i = 0; i < slot->n_users; i++)
        if (slot->users[i] == stream)
            return 1;
    return 0;
}

/* Called by any thread that holds a share of the batch, several at a time; takes the slot's lock.
 */
int pstk__slot_use(struct pstk__slot *slot, void *stream, struct pstk_error *err)
{
    int r = 0;
    pthread_mutex_lock(&slot->lock);
    if (!is_user(slot, stream)) {
        if (slot->n_users < PSTK__MAX_USERS)
            slot->users[slot->n_users++] = stream;
        else
            r = pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_CONSUMER,
                           "stream: value is a stream other than the %d that use the batch; must "
                           "be one of them (let one of them wait for the work of this stream)",
                           PSTK__MAX_USERS);
    }
    pthread_mutex_unlock(&slot->lock);
    return r;
}

/* Lose a slot whose uses could not be recorded on the device: it is never used again, and the
 * loader fails. */
static void lose(struct pstk__slot *slot, const struct pstk_error *err)
{
    struct pstk__slots *slots = slot->pool;
    pthread_mutex_lock(&slots->lock);
    if (!slots->failure.code)
        slots->failure = *err;
    if (slots->room[slot->lane])
        pstk__eventcount_notify(slots->room[slot->lane]);
    pthread_mutex_unlock(&slots->lock);
}

/* End a lease. Called on any thread of the program, by release or settle; holding nothing. The slot
 * is LEASED, and only the caller uses it. Returns ETIMEDOUT (see release in device.h) or 0. */
static int end_lease(struct pstk__slot *slot, int quick)
{
    struct pstk__slots *slots = slot->pool;
    const struct pstk__lease_end end = {.slot = slot->batch.slot,
                                        .quick = quick,
                                        .streams = slot->users,
                                        .n_streams = &slot->n_users};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int r = slots->device_ops->release(slots->device, &end, &err);
    if (r < 0 && r != PSTK_ETIMEDOUT) {
        lose(slot, &err);
    } else if (r != 0) {
        atomic_fetch_add_explicit(&slots->n_parked, 1, memory_order_relaxed);
        change_state(slot, PSTK__SLOT_LEASED, PSTK__SLOT_PARKED);
    } else {
        change_state(slot, PSTK__SLOT_LEASED, PSTK__SLOT_FREE);
        atomic_fetch_sub_explicit(&slots->n_leased, 1, memory_order_relaxed);
        push_free(slot);
    }
    return r == PSTK_ETIMEDOUT ? r : 0;
}

/* Called on any thread that holds a reference, several at a time: by next, each release and the
 * last unref; holding nothing. The exchange from PARKED lets only one of them settle a slot. */
int pstk__slots_settle(struct pstk__slots *slots, int quick, struct pstk_error *err)
{
    if (atomic_load_explicit(&slots->n_parked, memory_order_relaxed) == 0)
        return 0;
    for (uint32_t i = 0; i < slots->n_slots; i++) {
        uint32_t parked = PSTK__SLOT_PARKED;
        struct pstk__slot *slot = &slots->slots[i];
        /* Acquire: pairs with change_state in end_lease, so that this thread sees the streams that
         * are left. */
        if (!atomic_compare_exchange_strong_explicit(&slot->state, &parked, PSTK__SLOT_LEASED,
                                                     memory_order_acq_rel, memory_order_relaxed))
            continue;
        atomic_fetch_sub_explicit(&slots->n_parked, 1, memory_order_relaxed);
        if (end_lease(slot, quick) < 0)
            return pstk__fail(err, PSTK_ETIMEDOUT, PSTK_STAGE_CONSUMER,
                              "no batch was ready within the timeout: another thread was taking or "
                              "releasing a batch");
    }
    return 0;
}

/* Called by the thread that gives up the last share, just before release. It takes no lock: no
 * other thread uses the batch. */
void pstk__slot_use_current(struct pstk__slot *slot)
{
    const struct pstk__slots *slots = slot->pool;
    void *stream = NULL;
    if (!slots->current_stream || slots->current_stream(slots->device_index, &stream) != 0)
        return;
    if (!is_user(slot, stream))
        slot->users[slot->n_users++] = stream;
}

/* Called on any thread of the program, holding nothing. The lease's reference keeps the pool alive
 * until the end of this function, even after the loader was closed. */
void pstk__slot_release(struct pstk__slot *slot, void *stream)
{
    struct pstk__slots *slots = slot->pool;
    struct pstk__timeline *timeline = pstk__trace_timeline(slots->trace);
    pstk__trace_end_across(slots->trace, slot->lease);
    if (timeline) {
        const struct pstk__event event = pstk__slot_event(slot, PSTK__EVENT_LEASE, slot->leased_ns,
                                                          pstk__clock_ns(), slot->batch.n_valid);
        pstk__timeline_lease(timeline, &event);
    }
    pstk__slots_settle(slots, 0, NULL);
    if (!is_user(slot, stream))
        slot->users[slot->n_users++] = stream;
    end_lease(slot, 0);
    pstk__slots_unref(slots);
}

/* Called by the owner of the slot: a worker or the uploader, whose batch became void, or the
 * consumer, in take and seek, with the reorder buffer's lock. */
void pstk__slot_drop(struct pstk__slot *slot)
{
    uint32_t old = atomic_exchange_explicit(&slot->state, PSTK__SLOT_FREE, memory_order_acq_rel);
    assert(old == PSTK__SLOT_FILLING || old == PSTK__SLOT_READY || old == PSTK__SLOT_LOADING ||
           old == PSTK__SLOT_LOADED);
    (void)old;
    push_free(slot);
}
