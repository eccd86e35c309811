/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/budget.h"

#include "batch/slot.h"
#include "base/error.h"
#include "machine/placement.h"

#include <stdio.h>

#define TEXT_SIZE 32    /* bytes of a size in a message */
#define ADVICE_SIZE 128 /* bytes of the advice in a message */
#define TASK_BYTES                                                                                 \
    (64u                                                                                           \
     << 10) /* bytes of records in a task: some 50 us of work, compared with 1 us of hand-over */
#define TASK_ROWS 64u
#define SMALL_RECORD (16u << 10)
#define BUFFER_AUTO (256u << 20) /* bytes; records of megabytes do not need 128 reads in flight */
#define BUFFER_MIN (4u << 20)
#define INDEX_AUTO (64u << 20)
#define BLOCK_PAGES 64u /* pages that blocks pin, one each, while their extents are found */
#define DEPTH_AUTO 128u
#define SLOTS_AUTO 4u
#define WORKER_MEMORY (2u << 20) /* bytes of a worker, for images of 500 x 400: stack, scratch */
#define OTHER_MEMORY                                                                               \
    (14u << 20)              /* bytes of everything else: tables, rings, the kernel's; measured */
#define DEVICE_SLOTS_AUTO 3u /* one leased, one loaded, one loading */

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Format a size for a message: "120 bytes", "1.5 MiB". */
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

/* Round up to whole pages, at most to the last page that 64 bits count. */
static uint64_t whole_pages(uint64_t size)
{
    const uint64_t n = size / PSTK__PAGE_SIZE + (size % PSTK__PAGE_SIZE != 0);
    return min64(n, UINT64_MAX / PSTK__PAGE_SIZE) * PSTK__PAGE_SIZE;
}

/* Return the set of the fields that outputs read. */
static uint64_t fields_of(const struct pstk__plan *plan)
{
    uint64_t fields = 0;
    for (uint32_t i = 0; i < plan->n_outputs; i++)
        fields |= 1ull << plan->outputs[i].field;
    return fields;
}

/* Return the mean bytes that are read of a record. */
static uint64_t mean_read(const struct pstk__plan *plan)
{
    const struct pstk__source *source = plan->source;
    if (plan->head_only || source->n_samples == 0)
        return source->schema.head_size;
    return max64(1, pstk__source_mean_read(source, fields_of(plan)));
}

/* Return 1 if every image of this field is stored as plain pixels; 0 also for formats that do not
 * count encodings. */
static int has_plain_pixels(const struct pstk__source *source, uint32_t field)
{
    const struct pstk_field_stats *stats = &source->stats[field];
    return source->n_samples > 0 && stats->n_encoding[PSTK_ENCODING_PIXELS] == source->n_samples &&
           stats->n_codec[PSTK_CODEC_NONE] == source->n_samples;
}

/* Return 1 if some output costs more than copying its field. Cropping and resizing plain pixels
 * costs about as much as reading them, and counts as copying, except with the blocks of a windowed
 * order: there more slots would only mean more rows that come before their blocks. */
static int decodes(const struct pstk__budget_config *c)
{
    for (uint32_t i = 0; i < c->plan->n_outputs; i++) {
        const uint32_t kind = c->plan->outputs[i].kind;
        if (kind == PSTK_OUTPUT_CALLBACK)
            return 1;
        if ((kind == PSTK_OUTPUT_IMAGE || kind == PSTK_OUTPUT_MASK) &&
            (c->interleave || !has_plain_pixels(c->plan->source, c->plan->outputs[i].field)))
            return 1;
    }
    return 0;
}

static uint32_t n_workers(const struct pstk__budget_config *c)
{
    return c->workers_per_node * c->n_nodes;
}

/* Choose the readers of a node. Reading a small record costs a reader as much time as its remaining
 * path costs a worker, and so does a larger one that is only copied. In both cases there is one
 * reader for each worker, else one per node. A lane holds all its batches' blocks, which make
 * reading a row cheap. */
static uint32_t lanes_per_node(const struct pstk__budget_config *c)
{
    const int copies = mean_read(c->plan) <= SMALL_RECORD || !decodes(c);
    return pstk__placement_readers(c->workers_per_node, c->n_nodes, copies && !c->interleave,
                                   PSTK__MAX_LANES);
}

static uint32_t rows_per_task(const struct pstk__plan *plan, uint32_t workers_per_lane)
{
    uint64_t rows = TASK_BYTES / mean_read(plan);
    /* Divide small batches too: two tasks a worker, so that no worker waits for one long task. */
    rows = min64(rows, plan->batch_size / (2 * (uint64_t)workers_per_lane));
    return (uint32_t)max64(1, min64(rows, TASK_ROWS));
}

