/* SPDX-License-Identifier: Apache-2.0 */
/* The public loader: settings checked, hops opened in order, batches handed out. L4. */
#include <penstock/penstock.h>

#include "loader/budget.h"
#include "base/clock.h"
#include "base/error.h"
#include "loader/settings.h"
#include "loader/pipeline.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pstk_loader {
    struct pstk__pipeline pipeline;
    struct pstk__layout layout;
    struct pstk__budget budget;
    struct pstk__counters consumer;
    _Atomic uint64_t n_samples;        /* delivered */
    _Atomic uint64_t n_replaced;       /* of these */
    _Atomic uint64_t n_palette_images; /* of these */
    _Atomic int reporting;             /* 1: next is in on_bad_sample */
    uint64_t returned_ns;              /* when next last returned a batch; 0 = not yet */
    int asks_again;                    /* 1: the last next ended before a batch came; the one now
                                          waits on */
    int owner;                         /* process id: a fork's child may not use us */
};

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* ---- open ------------------------------------------------------------------------------------ */

static int open_source(struct pstk__pipeline *p, struct pstk_error *err)
{
    struct pstk_settings *s = &p->settings;
    int r = pstk_dataset_open(&p->dataset, s->path, err);
    if (r < 0)
        return r;
    p->source = pstk__dataset_source(p->dataset);
    if (s->max_record_size && p->source->limits.max_size > s->max_record_size)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                          "%s has records of up to %llu bytes, over max_record_size (%llu): "
                          "raise it",
                          s->path, (unsigned long long)p->source->limits.max_size,
                          (unsigned long long)s->max_record_size);
    p->partition = (struct pstk__partition){.n = p->source->n_samples,
                                            .batch_size = s->batch_size,
                                            .rank = s->rank,
                                            .world = s->world,
                                            .last = s->last};
    if (pstk__partition_n_batches(&p->partition, 0) == 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "batch_size: %u rows for each of %u rank%s are more than the %llu "
                          "samples of %s, and last=drop leaves no batch: lower batch_size, or take "
                          "last=pad or short",
                          s->batch_size, s->world, s->world == 1 ? "" : "s",
                          (unsigned long long)p->partition.n, s->path);
    if (s->position > p->partition.n)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN, "position: %llu is past the %llu samples of %s",
            (unsigned long long)s->position, (unsigned long long)p->partition.n, s->path);
    return pstk__plan_open(&p->plan, s, p->source, err);
}

/* Direct reads when the data set is larger than the page cache could hold, or when forced. */
static int choose_io(struct pstk__pipeline *p, uint64_t machine_memory, struct pstk_error *err)
{
    const struct pstk_settings *s = &p->settings;
    p->direct =
        s->io == PSTK_IO_DIRECT || (s->io == PSTK_IO_AUTO && p->source->bytes > machine_memory / 2);
    p->memory_align = 64;
    p->offset_align = 1;
    if (!p->direct)
        return 0;
    char path[4096];
    uint32_t memory_align = 0, offset_align = 0;
    int r = p->source->format->shard_path(p->source, 0, path, sizeof path);
    if (r == 0)
        r = pstk__direct_align(path, &memory_align, &offset_align);
    if (r == 0 && memory_align <= PSTK__PAGE_SIZE && offset_align <= PSTK__PAGE_SIZE) {
        p->memory_align = memory_align > 64 ? memory_align : 64;
        p->offset_align = offset_align ? offset_align : 1;
        return 0;
    }
    if (s->io == PSTK_IO_DIRECT)
        return pstk__fail_errno(
            err, r < 0 ? -r : 95, PSTK_STAGE_OPEN,
            "io: direct reads were forced, but %s refuses O_DIRECT; use auto or "
            "buffered",
            path);
    p->direct = 0;
    atomic_fetch_or_explicit(&p->rungs, PSTK_RUNG_NO_DIRECT, memory_order_relaxed);
    return 0;
}

/* Workers of the node that has the fewest. */
static uint32_t workers_per_node(const struct pstk__pipeline *p)
{
    uint32_t n[PSTK__MAX_NODES] = {0}, least = UINT32_MAX;
    for (uint32_t i = 0; i < p->n_workers; i++)
        n[pstk__numa_worker_node(p->numa, i)]++;
    for (uint32_t i = 0; i < p->n_nodes; i++)
        least = n[i] < least ? n[i] : least;
    return least;
}

