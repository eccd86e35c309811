/* SPDX-License-Identifier: Apache-2.0 */
/* The public loader: check settings, open stages in order, hand out batches. */
#include <penstock/foreign.h>
#include <penstock/penstock.h>

#include "loader/status_file.h"
#include "loader/budget.h"
#include "base/clock.h"
#include "base/error.h"
#include "dataset/members.h"
#include "loader/occupancy.h"
#include "loader/snapshots.h"
#include "loader/mixture.h"
#include "loader/settings.h"
#include "loader/pipeline.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pstk_loader {
    struct pstk__pipeline pipeline;
    struct pstk__layout layout;
    struct pstk__budget budget;
    struct pstk__counters consumer;
    struct pstk__occupancy occupancy;
    struct pstk__snapshots *snapshots; /* owned */
    struct pstk__status_file *status;  /* owned; NULL without monitor_path */
    _Atomic uint64_t n_samples;        /* delivered samples */
    _Atomic uint64_t n_replacements;   /* samples delivered in place of bad ones */
    _Atomic uint64_t n_palette_images; /* in delivered samples */
    _Atomic uint64_t n_damaged_images; /* in delivered samples */
    _Atomic uint64_t n_dropped_boxes;  /* in delivered samples */
    _Atomic int reporting;             /* 1: pstk_next is in on_bad_sample */
    uint64_t waited_ns;                /* ns that ended calls have waited for the next batch */
    uint64_t returned_ns; /* time at which pstk_next last returned a batch; 0: not yet */
    int asks_again; /* 1: the last pstk_next ended before a batch came, and the next one continues
                       it */
    int owner;      /* process id: a child after fork may not use the loader */

    /* delivered samples of each data set of a mixture */
    _Atomic uint64_t n_of_data_sets[PSTK_MAX_DATA_SETS];
};

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Open the data set, or the joined data sets of a mixture. */
static int open_source(struct pstk__pipeline *pipeline, struct pstk_error *err)
{
    const struct pstk_settings *s = &pipeline->settings;
    const uint64_t limit =
        s->memory.max_record_size ? s->memory.max_record_size : PSTK__MAX_VALUE_SIZE;
    int r = s->mixture ? pstk__mixture_open(&pipeline->dataset, s, err)
                       : pstk_dataset_open(&pipeline->dataset, s->path, s->foreign, err);
    if (r < 0)
        return r;
    pipeline->source = pstk__dataset_source(pipeline->dataset);
    if (pipeline->source->limits.max_size <= limit)
        return 0;
    return pstk__fail(
        err, PSTK_EFBIG, PSTK_STAGE_OPEN,
        "%s has records of up to %llu bytes, more than max_record_size (%llu): raise it",
        pipeline->source->path, (unsigned long long)pipeline->source->limits.max_size,
        (unsigned long long)limit);
}

/* Open the plan, and find the fields and extents that it reads. */
static int open_plan(struct pstk__pipeline *pipeline, struct pstk_error *err)
{
    struct pstk_settings *s = &pipeline->settings;
    s->batch_size = pipeline->stream.max_rows; /* from here on: the rows that a slot has room for */
    const int r = pstk__plan_open(&pipeline->plan, s, pipeline->source, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < pipeline->plan->n_outputs; i++)
        pipeline->fields |= 1ull << pipeline->plan->outputs[i].field;
    pipeline->n_extents = pstk__source_n_extents(pipeline->source, pipeline->fields);
    return 0;
}

/* Choose direct reads if the data set is larger than half of the memory, or if they are forced. */
static int choose_io(struct pstk__pipeline *pipeline, uint64_t machine_memory,
                     struct pstk_error *err)
{
    const struct pstk_settings *s = &pipeline->settings;
    pipeline->direct =
        s->reading.io == PSTK_IO_DIRECT ||
        (s->reading.io == PSTK_IO_AUTO && pipeline->source->bytes > machine_memory / 2);
    pipeline->memory_align = 64;
    pipeline->offset_align = 1;
    if (!pipeline->direct)
        return 0;
    char path[4096];
    uint32_t memory_align = 0, offset_align = 0;
    int r = pstk__source_file_path(pipeline->source, 0, path, sizeof path);
    if (r == 0 && !pipeline->source->store->has_fds)
        r = -EOPNOTSUPP;
    if (r == 0)
        r = pstk__direct_align(path, &memory_align, &offset_align);
    if (r == 0 && memory_align <= PSTK__PAGE_SIZE && offset_align <= PSTK__PAGE_SIZE) {
        pipeline->memory_align = memory_align > 64 ? memory_align : 64;
        pipeline->offset_align = offset_align ? offset_align : 1;
        if (pipeline->stream.mixture) /* other data sets may lie on file systems that need a larger
                                         alignment */
            pipeline->memory_align = pipeline->offset_align = PSTK__PAGE_SIZE;
        return 0;
    }
    if (s->reading.io == PSTK_IO_DIRECT)
        return pstk__fail_errno(
            err, r < 0 ? -r : EOPNOTSUPP, PSTK_STAGE_OPEN,
            "io: value is direct, but %s refuses O_DIRECT; must be auto or buffered", path);
    pipeline->direct = 0;
    atomic_fetch_or_explicit(&pipeline->fallbacks, PSTK_FALLBACK_NO_DIRECT, memory_order_relaxed);
    return 0;
}

