/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The uploader: finished batches, in order, into slots of a device. See pipeline.h for the shape.
 *
 * Copies are queued, up to PSTK__LOADS batches ahead, so that the device never waits for us between
 * two of them. A batch is finished and put into the window once its copies are seen done: see
 * cuda/gpu.h for why nobody else waits for them. With nothing to queue, the uploader waits for the
 * oldest load under way; with none under way, for a batch and a slot, and for the uses of the slot
 * to be over. While it waits on the device nothing is late except what was put in or given back
 * meanwhile, by the time it takes to wake up.
 */
#include "loader/pipeline.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>

/* Finish the oldest load under way: 1; 0: its copies are not done, and `wait` is 0; or an error. */
static int finish(struct pstk__uploader *u, int wait, struct pstk_error *err)
{
    struct pstk__slot *from = u->loads[u->n_finished % PSTK__LOADS].from;
    struct pstk__slot *to = u->loads[u->n_finished % PSTK__LOADS].to;
    const struct pstk__load_end end = {
        .slot = to->batch.slot, .n_valid = from->batch.n_valid, .wait = wait};
    const int r = u->device->ops->finish(u->device, &end, err);
    if (r <= 0)
        return r;
    u->n_finished++;
    pstk__slot_loaded(to, from);
    pstk__slot_copied(from);
    pstk__count(&u->counters.n_items, 1); /* before the batch can be delivered */
    pstk__window_put_loaded(&u->pipeline->window, to);
    return 1;
}

/* Queue the copies of a batch from host slot s to u->slot. */
static int queue_load(struct pstk__uploader *u, struct pstk__slot *s, struct pstk_error *err)
{
    uint64_t ragged_size[PSTK__MAX_OUTPUTS];
    for (uint32_t i = 0; i < s->pool->n_outputs; i++)
        ragged_size[i] = s->offsets[i] ? s->tensors[i].size : 0;
    const struct pstk__load load = {
        .memory = s->memory, .slot = u->slot->batch.slot, .ragged_size = ragged_size};
    pstk__trace_enter(&u->pipeline->delivered->trace, "copy", s->seq);
    const int r = u->device->ops->load(u->device, &load, err);
    pstk__trace_leave(&u->pipeline->delivered->trace);
    if (r < 0)
        return r;
    u->loads[u->n_begun % PSTK__LOADS].from = s;
    u->loads[u->n_begun % PSTK__LOADS].to = u->slot;
    u->n_begun++;
    u->slot = NULL;
    return 1;
}

/* The batch failed: its error goes on in a slot of the device, and nothing is copied. */
static void pass_failure(struct pstk__uploader *u, struct pstk__slot *s)
{
    struct pstk__slot *to = u->slot;
    u->slot = NULL;
    pstk__slot_loaded(to, s);
    pstk__slot_copied(s);
    pstk__count(&u->counters.n_items, 1);
    pstk__window_put_loaded(&u->pipeline->window, to);
}

/* A slot of the device that a load may begin in: 1, 0 or an error. It is waited for only where no
 * load is under way: finishing one comes first. */
static int find_slot(struct pstk__uploader *u, struct pstk_error *err)
{
    if (u->n_begun - u->n_finished == PSTK__LOADS)
        return 0;
    if (!u->slot)
        u->slot = pstk__slot_load(u->pipeline->delivered);
    if (!u->slot)
        return 0;
    const uint32_t slot = u->slot->batch.slot;
    int r = u->device->ops->ready(u->device, slot, 0, err);
    if (r != 0 || u->n_begun > u->n_finished)
        return r;
    const uint64_t start = pstk__clock_ns();
    r = u->device->ops->ready(u->device, slot, 1, err);
    u->blocked_ns += pstk__clock_ns() - start;
    return r;
}

/* Begin to load the next batch if it and a slot are there: 1, 0 or an error. */
static int upload(struct pstk__uploader *u, struct pstk_error *err)
{
    struct pstk__pipeline *p = u->pipeline;
    const int r = find_slot(u, err);
    struct pstk__slot *s = r == 1 ? pstk__window_take_filled(&p->window) : NULL;
    if (!s)
        return r < 0 ? r : 0;
    if (pstk__window_stale(&p->window, s)) {
        pstk__slot_copied(s);
        return 1;
    }
    if (s->failed_row == UINT32_MAX)
        return queue_load(u, s, err);
    pass_failure(u, s);
    return 1;
}