static int open_machine(struct pstk_loader *l, struct pstk_error *err)
{
    struct pstk__pipeline *p = &l->pipeline;
    const struct pstk_settings *s = &p->settings;
    struct pstk__numa_config c = {.topology = s->topology,
                                  .local_rank = s->local_rank,
                                  .local_world = s->local_world,
                                  .n_workers = s->n_threads,
                                  .pin = !s->no_pinning,
                                  .with_pci = p->plan->on_device && s->topology};
    char bus_id[PSTK__BUS_ID_SIZE];
    int r = pstk__device_ops(s->device)->find(s->device_index, bus_id, err);
    if (r == 0)
        r = pstk__numa_open(&p->numa, &c, err);
    if (r < 0)
        return r;
    p->device_node = bus_id[0] ? pstk__numa_pci_node(p->numa, bus_id) : UINT32_MAX;
    pstk__layout_init(&l->layout, p->plan, s->with_crops, s->bad_sample == PSTK_BAD_SUBSTITUTE);
    uint64_t memory = pstk__cgroup_memory("/");
    p->n_nodes = pstk__numa_n_nodes(p->numa);
    p->n_workers = pstk__numa_n_workers(p->numa);
    r = choose_io(p, memory, err);
    if (r == 0)
        r = pstk__budget_init(&l->budget, s, p->plan, &l->layout, p->n_nodes, workers_per_node(p),
                              memory, err);
    if (r < 0)
        return r;
    p->n_lanes = l->budget.n_lanes;
    p->rows_per_job = l->budget.rows_per_job;
    p->depth = l->budget.depth;
    p->spare_size = l->budget.spare_size;
    return 0;
}

/* The slots that workers fill, and, on a device that has its own, those that are delivered. */
static int open_slots(struct pstk_loader *l, struct pstk_error *err)
{
    struct pstk__pipeline *p = &l->pipeline;
    const struct pstk_settings *s = &p->settings;
    const struct pstk__device_ops *ops = pstk__device_ops(s->device);
    const struct pstk__device_config device = {.index = s->device_index};
    struct pstk__slots_config c = {.plan = p->plan,
                                   .layout = &l->layout,
                                   .numa = p->numa,
                                   .device_ops = ops,
                                   .n_slots = l->budget.n_slots,
                                   .n_nodes = p->n_nodes,
                                   .n_lanes = p->n_lanes,
                                   .node = p->device_node,
                                   .device_index = s->device_index,
                                   .current_stream = s->current_stream};
    int bound = 1, r = pstk__slots_open(&p->slots, &c, &bound, err);
    if (!bound)
        atomic_fetch_or_explicit(&p->rungs, PSTK_RUNG_NOT_BOUND, memory_order_relaxed);
    if (r < 0)
        return r;
    if (ops->has_slots) {
        c.n_slots = l->budget.n_device_slots;
        c.n_lanes = 1;
        c.on_device = 1;
        return pstk__slots_open(&p->delivered, &c, &bound, err);
    }
    struct pstk__device *host;
    p->delivered = p->slots;
    r = ops->open(&host, &device, err);
    if (r == 0)
        pstk__slots_attach(p->slots, host);
    return r;
}

static int open_threads(struct pstk_loader *l, struct pstk_error *err)
{
    struct pstk__pipeline *p = &l->pipeline;
    const struct pstk_settings *s = &p->settings;
    struct pstk__cursor start = {.epoch = s->epoch, .position = s->position};
    if (s->trace) {
        int r = pstk__trace_open(&p->delivered->trace, err);
        if (r < 0)
            return r;
    }
    int r = pstk__window_open(&p->window, p->slots, p->delivered, &p->partition, start, err);
    if (r < 0)
        return r;
    p->lanes = aligned_alloc(_Alignof(struct pstk__lane), p->n_lanes * sizeof *p->lanes);
    p->workers = aligned_alloc(_Alignof(struct pstk__worker), p->n_workers * sizeof *p->workers);
    if (!p->lanes || !p->workers)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for %u workers",
                          p->n_workers);
    memset(p->lanes, 0, p->n_lanes * sizeof *p->lanes);
    memset(p->workers, 0, p->n_workers * sizeof *p->workers);
    for (uint32_t i = 0; i < p->n_lanes; i++) {
        p->lanes[i].ring_size = l->budget.ring_size;
        p->lanes[i].index_size = l->budget.index_size;
    }
    return pstk__stage_start(p, err);
}