/* Choose the number of slots: enough that some rows a worker are always in progress, and two a
 * lane; at least 4. If rows are only copied, storage may be the limit. Then there are enough rows
 * that every lane's queue stays full while batches that miss only a few rows wait. If processes
 * take whole batches, auto adds half as many slots as there are workers. */
static uint32_t auto_slots(const struct pstk__budget *budget, const struct pstk__budget_config *c)
{
    uint64_t n = 2 + 4 * (uint64_t)n_workers(c) / c->plan->batch_size;
    if (!decodes(c))
        n += 2 * (uint64_t)budget->depth * budget->n_lanes / c->plan->batch_size;
    if (c->plan->n_batched > 0)
        n += n_workers(c) / 2;
    return (uint32_t)max64(max64(SLOTS_AUTO, min64(n, 64)), 2 * (uint64_t)budget->n_lanes);
}

/* Return the I/O memory of a lane, within the bytes left: twice what is in flight at the mean size,
 * and room for two of the largest reads, because the buffer gives a task at most half of itself. */
static uint64_t buffer_size(const struct pstk__budget *budget, const struct pstk__budget_config *c,
                            uint64_t left)
{
    const struct pstk__plan *plan = c->plan;
    if (c->settings->memory.io_memory)
        return whole_pages(
            max64(c->settings->memory.io_memory / budget->n_lanes, 2 * PSTK__PAGE_SIZE));
    uint64_t largest = plan->head_only ? plan->source->schema.head_size
                                       : pstk__source_max_read(plan->source, fields_of(plan));
    uint64_t read = mean_read(plan) + 2 * PSTK__PAGE_SIZE;
    uint64_t want = min64(2 * budget->depth * read, BUFFER_AUTO);
    want = max64(want, 2 * (largest + 2 * PSTK__PAGE_SIZE));
    uint64_t most = max64(left / 2 / budget->n_lanes, BUFFER_MIN);
    return whole_pages(max64(BUFFER_MIN, min64(want, most)));
}

static uint64_t index_size(const struct pstk__budget *budget, const struct pstk__budget_config *c)
{
    const uint64_t all_lanes =
        c->settings->memory.index_memory ? c->settings->memory.index_memory : INDEX_AUTO;
    /* The rows of a task pin one page each until all pages are read; two tasks, so that reading
     * continues. */
    uint64_t least = 2 * (uint64_t)budget->rows_per_task + (c->interleave ? BLOCK_PAGES : 0);
    uint64_t want = all_lanes / budget->n_lanes / PSTK__PAGE_SIZE;
    uint64_t all = max64(c->plan->source->n_pages, 1);
    return max64(least, min64(want, all)) * PSTK__PAGE_SIZE;
}

/* Return the bytes of a lane's blocks and of their tables. */
static uint64_t blocks_size(const struct pstk__budget *budget)
{
    return budget->blocks.memory + budget->blocks.tables;
}

/* Divide the memory of the lanes, after that of these slots. A lane has at least two slots, one
 * being filled while the other is in use; every node has as many lanes. Returns the bytes of all
 * lanes, at most UINT64_MAX. */
static uint64_t lanes_init(struct pstk__budget *budget, const struct pstk__budget_config *c)
{
    while (budget->n_lanes > c->n_nodes && budget->n_slots < 2 * budget->n_lanes)
        budget->n_lanes -= c->n_nodes;
    budget->rows_per_task =
        rows_per_task(c->plan, (n_workers(c) + budget->n_lanes - 1) / budget->n_lanes);
    budget->buffer_size = buffer_size(budget, c, budget->limit - budget->slot_memory);
    budget->index_size = index_size(budget, c);
    const struct pstk__source *source = c->plan->source;
    if (c->interleave)
        pstk__blocks_measure(&budget->blocks, c->interleave, c->settings->ranks.world,
                             (uint64_t)budget->n_slots * c->plan->batch_size, mean_read(c->plan),
                             pstk__source_max_read(source, fields_of(c->plan)),
                             pstk__source_n_extents(source, fields_of(c->plan)));
    const uint64_t lane = budget->buffer_size + budget->index_size + blocks_size(budget);
    const int overflows = lane < budget->buffer_size || lane > UINT64_MAX / budget->n_lanes;
    return overflows ? UINT64_MAX : budget->n_lanes * lane;
}

/* Return the least number of slots: two, so that one is filled while the other is in use, or one a
 * node. */
