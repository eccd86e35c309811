/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Division of memory: the value of each setting on auto, compared over a sweep with the rules
 * stated naively, and the settings that are refused. The tests make plan, source and layout.
 */
#include "loader/budget.h"

#include "batch/slot.h"
#include "format/arrays/arrays.h"
#include "format/pstk/pstk.h"
#include "support/test.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define HEAD 100u /* bytes of a record's head */

/* ---- what is asked --------------------------------------------------------------------------- */

/* One loader: its settings, its data set, its machine. */
struct asked {
    struct pstk_settings s;
    struct pstk__source source;
    struct pstk__plan plan;
    struct pstk__layout layout;
    struct pstk__layout least;
    uint32_t n_nodes, workers; /* nodes, and workers of each */
    uint64_t memory;           /* memory of the machine */
    struct pstk_error err;
};

/* The plan is too large for the stack of a sweep's every case; there is one. */
static struct asked asked;

/* Images of 100 kB and slots of 1 MiB, on a machine with 64 GiB. */
static void plain(void)
{
    asked = (struct asked){.n_nodes = 1, .workers = 4, .memory = 64 * GIB};
    asked.source.format = &pstk__format_pstk;
    asked.source.schema.head_size = HEAD;
    asked.source.n_samples = 1000000;
    asked.source.bytes = 1000000 * 100000ull;
    asked.source.n_pages = 1965;
    asked.source.limits.max_size = 5 * MIB;
    asked.plan.source = &asked.source;
    asked.plan.n_outputs = 2;
    asked.plan.outputs[0].kind = PSTK_OUTPUT_SCALAR;
    asked.plan.outputs[1].kind = PSTK_OUTPUT_IMAGE;
    asked.plan.batch_size = 256;
    asked.plan.rows_setting = "batch_size";
    asked.layout.size = MIB;
    asked.layout.about = 1000;
    asked.layout.about_end = 6000;
    asked.least.size = 4 * KIB;
    asked.least.about = 1000;
    asked.least.about_end = 1020;
    pstk_error_init(&asked.err, sizeof asked.err);
}

/* No output but a scalar: records are copied. */
static void copies(void)
{
    plain();
    asked.plan.n_outputs = 1;
}

static void mean(uint64_t size)
{
    asked.source.bytes = asked.source.n_samples * size;
}

static int divide_to(struct pstk__budget *b, struct pstk_error *err)
{
    const struct pstk__budget_config c = {.settings = &asked.s,
                                          .plan = &asked.plan,
                                          .layout = &asked.layout,
                                          .least = &asked.least,
                                          .n_nodes = asked.n_nodes,
                                          .workers_per_node = asked.workers,
                                          .machine_memory = asked.memory};
    return pstk__budget_init(b, &c, err);
}

static int divide(struct pstk__budget *b)
{
    return divide_to(b, &asked.err);
}

/* ---- the rules, once more -------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t pages(uint64_t size)
{
    return size % 4096 ? size - size % 4096 + 4096 : size;
}

static int decodes(void)
{
    for (uint32_t i = 0; i < asked.plan.n_outputs; i++)
        if (asked.plan.outputs[i].kind == PSTK_OUTPUT_IMAGE ||
            asked.plan.outputs[i].kind == PSTK_OUTPUT_CALLBACK)
            return 1;
    return 0;
}

/* Bytes that are read of a record of mean size. */
static uint64_t mean_read(void)
{
    if (asked.plan.head_only || asked.source.n_samples == 0)
        return HEAD;
    return most(1, asked.source.bytes / asked.source.n_samples);
}

/* Compute the budget with so many slots. 1: it fits. */
static int naive_with(struct pstk__budget *b, uint32_t n_slots)
{
    const struct pstk_settings *s = &asked.s;
    const uint32_t n_workers = asked.n_nodes * asked.workers;
    const uint64_t device = b->n_device_slots * b->device_slot_size, read = mean_read();
    b->n_slots = n_slots;
    b->slot_memory = n_slots * b->slot_size + device;
    if (b->slot_memory > b->limit)
        return 0;
    /* Two slots a lane, or one lane a node. */
    while (b->n_lanes > asked.n_nodes && b->n_lanes * 2 > n_slots)
        b->n_lanes -= asked.n_nodes;
    const uint64_t left = b->limit - b->slot_memory;
    const uint64_t per_lane = (n_workers + b->n_lanes - 1) / b->n_lanes;
    const uint64_t divided = asked.plan.batch_size / 2 / per_lane; /* two tasks a worker */
    b->rows_per_task = (uint32_t)most(1, least(64, least(65536 / read, divided)));
    const uint64_t largest = asked.plan.head_only ? HEAD : asked.source.limits.max_size;
    uint64_t buffer = 2 * b->depth * (read + 8192);
    buffer = most(least(buffer, 256 * MIB), 2 * (largest + 8192));
    buffer = most(4 * MIB, least(buffer, left / 2 / b->n_lanes));
    if (s->memory.io_memory)
        buffer = most(8192, s->memory.io_memory / b->n_lanes);
    b->buffer_size = pages(buffer);
    const uint64_t memory = s->memory.index_memory ? s->memory.index_memory : 64 * MIB;
    const uint64_t index = least(memory / b->n_lanes / 4096, most(1, asked.source.n_pages));
    b->index_size = 4096 * most(2 * (uint64_t)b->rows_per_task, index);
    b->spare_size = pages(asked.source.limits.max_size);
    return b->n_lanes * (b->buffer_size + b->index_size) <= left;
}