/* Return the workers of the node that has the fewest. */
static uint32_t workers_per_node(const struct pstk__pipeline *pipeline)
{
    uint32_t n[PSTK__MAX_NODES] = {0}, least = UINT32_MAX;
    for (uint32_t i = 0; i < pipeline->n_workers; i++)
        n[pstk__numa_worker_node(pipeline->numa, i)]++;
    for (uint32_t i = 0; i < pipeline->n_nodes; i++)
        least = n[i] < least ? n[i] : least;
    return least;
}

static int open_machine(struct pstk_loader *loader, struct pstk_error *err)
{
    struct pstk__pipeline *pipeline = &loader->pipeline;
    const struct pstk_settings *s = &pipeline->settings;
    struct pstk__numa_config c = {.topology = s->reading.topology,
                                  .local_rank = s->ranks.local_rank,
                                  .local_world = s->ranks.local_world,
                                  .n_workers = s->n_threads,
                                  .pin = s->reading.pin_threads != 0,
                                  .with_pci = pipeline->plan->on_device && s->reading.topology};
    const uint64_t memory = pstk__cgroup_memory("/");
    char bus_id[PSTK__BUS_ID_SIZE];
    pstk__plan_processes(pipeline->plan, &c.n_more,
                         &c.n_times); /* processes for each of which a worker waits */
    int r = pstk__device_ops(s->device.kind)->find(s->device.index, bus_id, err);
    c.bus_id = pipeline->plan->on_device ? bus_id : NULL;
    if (r == 0)
        r = choose_io(pipeline, memory, err);
    pipeline->reader_reads = pipeline->direct || !pipeline->source->store->has_fds ||
                             s->order.kind == PSTK_ORDER_WINDOWED;
    c.reader_reads = pipeline->reader_reads;
    if (r == 0)
        r = pstk__numa_open(&pipeline->numa, &c, err);
    if (r < 0)
        return r;
    pipeline->device_node = bus_id[0] ? pstk__numa_pci_node(pipeline->numa, bus_id) : UINT32_MAX;
    const uint32_t with_reports = s->bad_sample == PSTK_BAD_REPLACE;
    struct pstk__layout least;
    pstk__layout_init_min(&least, pipeline->plan, s->observe.report_crops, with_reports);
    pstk__layout_init(&loader->layout, pipeline->plan, s->observe.report_crops, with_reports);
    pipeline->n_nodes = pstk__numa_n_nodes(pipeline->numa);
    pipeline->n_workers = pstk__numa_n_workers(pipeline->numa);
    struct pstk__budget_config budget = {
        .settings = s,
        .interleave =
            s->order.kind == PSTK_ORDER_WINDOWED ? &pipeline->stream.picks.shape.interleave : NULL,
        .plan = pipeline->plan,
        .layout = &loader->layout,
        .least = &least,
        .n_nodes = pipeline->n_nodes,
        .workers_per_node = workers_per_node(pipeline),
        .machine_memory = memory,
        .taken = pipeline->stream.epochs_memory};
    pstk__cgroup_memory_left("/", &budget.group_limit, &budget.group_left);
    r = pstk__budget_init(&loader->budget, &budget, err);
    if (r < 0)
        return r;
    pipeline->n_lanes = loader->budget.n_lanes;
    pipeline->rows_per_task = loader->budget.rows_per_task;
    pipeline->depth = loader->budget.depth;
    pipeline->spare_size = loader->budget.spare_size;
    return 0;
}

/* Open the slots that workers fill, and those of a device that has its own. */
static int open_slots(struct pstk_loader *loader, struct pstk_error *err)
{
    struct pstk__pipeline *pipeline = &loader->pipeline;
    const struct pstk_settings *s = &pipeline->settings;
    const struct pstk__device_ops *ops = pstk__device_ops(s->device.kind);
    const struct pstk__device_config device = {.index = s->device.index};
    struct pstk__slots_config c = {.plan = pipeline->plan,
                                   .layout = &loader->layout,
                                   .numa = pipeline->numa,
                                   .device_ops = ops,
                                   .n_slots = loader->budget.n_slots,
                                   .n_nodes = pipeline->n_nodes,
                                   .n_lanes = pipeline->n_lanes,
                                   .node = pipeline->device_node,
                                   .device_index = s->device.index,
                                   .current_stream = s->device.current_stream,
                                   .trace = ops->has_slots ? NULL : pipeline->trace};
    int bound = 1, r = pstk__slots_open(&pipeline->slots, &c, &bound, err);
    if (!bound)
        atomic_fetch_or_explicit(&pipeline->fallbacks, PSTK_FALLBACK_NOT_BOUND,
                                 memory_order_relaxed);
    if (r < 0)
        return r;
    if (ops->has_slots) {
        c.n_slots = loader->budget.n_device_slots;
        c.n_lanes = 1;
        c.on_device = 1;
        c.trace = pipeline->trace;
        return pstk__slots_open(&pipeline->delivered, &c, &bound, err);
    }
    struct pstk__device *host;
    pipeline->delivered = pipeline->slots;
    r = ops->open(&host, &device, err);
    if (r == 0)
        pstk__slots_attach(pipeline->slots, host);
    return r;
}

