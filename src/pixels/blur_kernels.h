/* SPDX-License-Identifier: Apache-2.0 */
/* blur_kernels: the contract of the kernels of blur.h. Each ISA has a table of them. The plain
 * C kernels are the reference for the others. */
#ifndef PSTK_PIXELS_BLUR_KERNELS_H
#define PSTK_PIXELS_BLUR_KERNELS_H

#include "pixels/picture.h"

#include <penstock/penstock.h>

/* Widest kernel of pstk__blur_gaussian, in pixels. */
#define PSTK__BLUR_MAX_KERNEL 127u

/* Rows of the highest box whose sums fit 15 bits. */
#define PSTK__BLUR_LOW_BOX 127u

/* One row of an extended box: rows of the input around an output row; rows past an edge are the
 * edge row. The sum covers the rows of the box, from the one after `leaving` to `entering`. */
struct pstk__blur_box {
    const uint8_t *leaving;  /* the row before the box */
    const uint8_t *entering; /* the last row of the box */
    const uint8_t *next;     /* the row after the box */
    uint32_t weight;         /* weight of a row of the box, in units of 2^-24 */
    uint32_t edge_weight;    /* weight of the rows before and after it */
};

/* A symmetric kernel: weights[0] is the middle pixel's, weights[k] that of both pixels k away from
 * it. */
struct pstk__blur_weights {
    uint32_t reach; /* pixels on each side of the middle */
    float weights[PSTK__BLUR_MAX_KERNEL / 2 + 1];
};

/* The kernels of one ISA. */
struct pstk__blur_kernels {
    uint32_t isa; /* enum pstk_kernels */
    /* Move the sums one row on, and write n bytes of the output row. */
    void (*box_row)(uint8_t *out, uint32_t *sums, const struct pstk__blur_box *box, uint32_t n);
    /* As box_row, for boxes whose sums never exceed 255 * PSTK__BLUR_LOW_BOX. */
    void (*low_box_row)(uint8_t *out, uint16_t *sums, const struct pstk__blur_box *box, uint32_t n);
    /* Sum 2 reach + 1 rows of n bytes, the middle one rows[reach]. */
    void (*column)(float *out, const uint8_t *const *rows, const struct pstk__blur_weights *y,
                   uint32_t n);
    /* Sum pixels of `channels` floats, and round to n bytes. `in` is the middle pixel of the first
     * output; reach pixels before it and after the last one are readable. */
    void (*row)(uint8_t *out, const float *in, const struct pstk__blur_weights *x, uint32_t n,
                uint32_t channels);
};

extern const struct pstk__blur_kernels pstk__blur_c; /* blur_c.c */
#if defined(__x86_64__)
extern const struct pstk__blur_kernels pstk__blur_avx2;   /* blur_avx2.c */
extern const struct pstk__blur_kernels pstk__blur_avx512; /* blur_avx512.c */
#endif

#endif