/* The whole division; 0 where nothing fits. */
static int naive(struct pstk__budget *b)
{
    const struct pstk_settings *s = &asked.s;
    const uint32_t n_workers = asked.n_nodes * asked.workers;
    *b = (struct pstk__budget){.limit = s->memory.max_memory, .slot_size = asked.layout.size};
    if (!s->memory.max_memory)
        b->limit = asked.memory / 4 * 3 / most(1, s->ranks.local_world);
    b->depth = s->reading.queue_depth ? s->reading.queue_depth : 128;
    if (asked.plan.on_device) {
        b->n_device_slots = s->device.n_slots ? s->device.n_slots : 3;
        b->device_slot_size = asked.layout.about_end - asked.layout.about;
    }
    uint32_t lanes = 1;
    if (mean_read() <= 16384 || !decodes())
        lanes = (uint32_t)most(1, least(asked.workers, 64 / asked.n_nodes));
    b->n_lanes = lanes * asked.n_nodes;
    if (s->memory.n_slots)
        return s->memory.n_slots >= asked.n_nodes && naive_with(b, s->memory.n_slots);
    uint64_t n = 2 + 4 * (uint64_t)n_workers / asked.plan.batch_size;
    if (!decodes())
        n += 2 * (uint64_t)b->depth * b->n_lanes / asked.plan.batch_size;
    n += asked.plan.n_batched ? n_workers / 2 : 0;
    n = most(most(4, 2 * (uint64_t)b->n_lanes), least(n, 64));
    const struct pstk__budget start = *b;
    for (; n >= 2 && n >= asked.n_nodes; n--) {
        *b = start;
        if (naive_with(b, (uint32_t)n))
            return 1;
    }
    return 0;
}

static int same(const struct pstk__budget *a, const struct pstk__budget *b)
{
    return a->limit == b->limit && a->n_slots == b->n_slots && a->n_lanes == b->n_lanes &&
           a->rows_per_task == b->rows_per_task && a->depth == b->depth &&
           a->slot_size == b->slot_size && a->n_device_slots == b->n_device_slots &&
           a->device_slot_size == b->device_slot_size && a->slot_memory == b->slot_memory &&
           a->buffer_size == b->buffer_size && a->index_size == b->index_size &&
           a->spare_size == b->spare_size;
}

/* Does the division hold what the header promises? */
static int is_sound(const struct pstk__budget *b)
{
    const uint64_t slots =
        b->n_slots * b->slot_size + (uint64_t)b->n_device_slots * b->device_slot_size;
    return b->slot_memory == slots &&
           slots + b->n_lanes * (b->buffer_size + b->index_size) <= b->limit && b->n_slots >= 2 &&
           b->n_lanes >= 1 && b->n_lanes <= PSTK__MAX_LANES && b->n_lanes % asked.n_nodes == 0 &&
           (b->n_slots >= 2 * b->n_lanes || b->n_lanes == asked.n_nodes) && b->rows_per_task >= 1 &&
           b->buffer_size % 4096 == 0 && b->index_size % 4096 == 0 &&
           b->index_size >= 2 * 4096ull * b->rows_per_task &&
           b->spare_size >= asked.source.limits.max_size;
}

static void print_both(const struct pstk__budget *b, const struct pstk__budget *expected)
{
    const struct pstk__budget *both[] = {b, expected};
    printf("# nodes %u workers %u batch %u mean %llu limit %llu: %s\n", asked.n_nodes,
           asked.workers, asked.plan.batch_size, (unsigned long long)mean_read(),
           (unsigned long long)b->limit, asked.err.message);
    for (int i = 0; i < 2; i++)
        printf("# slots %u of %llu, lanes %u, rows %u, depth %u, buffer %llu, index %llu\n",
               both[i]->n_slots, (unsigned long long)both[i]->slot_size, both[i]->n_lanes,
               both[i]->rows_per_task, both[i]->depth, (unsigned long long)both[i]->buffer_size,
               (unsigned long long)both[i]->index_size);
}