/* Open the timeline of the trace. */
static int open_timeline(struct pstk__pipeline *pipeline, struct pstk_error *err)
{
    const struct pstk_settings *s = &pipeline->settings;
    const int r =
        pstk__timeline_check_path("trace_path", s->observe.trace_path, PSTK_STAGE_OPEN, err);
    return r < 0 ? r
                 : pstk__timeline_open(&pipeline->trace->timeline, pipeline->n_lanes,
                                       pipeline->n_workers, s->observe.trace_events,
                                       s->observe.trace_path, err);
}

/* Write a trace without events, so that an unwritable path is known now: a wrong path is refused,
 * and an error of the disk is a fallback. This comes last, so that a loader that fails to open
 * leaves the file of the last run. */
static int write_first_trace(struct pstk__pipeline *pipeline, struct pstk_error *err)
{
    struct pstk_error refused;
    if (!pipeline->settings.observe.trace_path)
        return 0;
    pstk_error_init(&refused, sizeof refused);
    if (pstk__timeline_write(pipeline->trace->timeline, NULL, &refused) == 0)
        return 0;
    if (pstk__timeline_path_is_wrong(refused.native))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "%s; must be a file in a folder that exists", refused.message);
    atomic_fetch_or_explicit(&pipeline->fallbacks, PSTK_FALLBACK_NO_TRACE, memory_order_relaxed);
    return 0;
}

/* Open the trace that the settings ask for: ranges for a profiler, events for a file. */
static int open_trace(struct pstk__pipeline *pipeline, struct pstk_error *err)
{
    const struct pstk_settings *s = &pipeline->settings;
    const int has_events = s->observe.trace_path || s->observe.trace_events;
    if (!s->observe.nvtx && !has_events)
        return 0;
    pipeline->trace = pstk__trace_open();
    if (!pipeline->trace)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a trace");
    const int r = s->observe.nvtx ? pstk__nvtx_open(&pipeline->trace->domain, err) : 0;
    return r == 0 && has_events ? open_timeline(pipeline, err) : r;
}

static int open_threads(struct pstk_loader *loader, struct pstk_error *err)
{
    struct pstk__pipeline *pipeline = &loader->pipeline;
    const struct pstk_settings *s = &pipeline->settings;
    struct pstk__cursor start = {.epoch = s->order.epoch, .position = s->order.position};
    struct pstk__timeline *timeline = pstk__trace_timeline(pipeline->trace);
    loader->snapshots = pstk__snapshots_open(pstk__clock_ns());
    if (!loader->snapshots)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for metrics");
    int r = write_first_trace(pipeline, err);
    if (r < 0)
        return r;
    r = pstk__reorder_open(&pipeline->reorder, pipeline->slots, pipeline->delivered,
                           &pipeline->stream.partition, pipeline->stream.epochs, start, err);
    if (r < 0)
        return r;
    pipeline->lanes =
        aligned_alloc(_Alignof(struct pstk__lane), pipeline->n_lanes * sizeof *pipeline->lanes);
    pipeline->workers = aligned_alloc(_Alignof(struct pstk__worker),
                                      pipeline->n_workers * sizeof *pipeline->workers);
    if (!pipeline->lanes || !pipeline->workers)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for %u workers",
                          pipeline->n_workers);
    memset(pipeline->lanes, 0, pipeline->n_lanes * sizeof *pipeline->lanes);
    memset(pipeline->workers, 0, pipeline->n_workers * sizeof *pipeline->workers);
    for (uint32_t i = 0; i < pipeline->n_lanes; i++) {
        pipeline->lanes[i].buffer_size = loader->budget.buffer_size;
        pipeline->lanes[i].index_size = loader->budget.index_size;
        pipeline->lanes[i].blocks_need = loader->budget.blocks;
        pipeline->lanes[i].ring = pstk__timeline_reader(timeline, i);
    }
    for (uint32_t i = 0; i < pipeline->n_workers; i++)
        pipeline->workers[i].ring = pstk__timeline_worker(timeline, pipeline->n_lanes, i);
    pipeline->uploader.ring = timeline ? &timeline->rings[PSTK__RING_UPLOAD] : NULL;
    return pstk__pipeline_start(pipeline, err);
}

