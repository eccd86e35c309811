/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_kernels: the contract of the kernels of tensor.h. Each ISA has a table of them;
 * tensor.c lists the tables and chooses one. The plain C kernels are the reference for the others.
 * Pure.
 *
 * torch's kernels for AVX2 and AVX-512 round a product and a sum at once where it asks for both. So
 * do these, in every ISA.
 */
#ifndef PSTK_PIXELS_TENSOR_KERNELS_H
#define PSTK_PIXELS_TENSOR_KERNELS_H

#include "pixels/picture.h"

#include <penstock/penstock.h>

/* Pixels of a block that a kernel computes at a time. */
#define PSTK__TENSOR_LANES 64u

/* The map from output pixels to input positions: three weights each, for x, y and 1. */
struct pstk__tensor_grid {
    float x[3], y[3];
    float divisor[3];     /* weights of the divisor of both; read if has_divisor */
    float first[2];       /* x and y of the first pixel */
    uint32_t has_divisor; /* 1: a perspective */
    float half_side[2];   /* half the sides of the input, x and y */
    uint32_t in_width, in_height;
};

/* One block of an output's row. */
struct pstk__tensor_block {
    float x[PSTK__TENSOR_LANES], y[PSTK__TENSOR_LANES]; /* positions in the input, pixels */
};

/* The operands of a row of a blur: `rows` of padded floats, the uppermost first. */
struct pstk__tensor_taps {
    const float *const *rows; /* size[1] pointers */
    const float *weights;     /* size[0] weights for each row */
    uint32_t size[2];
    uint32_t channels;
};

struct pstk__tensor_kernels {
    uint32_t isa; /* enum pstk_kernels */

    /* These kernels take 3 channels. */

    /* Return the sum of the gray of n pixels. */
    uint64_t (*gray_sum)(const uint8_t *at, uint64_t n);
    /* Write the gray of n pixels, to 1 channel or 3 equal ones. `out` may be `in`. */
    void (*gray)(uint8_t *out, uint32_t out_channels, const uint8_t *in, uint64_t n);
    void (*saturate)(uint8_t *at, uint64_t n, float factor, float rest);
    void (*shift_hue)(uint8_t *at, uint64_t n, float shift);

    /* These kernels take any channels. */

    /* Write n bytes; `in` has the pixels around them, rows `stride` bytes apart. */
    void (*sharpen)(uint8_t *out, const uint8_t *in, uint32_t n, uint64_t stride, uint32_t channels,
                    float rest);
    void (*widen)(float *out, const uint8_t *in, uint32_t n);
    void (*blur)(uint8_t *out, const struct pstk__tensor_taps *taps, uint32_t n);
    /* Compute the positions of a block from `column` on. A position that reaches no pixel of the
     * input may be replaced by any other such position. */
    void (*places)(struct pstk__tensor_block *block, const struct pstk__tensor_grid *grid,
                   uint32_t column, uint32_t row);
    /* Sample n positions, n <= PSTK__TENSOR_LANES. fill NULL: black, and edges blend with it. */
    void (*bilinear)(uint8_t *out, const struct pstk__picture *in,
                     const struct pstk__tensor_block *block, uint32_t n, const uint8_t *fill);
};

extern const struct pstk__tensor_kernels pstk__tensor_c; /* tensor_c.c */
#if defined(__x86_64__)
extern const struct pstk__tensor_kernels pstk__tensor_avx2;   /* tensor_avx2.c */
extern const struct pstk__tensor_kernels pstk__tensor_avx512; /* tensor_avx512.c */
#endif

#endif
