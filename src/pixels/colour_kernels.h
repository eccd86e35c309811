/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colour_kernels: the contract of the kernels that change the colours of pictures. Each ISA has
 * a table of them; colour.c lists the tables and chooses one. The plain C kernels are the reference
 * for the others. Pure.
 */
#ifndef PSTK_PIXELS_COLOUR_KERNELS_H
#define PSTK_PIXELS_COLOUR_KERNELS_H

#include "pixels/colour_table.h"

struct pstk__colour_kernels {
    uint32_t isa; /* enum pstk_kernels */
    void (*apply)(const struct pstk__picture *picture, const struct pstk__colour_table *table);
    void (*range)(struct pstk__colour_range *range, const struct pstk__picture *picture);
    /* Return the sum of the luma of all pixels; with 1 channel, of the pixels themselves. */
    uint64_t (*luma_sum)(const struct pstk__picture *picture);
    /* Write the luma of pixels of 3 or 4 channels, to 1 channel or to 3 equal ones. out_channels is
     * at most the pixels' channels. `out` may be the pixels. */
    void (*luma)(uint8_t *out, uint32_t out_channels, const struct pstk__picture *picture);
    /* These three are for 3 or 4 channels, and work in place. */
    void (*saturate)(const struct pstk__picture *picture, float factor);
    void (*shift_hue)(const struct pstk__picture *picture, uint8_t shift);
    void (*permute)(const struct pstk__picture *picture, const uint32_t order[3]);
    /* Write row y of the sharpened `in`, except its first and last pixel, to `out`, which has the
     * same shape and other memory. Row y is not at the border: 1 <= y < height - 1, and width >= 3.
     */
    void (*sharpen_row)(const struct pstk__picture *out, const struct pstk__picture *in, uint32_t y,
                        float factor);
};

extern const struct pstk__colour_kernels pstk__colour_c; /* colour_c.c */
#if defined(__x86_64__) || defined(PSTK_NEON)
extern const struct pstk__colour_kernels pstk__colour_avx2; /* colour_avx2.c */
#endif
#if defined(__x86_64__)
extern const struct pstk__colour_kernels pstk__colour_avx512; /* colour_avx512.c */
#endif

#endif