/* Free a whole loader, or the part that open had made when it failed. The only teardown. */
static void loader_free(struct pstk_loader *loader)
{
    struct pstk__pipeline *pipeline = &loader->pipeline;
    pstk__status_file_close(loader->status); /* first: its thread reads the rest of the loader */
    if (pipeline->plan)
        pstk__plan_stop(pipeline->plan); /* else workers would wait for processes */
    if (pipeline->lanes && pipeline->workers)
        pstk__pipeline_stop(pipeline);
    pstk__timeline_end(pstk__trace_timeline(pipeline->trace));
    free(pipeline->lanes);
    free(pipeline->workers);
    pstk__reorder_close(&pipeline->reorder);
    if (pipeline->slots && pipeline->slots != pipeline->delivered)
        pstk__slots_unref(pipeline->slots);
    if (pipeline->delivered)
        pstk__slots_unref(pipeline->delivered);
    pstk__trace_unref(pipeline->trace);
    pstk__numa_close(pipeline->numa);
    pstk__plan_close(pipeline->plan);
    pstk__stream_close(&pipeline->stream);
    pstk_dataset_close(&pipeline->dataset);
    pstk__snapshots_close(loader->snapshots);
    free(loader);
}

int pstk_open(struct pstk_loader **out, const struct pstk_settings *s, struct pstk_error *err)
{
    if (!out)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "out is NULL");
    *out = NULL;
    struct pstk_settings settings = {0};
    int r = pstk__settings_copy(&settings, s, err);
    if (r == 0)
        r = pstk__settings_check(&settings, err);
    if (r < 0)
        return r;
    struct pstk_loader *loader = aligned_alloc(_Alignof(struct pstk_loader), sizeof *loader);
    if (!loader)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the loader");
    memset(loader, 0, sizeof *loader);
    loader->owner = (int)getpid();
    loader->pipeline.settings = settings;
    struct pstk__pipeline *pipeline = &loader->pipeline;
    r = open_source(pipeline, err);
    if (r == 0)
        r = pstk__stream_open(&pipeline->stream, &pipeline->settings, pipeline->dataset, err);
    if (r == 0)
        r = open_plan(pipeline, err);
    if (r == 0)
        r = open_machine(loader, err);
    if (r == 0)
        r = open_trace(&loader->pipeline, err);
    if (r == 0)
        r = open_slots(loader, err);
    if (r == 0)
        r = pstk__plan_start(loader->pipeline.plan, pstk__numa_n_usable(loader->pipeline.numa),
                             err);
    if (r == 0)
        r = open_threads(loader, err);
    if (r == 0 && settings.observe.monitor_path)
        r = pstk__loader_status_file(&loader->status, loader, &loader->pipeline, err);
    if (r < 0) {
        loader_free(loader);
        return r;
    }
    /* The caller's memory may be freed from now on. */
    loader->pipeline.settings.path = loader->pipeline.settings.reading.topology = NULL;
    loader->pipeline.settings.observe.trace_path = loader->pipeline.settings.observe.monitor_path =
        NULL;
    loader->pipeline.settings.outputs = NULL;
    loader->pipeline.settings.mix = NULL;
    loader->pipeline.settings.mosaic = NULL;
    loader->pipeline.settings.subset = NULL;
    loader->pipeline.settings.mixture = NULL;
    loader->pipeline.settings.order.batch_schedule = NULL;
    loader->pipeline.settings.budget = NULL;
    *out = loader;
    return 0;
}

/* ---- use ------------------------------------------------------------------------------------- */

static int usable(const struct pstk_loader *loader, struct pstk_error *err)
{
    if (!loader)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER, "loader is NULL");
    if (loader->owner != (int)getpid())
        return pstk__fail(err, PSTK_EPERM, PSTK_STAGE_CONSUMER,
                          "this loader was opened before fork: open one in the child, or start the "
                          "child by spawn");
    return 0;
}

/* Refuse calls that may not be made while pstk_next is in on_bad_sample. The caller is this thread,
 * or breaks the rule of one thread at a time: no memory order is needed. */
static int may_move(const struct pstk_loader *loader, const char *function, struct pstk_error *err)
{
    int r = usable(loader, err);
    if (r == 0 && atomic_load_explicit(&loader->reporting, memory_order_relaxed))
        return pstk__fail(err, PSTK_EBUSY, PSTK_STAGE_CONSUMER,
                          "%s was called from on_bad_sample, which must not move the loader: call "
                          "it after pstk_next has returned",
                          function);
    return r;
}