/* All that can be done now: 1; 0: nothing can; or an error. */
static int advance(struct pstk__uploader *u, struct pstk_error *err)
{
    const uint64_t start = pstk__clock_ns();
    u->blocked_ns = 0;
    int r = u->n_begun > u->n_finished ? finish(u, 0, err) : 0;
    if (r == 0)
        r = upload(u, err);
    if (r == 0 && u->n_begun > u->n_finished)
        r = finish(u, 1, err);
    pstk__count(&u->counters.blocked_ns, u->blocked_ns);
    pstk__count(&u->counters.busy_ns, pstk__clock_ns() - start - u->blocked_ns);
    return r;
}

/* Wait for a batch or a slot. */
static void idle(struct pstk__uploader *u, uint32_t ticket)
{
    const uint64_t start = pstk__clock_ns();
    pstk__gate_wait(&u->pipeline->window.uploads, ticket, -1);
    pstk__count(u->slot ? &u->counters.starved_ns : &u->counters.blocked_ns,
                pstk__clock_ns() - start);
}

static int run(struct pstk__uploader *u, struct pstk_error *err)
{
    struct pstk__pipeline *p = u->pipeline;
    for (;;) {
        uint32_t ticket = pstk__gate_ticket(&p->window.uploads); /* before any look */
        if (atomic_load_explicit(&p->closing, memory_order_acquire))
            return 0;
        if (pstk__slots_failed(p->delivered, err))
            return err->code;
        const int r = advance(u, err);
        if (r < 0)
            return r;
        if (r == 0)
            idle(u, ticket);
    }
}

static void unpin_slots(struct pstk__uploader *u)
{
    while (u->n_pinned > 0)
        u->device->ops->unpin(u->device, u->pipeline->slots->slots[--u->n_pinned].memory);
}

/* Page-lock the host slots. Where that is refused copies take a step more, and the rung says so. */
static int pin_slots(struct pstk__uploader *u, struct pstk_error *err)
{
    struct pstk__pipeline *p = u->pipeline;
    for (uint32_t i = 0; i < p->slots->n_slots; i++) {
        const struct pstk__slot *s = &p->slots->slots[i];
        const int r = u->device->ops->pin(u->device, s->memory, s->memory_size, err);
        if (r < 0)
            return r;
        if (r > 0) {
            atomic_fetch_or_explicit(&p->rungs, PSTK_RUNG_NOT_PAGE_LOCKED, memory_order_relaxed);
            unpin_slots(u); /* all or none: part of them would be of no use */
            return 0;
        }
        u->n_pinned++;
    }
    return 0;
}

static int open_device(struct pstk__uploader *u, struct pstk_error *err)
{
    struct pstk__pipeline *p = u->pipeline;
    const struct pstk__device_ops *ops = p->delivered->device_ops;
    const struct pstk__device_config c = {.index = p->settings.device_index,
                                          .n_slots = p->delivered->n_slots,
                                          .timed = p->settings.timed,
                                          .plan = p->plan,
                                          .layout = &p->delivered->layout};
    int r = ops->open(&u->device, &c, err);
    if (r < 0)
        return r;
    pstk__slots_attach(p->delivered, u->device); /* the pool closes it */
    return pin_slots(u, err);
}

/* Nothing that was queued may touch a host slot any more, then the slots are let go. */
static void close_device(struct pstk__uploader *u)
{
    if (!u->device)
        return;
    u->device->ops->drain(u->device);
    unpin_slots(u);
    if (u->slot)
        pstk__slot_drop(u->slot);
    u->slot = NULL;
}

void *pstk__stage_upload(void *uploader)
{
    struct pstk__uploader *u = uploader;
    struct pstk__pipeline *p = u->pipeline;
    struct pstk_error err;
    pthread_setname_np(pthread_self(), "pstk-upload");
    if (!p->settings.no_pinning && p->device_node != UINT32_MAX &&
        pstk__numa_pin_node(p->numa, p->device_node) != 0)
        atomic_fetch_or_explicit(&p->rungs, PSTK_RUNG_NOT_PINNED, memory_order_relaxed);
    pstk_error_init(&err, sizeof err);
    int r = open_device(u, &u->start_error);
    atomic_store_explicit(&u->started, r < 0 ? r : 1, memory_order_release);
    pstk__gate_knock(&p->started);
    if (r == 0 && run(u, &err) < 0)
        pstk__window_fail_uploads(&p->window, &err);
    close_device(u);
    return NULL;
}
