/* SPDX-License-Identifier: Apache-2.0 */
/* blur_avx2: the loops, for vectors of 256 bits. Without FMA, which would round less often. */
#if defined(__x86_64__)

#include "picture/blur_loops.h"

#define TARGET __attribute__((target("avx2")))

TARGET static void box_row_avx2(uint8_t *out, uint32_t *sums, const struct pstk__blur_box *box,
                                uint32_t n)
{
    box_loop(out, sums, box, n);
}

TARGET static void column_avx2(float *out, const uint8_t *const *rows,
                               const struct pstk__blur_weights *y, uint32_t n)
{
    column_loop(out, rows, y, n);
}

TARGET static void row_avx2(uint8_t *out, const float *in, const struct pstk__blur_weights *x,
                            uint32_t n, uint32_t channels)
{
    row_loop(out, in, x, n, channels);
}

const struct pstk__blur_kernels pstk__blur_avx2 = {
    .variant = PSTK_KERNELS_AVX2,
    .box_row = box_row_avx2,
    .column = column_avx2,
    .row = row_avx2,
};

#endif