/* Divide what is asked: as the naive rules do, or refused where they find nothing that fits. */
static int agrees(uint64_t *n_fit)
{
    struct pstk__budget b, expected;
    const int r = divide(&b), fits = naive(&expected);
    const int good =
        fits ? r == 0 && same(&b, &expected) && is_sound(&b)
             : r == PSTK_ENOMEM || (r == PSTK_EINVAL && asked.s.memory.n_slots < asked.n_nodes);
    *n_fit += r == 0;
    if (!good)
        print_both(&b, &expected);
    return good;
}

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static int sweep_settings(uint64_t *n_fit, uint64_t *n)
{
    static const uint32_t slots[] = {0, 2, 5, 300}, depths[] = {0, 1, 4096};
    static const uint64_t io[] = {0, 1, 3 * MIB + 1}, index[] = {0, 8192, 3 * MIB},
                          limits[] = {9 * MIB, 40 * MIB, 300 * MIB, 0};
    int good = 1;
    for (size_t i = 0; i < LENGTH(slots) * LENGTH(depths) * LENGTH(limits); i++)
        for (size_t k = 0; k < LENGTH(io) * LENGTH(index) && good; k++, ++*n) {
            asked.s.memory.n_slots = slots[i % LENGTH(slots)];
            asked.s.reading.queue_depth = depths[i / LENGTH(slots) % LENGTH(depths)];
            asked.s.memory.max_memory = limits[i / LENGTH(slots) / LENGTH(depths)];
            asked.s.memory.io_memory = io[k % LENGTH(io)];
            asked.s.memory.index_memory = index[k / LENGTH(io)];
            good = agrees(n_fit);
        }
    return good;
}

TEST(every_division_equals_the_rules_and_stays_within_the_budget)
{
    static const uint32_t nodes[] = {1, 2, 4}, workers[] = {1, 2, 7, 64}, batches[] = {1, 32, 2048};
    static const uint64_t means[] = {60, 16384, 16385, 3 * MIB};
    const uint32_t stride = test_stride(5, 5);
    uint64_t n_fit = 0, n = 0;
    for (size_t i = 0; i < LENGTH(nodes) * LENGTH(workers) * LENGTH(batches) * 8; i += stride)
        for (size_t k = 0; k < LENGTH(means); k++) {
            const uint32_t flags = (uint32_t)(i % 8);
            (flags & 1 ? plain : copies)();
            mean(means[k]);
            asked.plan.head_only = flags >> 1 & 1;
            asked.plan.on_device = flags >> 2 & 1;
            asked.n_nodes = nodes[i / 8 % LENGTH(nodes)];
            asked.workers = workers[i / 8 / LENGTH(nodes) % LENGTH(workers)];
            asked.plan.batch_size = batches[i / 8 / LENGTH(nodes) / LENGTH(workers)];
            asked.layout.size = 3000 * (uint64_t)asked.plan.batch_size;
            CHECK(sweep_settings(&n_fit, &n));
        }
    printf("# %llu of %llu fit\n", (unsigned long long)n_fit, (unsigned long long)n);
    CHECK(n_fit > n / 4 && n_fit < n - n / 20);
}

/* ---- what auto becomes ----------------------------------------------------------------------- */

TEST(the_limit_is_three_quarters_of_the_machine_shared_by_the_local_world)
{
    struct pstk__budget b;
    plain();
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.limit, 48 * GIB);
    asked.s.ranks.local_world = 1;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.limit, 48 * GIB);
    asked.s.ranks.local_world = 8;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.limit, 6 * GIB);
    asked.s.memory.max_memory = GIB;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.limit, GIB);
}

TEST(decoded_records_have_a_lane_for_each_node_and_copied_ones_for_each_worker)
{
    struct pstk__budget b;
    plain();
    asked.n_nodes = 2;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_lanes, 2);
    mean(16 * KIB);
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_lanes, 8);
    mean(16 * KIB + 1);
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_lanes, 2);
    asked.plan.head_only = 1;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_lanes, 8);
    copies();
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_lanes, 4);
    asked.plan.outputs[0].kind = PSTK_OUTPUT_CALLBACK;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_lanes, 1);
}

TEST(pixels_have_lanes_as_arrays_do_unless_some_are_compressed_or_coded)
{
    static const uint32_t rows[][3] = {{0, 0, 4}, {0, 0, 4}, {1, 0, 1}, {0, 1, 1}};
    struct pstk__budget b;
    copies();
    for (size_t i = 0; i < LENGTH(rows); i++) {
        asked.plan.outputs[0].kind = i ? PSTK_OUTPUT_IMAGE : PSTK_OUTPUT_MASK;
        asked.source.stats[0].n_encoding[PSTK_ENCODING_PIXELS] = 1000000 - rows[i][0];
        asked.source.stats[0].n_codec[PSTK_CODEC_NONE] = 1000000 - rows[i][1];
        CHECK(divide(&b) == 0 && b.n_lanes == rows[i][2]);
    }
}

