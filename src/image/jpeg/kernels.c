/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/kernels.h"

#include "base/kernels.h"

const struct pstk__jpeg_kernels *pstk__jpeg_kernels(uint32_t isa)
{
    static const void *const entries[] = {
        &pstk__jpeg_kernels_c,
#if defined(__x86_64__) || defined(PSTK_NEON)
        &pstk__jpeg_kernels_avx2,
#endif
#if defined(__x86_64__)
        &pstk__jpeg_kernels_avx512,
#endif
    };
    return pstk__kernels_choose(entries, sizeof entries / sizeof entries[0], isa);
}
