/* SPDX-License-Identifier: Apache-2.0 */
/* List the devices. A new device adds its header and its line. */
#include "device/device.h"

#include "device/cuda/table.h"
#include "device/host.h"

#include <stddef.h>

static const struct pstk__device_ops *const devices[] = {&pstk__host_ops, &pstk__cuda_ops};

const struct pstk__device_ops *pstk__device_ops(uint32_t kind)
{
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (devices[i]->kind == kind)
            return devices[i];
    return NULL;
}