TEST(there_are_64_lanes_at_most_and_as_many_on_every_node)
{
    struct pstk__budget b;
    copies();
    asked.workers = 100;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_lanes, 64);
    asked.n_nodes = 3;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_lanes, 63);
}

TEST(slots_are_4_or_more_where_batches_are_few_rows_or_rows_are_copied)
{
    struct pstk__budget b;
    plain();
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_slots, 4);
    asked.plan.batch_size = 1;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_slots, 2 + 4 * 4);
    asked.plan.n_batched = 1; /* its rows come from processes, each with a batch */
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_slots, 2 + 4 * 4 + 4 / 2);
    copies();
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_slots, 8); /* two a lane: 2 + 2 * 128 * 4 / 256 is less */
    asked.plan.batch_size = 32;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_slots, 2 + 2 * 128 * 4 / 32);
    asked.plan.batch_size = 1;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_slots, 64);
}

TEST(a_device_has_3_slots_or_those_asked_for_and_the_host_none)
{
    struct pstk__budget b;
    plain();
    asked.s.device.n_slots = 5; /* no effect on the host */
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_device_slots, 0);
    CHECK_EQ(b.slot_memory, 4 * MIB);
    asked.plan.on_device = 1;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_device_slots, 5);
    CHECK_EQ(b.slot_memory, 4 * MIB + 5 * 5000);
    asked.s.device.n_slots = 0;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_device_slots, 3);
    CHECK_EQ(b.device_slot_size, 5000);
    CHECK_EQ(b.slot_memory, 4 * MIB + 3 * 5000);
}

TEST(a_task_is_64_kib_of_records_but_no_more_than_64_rows_or_half_a_workers_part)
{
    struct pstk__budget b;
    plain();
    asked.plan.batch_size = 4096;
    mean(1000);
    asked.s.memory.n_slots = 2; /* one lane, of all four workers */
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_lanes, 1);
    CHECK_EQ(b.rows_per_task, 64);
    mean(3000);
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.rows_per_task, 65536 / 3000);
    mean(70000);
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.rows_per_task, 1);
    mean(1000);
    asked.plan.batch_size = 100;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.rows_per_task, 100 / (2 * 4));
}

TEST(a_lanes_io_memory_is_twice_what_is_in_flight_within_bounds)
{
    struct pstk__budget b;
    plain();
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.depth, 128);
    CHECK_EQ(b.buffer_size, pages(2 * 128 * (100000 + 8192)));
    asked.s.reading.queue_depth = 1;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.depth, 1);
    CHECK_EQ(b.buffer_size, 2 * (5 * MIB + 8192)); /* two of the largest reads */
    asked.source.limits.max_size = 200000;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.buffer_size, 4 * MIB);
    mean(3 * MIB);
    asked.s.reading.queue_depth = 0;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.buffer_size, 256 * MIB);
    asked.source.limits.max_size = 200 * MIB;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.buffer_size, 400 * MIB + 16384);
    asked.s.memory.max_memory = 100 * MIB;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.buffer_size, 48 * MIB); /* half of what four slots leave */
}

TEST(io_memory_and_index_memory_are_divided_by_the_lanes_into_whole_pages)
{
    struct pstk__budget b;
    copies();
    asked.s.memory.io_memory = 10 * MIB + 4;
    asked.s.memory.index_memory = 2 * MIB;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_lanes, 4);
    CHECK_EQ(b.buffer_size, 2560 * KIB + 4096);
    CHECK_EQ(b.index_size, 512 * KIB);
    asked.s.memory.io_memory = 1;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.buffer_size, 8192);
}

TEST(the_index_cache_is_64_mib_or_the_whole_index_and_holds_two_tasks)
{
    struct pstk__budget b;
    plain();
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.index_size, 1965 * 4096);
    asked.source.n_pages = 1 << 20;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.index_size, 64 * MIB);
    asked.s.memory.index_memory = 1;
    mean(3000);
    asked.s.memory.n_slots = 2;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.rows_per_task, 21);
    CHECK_EQ(b.index_size, 2 * 21 * 4096);
    asked.source.n_pages = 1;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.index_size, 2 * 21 * 4096);
}

TEST(a_workers_spare_buffer_holds_the_largest_record)
{
    struct pstk__budget b;
    plain();
    for (uint64_t size = 4095; size <= 4097; size++) {
        asked.source.limits.max_size = size;
        CHECK_EQ(divide(&b), 0);
        CHECK_EQ(b.spare_size, size > 4096 ? 8192 : 4096);
    }
}

