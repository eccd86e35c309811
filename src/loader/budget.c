/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/budget.h"

#include "batch/slot.h"
#include "base/error.h"

#include <stdio.h>

#define TEXT_SIZE 32 /* bytes of a size in a message */
#define JOB_BYTES                                                                                  \
    (64u << 10) /* of records in a job: some 50 us of work, beside 1 us of hand-over */
#define JOB_ROWS 64u
#define SMALL_RECORD (16u << 10)
#define RING_AUTO (256u << 20) /* records of megabytes need no 128 reads in flight */
#define RING_MIN (4u << 20)
#define INDEX_AUTO (64u << 20)
#define DEPTH_AUTO 128u
#define DEPTH_MAX 4096u
#define SLOTS_AUTO 4u
#define SLOTS_MAX 4096u
#define DEVICE_SLOTS_AUTO 3u /* one used, one there, one under way */

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* "120 bytes", "1.5 MiB": a size as a message tells it. */
static const char *size_text(char text[TEXT_SIZE], uint64_t size)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double n = (double)size / 1024;
    uint32_t unit = 0;
    if (size < 1024) {
        snprintf(text, TEXT_SIZE, "%u byte%s", (unsigned)size, size == 1 ? "" : "s");
        return text;
    }
    for (; n >= 1024 && unit < 3; unit++)
        n /= 1024;
    snprintf(text, TEXT_SIZE, "%.1f %s", n, units[unit]);
    return text;
}

static uint64_t whole_pages(uint64_t size)
{
    return (size + PSTK__PAGE_SIZE - 1) / PSTK__PAGE_SIZE * PSTK__PAGE_SIZE;
}

/* Mean bytes that are read of a record. */
static uint64_t mean_read(const struct pstk__plan *plan)
{
    const struct pstk__source *s = plan->source;
    if (plan->head_only || s->n_samples == 0)
        return s->schema.head_size;
    return max64(1, s->bytes / s->n_samples);
}

/* 1: some output costs more than copying its field. */
static int decodes(const struct pstk__plan *plan)
{
    for (uint32_t i = 0; i < plan->n_outputs; i++) {
        uint32_t kind = plan->outputs[i].settings.kind;
        if (kind == PSTK_OUTPUT_IMAGE || kind == PSTK_OUTPUT_CALLBACK)
            return 1;
    }
    return 0;
}

/* Reading a small record costs a reader more than the rest of its way costs a worker (some 0.8 us
 * beside 0.3 us for 2 kB from the page cache), and reading a large one that is only copied costs as
 * much: one reader for each worker then, else one a node. */
static uint32_t lanes_per_node(const struct pstk__plan *plan, uint32_t workers_per_node,
                               uint32_t n_nodes)
{
    int copies = mean_read(plan) <= SMALL_RECORD || !decodes(plan);
    uint32_t n = copies ? workers_per_node : 1;
    return (uint32_t)max64(1, min64(n, PSTK__MAX_LANES / n_nodes));
}

static uint32_t rows_per_job(const struct pstk__plan *plan, uint32_t workers_per_lane)
{
    uint64_t rows = JOB_BYTES / mean_read(plan);
    /* Small batches are still divided: two jobs a worker, so that none waits for one long job. */
    rows = min64(rows, plan->batch_size / (2 * (uint64_t)workers_per_lane));
    return (uint32_t)max64(1, min64(rows, JOB_ROWS));
}

/* Slots: enough that some rows a worker are always under way, and two a lane; at least 4. Where
 * rows are only copied, storage is what may limit: enough rows that every lane's queue stays full
 * while batches that are done but for a few rows wait for those. */
static uint32_t auto_slots(const struct pstk__budget *b, const struct pstk__plan *plan,
                           uint32_t n_workers)
{
    uint64_t n = 2 + 4 * (uint64_t)n_workers / plan->batch_size;
    if (!decodes(plan))
        n += 2 * (uint64_t)b->depth * b->n_lanes / plan->batch_size;
    return (uint32_t)max64(max64(SLOTS_AUTO, min64(n, 64)), 2 * (uint64_t)b->n_lanes);
}

/* What to lower, beside n_slots and batch_size, where slots are too large. */
static const char *ragged_hint(const struct pstk__plan *plan)
{
    for (uint32_t i = 0; i < plan->n_outputs; i++)
        if (pstk__output_is_ragged(&plan->outputs[i]))
            return ", set bytes_per_batch of ragged outputs (0 is batch_size times the largest "
                   "value)";
    return "";
}