static uint32_t min_slots(const struct pstk__budget_config *c)
{
    return (uint32_t)max64(2, c->n_nodes);
}

/* The settings that a caller can lower, a bit each. */
static const char *const lowerable[] = {"n_slots", "batch_size", "io_memory", "index_memory"};
enum { N_SLOTS = 1, BATCH_SIZE = 2, IO_MEMORY = 4, INDEX_MEMORY = 8, ALL = 15 };

/* Return the bytes on the host that a device's slot takes. */
static uint64_t size_beside_device(const struct pstk__layout *layout)
{
    return layout->about_end - layout->about;
}

/* Return 1 if all would fit with the settings in `lowered` at their minimum. `budget` is one that
 * did not fit. */
static int fits_with(const struct pstk__budget *budget, const struct pstk__budget_config *c,
                     uint32_t lowered)
{
    struct pstk_settings s = *c->settings;
    struct pstk__budget_config config = *c;
    struct pstk__budget trial = *budget;
    config.settings = &s;
    s.memory.io_memory = lowered & IO_MEMORY ? 1 : s.memory.io_memory;
    s.memory.index_memory = lowered & INDEX_MEMORY ? 1 : s.memory.index_memory;
    if (!s.memory.n_slots || lowered & N_SLOTS)
        trial.n_slots = min_slots(c);
    if (lowered & BATCH_SIZE) {
        trial.slot_size = c->least->size;
        trial.device_slot_size = size_beside_device(c->least);
    }
    const uint64_t on_device = trial.n_device_slots * trial.device_slot_size;
    if (on_device > trial.limit || (trial.limit - on_device) / trial.n_slots < trial.slot_size)
        return 0;
    trial.slot_memory = trial.n_slots * trial.slot_size + on_device;
    return lanes_init(&trial, &config) <= trial.limit - trial.slot_memory;
}

/* Format the advice: "lower n_slots or batch_size, or raise max_memory". It names the settings each
 * of which is enough alone, or else the fewest that are enough together, or only max_memory. */
static const char *advice_text(char text[ADVICE_SIZE], const struct pstk__budget *budget,
                               const struct pstk__budget_config *c)
{
    uint32_t advised = 0;
    for (uint32_t bit = 1; bit < ALL; bit <<= 1)
        if (fits_with(budget, c, bit))
            advised |= bit;
    const char *between = advised ? " or " : " and ";
    if (!advised && fits_with(budget, c, ALL)) {
        advised = ALL;
        for (uint32_t bit = 1; bit < ALL; bit <<= 1)
            if (fits_with(budget, c, advised & ~bit))
                advised &= ~bit;
    }
    size_t n = 0;
    for (uint32_t i = 0; i < sizeof lowerable / sizeof *lowerable; i++)
        if (advised >> i & 1)
            n += (size_t)snprintf(text + n, ADVICE_SIZE - n, "%s%s", n ? between : "lower ",
                                  1u << i == BATCH_SIZE ? c->plan->rows_setting : lowerable[i]);
    snprintf(text + n, ADVICE_SIZE - n, "%sraise max_memory", n ? ", or " : "");
    return text;
}

/* Set the number of slots and their bytes: the number in the settings, else as many as are useful
 * and fit. */
static int slots_init(struct pstk__budget *budget, const struct pstk__budget_config *c,
                      struct pstk_error *err)
{
    const struct pstk_settings *s = c->settings;
    if (s->memory.n_slots && s->memory.n_slots < c->n_nodes)
        return pstk__fail_setting(err, "n_slots", s->memory.n_slots,
                                  "at least %u (one a NUMA node)", c->n_nodes);
    budget->slot_size = c->layout->size;
    if (c->plan->on_device) {
        budget->n_device_slots = s->device.n_slots ? s->device.n_slots : DEVICE_SLOTS_AUTO;
        budget->device_slot_size = size_beside_device(c->layout);
    }
    const uint64_t on_device = budget->n_device_slots * budget->device_slot_size;
    const uint64_t room = budget->limit > on_device ? budget->limit - on_device : 0;
    budget->n_slots = s->memory.n_slots ? s->memory.n_slots : auto_slots(budget, c);
    uint64_t fit = budget->slot_size ? room / budget->slot_size : budget->n_slots;
    if (!s->memory.n_slots)
        budget->n_slots = (uint32_t)min64(budget->n_slots, max64(fit, min_slots(c)));
    char slot[TEXT_SIZE], limit[TEXT_SIZE], advice[ADVICE_SIZE];
    if (fit < budget->n_slots)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "n_slots: %u slots of %s each are over max_memory, %s: %s",
                          budget->n_slots, size_text(slot, budget->slot_size),
                          size_text(limit, budget->limit), advice_text(advice, budget, c));
    budget->slot_memory = budget->n_slots * budget->slot_size + on_device;
    return 0;
}

