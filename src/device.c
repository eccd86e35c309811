/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include "error.h"

#include <stdlib.h>

static int host_open(struct pstk__device **out, int32_t index, struct pstk_error *err)
{
    *out = NULL;
    if (index != 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "device_index: the host has device 0 only, not %d", index);
    struct pstk__device *d = calloc(1, sizeof *d);
    if (!d)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the device");
    d->ops = pstk__device_ops(PSTK_HOST);
    *out = d;
    return 0;
}

static void host_close(struct pstk__device *d)
{
    free(d);
}

static int host_register_slot(struct pstk__device *d, void *memory, uint64_t size,
                              struct pstk_error *err)
{
    (void)d, (void)memory, (void)size, (void)err;
    return 0;
}

static void host_unregister_slot(struct pstk__device *d, void *memory)
{
    (void)d, (void)memory;
}

static int host_acquire(struct pstk__device *d, struct pstk_batch *batch, void *stream,
                        struct pstk_error *err)
{
    (void)d, (void)batch, (void)stream, (void)err;
    return 0;
}

static int host_release(struct pstk__device *d, struct pstk_batch *batch, void *stream)
{
    (void)d, (void)batch, (void)stream;
    return 0;
}

static const struct pstk__device_ops host_ops = {
    .kind = PSTK_HOST,
    .name = "host",
    .open = host_open,
    .close = host_close,
    .register_slot = host_register_slot,
    .unregister_slot = host_unregister_slot,
    .acquire = host_acquire,
    .release = host_release,
};

const struct pstk__device_ops *pstk__device_ops(uint32_t kind)
{
    return kind == PSTK_HOST ? &host_ops : NULL;
}
