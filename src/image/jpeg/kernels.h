/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/kernels: from quantised coefficients to RGB, piece by piece, through a table by variant.
 * Pure. Every piece gives the bits of libjpeg-turbo (its x86 SIMD code, also where hostile
 * coefficients overflow): JDCT_ISLOW (jidctint), fancy upsampling (jdsample.c), colour (jdcolor.c).
 * The C entry is the reference for the others.
 *
 * Rows of samples lie in the back end's own memory: they begin at addresses that are multiples of
 * 64, `stride` is a multiple of 64, there are 64 bytes before the first sample and, after the last,
 * as many as round the row up to a multiple of 64, and 64 more. What a kernel writes of those is of
 * no account.
 */
#ifndef PSTK_JPEG_KERNELS_H
#define PSTK_JPEG_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Blocks side by side, packed. maps: bit z is set where the coefficient at place z of the zigzag
 * order is not 0; bit 0, the DC, is always clear. values: the AC coefficients that are not 0, in
 * zigzag order, block after block; -128 stands for the next one of `wide`. After the last value
 * there are 64 readable bytes.
 */
struct pstk__block_row {
    const uint64_t *maps; /* n_blocks */
    const int16_t *dc;    /* n_blocks */
    const int8_t *values; /* as many as the maps have bits */
    const int16_t *wide;  /* as many as values are -128 */
    uint32_t n_blocks;
};

struct pstk__jpeg_kernels {
    uint32_t variant; /* enum pstk_kernels */
    /*
     * Expand, dequantise (16-bit product, natural order `quant`), inverse DCT: 8 rows of
     * 8 * n_blocks samples, `stride` bytes apart. May write up to a multiple of 64 samples a row.
     */
    void (*inverse)(uint8_t *out, size_t stride, const struct pstk__block_row *blocks,
                    const uint16_t *quant);
    /*
     * Fancy upsampling: n samples in, one row out of 2 n (h2..) or n (h1..). They read one sample
     * before and one after `in` (h2v1, h2v2), where the caller has put a copy of the outermost one
     * at the image's edges: that gives libjpeg's rule for first and last columns. `near` is the row
     * in whose half of the sample the output row lies, `far` its neighbour there. bias: 1 for the
     * upper of the two output rows, 2 for the lower.
     */
    void (*h2v1)(uint8_t *out, const uint8_t *in, uint32_t n);
    void (*h2v2)(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n);
    void (*h1v2)(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n, uint32_t bias);
    /* n pixels to packed RGB, from one row of each component (the unused ones NULL). By enum
     * pstk__jpeg_color; CMYK and YCCK go on to RGB as Pillow does. May write 3 * (n rounded up to
     * 64) bytes, and read samples in the same way. */
    void (*rgb[6])(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n);
};

/* The kernels asked for (AUTO: the best this CPU runs), NULL when this build or CPU lacks them. */
const struct pstk__jpeg_kernels *pstk__jpeg_kernels(uint32_t variant);

/* The entries, for kernels.c alone. Those of a build that lacks them are not there. */
extern const struct pstk__jpeg_kernels pstk__jpeg_kernels_c;
extern const struct pstk__jpeg_kernels pstk__jpeg_kernels_avx2;
extern const struct pstk__jpeg_kernels pstk__jpeg_kernels_avx512;

/* C pieces that other variants use where they have no own. */
void pstk__jpeg_rgb_from_cmyk(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n);
void pstk__jpeg_rgb_from_ycck(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n);

#endif