/* The one teardown: of a loader, or of as much of one as open got to. */
static void loader_free(struct pstk_loader *l)
{
    struct pstk__pipeline *p = &l->pipeline;
    if (p->lanes && p->workers)
        pstk__stage_stop(p);
    free(p->lanes);
    free(p->workers);
    pstk__window_close(&p->window);
    if (p->slots && p->slots != p->delivered)
        pstk__slots_unref(p->slots);
    if (p->delivered)
        pstk__slots_unref(p->delivered);
    pstk__numa_close(p->numa);
    pstk__plan_close(p->plan);
    pstk_dataset_close(&p->dataset);
    free(l);
}

int pstk_open(struct pstk_loader **out, const struct pstk_settings *s, struct pstk_error *err)
{
    if (!out)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "out: is NULL");
    *out = NULL;
    struct pstk_settings settings = {0};
    int r = pstk__settings_copy(&settings, s, err);
    if (r == 0)
        r = pstk__settings_check(&settings, err);
    if (r < 0)
        return r;
    struct pstk_loader *l = aligned_alloc(_Alignof(struct pstk_loader), sizeof *l);
    if (!l)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the loader");
    memset(l, 0, sizeof *l);
    l->owner = (int)getpid();
    l->pipeline.settings = settings;
    r = open_source(&l->pipeline, err);
    if (r == 0)
        r = open_machine(l, err);
    if (r == 0)
        r = open_slots(l, err);
    if (r == 0)
        r = open_threads(l, err);
    if (r < 0) {
        loader_free(l);
        return r;
    }
    /* The caller's memory may go now. */
    l->pipeline.settings.path = l->pipeline.settings.topology = NULL;
    l->pipeline.settings.outputs = NULL;
    *out = l;
    return 0;
}

/* ---- use ------------------------------------------------------------------------------------- */

static int usable(const struct pstk_loader *l, struct pstk_error *err)
{
    if (!l)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER, "loader: is NULL");
    if (l->owner != (int)getpid())
        return pstk__fail(err, PSTK_EPERM, PSTK_STAGE_CONSUMER,
                          "this loader was opened before fork: open one in the child, or start the "
                          "child by spawn");
    return 0;
}

/* What may not be called while pstk_next is in on_bad_sample. The caller is this thread, or breaks
 * the rule of one thread at a time: no order is needed. */
static int may_move(const struct pstk_loader *l, const char *function, struct pstk_error *err)
{
    int r = usable(l, err);
    if (r == 0 && atomic_load_explicit(&l->reporting, memory_order_relaxed))
        return pstk__fail(err, PSTK_EBUSY, PSTK_STAGE_CONSUMER,
                          "%s: was called in on_bad_sample, where the loader cannot move: call it "
                          "after pstk_next has returned",
                          function);
    return r;
}

/* Count a batch that is leased, then call on_bad_sample for it, without any lock. */
static void deliver(struct pstk_loader *l, const struct pstk__slot *s)
{
    const struct pstk_settings *settings = &l->pipeline.settings;
    const struct pstk_batch *b = &s->batch;
    pstk__count(&l->consumer.n_items, 1);
    pstk__count(&l->n_samples, b->n_valid);
    pstk__count(&l->n_replaced, b->n_replaced);
    pstk__count(&l->n_palette_images, b->n_palette_images);
    pstk__count(&l->consumer.bytes, get(&s->n_bytes));
    if (!settings->on_bad_sample)
        return;
    atomic_store_explicit(&l->reporting, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < b->n_reports; i++)
        settings->on_bad_sample(settings->user, &b->reports[i].error, b->reports[i].substitute_id);
    atomic_store_explicit(&l->reporting, 0, memory_order_relaxed);
}

int pstk_next(struct pstk_loader *l, struct pstk_batch **batch, void *stream, int64_t timeout_ns,
              struct pstk_error *err)
{
    if (!batch)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER, "batch: is NULL");
    *batch = NULL;
    int r = may_move(l, "pstk_next", err);
    if (r < 0)
        return r;
    uint64_t now = pstk__clock_ns(), waited = 0;
    struct pstk__slots *slots = l->pipeline.delivered;
    r = pstk__slots_settle(slots, timeout_ns == 0, err);
    if (r < 0)
        return r;
    slots->device_ops->ask(slots->device, stream, l->asks_again, timeout_ns == 0);
    if (l->returned_ns)
        pstk__count(&l->consumer.busy_ns, now - l->returned_ns);
    struct pstk__slot *s = NULL;
    const struct pstk__trace *trace = &slots->trace;
    pstk__trace_enter(trace, "next", get(&l->consumer.n_items));
    r = pstk__window_take(&l->pipeline.window, &s, stream, timeout_ns, &waited, err);
    pstk__trace_leave(trace);
    l->asks_again = r == PSTK_ETIMEDOUT || r == PSTK_EINTR;
    l->returned_ns = pstk__clock_ns();
    pstk__count(&l->consumer.starved_ns, waited);
    if (r == 1) {
        deliver(l, s);
        *batch = &s->batch;
    }
    return r;
}

