/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/lerp.h"

#include "base/kernels.h"

const struct pstk__lerp_kernels *pstk__lerp_kernels(uint32_t isa)
{
    /* Memory limits 256-bit registers already, so AVX-512 has no kernel of its own. */
    static const void *const entries[] = {
        &pstk__lerp_c,
#if defined(__x86_64__) || defined(PSTK_NEON)
        &pstk__lerp_avx2,
#endif
    };
    return pstk__kernels_choose(entries, sizeof entries / sizeof entries[0], isa);
}
