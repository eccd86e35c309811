/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weighted_sum: weighted sums of pictures, and blends of two. Sums are float32, rounded after each
 * product and each addition, as torch and NumPy round them. Pure.
 */
#ifndef PSTK_PIXELS_WEIGHTED_SUM_H
#define PSTK_PIXELS_WEIGHTED_SUM_H

#include <stdint.h>

/* Set `sum` to the products of n bytes. */
void pstk__mix_set(float *sum, const uint8_t *in, float weight, uint64_t n);
/* Add the products of n bytes. */
void pstk__mix_add(float *sum, const uint8_t *in, float weight, uint64_t n);
/* Clip n sums to 0 to 255, and truncate them to whole numbers. */
void pstk__mix_write(uint8_t *out, const float *sum, uint64_t n);
/* Blend n bytes as Pillow's Image.blend does: from + alpha * (to - from), clipped and truncated in
 * the same way. alpha is 0 to 1. `out` may be `from` or `to`. */
void pstk__mix_blend(uint8_t *out, const uint8_t *from, const uint8_t *to, float alpha, uint64_t n);

#endif