void pstk_release(struct pstk_batch **batch, void *stream)
{
    if (!batch || !*batch)
        return;
    /* The batch is the first member of its slot. */
    struct pstk__slot *s = (struct pstk__slot *)(void *)*batch;
    *batch = NULL;
    if (s->pool->owner == (int)getpid())
        pstk__slot_release(s, stream);
}

/* The slot of a leased batch, or NULL with an error. */
static const struct pstk__slot *slot_of(const struct pstk_batch *batch, struct pstk_error *err)
{
    const struct pstk__slot *s = (const struct pstk__slot *)(const void *)batch;
    if (!batch)
        pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER, "batch: is NULL");
    else if (s->pool->owner != (int)getpid())
        pstk__fail(err, PSTK_EPERM, PSTK_STAGE_CONSUMER, "this batch was leased before fork");
    else
        return s;
    return NULL;
}

int pstk_batch_wait(const struct pstk_batch *batch, void *stream, struct pstk_error *err)
{
    const struct pstk__slot *s = slot_of(batch, err);
    if (!s)
        return batch ? PSTK_EPERM : PSTK_EINVAL;
    return s->pool->device_ops->wait(s->pool->device, batch->slot, stream, err);
}

int pstk_batch_record(const struct pstk_batch *batch, void *stream, struct pstk_error *err)
{
    const struct pstk__slot *s = slot_of(batch, err);
    if (!s)
        return batch ? PSTK_EPERM : PSTK_EINVAL;
    return s->pool->device_ops->record(s->pool->device, batch->slot, stream, err);
}

int pstk_batch_read(const struct pstk_batch *batch, uint32_t tensor, void *to, uint64_t size,
                    void *stream, struct pstk_error *err)
{
    const struct pstk__slot *s = slot_of(batch, err);
    if (!s)
        return batch ? PSTK_EPERM : PSTK_EINVAL;
    if (tensor >= batch->n_tensors || size > batch->tensors[tensor].size || (size && !to))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
                          "tensor: there is no tensor %u of %llu bytes in the batch, or nowhere to "
                          "copy it to",
                          tensor, (unsigned long long)size);
    return s->pool->device_ops->read(s->pool->device, to, batch->tensors[tensor].data, size, stream,
                                     err);
}

int pstk_stream_open(struct pstk_loader *l, void **stream, struct pstk_error *err)
{
    if (!stream)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER, "stream: is NULL");
    *stream = NULL;
    int r = usable(l, err);
    if (r < 0)
        return r;
    const struct pstk__slots *s = l->pipeline.delivered;
    return s->device_ops->stream_open(s->device, stream, err);
}

void pstk_stream_close(struct pstk_loader *l, void **stream)
{
    if (!stream || usable(l, NULL) < 0)
        return;
    const struct pstk__slots *s = l->pipeline.delivered;
    s->device_ops->stream_close(s->device, *stream);
    *stream = NULL;
}

int pstk_stream_spin(struct pstk_loader *l, void *stream, uint64_t ns, struct pstk_error *err)
{
    int r = usable(l, err);
    if (r < 0)
        return r;
    const struct pstk__slots *s = l->pipeline.delivered;
    return s->device_ops->stream_spin(s->device, stream, ns, err);
}

int pstk_seek(struct pstk_loader *l, uint64_t epoch, uint64_t position, struct pstk_error *err)
{
    int r = may_move(l, "pstk_seek", err);
    if (r < 0)
        return r;
    if (position > l->pipeline.partition.n)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
                          "position: %llu is past the %llu samples of the data set",
                          (unsigned long long)position,
                          (unsigned long long)l->pipeline.partition.n);
    l->asks_again = 0;
    pstk__window_seek(&l->pipeline.window,
                      (struct pstk__cursor){.epoch = epoch, .position = position});
    return 0;
}

int pstk_get_cursor(const struct pstk_loader *l, uint64_t *epoch, uint64_t *position)
{
    int r = usable(l, NULL);
    if (r < 0)
        return r;
    /* The window's lock is part of it; nothing that the caller can see changes. */
    struct pstk__window *w = &((struct pstk_loader *)(uintptr_t)l)->pipeline.window;
    struct pstk__cursor c = pstk__window_cursor(w);
    if (epoch)
        *epoch = c.epoch;
    if (position)
        *position = c.position;
    return 0;
}