/* Count a batch that is leased, then call on_bad_sample for it, without any lock. */
static void deliver(struct pstk_loader *loader, const struct pstk__slot *slot)
{
    const struct pstk_settings *settings = &loader->pipeline.settings;
    const struct pstk_batch *batch = &slot->batch;
    pstk__count(&loader->consumer.n_items, 1);
    pstk__count(&loader->n_samples, batch->n_valid);
    pstk__count(&loader->n_replacements, batch->n_replacements);
    pstk__count(&loader->n_palette_images, batch->n_palette_images);
    pstk__count(&loader->n_damaged_images, batch->n_damaged_images);
    pstk__count(&loader->n_dropped_boxes, batch->n_dropped_boxes);
    pstk__count(&loader->consumer.bytes, get(&slot->n_bytes));
    for (uint32_t i = 0; batch->data_sets && i < batch->n_valid; i++)
        pstk__count(&loader->n_of_data_sets[batch->data_sets[i]], 1);
    if (!settings->on_bad_sample)
        return;
    atomic_store_explicit(&loader->reporting, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < batch->n_reports; i++)
        settings->on_bad_sample(settings->bad_sample_user, &batch->reports[i].error,
                                batch->reports[i].replacement_id);
    atomic_store_explicit(&loader->reporting, 0, memory_order_relaxed);
}

/* Measure all counts and histograms of the metrics. Any thread. */
static void measure(const void *of, struct pstk__snapshot *snapshot)
{
    const struct pstk_loader *loader = of;
    const struct pstk__pipeline *pipeline = &loader->pipeline;
    uint64_t *counts = snapshot->counts;
    counts[PSTK__COUNT_BATCHES] = get(&loader->consumer.n_items);
    counts[PSTK__COUNT_SAMPLES] = get(&loader->n_samples);
    counts[PSTK__COUNT_REPLACEMENTS] = get(&loader->n_replacements);
    counts[PSTK__COUNT_BYTES_DELIVERED] = get(&loader->consumer.bytes);
    pstk__histogram_sum(&snapshot->spreads[PSTK__SPREAD_WAIT], &loader->consumer.times);
    pstk__occupancy_sum(&loader->occupancy, snapshot);
    pstk__snapshot_measure(snapshot, pipeline);
}

/* Add a call of pstk_next that began at `begin` to the trace. slot: of the batch that it returns,
 * or NULL. */
static void trace_next(struct pstk__timeline *timeline, uint64_t begin,
                       const struct pstk__slot *slot)
{
    struct pstk__ring *ring = &timeline->rings[PSTK__RING_NEXT];
    const struct pstk__event nothing = {.begin_ns = begin,
                                        .end_ns = pstk__clock_ns(),
                                        .seq = PSTK__TRACE_UNKNOWN,
                                        .kind = PSTK__EVENT_NEXT};
    if (slot)
        pstk__slot_trace(slot, ring, PSTK__EVENT_NEXT, begin, slot->batch.n_valid);
    else
        pstk__ring_add(ring, &nothing);
}

int pstk_next(struct pstk_loader *loader, struct pstk_batch **batch, void *stream,
              int64_t timeout_ns, struct pstk_error *err)
{
    if (!batch)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER, "batch is NULL");
    *batch = NULL;
    int r = may_move(loader, "pstk_next", err);
    if (r < 0)
        return r;
    uint64_t now = pstk__clock_ns(), waited = 0;
    struct pstk__slots *slots = loader->pipeline.delivered;
    r = pstk__slots_settle(slots, timeout_ns == 0, err);
    if (r < 0)
        return r;
    pstk__pipeline_ask(&loader->pipeline, now);
    slots->device_ops->ask(slots->device, stream, loader->asks_again, timeout_ns == 0);
    if (loader->returned_ns)
        pstk__count(&loader->consumer.busy_ns, now - loader->returned_ns);
    struct pstk__slot *slot = NULL;
    if (now >= loader->occupancy.next_ns)
        pstk__occupancy_note(&loader->occupancy, slots, now);
    const struct pstk__trace *trace = loader->pipeline.trace;
    pstk__trace_begin(trace, "next", get(&loader->consumer.n_items));
    r = pstk__reorder_take(&loader->pipeline.reorder, &slot, stream, timeout_ns, &waited, err);
    pstk__trace_end(trace);
    if (pstk__trace_timeline(trace))
        trace_next(trace->timeline, now, slot);
    loader->asks_again = r == PSTK_ETIMEDOUT || r == PSTK_EINTR;
    loader->returned_ns = pstk__clock_ns();
    pstk__count(&loader->consumer.starved_ns, waited);
    loader->waited_ns += waited;
    if (pstk__snapshots_due(loader->snapshots, loader->returned_ns))
        pstk__snapshots_take(loader->snapshots, measure, loader, loader->returned_ns);
    if (r == 1) {
        pstk__histogram_add(&loader->consumer.times, loader->waited_ns);
        deliver(loader, slot);
        *batch = &slot->batch;
    }
    if (!loader->asks_again)
        loader->waited_ns = 0;
    return r;
}

