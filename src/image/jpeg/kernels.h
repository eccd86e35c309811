/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/kernels: the steps from quantised coefficients to RGB, in a table for each ISA. Each
 * step gives the bits of libjpeg-turbo's x86 SIMD code, also where hostile coefficients overflow:
 * JDCT_ISLOW (jidctint), fancy upsampling (jdsample.c), colour (jdcolor.c). The plain C kernels are
 * the reference for the others. Pure.
 *
 * Rows of samples lie in the back end's own memory. They begin at multiples of 64 bytes, and
 * `stride` is a multiple of 64. There are 64 bytes before the first sample; after the last one the
 * row is padded to a multiple of 64, plus 64 bytes. Kernels may overwrite these bytes.
 */
#ifndef PSTK_JPEG_KERNELS_H
#define PSTK_JPEG_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Blocks side by side, packed. maps: bit z is set where the coefficient at place z of the zigzag
 * order is not 0; bit 0, the DC, is always clear. values: the AC coefficients that are not 0, in
 * zigzag order, block after block; -128 stands for the next value of `wide`. 64 bytes after the
 * last value are readable.
 */
struct pstk__block_row {
    const uint64_t *maps; /* n_blocks */
    const int16_t *dc;    /* n_blocks */
    const int8_t *values; /* one for each bit that is set in maps */
    const int16_t *wide;  /* one for each value of -128 */
    uint32_t n_blocks;
};

struct pstk__jpeg_kernels {
    uint32_t isa; /* enum pstk_kernels */
    /*
     * Expand, dequantise (16-bit product, natural order `quant`) and inverse DCT: writes 8 rows of
     * 8 * n_blocks samples, `stride` bytes apart. May write up to a multiple of 64 samples a row.
     */
    void (*inverse)(uint8_t *out, size_t stride, const struct pstk__block_row *blocks,
                    const uint16_t *quant);
    /*
     * Upsample: from n samples to one row of 2 n (h2..) or n (h1..). h2v1 and h2v2 read one sample
     * before and one after `in`. At the image's edges the caller puts copies of the outermost
     * sample there, which gives libjpeg's rule for the first and last columns. `near` is the row of
     * samples that the output row lies in, `far` the neighbour closer to it. bias: 1 for the upper
     * of the two output rows, 2 for the lower.
     */
    void (*h2v1)(uint8_t *out, const uint8_t *in, uint32_t n);
    void (*h2v2)(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n);
    void (*h1v2)(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n, uint32_t bias);
    /* Convert n pixels to packed RGB, from one row of each component (unused ones NULL). Indexed by
     * enum pstk__jpeg_color; CMYK and YCCK are converted to RGB as Pillow does. May write 3 * (n
     * rounded up to 64) bytes, and read that many samples. */
    void (*rgb[6])(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n);
};

/* Return the kernels of an ISA (AUTO: the best that this CPU runs), NULL when this build or CPU
 * does not have them. */
const struct pstk__jpeg_kernels *pstk__jpeg_kernels(uint32_t isa);

/* The tables, for kernels.c only. A build for another CPU lacks some. */
extern const struct pstk__jpeg_kernels pstk__jpeg_kernels_c;
extern const struct pstk__jpeg_kernels pstk__jpeg_kernels_avx2;
extern const struct pstk__jpeg_kernels pstk__jpeg_kernels_avx512;
extern const struct pstk__jpeg_kernels pstk__jpeg_kernels_neon;

/* C functions for ISAs that have no version of their own. */
void pstk__jpeg_rgb_from_cmyk(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n);
void pstk__jpeg_rgb_from_ycck(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n);

#endif