uint64_t pstk_n_batches(const struct pstk_loader *l)
{
    return l ? pstk__partition_n_batches(&l->pipeline.partition, 0) : 0;
}

uint64_t pstk_n_samples(const struct pstk_loader *l)
{
    return l ? l->pipeline.partition.n : 0;
}

void pstk_interrupt(struct pstk_loader *l)
{
    if (l)
        pstk__window_interrupt(&l->pipeline.window);
}

void pstk_close(struct pstk_loader **loader)
{
    if (!loader || !*loader)
        return;
    struct pstk_loader *l = *loader;
    int is_ours = l->owner == (int)getpid();
    if (is_ours && may_move(l, "pstk_close", NULL) < 0)
        return;
    *loader = NULL;
    if (is_ours)
        loader_free(l);
}

/* ---- statistics ------------------------------------------------------------------------------ */

static void device_stats_fill(const struct pstk__pipeline *p, struct pstk_stats *s)
{
    struct pstk__device_times times = {0};
    p->delivered->device_ops->get_times(p->delivered->device, &times);
    pstk__stats_add(&s->stage_uploader, &p->uploader.counters);
    s->n_device_slots = p->delivered->n_slots;
    s->page_locked = !(s->rungs & PSTK_RUNG_NOT_PAGE_LOCKED);
    s->device_memory = pstk__layout_device_memory(&p->delivered->layout, p->delivered->n_slots);
    s->copy_ns = times.copy_ns;
    s->copy_bytes = times.copy_bytes;
    s->stream_used_ns = times.used_ns;
    s->stream_starved_ns = times.starved_ns;
}

static void stats_fill(const struct pstk_loader *l, struct pstk_stats *s)
{
    const struct pstk__pipeline *p = &l->pipeline;
    s->rungs = atomic_load_explicit(&p->rungs, memory_order_relaxed);
    /* A ring that was lost under way: threads read since. */
    s->reader = s->rungs & PSTK_RUNG_NO_IO_URING ? PSTK_READER_THREADS : p->lanes[0].reader_kind;
    s->direct = p->direct && !(s->rungs & PSTK_RUNG_NO_DIRECT);
    s->registered = s->reader == PSTK_READER_IO_URING && !(s->rungs & PSTK_RUNG_NO_FIXED_BUFFERS);
    s->n_threads = p->n_workers;
    s->n_slots = l->budget.n_slots;
    s->n_nodes = p->n_nodes;
    s->queue_depth = p->depth;
    s->rows_per_job = p->rows_per_job;
    s->variant = p->plan->kernels->variant;
    s->n_replaced = get(&l->n_replaced);
    s->n_palette_images = get(&l->n_palette_images);
    s->slot_memory = l->budget.slot_memory;
    s->io_memory = p->n_lanes * l->budget.ring_size;
    s->index_memory = p->n_lanes * l->budget.index_size;
    s->scratch_memory = p->n_workers * (p->plan->scratch_size + p->spare_size);
    for (uint32_t i = 0; i < p->n_lanes; i++) {
        const struct pstk__counters *c = &p->lanes[i].counters;
        pstk__stats_add(&s->stage_reader, c);
        s->bytes_read += get(&c->bytes);
        s->n_reads += get(&c->n_items);
        s->n_index_hits += get(&c->n_hits);
        s->n_index_misses += get(&c->n_misses);
    }
    for (uint32_t i = 0; i < p->n_workers; i++) {
        pstk__stats_add(&s->stage_workers, &p->workers[i].counters);
        s->n_slow_reads += get(&p->workers[i].counters.n_slow);
    }
    pstk__stats_add(&s->stage_consumer, &l->consumer);
    if (p->delivered != p->slots)
        device_stats_fill(p, s);
    s->n_batches = get(&l->consumer.n_items);
    s->n_samples = get(&l->n_samples);
    s->bytes_delivered = get(&l->consumer.bytes);
    s->limit = pstk__stats_limit(s);
}

int pstk_get_stats(const struct pstk_loader *l, struct pstk_stats *stats)
{
    int r = usable(l, NULL);
    if (r < 0)
        return r;
    if (!stats || stats->size < sizeof stats->size)
        return PSTK_EINVAL;
    struct pstk_stats s = {.size = sizeof s};
    uint32_t size = stats->size;
    stats_fill(l, &s);
    memset(stats, 0, size);
    memcpy(stats, &s, size < sizeof s ? size : sizeof s);
    stats->size = size;
    return 0;
}