TEST(lanes_give_way_where_slots_are_few)
{
    struct pstk__budget b;
    copies();
    asked.n_nodes = 2;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_lanes, 8);
    for (uint32_t n = 2; n <= 16; n++) {
        asked.s.memory.n_slots = n;
        CHECK_EQ(divide(&b), 0);
        CHECK_EQ(b.n_lanes, n < 8 ? 2 : n < 12 ? 4 : n < 16 ? 6 : 8);
    }
}

TEST(fields_in_files_of_their_own_take_memory_only_where_an_output_reads_them)
{
    struct pstk__budget b;
    plain();
    asked.source.format = &pstk__format_arrays;
    asked.source.schema.n_fields = 3;
    const uint64_t sizes[3] = {5000, 200 * MIB, 3000};
    for (uint32_t i = 0; i < 3; i++) {
        asked.source.limits.max_stored[i] = sizes[i];
        asked.source.stats[i].stored_bytes = sizes[i] * asked.source.n_samples;
    }
    asked.source.limits.max_size = 5000 + 200 * MIB + 3000;
    asked.source.bytes = asked.source.limits.max_size * asked.source.n_samples;
    asked.plan.outputs[1].field = 2;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.spare_size, pages(8000));
    CHECK_EQ(b.buffer_size, pages(most(4 * MIB, 2 * 128 * (8000 + 8192))));
    CHECK(b.rows_per_task > 1);
    asked.plan.outputs[1].field = 1;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.spare_size, pages(200 * MIB + 5000));
    CHECK_EQ(b.buffer_size, pages(2 * (200 * MIB + 5000 + 8192)));
    CHECK_EQ(b.rows_per_task, 1);
}

TEST(an_empty_data_set_is_divided_by_its_head)
{
    struct pstk__budget b;
    plain();
    asked.source.n_samples = asked.source.bytes = asked.source.n_pages = 0;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_lanes, 4);
}

/* ---- where memory is short ------------------------------------------------------------------- */

TEST(slots_on_auto_give_way_to_io_memory_and_index)
{
    struct pstk__budget b;
    plain();
    asked.source.n_pages = 100;
    const uint64_t rest = 4 * MIB + 100 * 4096;
    for (uint32_t n = 2; n <= 4; n++) {
        asked.s.memory.max_memory = n * MIB + rest;
        CHECK_EQ(divide(&b), 0);
        CHECK_EQ(b.n_slots, n);
        asked.s.memory.max_memory--;
        CHECK_EQ(divide(&b), n == 2 ? PSTK_ENOMEM : 0);
        CHECK(n == 2 || b.n_slots == n - 1);
    }
    CHECK(strstr(asked.err.message, "max_memory"));
}

TEST(exactly_what_a_division_takes_is_enough_and_a_byte_less_is_not)
{
    struct pstk__budget b;
    for (uint32_t n = 2; n <= 40; n += 19) {
        copies();
        asked.s.memory.n_slots = n;
        asked.s.memory.io_memory = 40 * MIB;
        CHECK_EQ(divide(&b), 0);
        asked.s.memory.max_memory = b.slot_memory + b.n_lanes * (b.buffer_size + b.index_size);
        CHECK_EQ(divide(&b), 0);
        asked.s.memory.max_memory--;
        CHECK_EQ(divide(&b), PSTK_ENOMEM);
        CHECK(strncmp(asked.err.message, "max_memory: ", 12) == 0);
    }
}

static const char *const lowerable[] = {"n_slots", "batch_size", "io_memory", "index_memory"};

/* Do as a message says: as low as can be. */
static void lower(uint32_t setting)
{
    if (setting == 0)
        asked.s.memory.n_slots = asked.n_nodes > 2 ? asked.n_nodes : 2; /* one a node */
    if (setting == 1) {
        asked.plan.batch_size = 1;
        asked.layout = asked.least;
    }
    if (setting == 2)
        asked.s.memory.io_memory = 1;
    if (setting == 3)
        asked.s.memory.index_memory = 1;
}

/* Return whether memory is divided with these settings lowered, a set. */
static int opens_with(uint32_t lowered)
{
    static struct asked as_it_was;
    struct pstk__budget b;
    as_it_was = asked;
    for (uint32_t i = 0; i < 4; i++)
        if (lowered >> i & 1)
            lower(i);
    const int r = divide_to(&b, NULL);
    asked = as_it_was;
    return r == 0;
}

/* The settings that the refusals of a sweep advise to lower. */
static struct {
    uint32_t alone, together; /* settings, sets */
    uint32_t n_raise;         /* nothing but more memory */
} advice;

