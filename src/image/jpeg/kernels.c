/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/kernels.h"

#include "base/kernels.h"

const struct pstk__jpeg_kernels *pstk__jpeg_kernels(uint32_t isa)
{
    static const void *const entries[] = {
        &pstk__jpeg_kernels_c,
#if defined(__x86_64__)
        &pstk__jpeg_kernels_avx2,
        &pstk__jpeg_kernels_avx512,
#elif defined(PSTK_NEON)
        &pstk__jpeg_kernels_neon,
#endif
    };
    return pstk__kernels_choose(entries, sizeof entries / sizeof entries[0], isa);
}
