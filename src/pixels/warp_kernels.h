/* SPDX-License-Identifier: Apache-2.0 */
/* warp_kernels: the contract of the kernels of warp.h. Each ISA has a table of them. The plain
 * C kernels are the reference for the others. */
#ifndef PSTK_PIXELS_WARP_KERNELS_H
#define PSTK_PIXELS_WARP_KERNELS_H

#include "pixels/picture.h"

#include <penstock/penstock.h>

#include <stddef.h>

enum pstk__warp_filter {
    PSTK__WARP_NEAREST = 0,
    PSTK__WARP_BILINEAR = 1,
    PSTK__WARP_BICUBIC = 2, /* a cubic with a = -1, unlike a resize's */
};

/* Positions that the kernels compute and sample at a time. */
#define PSTK__WARP_LANES 64u

/* Equal steps over the input, in 65536ths of a pixel; all positions lie within the input. */
struct pstk__warp_walk {
    uint32_t x, y;           /* the first position */
    uint32_t x_step, y_step; /* modulo 2^32 */
};

/* A picture mirrored at its diagonal: pixel x of row y of the output is pixel y of row x of the
 * input. The rows of both may also lie bottom up. */
struct pstk__warp_transpose {
    uint8_t *out;
    const uint8_t *in;
    ptrdiff_t out_step, in_step; /* bytes from one row to the next */
    uint32_t width, height;      /* size of the output, pixels */
    uint32_t size;               /* bytes of a pixel, 1 to 4 */
};

/* The kernels of one ISA. */
struct pstk__warp_kernels {
    uint32_t isa; /* enum pstk_kernels */
    /* Compute the positions of PSTK__WARP_LANES pixels of an output row, from `column` on. */
    void (*affine)(double *x, double *y, const double m[6], uint32_t column, uint32_t row);
    void (*perspective)(double *x, double *y, const double m[8], uint32_t column, uint32_t row);
    /* Sample n positions, at most PSTK__WARP_LANES; indexed by enum pstk__warp_filter. Pixels of
     * `out` whose position lies outside of the input keep their bytes. */
    void (*sample[3])(uint8_t *out, const struct pstk__picture *in, const double *x,
                      const double *y, uint32_t n);
    /* Copy the pixels of n positions, n >= 1. */
    void (*walk)(uint8_t *out, const struct pstk__picture *in, const struct pstk__warp_walk *walk,
                 uint32_t n);
    /* Copy the pixels input[0] to input[n - 1] of a row, of `size` bytes, 1 to 4; n >= 1.
     * The inputs never fall, or never rise. */
    void (*gather)(uint8_t *out, const uint8_t *in, const uint32_t *input, uint32_t n,
                   uint32_t size);
    /* Copy n pixels of `size` bytes, 1 to 4, in reverse order. */
    void (*reverse)(uint8_t *out, const uint8_t *in, uint32_t n, uint32_t size);
    /* Transpose a picture. May read PSTK__PICTURE_PAD bytes after the last pixel of a row of the
     * input. */
    void (*transpose)(const struct pstk__warp_transpose *t);
};

extern const struct pstk__warp_kernels pstk__warp_c; /* warp_c.c */
#if defined(__x86_64__)
extern const struct pstk__warp_kernels pstk__warp_avx2;   /* warp_avx2.c */
extern const struct pstk__warp_kernels pstk__warp_avx512; /* warp_avx512.c */
#endif

#endif
