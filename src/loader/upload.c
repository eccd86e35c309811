/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The uploader: finished batches, in order, into slots of a device. See pipeline.h for the shape.
 *
 * Copies are queued, up to PSTK__LOADS batches ahead, so that the device never waits for us between
 * two of them. A batch is finished and put into the reorder buffer once its copies are seen done:
 * cuda/gpu.h says why nobody else waits for them. With nothing to queue, the uploader waits for the
 * oldest load under way; with none under way, for a batch and a slot, and for the uses of the slot
 * to end. While it waits on the device, only a batch that was put in or a slot that was given back
 * meanwhile is late, by the time that waking up takes.
 *
 * Everything here runs on the uploader's thread, which holds no lock. A host slot is the uploader's
 * while COPYING, a slot of the device while LOADING. Workers, consumers and pstk__pipeline_stop
 * wake it by the eventcount `uploads` of the reorder buffer; it then looks at `closing` and the
 * reorder buffer. It reaches the other threads only through the reorder buffer and slot.h.
 */
#include "loader/pipeline.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>

/* Finish the oldest load under way. Returns 1; 0: its copies are not done, and `wait` is 0; or an
 * error. */
static int finish(struct pstk__uploader *uploader, int wait, struct pstk_error *err)
{
    struct pstk__slot *from = uploader->loads[uploader->n_finished % PSTK__LOADS].from;
    struct pstk__slot *to = uploader->loads[uploader->n_finished % PSTK__LOADS].to;
    const struct pstk__load_end end = {.slot = to->batch.slot,
                                       .n_valid = from->batch.n_valid,
                                       .size_index = from->batch.size_index,
                                       .wait = wait};
    const int r = uploader->device->ops->finish(uploader->device, &end, err);
    if (r <= 0)
        return r;
    pstk__histogram_add(&uploader->counters.times,
                        pstk__clock_ns() -
                            uploader->loads[uploader->n_finished % PSTK__LOADS].queued_ns);
    pstk__slot_trace(from, uploader->ring, PSTK__EVENT_COPY,
                     uploader->loads[uploader->n_finished % PSTK__LOADS].queued_ns,
                     from->batch.n_valid);
    uploader->n_finished++;
    pstk__slot_loaded(to, from);
    pstk__slot_copied(from);
    pstk__count(&uploader->counters.n_items, 1); /* before the batch can be delivered */
    pstk__reorder_put_loaded(&uploader->pipeline->reorder, to);
    return 1;
}

/* Queue the copies of a batch from a host slot to uploader->slot. */
static int queue_load(struct pstk__uploader *uploader, struct pstk__slot *slot,
                      struct pstk_error *err)
{
    uint64_t ragged_size[PSTK__MAX_OUTPUTS], dense_size[PSTK__MAX_OUTPUTS];
    for (uint32_t i = 0; i < slot->pool->n_outputs; i++) {
        ragged_size[i] = slot->outputs[i].offsets ? slot->tensors[i].size : 0;
        dense_size[i] = slot->outputs[i].offsets ? 0 : slot->tensors[i].size;
    }
    const int is_whole =
        uploader->pipeline->plan->n_sizes <= 1 && slot->batch.n_rows == slot->pool->batch_size;
    const struct pstk__load load = {.memory = slot->memory,
                                    .slot = uploader->slot->batch.slot,
                                    .ragged_size = ragged_size,
                                    .dense_size = is_whole ? NULL : dense_size};
    const uint64_t queued = pstk__clock_ns();
    pstk__trace_begin(uploader->pipeline->trace, "copy", slot->seq);
    const int r = uploader->device->ops->load(uploader->device, &load, err);
    pstk__trace_end(uploader->pipeline->trace);
    if (r < 0)
        return r;
    uploader->loads[uploader->n_begun % PSTK__LOADS].from = slot;
    uploader->loads[uploader->n_begun % PSTK__LOADS].to = uploader->slot;
    uploader->loads[uploader->n_begun % PSTK__LOADS].queued_ns = queued;
    uploader->n_begun++;
    uploader->slot = NULL;
    return 1;
}

/* Pass the error of a failed batch on in a slot of the device; nothing is copied. */
static void pass_failure(struct pstk__uploader *uploader, struct pstk__slot *slot)
{
    struct pstk__slot *to = uploader->slot;
    uploader->slot = NULL;
    pstk__slot_loaded(to, slot);
    pstk__slot_copied(slot);
    pstk__count(&uploader->counters.n_items, 1);
    pstk__reorder_put_loaded(&uploader->pipeline->reorder, to);
}

/* Find a slot of the device in which a load may begin. Returns 1, 0 or an error. It waits for one
 * only if no load is under way: finishing a load comes first. */
static int find_slot(struct pstk__uploader *uploader, struct pstk_error *err)
{
    if (uploader->n_begun - uploader->n_finished == PSTK__LOADS)
        return 0;
    if (!uploader->slot)
        uploader->slot = pstk__slot_load(uploader->pipeline->delivered);
    if (!uploader->slot)
        return 0;
    const uint32_t slot = uploader->slot->batch.slot;
    int r = uploader->device->ops->ready(uploader->device, slot, 0, err);
    if (r != 0 || uploader->n_begun > uploader->n_finished)
        return r;
    const uint64_t start = pstk__clock_ns();
    r = uploader->device->ops->ready(uploader->device, slot, 1, err);
    uploader->blocked_ns += pstk__clock_ns() - start;
    return r;
}

