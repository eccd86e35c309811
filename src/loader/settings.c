/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/settings.h"

#include "device/device.h"
#include "base/error.h"
#include "machine/numa.h"

#include <stddef.h>
#include <string.h>

#define SETTINGS_SIZE_MAX 65536u
#define DEVICE_SLOTS_MAX 64u
#define BATCH_SIZE_MAX (1u << 30) /* rows, so that sums of two still fit in 32 bits */

void pstk_settings_init(struct pstk_settings *s, uint32_t size)
{
    if (!s || size < offsetof(struct pstk_settings, path))
        return;
    memset(s, 0, size);
    s->size = size;
    s->output_size = sizeof(struct pstk_output);
    s->op_size = sizeof(struct pstk_op);
    s->batch_size = 1;
    if (size >= offsetof(struct pstk_settings, local_world) + sizeof s->local_world)
        s->world = s->local_world = 1;
}

int pstk__settings_copy(struct pstk_settings *to, const struct pstk_settings *from,
                        struct pstk_error *err)
{
    if (!from || from->size < offsetof(struct pstk_settings, n_outputs) ||
        from->size > SETTINGS_SIZE_MAX)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "settings: not initialised, call pstk_settings_init first");
    for (uint32_t i = sizeof *to; i < from->size; i++)
        if (((const uint8_t *)from)[i] != 0)
            return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                              "settings: one of a newer penstock is set, which version %s does "
                              "not know",
                              pstk_version());
    pstk_settings_init(to, sizeof *to);
    memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
    to->size = sizeof *to;
    if (!to->world)
        to->world = 1;
    if (!to->local_world)
        to->local_world = 1;
    return 0;
}

/* A setting with its largest value. */
struct range {
    const char *name;
    uint64_t value, max;
};

int pstk__settings_check(const struct pstk_settings *s, struct pstk_error *err)
{
    const struct range ranges[] = {
        {"order", s->order, PSTK_ORDER_SEQUENTIAL},
        {"last", s->last, PSTK_LAST_SHORT},
        {"reader", s->reader, PSTK_READER_THREADS},
        {"io", s->io, PSTK_IO_BUFFERED},
        {"bad_sample", s->bad_sample, PSTK_BAD_SUBSTITUTE},
        {"variant", s->variant, PSTK_VARIANT_AVX512},
        {"with_crops", s->with_crops, 1},
        {"no_pinning", s->no_pinning, 1},
        {"n_threads", s->n_threads, PSTK__MAX_WORKERS},
        {"n_device_slots", s->n_device_slots, DEVICE_SLOTS_MAX},
        {"timed", s->timed, 1},
        {"trace", s->trace, 1},
    };
    if (!s->path || !s->path[0])
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "path: not set");
    if (!s->batch_size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "batch_size: is 0, must be at least 1");
    if (s->batch_size > BATCH_SIZE_MAX)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "batch_size: is %u, at most %u",
                          s->batch_size, BATCH_SIZE_MAX);
    if (!s->outputs || !s->n_outputs)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "outputs: none given");
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].value > ranges[i].max)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s: is %llu, at most %llu",
                              ranges[i].name, (unsigned long long)ranges[i].value,
                              (unsigned long long)ranges[i].max);
    if (s->rank >= s->world || s->local_rank >= s->local_world) {
        int local = s->rank < s->world;
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "%s: is %u, must be below %s, which is %u", local ? "local_rank" : "rank",
                          local ? s->local_rank : s->rank, local ? "local_world" : "world",
                          local ? s->local_world : s->world);
    }
    if (s->n_device_slots == 1)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "n_device_slots: is 1, must be at least 2: one is loaded while the other "
                          "is used");
    if (!pstk__device_ops(s->device))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "device: is %u, must be PSTK_HOST or PSTK_CUDA", s->device);
    return 0;
}
