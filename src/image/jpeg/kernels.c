/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/kernels.h"

#include "base/cpu.h"

#include <penstock/penstock.h>

const struct pstk__jpeg_kernels *pstk__jpeg_kernels(uint32_t variant)
{
    /* From worst to best; a CPU that runs one also runs those before it. */
    static const struct pstk__jpeg_kernels *const entries[] = {
        &pstk__jpeg_kernels_c,
#if defined(__x86_64__)
        &pstk__jpeg_kernels_avx2,
        &pstk__jpeg_kernels_avx512,
#endif
    };
    const uint32_t wanted = variant == PSTK_KERNELS_AUTO ? pstk__cpu_kernels() : variant;
    if (wanted > pstk__cpu_kernels())
        return NULL;
    for (uint32_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        if (entries[i]->variant == wanted)
            return entries[i];
    return NULL;
}