/* Follow the advice of the message: is all of it true, and nothing left out that would help? */
static int advice_is_true(void)
{
    static struct asked as_it_was;
    struct pstk__budget b;
    char text[256];
    const char *at = strstr(asked.err.message, ": lower ");
    snprintf(text, sizeof text, "%s", at ? at : "");
    const int together = strstr(text, " and ") != NULL;
    uint32_t named = 0, n_named = 0, helpful = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const int is_named = strstr(text, lowerable[i]) != NULL;
        named |= (uint32_t)is_named << i;
        n_named += (uint32_t)is_named;
        helpful |= (uint32_t)opens_with(1u << i) << i;
    }
    int good = together ? !helpful && n_named > 1 && opens_with(named) : named == helpful;
    for (uint32_t i = 0; together && i < 4; i++)
        good &= !(named >> i & 1) || !opens_with(named & ~(1u << i));
    good &= named || !opens_with(15);
    advice.alone |= together ? 0 : named;
    advice.together |= together ? named : 0;
    advice.n_raise += !named;
    as_it_was = asked;
    asked.s.memory.max_memory = UINT64_MAX / 2;
    good &= strstr(as_it_was.err.message, "raise max_memory") && divide_to(&b, NULL) == 0;
    asked = as_it_was;
    if (!good)
        printf("# nodes %u, slots %u of %llu, io %llu, index %llu, max %llu: %s\n", asked.n_nodes,
               asked.s.memory.n_slots, (unsigned long long)asked.layout.size,
               (unsigned long long)asked.s.memory.io_memory,
               (unsigned long long)asked.s.memory.index_memory,
               (unsigned long long)asked.s.memory.max_memory, asked.err.message);
    return good;
}

static const uint64_t memories[] = {100,     17 * KIB, 20 * KIB, 45 * KIB, 5 * MIB,
                                    9 * MIB, 12 * MIB, 20 * MIB, 66 * MIB, 75 * MIB};

/* Every refusal of so many slots and nodes. Returns how many advise what is not true. */
static uint32_t follow_advice(uint32_t n_slots, uint32_t n_nodes)
{
    uint32_t n_wrong = 0;
    for (uint32_t limit = 0; limit < LENGTH(memories); limit++)
        for (uint32_t k = 0; k < 3 * 3 * 3 * 4; k++) {
            struct pstk__budget b;
            const uint64_t max = memories[limit], sizes[] = {0, 1, max - max / 50};
            plain();
            asked.n_nodes = n_nodes;
            asked.s = (struct pstk_settings){.memory.n_slots = n_slots,
                                             .memory.max_memory = max,
                                             .memory.io_memory = sizes[k % 3],
                                             .memory.index_memory = sizes[k / 3 % 3]};
            asked.source.n_pages = (const uint32_t[]){1, 1965, 1 << 20}[k / 9 % 3];
            asked.layout.size = (const uint64_t[]){4 * KIB, MIB, 8 * MIB, 3 * KIB}[k / 27];
            asked.least.size = (const uint64_t[]){256, 4 * KIB, MIB, 3 * KIB}[k / 27];
            if (divide(&b) == PSTK_ENOMEM)
                n_wrong += !advice_is_true();
        }
    return n_wrong;
}

/* The settings that a message says to lower are those with which it opens. */
TEST(a_loader_opens_once_the_settings_a_refusal_names_are_lowered)
{
    static const uint32_t slots[] = {0, 2, 3, 4, 40, 4000};
    memset(&advice, 0, sizeof advice);
    for (uint32_t n_nodes = 1; n_nodes <= 3; n_nodes++)
        for (size_t i = 0; i < LENGTH(slots); i++)
            CHECK_EQ(follow_advice(slots[i], n_nodes), 0);
    CHECK_EQ(advice.alone, 15);
    CHECK_EQ(advice.together, 15);
    CHECK(advice.n_raise > 0);
}

TEST(a_refusal_names_what_is_over_max_memory)
{
    struct pstk__budget b;
    for (uint32_t n = 0; n <= 4; n += n ? 1 : 2)
        for (uint32_t too_large = 0; too_large <= 1; too_large++) {
            plain();
            asked.s.memory.n_slots = n;
            asked.layout.size = too_large ? 8 * MIB : MIB;
            asked.s.memory.max_memory = 5 * MIB;
            CHECK_EQ(divide(&b), PSTK_ENOMEM);
            CHECK_EQ(strncmp(asked.err.message, "n_slots: ", 9) == 0, too_large);
            CHECK_EQ(strncmp(asked.err.message, "max_memory: ", 12) == 0, !too_large);
        }
}

