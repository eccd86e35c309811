/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blur_loops: the loops of the blurs. Compilers vectorise them, as widely as the file allows that
 * includes them: blur_c.c, blur_avx2.c, blur_avx512.c. No sum depends on the width: each output has
 * its own sum, in the same order, and products and sums of floats are rounded one by one.
 */
#ifndef PSTK_PIXELS_BLUR_LOOPS_H
#define PSTK_PIXELS_BLUR_LOOPS_H

#include "pixels/blur_kernels.h"

#define BLOCK 256u /* outputs whose sums are kept at a time */
#define LOOP static inline __attribute__((always_inline))

/* Write a row of a box. Sums are modulo 2^32, as in Pillow's BoxBlur.c. */
LOOP void box_loop(uint8_t *restrict out, uint32_t *restrict sums, const struct pstk__blur_box *box,
                   uint32_t n)
{
    const uint8_t *leaving = box->leaving, *entering = box->entering, *next = box->next;
    const uint32_t weight = box->weight, edge_weight = box->edge_weight;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t sum = sums[i] + entering[i] - leaving[i];
        const uint32_t edges = (uint32_t)leaving[i] + next[i];
        sums[i] = sum;
        out[i] = (uint8_t)((sum * weight + edges * edge_weight + (1u << 23)) >> 24);
    }
}

LOOP void low_box_loop(uint8_t *restrict out, uint16_t *restrict sums,
                       const struct pstk__blur_box *box, uint32_t n)
{
    const uint8_t *leaving = box->leaving, *entering = box->entering, *next = box->next;
    const uint32_t weight = box->weight, edge_weight = box->edge_weight;
    for (uint32_t i = 0; i < n; i++) {
        const uint16_t sum = (uint16_t)(sums[i] + entering[i] - leaving[i]);
        const uint32_t edges = (uint32_t)leaving[i] + next[i];
        sums[i] = sum;
        out[i] = (uint8_t)((sum * weight + edges * edge_weight + (1u << 23)) >> 24);
    }
}

/* Add a row and its mirror image to the sums. */
LOOP void add_pair(float *restrict sums, const uint8_t *a, const uint8_t *b, float weight,
                   uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        sums[i] += weight * (float)(int32_t)(a[i] + b[i]);
}

LOOP void column_loop(float *restrict out, const uint8_t *const *rows,
                      const struct pstk__blur_weights *y, uint32_t n)
{
    for (uint32_t at = 0; at < n; at += BLOCK) {
        const uint32_t size = n - at < BLOCK ? n - at : BLOCK;
        const uint8_t *middle = rows[y->reach] + at;
        for (uint32_t i = 0; i < size; i++)
            out[at + i] = y->weights[0] * (float)middle[i];
        for (uint32_t k = 1; k <= y->reach; k++)
            add_pair(out + at, rows[y->reach - k] + at, rows[y->reach + k] + at, y->weights[k],
                     size);
    }
}

/* Round to nearest, ties to even: the sum has no bits below 1. */
LOOP uint8_t rounded(float v)
{
    return (uint8_t)(int32_t)((v + 0x1.8p23f) - 0x1.8p23f);
}

LOOP void add_mirrored(float *restrict sums, const float *a, const float *b, float weight,
                       uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        sums[i] += weight * (a[i] + b[i]);
}

LOOP void row_loop(uint8_t *restrict out, const float *in, const struct pstk__blur_weights *x,
                   uint32_t n, uint32_t channels)
{
    float sums[BLOCK];
    for (uint32_t at = 0; at < n; at += BLOCK) {
        const uint32_t size = n - at < BLOCK ? n - at : BLOCK;
        const float *middle = in + at;
        for (uint32_t i = 0; i < size; i++)
            sums[i] = x->weights[0] * middle[i];
        for (uint32_t k = 1; k <= x->reach; k++)
            add_mirrored(sums, middle - (size_t)k * channels, middle + (size_t)k * channels,
                         x->weights[k], size);
        for (uint32_t i = 0; i < size; i++)
            out[at + i] = rounded(sums[i]);
    }
}

#endif