static int check_within(const char *setting, uint64_t size, uint64_t limit, struct pstk_error *err)
{
    return size <= limit
               ? 0
               : pstk__fail_setting(err, setting, size, "at most max_memory, which is %llu bytes",
                                    (unsigned long long)limit);
}

/* Return the largest number of ways whose blocks fit with `other` bytes a lane for the rest: a
 * multiple of world if there is one. 0: none fits. */
static uint32_t ways_that_fit(const struct pstk__budget *budget,
                              const struct pstk__budget_config *c, uint64_t other)
{
    const uint64_t left = (budget->limit - budget->slot_memory) / budget->n_lanes;
    const uint32_t world = c->settings->ranks.world;
    struct pstk__interleave interleave = *c->interleave;
    while (interleave.ways > 1) {
        const uint32_t rest = interleave.ways % world;
        const uint32_t step = interleave.ways > world ? (rest ? rest : world) : 1;
        struct pstk__blocks_footprint need;
        interleave.ways -= step;
        pstk__blocks_measure(&need, &interleave, world,
                             (uint64_t)budget->n_slots * c->plan->batch_size, mean_read(c->plan),
                             pstk__source_max_read(c->plan->source, fields_of(c->plan)),
                             pstk__source_n_extents(c->plan->source, fields_of(c->plan)));
        if (other < left && need.memory + need.tables <= left - other)
            return interleave.ways;
    }
    return 0;
}

/* Fail because the lanes need more memory than the slots leave. */
static int refuse_lanes(const struct pstk__budget *budget, const struct pstk__budget_config *c,
                        uint64_t needed, struct pstk_error *err)
{
    const uint64_t left = budget->limit - budget->slot_memory;
    char slot[TEXT_SIZE], rest[TEXT_SIZE], need[TEXT_SIZE], blocks[TEXT_SIZE], advice[ADVICE_SIZE];
    if (!c->interleave)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "max_memory: slots (%u x %s) leave %s for io_memory and index_memory, "
                          "which need %s: %s",
                          budget->n_slots, size_text(slot, budget->slot_size),
                          size_text(rest, left), size_text(need, needed),
                          advice_text(advice, budget, c));
    const uint64_t samples = (uint64_t)c->interleave->window * c->interleave->block;
    const uint32_t fit = ways_that_fit(budget, c, needed / budget->n_lanes - blocks_size(budget));
    if (fit)
        snprintf(advice, sizeof advice,
                 "lower ways to %u, which mixes %llu samples at a time instead of %llu", fit,
                 (unsigned long long)(fit * samples),
                 (unsigned long long)(c->interleave->ways * samples));
    else
        snprintf(advice, sizeof advice, "lower window, block or n_slots");
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                      "max_memory: slots (%u x %s) leave %s for reading, which needs %s (%s of "
                      "them for the blocks of %u way%s): %s, or raise max_memory",
                      budget->n_slots, size_text(slot, budget->slot_size), size_text(rest, left),
                      size_text(need, needed),
                      size_text(blocks, budget->n_lanes * blocks_size(budget)),
                      budget->blocks.n_ways, budget->blocks.n_ways == 1 ? "" : "s", advice);
}

/* Return the bytes on the host that slots and lanes take. */
static uint64_t memory_of(const struct pstk__budget *b)
{
    return b->slot_memory + b->n_lanes * (b->buffer_size + b->index_size + blocks_size(b));
}

/* Return the number of processes that share the machine and its control group. */
static uint32_t local_world(const struct pstk__budget_config *c)
{
    return c->settings->ranks.local_world ? c->settings->ranks.local_world : 1;
}

/* Divide the limit. Each step needs those before it: the limit and the useful number of lanes; the
 * slots, whose number on auto follows the lanes; the lanes, within what the slots leave. */
