/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/lerp.h"

#include <penstock/machine.h>

/* Blend by the kernel of an ISA. Memory limits 256-bit registers already, so AVX-512 has no kernel
 * of its own. */
void pstk__blend(const struct pstk__blend *blend, uint32_t kernels)
{
#if defined(__x86_64__) || defined(PSTK_NEON)
    if (kernels > PSTK_KERNELS_C) {
        pstk__blend_avx2(blend);
        return;
    }
#endif
    (void)kernels;
    pstk__blend_c(blend);
}