static int slots_init(struct pstk__budget *b, const struct pstk_settings *s,
                      const struct pstk__plan *plan, const struct pstk__layout *layout,
                      uint32_t n_workers, struct pstk_error *err)
{
    b->slot_size = layout->size;
    if (plan->on_device) {
        b->n_device_slots = s->n_device_slots ? s->n_device_slots : DEVICE_SLOTS_AUTO;
        b->device_slot_size = layout->told_end - layout->told;
    }
    const uint64_t on_device = b->n_device_slots * b->device_slot_size;
    const uint64_t room = b->limit > on_device ? b->limit - on_device : 0;
    b->n_slots = s->n_slots ? s->n_slots : auto_slots(b, plan, n_workers);
    if (b->n_slots < 2 || b->n_slots > SLOTS_MAX)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "n_slots is %u: must be 2 to %u",
                          b->n_slots, SLOTS_MAX);
    uint64_t fit = b->slot_size ? room / b->slot_size : b->n_slots;
    if (!s->n_slots && fit >= 2)
        b->n_slots = (uint32_t)min64(b->n_slots, fit);
    char slot[TEXT_SIZE], limit[TEXT_SIZE];
    if (fit < b->n_slots)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "n_slots: %u slots of %s each are over max_memory, %s: lower n_slots or "
                          "batch_size%s, or raise max_memory",
                          b->n_slots, size_text(slot, b->slot_size), size_text(limit, b->limit),
                          ragged_hint(plan));
    b->slot_memory = b->n_slots * b->slot_size + on_device;
    return 0;
}

/* I/O memory of a lane: twice what is in flight at the mean size, and room for two of the largest
 * reads (the ring gives a job at most half of itself), within what is left. */
static uint64_t ring_size(const struct pstk__budget *b, const struct pstk_settings *s,
                          const struct pstk__plan *plan, uint64_t left)
{
    if (s->io_memory)
        return whole_pages(max64(s->io_memory / b->n_lanes, 2 * PSTK__PAGE_SIZE));
    uint64_t largest =
        plan->head_only ? plan->source->schema.head_size : plan->source->limits.max_size;
    uint64_t read = mean_read(plan) + 2 * PSTK__PAGE_SIZE;
    uint64_t want = min64(2 * b->depth * read, RING_AUTO);
    want = max64(want, 2 * (largest + 2 * PSTK__PAGE_SIZE));
    uint64_t most = max64(left / 2 / b->n_lanes, RING_MIN);
    return whole_pages(max64(RING_MIN, min64(want, most)));
}

static uint64_t index_size(const struct pstk__budget *b, const struct pstk_settings *s,
                           const struct pstk__plan *plan)
{
    /* A job's rows pin one page each until all are there; two jobs, so that reading goes on. */
    uint64_t least = 2 * (uint64_t)b->rows_per_job;
    uint64_t want = (s->index_memory ? s->index_memory : INDEX_AUTO) / b->n_lanes / PSTK__PAGE_SIZE;
    uint64_t all = max64(plan->source->n_pages, 1);
    return max64(least, min64(want, all)) * PSTK__PAGE_SIZE;
}

int pstk__budget_init(struct pstk__budget *b, const struct pstk_settings *s,
                      const struct pstk__plan *plan, const struct pstk__layout *layout,
                      uint32_t n_nodes, uint32_t workers_per_node, uint64_t machine_memory,
                      struct pstk_error *err)
{
    uint32_t local_world = s->local_world ? s->local_world : 1;
    *b = (struct pstk__budget){0};
    b->limit = s->max_memory ? s->max_memory : machine_memory / 4 * 3 / local_world;
    b->n_lanes = lanes_per_node(plan, workers_per_node, n_nodes) * n_nodes;
    b->depth = s->queue_depth ? s->queue_depth : DEPTH_AUTO;
    if (b->depth > DEPTH_MAX)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "queue_depth is %u: at most %u",
                          b->depth, DEPTH_MAX);
    if (s->io_memory > b->limit || s->index_memory > b->limit)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s: %llu bytes are over max_memory, %llu",
            s->io_memory > b->limit ? "io_memory" : "index_memory",
            (unsigned long long)(s->io_memory > b->limit ? s->io_memory : s->index_memory),
            (unsigned long long)b->limit);
    int r = slots_init(b, s, plan, layout, workers_per_node * n_nodes, err);
    if (r < 0)
        return r;
    if (n_nodes > b->n_slots)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "n_slots: %u slots for %u NUMA nodes, at least one each is needed",
                          b->n_slots, n_nodes);
    /* Two slots a lane, one being filled while the other is out; whole lanes for every node. */
    while (b->n_lanes > n_nodes && b->n_slots < 2 * b->n_lanes)
        b->n_lanes -= n_nodes;
    b->rows_per_job =
        rows_per_job(plan, (workers_per_node * n_nodes + b->n_lanes - 1) / b->n_lanes);
    uint64_t left = b->limit - b->slot_memory;
    b->ring_size = ring_size(b, s, plan, left);
    b->index_size = index_size(b, s, plan);
    b->spare_size = whole_pages(plan->source->limits.max_size);
    const uint64_t needed = b->n_lanes * (b->ring_size + b->index_size);
    char slot[TEXT_SIZE], rest[TEXT_SIZE], need[TEXT_SIZE];
    if (needed > left)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "max_memory: slots (%u x %s) leave %s for io_memory and index_memory, "
                          "which need %s: lower n_slots, or raise max_memory",
                          b->n_slots, size_text(slot, b->slot_size), size_text(rest, left),
                          size_text(need, needed));
    return 0;
}