static int divide(struct pstk__budget *budget, const struct pstk__budget_config *c,
                  struct pstk_error *err)
{
    const struct pstk_settings *s = c->settings;
    *budget = (struct pstk__budget){
        .limit = s->memory.max_memory ? s->memory.max_memory
                                      : c->machine_memory / 4 * 3 / local_world(c),
        .n_lanes = lanes_per_node(c) * c->n_nodes,
        .depth = s->reading.queue_depth ? s->reading.queue_depth : DEPTH_AUTO,
        .spare_size = whole_pages(pstk__source_max_read(c->plan->source, fields_of(c->plan)))};
    budget->limit -= min64(c->taken, budget->limit);
    int r = check_within("io_memory", s->memory.io_memory, budget->limit, err);
    if (r == 0)
        r = check_within("index_memory", s->memory.index_memory, budget->limit, err);
    if (r == 0)
        r = slots_init(budget, c, err);
    if (r < 0)
        return r;
    const uint32_t least = min_slots(c);
    uint64_t needed = lanes_init(budget, c);
    /* Reduce the slots on auto: fewer slots leave more memory to the lanes, and need fewer lanes.
     */
    while (!s->memory.n_slots && needed > budget->limit - budget->slot_memory &&
           budget->n_slots > least) {
        budget->n_slots--;
        budget->slot_memory -= budget->slot_size;
        needed = lanes_init(budget, c);
    }
    const uint64_t left = budget->limit - budget->slot_memory;
    return needed <= left ? 0 : refuse_lanes(budget, c, needed, err);
}

/* Divide the least memory that a loader opens with: the fewest slots if their number is on auto,
 * and the least for reads. Returns its bytes; UINT64_MAX: the loader cannot open. */
static uint64_t divide_min(struct pstk__budget *least, const struct pstk__budget_config *c)
{
    struct pstk_settings s = *c->settings;
    struct pstk__budget_config config = *c;
    s.memory.n_slots = s.memory.n_slots ? s.memory.n_slots : min_slots(c);
    s.memory.max_memory = UINT64_MAX / 2;
    s.memory.io_memory = s.memory.io_memory
                             ? s.memory.io_memory
                             : (uint64_t)c->n_nodes * BUFFER_MIN; /* one lane a node */
    config.settings = &s;
    return divide(least, &config, NULL) == 0 ? memory_of(least) : UINT64_MAX;
}

static int refuse_group(const struct pstk__budget_config *c, uint64_t need, struct pstk_error *err)
{
    const struct pstk_settings *s = c->settings;
    char limit[TEXT_SIZE], left[TEXT_SIZE], part[TEXT_SIZE], needed[TEXT_SIZE];
    char parts[ADVICE_SIZE] = "";
    if (local_world(c) > 1)
        snprintf(parts, sizeof parts, ", %s for each of %u local ranks",
                 size_text(part, c->group_left / local_world(c)), local_world(c));
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                      "memory: the limit of the control group is %s, and %s are left%s; a loader "
                      "needs at least %s (raise memory.max, or lower %s%s%s%s%s or n_threads)",
                      size_text(limit, c->group_limit), size_text(left, c->group_left), parts,
                      size_text(needed, need), s->memory.n_slots ? "n_slots, " : "",
                      s->memory.io_memory ? "io_memory, " : "",
                      s->memory.index_memory ? "index_memory, " : "", c->interleave ? "ways, " : "",
                      c->plan->rows_setting);
}

/* Divide the bytes that the control group leaves or, if that fails, take the least that a loader
 * opens with. Returns 0, or -1 if the least is more than the group leaves. */
static int divide_room(struct pstk__budget *budget, const struct pstk__budget_config *c,
                       uint64_t room)
{
    struct pstk_settings s = *c->settings;
    struct pstk__budget_config within = *c;
    s.memory.max_memory = max64(room, 1); /* 0 is auto */
    within.settings = &s;
    within.taken = 0; /* the group counts these bytes already */
    if (divide(budget, &within, NULL) == 0)
        return 0;
    const uint64_t least = divide_min(budget, c);
    budget->limit = room;
    return least <= room ? 0 : -1;
}

int pstk__budget_init(struct pstk__budget *budget, const struct pstk__budget_config *c,
                      struct pstk_error *err)
{
    const uint64_t other = (uint64_t)n_workers(c) * WORKER_MEMORY + OTHER_MEMORY;
    const uint64_t share = c->group_left / local_world(c), room = share - min64(other, share);
    struct pstk__budget least;
    int r = divide(budget, c, err);
    if (!c->group_limit || (r == 0 && memory_of(budget) <= room))
        return r;
    if (r == 0 && divide_room(budget, c, room) == 0)
        return 0;
    if (r < 0 && (r != PSTK_ENOMEM || c->settings->memory.max_memory))
        return r;
    const uint64_t need = divide_min(&least, c);
    return r < 0 && (need <= room || need == UINT64_MAX) ? r : refuse_group(c, need + other, err);
}
