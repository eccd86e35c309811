/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/settings.h"

#include "device/device.h"
#include "format/format.h"
#include "base/error.h"
#include "loader/bucketed.h"
#include "loader/mixture.h"
#include "machine/numa.h"
#include "observe/timeline.h"
#include "order/windowed.h"
#include "reader/reader.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define SETTINGS_SIZE_MAX 65536u
#define SLOTS_MAX 4096u
#define DEVICE_SLOTS_MAX 64u
#define BATCH_SIZE_MAX (1u << 30) /* rows; the sum of two sizes still fits in 32 bits */

/* The smallest size of a program's settings: the size in the first release. */
#define SETTINGS_SIZE_MIN                                                                          \
    (offsetof(struct pstk_settings, observe) + sizeof(struct pstk_settings_observe))

void pstk_settings_init(struct pstk_settings *s, uint32_t size)
{
    if (!s || size < SETTINGS_SIZE_MIN)
        return;
    memset(s, 0, size);
    s->size = size;
    s->output_size = sizeof(struct pstk_output);
    s->op_size = sizeof(struct pstk_op);
    s->batch_size = 1;
    s->ranks.world = s->ranks.local_world = 1;
    s->reading.pin_threads = 1;
}

int pstk__settings_copy(struct pstk_settings *to, const struct pstk_settings *from,
                        struct pstk_error *err)
{
    if (!from || from->size < SETTINGS_SIZE_MIN || from->size > SETTINGS_SIZE_MAX)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "settings: not initialised, call pstk_settings_init first");
    for (uint32_t i = sizeof *to; i < from->size; i++)
        if (((const uint8_t *)from)[i] != 0)
            return pstk__fail(
                err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                "settings: a setting of a newer penstock is set, which version %s does not know",
                pstk_version());
    pstk_settings_init(to, sizeof *to);
    memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
    to->size = sizeof *to;
    return 0;
}

/* A setting and its range of values. */
struct range {
    const char *name;
    uint64_t value, least, most;
    int is_auto; /* 1: the value may also be 0, and open then chooses one */
};

static int check_range(const struct range *range, struct pstk_error *err)
{
    if ((range->is_auto && range->value == 0) ||
        (range->value >= range->least && range->value <= range->most))
        return 0;
    return pstk__fail_setting(err, range->name, range->value, "%sfrom %llu to %llu",
                              range->is_auto ? "0 (open chooses) or " : "",
                              (unsigned long long)range->least, (unsigned long long)range->most);
}

/* Check that the number of processes is not 0, and that the rank is below it. atoi returns 0 for an
 * empty variable: taken as 1, it would give every process all samples. */
static int check_rank(const char *name, uint32_t rank, const char *of, uint32_t n,
                      struct pstk_error *err)
{
    if (n == 0)
        return pstk__fail_setting(err, of, n,
                                  "at least 1, a number of processes (pstk_settings_init sets 1)");
    return rank < n ? 0 : pstk__fail_setting(err, name, rank, "below %s, which is %u", of, n);
}

/* Refuse members that only a later version has. */
static int check_room(const struct pstk_settings *s, struct pstk_error *err)
{
#define SUM(part)                                                                                  \
    ((part).reserved[0] | (part).reserved[1] | (part).reserved[2] | (part).reserved[3])
    const struct {
        const char *name;
        uint64_t bits;
    } room[] = {
        {"reserved", s->reserved},
        {"order.reserved", SUM(s->order)},
        {"ranks.reserved", SUM(s->ranks)},
        {"memory.reserved", SUM(s->memory)},
        {"reading.reserved", SUM(s->reading) | s->reading.reserved2},
        {"device.reserved", SUM(s->device)},
        {"observe.reserved", SUM(s->observe) | s->observe.reserved2},
    };
#undef SUM
    for (size_t i = 0; i < sizeof room / sizeof *room; i++)
        if (room[i].bits)
            return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                              "%s: not supported in this version; must be 0", room[i].name);
    return 0;
}

