/* SPDX-License-Identifier: Apache-2.0 */
/* cuda/absent: the CUDA entry of a build without CUDA. */
#include "device/cuda/table.h"

#include "device/device.h"
#include "base/error.h"

static int find(int32_t index, char bus_id[PSTK__BUS_ID_SIZE], struct pstk_error *err)
{
    (void)index;
    bus_id[0] = '\0';
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                      "device: this penstock was built without CUDA; install the CUDA toolkit and "
                      "build it again, or use the CPU");
}

static int count(void)
{
    return PSTK_ENOTSUP;
}

/* No other member is called when find fails. */
const struct pstk__device_ops pstk__cuda_ops = {
    .kind = PSTK_CUDA, .has_slots = 1, .name = "cuda", .find = find, .count = count};
