/* SPDX-License-Identifier: Apache-2.0 */
/* blur_c: the loops compiled for any CPU: the reference for the other ISAs. */
#include "pixels/blur_loops.h"

static void box_row_c(uint8_t *out, uint32_t *sums, const struct pstk__blur_box *box, uint32_t n)
{
    box_loop(out, sums, box, n);
}

static void low_box_row_c(uint8_t *out, uint16_t *sums, const struct pstk__blur_box *box,
                          uint32_t n)
{
    low_box_loop(out, sums, box, n);
}

static void column_c(float *out, const uint8_t *const *rows, const struct pstk__blur_weights *y,
                     uint32_t n)
{
    column_loop(out, rows, y, n);
}

static void row_c(uint8_t *out, const float *in, const struct pstk__blur_weights *x, uint32_t n,
                  uint32_t channels)
{
    row_loop(out, in, x, n, channels);
}

const struct pstk__blur_kernels pstk__blur_c = {
    .isa = PSTK_KERNELS_C,
    .box_row = box_row_c,
    .low_box_row = low_box_row_c,
    .column = column_c,
    .row = row_c,
};