/* Begin to load the next batch, if it and a slot are available. Returns 1, 0 or an error. */
static int upload(struct pstk__uploader *uploader, struct pstk_error *err)
{
    struct pstk__pipeline *pipeline = uploader->pipeline;
    const int r = find_slot(uploader, err);
    struct pstk__slot *slot = r == 1 ? pstk__reorder_take_filled(&pipeline->reorder) : NULL;
    if (!slot)
        return r < 0 ? r : 0;
    if (pstk__reorder_stale(&pipeline->reorder, slot)) {
        pstk__slot_copied(slot);
        return 1;
    }
    if (slot->failed_row == UINT32_MAX)
        return queue_load(uploader, slot, err);
    pass_failure(uploader, slot);
    return 1;
}

/* Do all possible work now. Returns 1; 0: nothing could be done; or an error. */
static int advance(struct pstk__uploader *uploader, struct pstk_error *err)
{
    const uint64_t start = pstk__clock_ns();
    uploader->blocked_ns = 0;
    int r = uploader->n_begun > uploader->n_finished ? finish(uploader, 0, err) : 0;
    if (r == 0)
        r = upload(uploader, err);
    if (r == 0 && uploader->n_begun > uploader->n_finished)
        r = finish(uploader, 1, err);
    const _Atomic uint64_t *since = &uploader->pipeline->asked_ns;
    const uint64_t unblocked = start + uploader->blocked_ns, now = pstk__clock_ns();
    pstk__count_span(&uploader->counters.blocked_ns, since, start, unblocked);
    pstk__count_span(&uploader->counters.busy_ns, since, unblocked, now);
    return r;
}

/* Run rounds until the pipeline closes. Returns 0 or an error. After a round without progress,
 * wait: for a batch if there is a slot, else for a slot. */
static int run(struct pstk__uploader *uploader, struct pstk_error *err)
{
    struct pstk__pipeline *pipeline = uploader->pipeline;
    for (;;) {
        uint32_t ticket =
            pstk__eventcount_ticket(&pipeline->reorder.uploads); /* before any look at the pools */
        if (atomic_load_explicit(&pipeline->closing, memory_order_acquire))
            return 0;
        if (pstk__slots_failed(pipeline->delivered, err))
            return err->code;
        const int r = advance(uploader, err);
        if (r < 0)
            return r;
        if (r > 0)
            continue;
        const uint64_t start = pstk__clock_ns();
        pstk__eventcount_wait(&pipeline->reorder.uploads, ticket, -1);
        pstk__count_span(uploader->slot ? &uploader->counters.starved_ns
                                        : &uploader->counters.blocked_ns,
                         &pipeline->asked_ns, start, pstk__clock_ns());
    }
}

static void unpin_slots(struct pstk__uploader *uploader)
{
    while (uploader->n_pinned > 0)
        uploader->device->ops->unpin(uploader->device,
                                     uploader->pipeline->slots->slots[--uploader->n_pinned].memory);
}

/* Page-lock the host slots. If that is refused, copies need one more step, and the fallback records
 * it. */
static int pin_slots(struct pstk__uploader *uploader, struct pstk_error *err)
{
    struct pstk__pipeline *pipeline = uploader->pipeline;
    for (uint32_t i = 0; i < pipeline->slots->n_slots; i++) {
        const struct pstk__slot *slot = &pipeline->slots->slots[i];
        const int r =
            uploader->device->ops->pin(uploader->device, slot->memory, slot->memory_size, err);
        if (r < 0)
            return r;
        if (r > 0) {
            atomic_fetch_or_explicit(&pipeline->fallbacks, PSTK_FALLBACK_NOT_PAGE_LOCKED,
                                     memory_order_relaxed);
            unpin_slots(uploader); /* all or none: a part of them would be useless */
            return 0;
        }
        uploader->n_pinned++;
    }
    return 0;
}

static int open_device(struct pstk__uploader *uploader, struct pstk_error *err)
{
    struct pstk__pipeline *pipeline = uploader->pipeline;
    const struct pstk__device_ops *ops = pipeline->delivered->device_ops;
    const struct pstk__device_config c = {.index = pipeline->settings.device.index,
                                          .n_slots = pipeline->delivered->n_slots,
                                          .timed = pipeline->settings.device.measure,
                                          .plan = pipeline->plan,
                                          .layout = &pipeline->delivered->layout};
    int r = ops->open(&uploader->device, &c, err);
    if (r < 0)
        return r;
    pstk__slots_attach(pipeline->delivered, uploader->device); /* the pool closes it */
    return pin_slots(uploader, err);
}

/* Wait until no queued work can touch a host slot, then unpin the slots. */
static void close_device(struct pstk__uploader *uploader)
{
    if (!uploader->device)
        return;
    uploader->device->ops->drain(uploader->device);
    unpin_slots(uploader);
    if (uploader->slot)
        pstk__slot_drop(uploader->slot);
    uploader->slot = NULL;
}

void *pstk__pipeline_upload(void *uploader)
{
    struct pstk__uploader *u = uploader;
    struct pstk__pipeline *pipeline = u->pipeline;
    struct pstk_error err;
    pthread_setname_np(pthread_self(), "pstk-upload");
    if (pipeline->settings.reading.pin_threads && pipeline->device_node != UINT32_MAX &&
        pstk__numa_pin_node(pipeline->numa, pipeline->device_node) != 0)
        atomic_fetch_or_explicit(&pipeline->fallbacks, PSTK_FALLBACK_NOT_PINNED,
                                 memory_order_relaxed);
    pstk_error_init(&err, sizeof err);
    pstk__cpu_times_join(pipeline->uploader_times);
    int r = open_device(u, &u->start_error);
    atomic_store_explicit(&u->started, r < 0 ? r : 1, memory_order_release);
    pstk__eventcount_notify(&pipeline->started);
    if (r == 0 && run(u, &err) < 0)
        pstk__reorder_fail_uploads(&pipeline->reorder, &err);
    close_device(u);
    pstk__cpu_times_leave(pipeline->uploader_times);
    return NULL;
}