TEST(io_and_index_memory_are_named_if_they_alone_exceed_the_limit)
{
    struct pstk__budget b;
    plain();
    asked.s.memory.n_slots = 40;
    asked.s.memory.max_memory = 50 * MIB;
    asked.s.memory.io_memory = 45 * MIB;
    asked.s.memory.index_memory = 6 * MIB;
    CHECK_EQ(divide(&b), PSTK_ENOMEM);
    CHECK(strstr(asked.err.message, "leave 10.0 MiB for io_memory and index_memory, which need "
                                    "51.0 MiB: lower io_memory, or raise max_memory"));
    asked.s.memory.n_slots = 2;
    asked.s.memory.io_memory = 25 * MIB;
    asked.source.n_pages = 1 << 20;
    asked.s.memory.index_memory = 26 * MIB;
    CHECK_EQ(divide(&b), PSTK_ENOMEM);
    CHECK(strstr(asked.err.message, ": lower io_memory or index_memory, or raise max_memory"));
}

/* A slot has room for the largest values, whatever bytes_per_batch is. */
TEST(bytes_per_batch_is_not_advised_since_slots_do_not_depend_on_it)
{
    struct pstk__budget b;
    plain();
    asked.s.memory.n_slots = 3;
    asked.s.memory.max_memory = 2 * MIB;
    for (uint32_t item_size = 0; item_size <= 1; item_size++) {
        asked.plan.outputs[0].ragged.item_size = item_size; /* ragged or not */
        CHECK_EQ(divide(&b), PSTK_ENOMEM);
        CHECK(strstr(asked.err.message,
                     "n_slots: 3 slots of 1.0 MiB each are over max_memory, 2.0 MiB: "));
        CHECK(!strstr(asked.err.message, "bytes_per_batch"));
    }
}

TEST(the_host_memory_of_device_slots_counts)
{
    struct pstk__budget b;
    plain();
    asked.plan.on_device = 1;
    asked.s.memory.n_slots = 4;
    asked.s.memory.max_memory = 4 * MIB + 3 * 5000 - 1;
    CHECK_EQ(divide(&b), PSTK_ENOMEM);
    CHECK(strncmp(asked.err.message, "n_slots: ", 9) == 0);
    asked.s.memory.max_memory = 100;
    CHECK_EQ(divide(&b), PSTK_ENOMEM);
}

/* With smaller batches a device's slots take less of the host, too. */
TEST(smaller_batches_are_advised_where_a_devices_slots_alone_are_over)
{
    struct pstk__budget b;
    plain();
    asked.plan.on_device = 1;
    asked.layout.size = 7 * MIB;
    asked.layout.about = MIB, asked.layout.about_end = 7 * MIB;
    for (uint32_t n_slots = 0; n_slots <= 4; n_slots += 2) {
        asked.s.memory.n_slots = n_slots;
        asked.s.memory.max_memory = 17 * MIB;
        CHECK_EQ(divide(&b), PSTK_ENOMEM);
        CHECK(strstr(asked.err.message, ": lower batch_size, or raise max_memory"));
        CHECK(advice_is_true());
    }
}

/* ---- what is refused ------------------------------------------------------------------------- */

TEST(memory_over_the_limit_is_refused_by_name_and_the_ends_of_ranges_are_taken)
{
    static const struct {
        uint32_t n_slots, depth;
        uint64_t io, index;
        int result;
        const char *says;
    } cases[] = {
        {.n_slots = 2},
        {.n_slots = 4096},
        {.depth = 4096},
        {.io = 48 * GIB + 1,
         .result = PSTK_EINVAL,
         .says =
             "io_memory: value is 51539607553; must be at most max_memory, which is 51539607552"},
        {.index = 48 * GIB + 1,
         .result = PSTK_EINVAL,
         .says = "index_memory: value is 51539607553; must be at most max_memory, which is "},
        {.io = 48 * GIB, .result = PSTK_ENOMEM, .says = "max_memory: "},
        {.index = 48 * GIB},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct pstk__budget b;
        plain();
        asked.s.memory.n_slots = cases[i].n_slots;
        asked.s.reading.queue_depth = cases[i].depth;
        asked.s.memory.io_memory = cases[i].io;
        asked.s.memory.index_memory = cases[i].index;
        CHECK_EQ(divide(&b), cases[i].result);
        if (cases[i].says)
            CHECK(strncmp(asked.err.message, cases[i].says, strlen(cases[i].says)) == 0);
    }
}

TEST(fewer_slots_than_nodes_are_refused_by_name)
{
    struct pstk__budget b;
    plain();
    asked.n_nodes = 4;
    asked.s.memory.n_slots = 3;
    CHECK_EQ(divide(&b), PSTK_EINVAL);
    CHECK(strstr(asked.err.message, "n_slots: value is 3; must be at least 4 (one a NUMA node)"));
    asked.s.memory.max_memory = 1;
    CHECK_EQ(divide(&b), PSTK_EINVAL); /* before what no memory would mend */
    asked.s.memory.max_memory = 0;
    asked.s.memory.n_slots = 4;
    CHECK_EQ(divide(&b), 0);
    CHECK_EQ(b.n_lanes, 4);
}