void pstk_release(struct pstk_batch **batch, void *stream)
{
    if (!batch || !*batch)
        return;
    /* The batch is the first member of its slot. */
    struct pstk__slot *slot = (struct pstk__slot *)(void *)*batch;
    *batch = NULL;
    if (slot->pool->owner == (int)getpid())
        pstk__slot_release(slot, stream);
}

/* Return the slot of a leased batch, or NULL with an error. */
static const struct pstk__slot *slot_of(const struct pstk_batch *batch, struct pstk_error *err)
{
    const struct pstk__slot *slot = (const struct pstk__slot *)(const void *)batch;
    if (!batch)
        pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER, "batch is NULL");
    else if (slot->pool->owner != (int)getpid())
        pstk__fail(err, PSTK_EPERM, PSTK_STAGE_CONSUMER, "this batch was leased before fork");
    else
        return slot;
    return NULL;
}

int pstk_batch_wait(const struct pstk_batch *batch, void *stream, struct pstk_error *err)
{
    const struct pstk__slot *slot = slot_of(batch, err);
    if (!slot)
        return batch ? PSTK_EPERM : PSTK_EINVAL;
    return slot->pool->device_ops->wait(slot->pool->device, batch->slot, stream, err);
}

int pstk_batch_use_stream(const struct pstk_batch *batch, void *stream, struct pstk_error *err)
{
    const struct pstk__slot *slot = slot_of(batch, err);
    if (!slot)
        return batch ? PSTK_EPERM : PSTK_EINVAL;
    return slot->pool->device_ops->record(slot->pool->device, batch->slot, stream, err);
}

int pstk_batch_read(const struct pstk_batch *batch, uint32_t tensor, void *to, uint64_t size,
                    void *stream, struct pstk_error *err)
{
    const struct pstk__slot *slot = slot_of(batch, err);
    if (!slot)
        return batch ? PSTK_EPERM : PSTK_EINVAL;
    if (tensor >= batch->n_tensors || size > batch->tensors[tensor].size || (size && !to))
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
            "tensor: the batch has no tensor %u of %llu bytes, or the destination is NULL", tensor,
            (unsigned long long)size);
    return slot->pool->device_ops->read(slot->pool->device, to, batch->tensors[tensor].data, size,
                                        stream, err);
}

int pstk_stream_open(struct pstk_loader *loader, void **stream, struct pstk_error *err)
{
    if (!stream)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER, "stream is NULL");
    *stream = NULL;
    int r = usable(loader, err);
    if (r < 0)
        return r;
    const struct pstk__slots *slots = loader->pipeline.delivered;
    return slots->device_ops->stream_open(slots->device, stream, err);
}

void pstk_stream_close(struct pstk_loader *loader, void **stream)
{
    if (!stream || usable(loader, NULL) < 0)
        return;
    const struct pstk__slots *slots = loader->pipeline.delivered;
    slots->device_ops->stream_close(slots->device, *stream);
    *stream = NULL;
}

int pstk_stream_spin(struct pstk_loader *loader, void *stream, uint64_t ns, struct pstk_error *err)
{
    int r = usable(loader, err);
    if (r < 0)
        return r;
    const struct pstk__slots *slots = loader->pipeline.delivered;
    return slots->device_ops->stream_spin(slots->device, stream, ns, err);
}

int pstk_seek(struct pstk_loader *loader, uint64_t epoch, uint64_t position, struct pstk_error *err)
{
    int r = may_move(loader, "pstk_seek", err);
    if (r < 0)
        return r;
    if (position > loader->pipeline.stream.partition.n)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
            "position: value is %llu; must be at most %llu, the number of samples of the %s",
            (unsigned long long)position, (unsigned long long)loader->pipeline.stream.partition.n,
            loader->pipeline.stream.members ? "subset" : "data set");
    loader->asks_again = 0;
    pstk__reorder_seek(&loader->pipeline.reorder,
                       (struct pstk__cursor){.epoch = epoch, .position = position});
    return 0;
}

int pstk_set_batch_size(struct pstk_loader *loader, uint32_t rows, struct pstk_error *err)
{
    int r = may_move(loader, "pstk_set_batch_size", err);
    if (r < 0)
        return r;
    struct pstk__pipeline *pipeline = &loader->pipeline;
    struct pstk__partition partition = pipeline->stream.partition;
    if (pipeline->stream.epochs)
        return pstk__fail_setting(err, "batch_size", rows,
                                  "left unchanged, because the loader has a budget");
    if (pipeline->stream.schedule)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
                          "%s: value is %u; must not be set, because batch_schedule has the sizes",
                          pipeline->settings.global_batch_size ? "global_batch_size" : "batch_size",
                          rows);
    r = pstk__settings_resize(&pipeline->settings, rows, pipeline->plan->batch_size,
                              &partition.global_batch, err);
    if (r == 0 && pstk__partition_n_batches(&partition, 0) == 0)
        r = pstk__stream_fail_no_batch(&pipeline->stream, &pipeline->settings,
                                       pipeline->source->path, partition.global_batch, err);
    if (r < 0)
        return r;
    loader->asks_again = 0;
    pstk__reorder_resize(&pipeline->reorder, partition.global_batch);
    return 0;
}