/* Check the rows of a global batch, and set the rows of this rank's batch. */
static int settle_batch(struct pstk_settings *s, struct pstk_error *err)
{
    const uint32_t global = s->global_batch_size, rest = global % s->ranks.world;
    if (!global)
        return s->order.uneven
                   ? pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                                "uneven: value is 1; must be 0 without global_batch_size")
                   : 0;
    if (s->batch_size != 1)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "batch_size: value is %u; must be left at its default, because "
                          "global_batch_size is %u",
                          s->batch_size, global);
    if (global < s->ranks.world)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "global_batch_size: value is %u; must be at least world, which is %u, so "
                          "that each rank has a row",
                          global, s->ranks.world);
    if (rest && !s->order.uneven)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "global_batch_size: value is %u; must be a multiple of world, which is "
                          "%u, as %u is; or set uneven to 1: some ranks then have one row more",
                          global, s->ranks.world, global - rest);
    s->batch_size = global / s->ranks.world + (rest != 0);
    return check_range(
        &(struct range){"global_batch_size / world", s->batch_size, 1, BATCH_SIZE_MAX, 0}, err);
}

/* Check max_batch_size, the largest number of rows that a slot has room for. */
static int check_max(const struct pstk_settings *s, struct pstk_error *err)
{
    if (!s->memory.max_batch_size)
        return 0;
    if (s->memory.max_batch_size < s->batch_size)
        return pstk__fail_setting(err, "max_batch_size", s->memory.max_batch_size,
                                  "0 or at least the rows of this rank's batches, which are %u",
                                  s->batch_size);
    return check_range(
        &(struct range){"max_batch_size", s->memory.max_batch_size, 1, BATCH_SIZE_MAX, 0}, err);
}

/* Raise the slots' room to the largest size of a schedule. schedule.h checks the steps against the
 * data set. */
static int settle_schedule(struct pstk_settings *s, struct pstk_error *err)
{
    const uint32_t divisor = s->global_batch_size ? s->ranks.world : 1;
    uint32_t most = s->memory.max_batch_size ? s->memory.max_batch_size : s->batch_size;
    if (s->order.n_batch_steps > PSTK_MAX_BATCH_STEPS ||
        !s->order.batch_schedule != !s->order.n_batch_steps)
        return pstk__fail_setting(err, "n_batch_steps", s->order.n_batch_steps,
                                  "the length of batch_schedule, at most %d", PSTK_MAX_BATCH_STEPS);
    for (uint32_t i = 0; i < s->order.n_batch_steps; i++) {
        const uint32_t rows = s->order.batch_schedule[i].rows, rest = rows % divisor;
        const uint32_t own = rows / divisor + (rest != 0);
        char name[64];
        snprintf(name, sizeof name, "batch_schedule[%u].rows", i);
        if (rows < divisor)
            return pstk__fail_setting(err, name, rows, "at least %u", divisor);
        if (rest && !s->order.uneven)
            return pstk__fail_setting(
                err, name, rows, "a multiple of world, which is %u, unless uneven is 1", divisor);
        if (own > BATCH_SIZE_MAX)
            return pstk__fail_setting(err, name, rows, "at most %u rows for a rank",
                                      BATCH_SIZE_MAX);
        most = own > most ? own : most;
    }
    if (s->order.n_batch_steps)
        s->memory.max_batch_size = most;
    return 0;
}

int pstk__settings_resize(const struct pstk_settings *s, uint32_t rows, uint32_t room,
                          uint64_t *global_batch, struct pstk_error *err)
{
    struct pstk_settings of = {
        .ranks.world = s->ranks.world, .order.uneven = s->order.uneven, .batch_size = 1};
    const char *name = s->global_batch_size ? "global_batch_size" : "batch_size";
    *(s->global_batch_size ? &of.global_batch_size : &of.batch_size) = rows;
    int r = check_range(&(struct range){name, rows, 1, UINT32_MAX, 0}, err);
    if (r == 0 && s->global_batch_size)
        r = settle_batch(&of, err);
    if (r == 0 && of.batch_size > room)
        r = pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
            "%s: value is %u; must be at most %llu, what slots have room for (open with "
            "a max_batch_size of at least %u)",
            name, rows,
            (unsigned long long)(s->global_batch_size ? (uint64_t)room * s->ranks.world : room),
            of.batch_size);
    *global_batch = s->global_batch_size ? rows : (uint64_t)rows * s->ranks.world;
    return r;
}