TEST(slots_on_auto_that_are_too_few_for_the_nodes_are_too_little_memory)
{
    struct pstk__budget b;
    plain();
    asked.n_nodes = 4;
    asked.s.memory.max_memory = 3 * MIB;
    CHECK_EQ(divide(&b), PSTK_ENOMEM);
    CHECK(strncmp(asked.err.message, "n_slots: 4 slots of 1.0 MiB each", 32) == 0);
}

TEST(a_slot_that_cannot_be_laid_out_is_over_every_budget)
{
    struct pstk__budget b;
    for (int on_device = 0; on_device <= 1; on_device++) {
        plain();
        asked.plan.on_device = (uint32_t)on_device;
        asked.layout.size = asked.layout.about_end = UINT64_MAX;
        CHECK_EQ(divide(&b), PSTK_ENOMEM);
        CHECK(strncmp(asked.err.message, "n_slots: ", 9) == 0);
        asked.s.memory.max_memory = UINT64_MAX;
        CHECK_EQ(divide(&b), PSTK_ENOMEM);
    }
}

/* Sums that do not fit 64 bits are over a budget of all 64 bits. */
TEST(the_largest_io_memory_does_not_overflow)
{
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 4095, UINT64_MAX - 8192,
                                     UINT64_MAX - 16 * MIB};
    for (size_t i = 0; i < LENGTH(sizes); i++)
        for (uint32_t n_nodes = 1; n_nodes <= 3; n_nodes++) {
            struct pstk__budget b;
            plain();
            asked.n_nodes = n_nodes;
            asked.s.memory.n_slots = 4000;
            asked.s.memory.max_memory = UINT64_MAX;
            asked.s.memory.io_memory = sizes[i];
            CHECK_EQ(divide(&b), PSTK_ENOMEM);
            CHECK(strncmp(asked.err.message, "max_memory: ", 12) == 0);
        }
}

TEST(a_refusal_needs_no_error_to_write_to)
{
    struct pstk__budget b;
    plain();
    asked.n_nodes = 3;
    asked.s.memory.n_slots = 2;
    CHECK_EQ(divide_to(&b, NULL), PSTK_EINVAL);
    asked.s.memory.n_slots = 3;
    asked.s.memory.max_memory = 1;
    CHECK_EQ(divide_to(&b, NULL), PSTK_ENOMEM);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(every_division_equals_the_rules_and_stays_within_the_budget),
        CASE(the_limit_is_three_quarters_of_the_machine_shared_by_the_local_world),
        CASE(decoded_records_have_a_lane_for_each_node_and_copied_ones_for_each_worker),
        CASE(pixels_have_lanes_as_arrays_do_unless_some_are_compressed_or_coded),
        CASE(there_are_64_lanes_at_most_and_as_many_on_every_node),
        CASE(slots_are_4_or_more_where_batches_are_few_rows_or_rows_are_copied),
        CASE(a_device_has_3_slots_or_those_asked_for_and_the_host_none),
        CASE(a_task_is_64_kib_of_records_but_no_more_than_64_rows_or_half_a_workers_part),
        CASE(a_lanes_io_memory_is_twice_what_is_in_flight_within_bounds),
        CASE(io_memory_and_index_memory_are_divided_by_the_lanes_into_whole_pages),
        CASE(the_index_cache_is_64_mib_or_the_whole_index_and_holds_two_tasks),
        CASE(a_workers_spare_buffer_holds_the_largest_record),
        CASE(lanes_give_way_where_slots_are_few),
        CASE(fields_in_files_of_their_own_take_memory_only_where_an_output_reads_them),
        CASE(an_empty_data_set_is_divided_by_its_head),
        CASE(slots_on_auto_give_way_to_io_memory_and_index),
        CASE(exactly_what_a_division_takes_is_enough_and_a_byte_less_is_not),
        CASE(a_loader_opens_once_the_settings_a_refusal_names_are_lowered),
        CASE(a_refusal_names_what_is_over_max_memory),
        CASE(io_and_index_memory_are_named_if_they_alone_exceed_the_limit),
        CASE(bytes_per_batch_is_not_advised_since_slots_do_not_depend_on_it),
        CASE(the_host_memory_of_device_slots_counts),
        CASE(smaller_batches_are_advised_where_a_devices_slots_alone_are_over),
        CASE(memory_over_the_limit_is_refused_by_name_and_the_ends_of_ranges_are_taken),
        CASE(fewer_slots_than_nodes_are_refused_by_name),
        CASE(slots_on_auto_that_are_too_few_for_the_nodes_are_too_little_memory),
        CASE(a_slot_that_cannot_be_laid_out_is_over_every_budget),
        CASE(the_largest_io_memory_does_not_overflow),
        CASE(a_refusal_needs_no_error_to_write_to),
    };
    return RUN_CASES(cases);
}
