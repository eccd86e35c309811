/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/forward: the steps from RGB to quantised coefficients, in a table for each ISA: colour
 * (jccolor.c), halving of both sides (jcsample.c's h2v2), JDCT_ISLOW (jfdctint.c), and quantisation
 * (jcdctmgr.c). Each step gives the bits of libjpeg-turbo. The plain C kernels are the reference
 * for the others. Pure.
 */
#ifndef PSTK_JPEG_FORWARD_H
#define PSTK_JPEG_FORWARD_H

#include <stddef.h>
#include <stdint.h>

/* Bytes before and after a row of samples that kernels may overwrite, and read. */
#define PSTK__FORWARD_PAD 64u

/*
 * A table of quantisation for division by multiplication: for a >= 0, a / d rounded to the nearest
 * number, halves upwards, is ((a + half) * reciprocal >> 16) * scale >> 16, in 16-bit numbers. d is
 * 8 times the table's entry, because the transform's results have that factor.
 */
struct pstk__jpeg_divisors {
    _Alignas(64) uint16_t half[64]; /* d / 2, or 1 more; natural order, as in all members */
    uint16_t reciprocal[64];
    uint16_t scale[64];
};

/* Make the divisors of a table, whose entries are from 1 to 255. */
void pstk__jpeg_divisors_init(struct pstk__jpeg_divisors *divisors, const uint16_t quant[64]);

/* The destination of packed blocks: see struct pstk__block_row. Room: one map and one DC for each
 * block, 63 of the others, and after these PSTK__FORWARD_PAD bytes. */
struct pstk__block_writer {
    uint64_t *maps;
    int16_t *dc;
    int8_t *values;
    int16_t *wide;
};

struct pstk__forward_kernels {
    uint32_t isa; /* enum pstk_kernels */
    /* Convert n pixels of RGB to a row of each component. Writes rows up to a multiple of 64, and
     * may read 64 bytes past the pixels. */
    void (*split)(uint8_t *const ycc[3], const uint8_t *rgb, uint32_t n);
    /* Make n samples, each the mean of 2 x 2 samples; halves are rounded down and up alternately.
     * Reads 2 n samples of both rows, and up to a multiple of 64. Writes up to a multiple of 64. */
    void (*halve)(uint8_t *out, const uint8_t *upper, const uint8_t *lower, uint32_t n);
    /* Transform, quantise and pack n_blocks, side by side: 8 rows of 8 * n_blocks samples, `stride`
     * bytes apart, of which a multiple of 64 is readable. */
    void (*transform)(const struct pstk__block_writer *to, const uint8_t *samples, size_t stride,
                      uint32_t n_blocks, const struct pstk__jpeg_divisors *divisors);
};

/* Return the kernels of an ISA (AUTO: the best that this CPU runs), NULL when this build or CPU
 * does not have them. */
const struct pstk__forward_kernels *pstk__forward_kernels(uint32_t isa);

/* The tables, for forward.c only. */
extern const struct pstk__forward_kernels pstk__forward_kernels_c;
extern const struct pstk__forward_kernels pstk__forward_kernels_avx2;
extern const struct pstk__forward_kernels pstk__forward_kernels_avx512;

#endif