/* Check the settings that only a windowed order has. */
static int check_order(const struct pstk_settings *s, struct pstk_error *err)
{
    const char *set = s->order.ways     ? "ways"
                      : s->order.block  ? "block"
                      : s->order.window ? "window"
                                        : NULL;
    const uint32_t value = s->order.ways    ? s->order.ways
                           : s->order.block ? s->order.block
                                            : s->order.window;
    if (s->order.kind == PSTK_ORDER_WINDOWED || !set)
        return 0;
    return pstk__fail_setting(err, set, value, "0 unless order is windowed");
}

int pstk__settings_check(struct pstk_settings *s, struct pstk_error *err)
{
    const struct range ranges[] = {
        {"batch_size", s->batch_size, 1, BATCH_SIZE_MAX, 0},
        {"n_outputs", s->n_outputs, 1, PSTK__MAX_OUTPUTS, 0},
        {"order", s->order.kind, 0, PSTK_ORDER_WINDOWED, 0},
        {"ways", s->order.ways, 1, PSTK__WAYS_MAX, 1},
        {"block", s->order.block, 1, PSTK__BLOCK_MAX, 1},
        {"window", s->order.window, 1, PSTK__WINDOW_MAX, 1},
        {"last_batch", s->last_batch, 0, PSTK_LAST_SHORT, 0},
        {"reader", s->reading.reader, 0, PSTK_READER_THREADS, 0},
        {"io", s->reading.io, 0, PSTK_IO_BUFFERED, 0},
        {"bad_sample", s->bad_sample, 0, PSTK_BAD_REPLACE, 0},
        {"kernels", s->reading.kernels, 0, PSTK_KERNELS_NEON, 0},
        {"report_crops", s->observe.report_crops, 0, 1, 0},
        {"pin_threads", s->reading.pin_threads, 0, 1, 0},
        {"measure_device", s->device.measure, 0, 1, 0},
        {"nvtx", s->observe.nvtx, 0, 1, 0},
        {"trace_events", s->observe.trace_events, 1, PSTK__TRACE_EVENTS_MAX, 1},
        {"uneven", s->order.uneven, 0, 1, 0},
        {"n_threads", s->n_threads, 1, PSTK__MAX_WORKERS, 1},
        {"n_slots", s->memory.n_slots, 2, SLOTS_MAX, 1},
        {"queue_depth", s->reading.queue_depth, 1, PSTK__MAX_DEPTH, 1},
        {"n_device_slots", s->device.n_slots, 2, DEVICE_SLOTS_MAX, 1},
    };
    if (!s->mixture && (!s->path || !s->path[0]))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "path: value is %s; must be the path of a data set",
                          s->path ? "empty" : "NULL");
    if (s->observe.monitor_path && !s->observe.monitor_path[0])
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "monitor_path: value is empty; must be NULL or the path of a file");
    if (!s->outputs)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "outputs: value is NULL; must be an array of n_outputs outputs");
    if (s->output_size == 0 || s->op_size == 0)
        return pstk__fail_setting(err, s->output_size ? "op_size" : "output_size", 0,
                                  "as pstk_settings_init sets it (call that first)");
    /* checked first, because other checks divide by world */
    int r = check_rank("rank", s->ranks.rank, "world", s->ranks.world, err);
    if (r == 0)
        r = check_rank("local_rank", s->ranks.local_rank, "local_world", s->ranks.local_world, err);
    for (size_t i = 0; r == 0 && i < sizeof ranges / sizeof *ranges; i++)
        r = check_range(&ranges[i], err);
    if (r == 0)
        r = check_room(s, err);
    if (r == 0)
        r = pstk__foreign_check(s->foreign, err);
    if (r == 0)
        r = check_order(s, err);
    if (r == 0 && s->mixture)
        r = pstk__mixture_check(s, err);
    if (r == 0)
        r = pstk__bucketed_check(s, err);
    if (r == 0)
        r = settle_batch(s, err);
    if (r == 0)
        r = check_max(s, err);
    if (r == 0)
        r = settle_schedule(s, err);
    if (r == 0 && !pstk__device_ops(s->device.kind))
        r = pstk__fail_setting(err, "device", s->device.kind, "PSTK_HOST (%d) or PSTK_CUDA (%d)",
                               PSTK_HOST, PSTK_CUDA);
    return r;
}