int pstk_get_cursor(const struct pstk_loader *loader, uint64_t *epoch, uint64_t *position)
{
    int r = usable(loader, NULL);
    if (r < 0)
        return r;
    /* This takes the reorder buffer's lock, but changes nothing that the caller can see. */
    struct pstk__reorder_buffer *reorder =
        &((struct pstk_loader *)(uintptr_t)loader)->pipeline.reorder;
    struct pstk__cursor cursor = pstk__reorder_cursor(reorder);
    if (epoch)
        *epoch = cursor.epoch;
    if (position)
        *position = cursor.position;
    return 0;
}

uint64_t pstk_n_batches(const struct pstk_loader *loader)
{
    /* This takes the reorder buffer's lock, as in pstk_get_cursor. */
    return loader ? pstk__reorder_n_batches(
                        &((struct pstk_loader *)(uintptr_t)loader)->pipeline.reorder)
                  : 0;
}

uint64_t pstk_n_batches_left(const struct pstk_loader *loader, uint64_t epoch, uint64_t position)
{
    /* This takes the reorder buffer's lock, as in pstk_get_cursor. */
    return loader
               ? pstk__reorder_n_left(&((struct pstk_loader *)(uintptr_t)loader)->pipeline.reorder,
                                      epoch, position)
               : 0;
}

uint32_t pstk_max_rows(const struct pstk_loader *loader)
{
    return loader ? loader->pipeline.plan->batch_size : 0;
}

uint64_t pstk_n_samples(const struct pstk_loader *loader)
{
    return loader ? loader->pipeline.stream.partition.n : 0;
}

void pstk_interrupt(struct pstk_loader *loader)
{
    if (loader)
        pstk__reorder_interrupt(&loader->pipeline.reorder);
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

int pstk_trace_write(struct pstk_loader *loader, const char *path, struct pstk_error *err)
{
    const int usable_now = usable(loader, err);
    if (usable_now < 0)
        return usable_now;
    struct pstk__timeline *timeline = pstk__trace_timeline(loader->pipeline.trace);
    if (!timeline)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
                          "trace: this loader keeps none; open it with trace_path or trace_events");
    if (!path && !timeline->path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
                          "path: value is NULL; must be the path of a file, because the loader was "
                          "opened without trace_path");
    const int checked = pstk__timeline_check_path("path", path, PSTK_STAGE_CONSUMER, err);
    if (checked < 0)
        return checked;
    const int r = pstk__timeline_write(timeline, path, err);
    if (r < 0 && !path)
        atomic_fetch_or_explicit(&loader->pipeline.fallbacks, PSTK_FALLBACK_NO_TRACE,
                                 memory_order_relaxed);
    return r;
}

/* ---- statistics ------------------------------------------------------------------------------ */

static void device_stats_fill(const struct pstk__pipeline *pipeline, struct pstk_stats *stats)
{
    struct pstk__device_times times = {0};
    pipeline->delivered->device_ops->get_times(pipeline->delivered->device, &times);
    pstk__stats_add(&stats->stage_uploader, &pipeline->uploader.counters);
    stats->n_device_slots = pipeline->delivered->n_slots;
    stats->page_locked = !(stats->fallbacks & PSTK_FALLBACK_NOT_PAGE_LOCKED);
    stats->device_memory =
        pstk__layout_device_memory(&pipeline->delivered->layout, pipeline->delivered->n_slots);
    stats->copy_ns = times.copy_ns;
    stats->copy_bytes = times.copy_bytes;
    stats->stream_used_ns = times.used_ns;
    stats->stream_starved_ns = times.starved_ns;
    stats->stream_start_ns = times.start_ns;
}

