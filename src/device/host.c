/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host.h"

#include "base/clock.h"
#include "base/error.h"
#include "device/device.h"

#include <stdlib.h>
#include <string.h>

static int host_find(int32_t index, char bus_id[PSTK__BUS_ID_SIZE], struct pstk_error *err)
{
    bus_id[0] = '\0';
    if (index != 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "device_index: value is %d; must be 0 on the host", index);
    return 0;
}

static int host_open(struct pstk__device **out, const struct pstk__device_config *c,
                     struct pstk_error *err)
{
    (void)c;
    *out = calloc(1, sizeof **out);
    if (!*out)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the device");
    (*out)->ops = &pstk__host_ops;
    return 0;
}

static void host_close(struct pstk__device *d)
{
    free(d);
}

static int host_count(void)
{
    return 1;
}

static void host_describe(int32_t index, struct pstk_device *to)
{
    (void)index;
    to->numa_node = -1; /* the host has all nodes */
}

static int host_measure(int32_t index, uint64_t block_size, double seconds,
                        struct pstk_copy_rates *rates, struct pstk_error *err)
{
    (void)index, (void)block_size, (void)seconds, (void)rates;
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_DEVICE,
                      "kind: value is PSTK_HOST; must be PSTK_CUDA, because nothing is copied to "
                      "the host (pstk_measure_ceilings measures memory)");
}

static void host_ask(struct pstk__device *d, void *stream, int again, int quick)
{
    (void)d, (void)stream, (void)again, (void)quick;
}

/* Do nothing: on the host the caller acts as the stream, and has already done its work. */
static int host_order(struct pstk__device *d, uint32_t slot, void *stream, struct pstk_error *err)
{
    (void)d, (void)slot, (void)stream, (void)err;
    return 0;
}

static int host_acquire(struct pstk__device *d, uint32_t slot, void *stream, int quick,
                        struct pstk_error *err)
{
    (void)quick;
    return host_order(d, slot, stream, err);
}

static int host_release(struct pstk__device *d, const struct pstk__lease_end *end,
                        struct pstk_error *err)
{
    (void)d, (void)err;
    *end->n_streams = 0;
    return 0;
}

static void host_abandon(struct pstk__device *d)
{
    (void)d;
}

static int host_stream_open(struct pstk__device *d, void **stream, struct pstk_error *err)
{
    (void)d, (void)err;
    *stream = NULL;
    return 0;
}

static void host_stream_close(struct pstk__device *d, void *stream)
{
    (void)d, (void)stream;
}

/* Keep the calling thread busy, which acts as the stream. */
static int host_stream_spin(struct pstk__device *d, void *stream, uint64_t ns,
                            struct pstk_error *err)
{
    (void)d, (void)stream, (void)err;
    for (uint64_t start = pstk__clock_ns(); pstk__clock_ns() - start < ns;) {
    }
    return 0;
}

static int host_check_shared(struct pstk__device *d, void *stream, struct pstk_error *err)
{
    (void)d, (void)stream, (void)err;
    return 0;
}

static int host_read(struct pstk__device *d, void *to, const void *from, uint64_t size,
                     void *stream, struct pstk_error *err)
{
    (void)d, (void)stream, (void)err;
    if (size)
        memcpy(to, from, size);
    return 0;
}

const struct pstk__device_ops pstk__host_ops = {
    .kind = PSTK_HOST,
    .name = "host",
    .find = host_find,
    .open = host_open,
    .close = host_close,
    .count = host_count,
    .describe = host_describe,
    .measure = host_measure,
    .ask = host_ask,
    .acquire = host_acquire,
    .wait = host_order,
    .record = host_order,
    .check_shared = host_check_shared,
    .release = host_release,
    .abandon = host_abandon,
    .read = host_read,
    .stream_open = host_stream_open,
    .stream_close = host_stream_close,
    .stream_spin = host_stream_spin,
};
