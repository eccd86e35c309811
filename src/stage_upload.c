/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The uploader: finished batches, in order, into slots of a device. See stage.h for the shape.
 *
 * Loads are queued, not waited for (but where slots could not be page-locked). A host slot is given
 * back once its copy is done, which is looked at whenever there is something to do; the uploader
 * waits for a copy only when a reader finds all its slots in use. Meanwhile nothing is late: what
 * would be queued next waits behind that copy.
 */
#include "stage.h"

#include "clock.h"
#include "error.h"

#include <stdio.h>
#include <stdlib.h>

/* The host slot whose copy was queued first; there is one. */
static struct pstk__slot *oldest(const struct pstk__uploader *u)
{
    return &u->pipeline->slots->slots[u->copying[u->first]];
}

static void push_copying(struct pstk__uploader *u, const struct pstk__slot *s)
{
    const uint32_t n_slots = u->pipeline->slots->n_slots;
    u->copying[(u->first + u->n_copying++) % n_slots] = s->batch.slot;
}

/* Give back host slots whose copies are done; with `wait` at least the oldest. */
static int give_back(struct pstk__uploader *u, int wait, uint64_t *blocked_ns,
                     struct pstk_error *err)
{
    struct pstk__pipeline *p = u->pipeline;
    while (u->n_copying > 0) {
        struct pstk__slot *s = oldest(u);
        const int r = u->device->ops->copied(u->device, s->batch.slot, wait, blocked_ns, err);
        if (r <= 0)
            return r;
        u->first = (u->first + 1) % p->slots->n_slots;
        u->n_copying--;
        pstk__slot_copied(s);
        wait = 0;
    }
    return 0;
}

/* Queue the copies of a batch from host slot s to u->slot. */
static int queue_load(struct pstk__uploader *u, struct pstk__slot *s, struct pstk_error *err)
{
    uint64_t ragged_size[PSTK__MAX_OUTPUTS];
    for (uint32_t i = 0; i < s->pool->n_outputs; i++)
        ragged_size[i] = s->offsets[i] ? s->tensors[i].size : 0;
    const struct pstk__load load = {.memory = s->memory,
                                    .host_slot = s->batch.slot,
                                    .slot = u->slot->batch.slot,
                                    .n_valid = s->batch.n_valid,
                                    .ragged_size = ragged_size};
    push_copying(u, s); /* also when it fails: some of the copies may have been queued */
    pstk__trace_enter(&u->pipeline->delivered->trace, "copy", s->seq);
    uint64_t blocked = 0;
    const int r = u->device->ops->load(u->device, &load, &blocked, err);
    u->blocked_ns += blocked;
    pstk__trace_leave(&u->pipeline->delivered->trace);
    return r;
}

/* Load the next batch if it and a slot for it are there: 1, 0 or an error. */
static int upload(struct pstk__uploader *u, struct pstk_error *err)
{
    struct pstk__pipeline *p = u->pipeline;
    if (!u->slot)
        u->slot = pstk__slot_load(p->delivered);
    struct pstk__slot *s = u->slot ? pstk__window_take_filled(&p->window) : NULL;
    if (!s)
        return 0;
    if (pstk__window_stale(&p->window, s)) {
        pstk__slot_copied(s);
        return 1;
    }
    struct pstk__slot *d = u->slot;
    const int failed = s->failed_row != UINT32_MAX;
    const int r = failed ? 0 : queue_load(u, s, err);
    if (r < 0)
        return r;
    u->slot = NULL;
    pstk__slot_loaded(d, s);
    if (failed) /* its error goes on in d; nothing was copied */
        pstk__slot_copied(s);
    pstk__count(&u->counters.n_items, 1); /* before the batch can be delivered */
    pstk__window_put_loaded(&p->window, d);
    return 1;
}

/* Wait for a batch, a slot or a wish; or, when a reader waits for a slot, for a copy. */
static int idle(struct pstk__uploader *u, uint32_t ticket, struct pstk_error *err)
{
    struct pstk__pipeline *p = u->pipeline;
    const uint64_t start = pstk__clock_ns();
    if (u->n_copying > 0 && pstk__slots_n_wanting(p->slots) > 0) {
        uint64_t blocked = 0;
        const int r = give_back(u, 1, &blocked, err);
        pstk__count(&u->counters.blocked_ns, blocked);
        pstk__count(&u->counters.busy_ns, pstk__clock_ns() - start - blocked);
        return r;
    }
    pstk__gate_wait(&p->window.uploads, ticket, -1);
    pstk__count(u->slot ? &u->counters.starved_ns : &u->counters.blocked_ns,
                pstk__clock_ns() - start);
    return 0;
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
        const uint64_t start = pstk__clock_ns();
        u->blocked_ns = 0;
        int r = give_back(u, 0, &u->blocked_ns, err);
        if (r == 0)
            r = upload(u, err);
        pstk__count(&u->counters.blocked_ns, u->blocked_ns);
        pstk__count(&u->counters.busy_ns, pstk__clock_ns() - start - u->blocked_ns);
        if (r == 0)
            r = idle(u, ticket, err);
        if (r < 0)
            return r;
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
                                          .n_host_slots = p->slots->n_slots,
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