static void stats_fill(const struct pstk_loader *loader, struct pstk_stats *stats)
{
    const struct pstk__pipeline *pipeline = &loader->pipeline;
    stats->fallbacks = atomic_load_explicit(&pipeline->fallbacks, memory_order_relaxed);
    /* The loader may have lost io_uring while it ran; threads have read since then. */
    stats->reader = stats->fallbacks & PSTK_FALLBACK_NO_IO_URING ? PSTK_READER_THREADS
                                                                 : pipeline->lanes[0].backend_kind;
    stats->direct = pipeline->direct && !(stats->fallbacks & PSTK_FALLBACK_NO_DIRECT);
    stats->registered = stats->reader == PSTK_READER_IO_URING &&
                        !(stats->fallbacks & PSTK_FALLBACK_NO_FIXED_BUFFERS);
    stats->n_threads = pipeline->n_workers;
    stats->n_slots = loader->budget.n_slots;
    stats->n_nodes = pipeline->n_nodes;
    stats->queue_depth = pipeline->depth;
    stats->rows_per_job = pipeline->rows_per_task;
    stats->kernels = pipeline->plan->kernels.pixel->isa;
    stats->n_replacements = get(&loader->n_replacements);
    stats->n_palette_images = get(&loader->n_palette_images);
    stats->n_damaged_images = get(&loader->n_damaged_images);
    stats->n_dropped_boxes = get(&loader->n_dropped_boxes);
    stats->slot_memory = loader->budget.slot_memory;
    stats->io_memory = pipeline->n_lanes * loader->budget.buffer_size;
    stats->block_memory =
        pipeline->n_lanes * (loader->budget.blocks.memory + loader->budget.blocks.tables);
    stats->index_memory = pipeline->n_lanes * loader->budget.index_size;
    stats->scratch_memory =
        pipeline->n_workers * (pipeline->plan->scratch_size + pipeline->spare_size) +
        pstk__plan_shared_memory(pipeline->plan);
    for (uint32_t i = 0; i < pipeline->n_lanes; i++) {
        const struct pstk__counters *counters = &pipeline->lanes[i].counters;
        pstk__stats_add(&stats->stage_reader, counters);
        stats->bytes_read += get(&counters->bytes);
        stats->n_reads += get(&counters->n_items);
        stats->n_lone_rows += get(&counters->n_lone);
        stats->n_index_hits += get(&counters->n_hits);
        stats->n_index_misses += get(&counters->n_misses);
    }
    for (uint32_t i = 0; i < pipeline->n_workers; i++) {
        pstk__stats_add(&stats->stage_workers, &pipeline->workers[i].counters);
        stats->n_slow_reads += get(&pipeline->workers[i].counters.n_slow);
        stats->bytes_read += get(&pipeline->workers[i].counters.bytes);
        stats->n_cached_reads += get(&pipeline->workers[i].counters.n_reads);
        stats->n_evicted_reads += get(&pipeline->workers[i].counters.n_evicted);
    }
    stats->n_reads += stats->n_cached_reads;
    pstk__stats_add(&stats->stage_consumer, &loader->consumer);
    if (pipeline->delivered != pipeline->slots)
        device_stats_fill(pipeline, stats);
    stats->n_batches = get(&loader->consumer.n_items);
    stats->n_samples = get(&loader->n_samples);
    stats->bytes_delivered = get(&loader->consumer.bytes);
    pstk__pipeline_measure(pipeline, stats);
    stats->bottleneck = pstk__stats_bottleneck(stats);
}

int pstk_get_stats(const struct pstk_loader *loader, struct pstk_stats *stats)
{
    int r = usable(loader, NULL);
    if (r < 0)
        return r;
    if (!stats || stats->size < sizeof stats->size)
        return PSTK_EINVAL;
    struct pstk_stats s = {.size = sizeof s};
    uint32_t size = stats->size;
    stats_fill(loader, &s);
    memset(stats, 0, size);
    memcpy(stats, &s, size < sizeof s ? size : sizeof s);
    stats->size = size;
    return 0;
}

int pstk_get_metrics(struct pstk_loader *loader, uint32_t window, struct pstk_metrics *metrics)
{
    const int r = usable(loader, NULL);
    if (r < 0)
        return r;
    if (!metrics || metrics->size < sizeof metrics->size || window > PSTK_WINDOW_MINUTE)
        return PSTK_EINVAL;
    struct pstk_metrics m = {.size = metrics->size};
    pstk__snapshots_get(loader->snapshots, measure, loader, window, pstk__clock_ns(), &m);
    m.fallbacks = atomic_load_explicit(&loader->pipeline.fallbacks, memory_order_relaxed);
    memset(metrics, 0, m.size);
    memcpy(metrics, &m, m.size < sizeof m ? m.size : sizeof m);
    return 0;
}

void pstk_mixture_init(struct pstk_mixture *mixture, uint32_t size)
{
    if (!mixture || size < sizeof mixture->size)
        return;
    memset(mixture, 0, size);
    mixture->size = size;
}

int pstk_mixture_get_stats(const struct pstk_loader *loader, uint32_t data_set,
                           struct pstk_mixture_stats *stats)
{
    const int r = usable(loader, NULL);
    if (r < 0)
        return r;
    const struct pstk__mixture *mixture = loader->pipeline.stream.mixture;
    if (!mixture || data_set >= mixture->n_data_sets || !stats || stats->size < sizeof stats->size)
        return PSTK_EINVAL;
    const uint32_t size = stats->size;
    const struct pstk_mixture_stats s = {.size = size,
                                         .n_samples = mixture->sizes[data_set],
                                         .n_delivered = get(&loader->n_of_data_sets[data_set])};
    memset(stats, 0, size);
    memcpy(stats, &s, size < sizeof s ? size : sizeof s);
    return 0;
}
