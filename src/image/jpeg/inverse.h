/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/inverse: constants and layouts that the vector ISAs of the inverse DCT share. Only for
 * inverse_*.c and kernels_*.c.
 *
 * A pass transforms lanes of 128 bits. A lane holds four columns (in the second pass: rows) of one
 * block, as pairs of 16 bits that one multiply-add takes together: rows 0 and 4, 2 and 6, 7 and 1,
 * 3 and 5. Columns are in the same order, the even ones in one register and the odd ones in
 * another, so that packing the first pass's results makes the pairs of the second pass.
 */
#ifndef PSTK_JPEG_INVERSE_H
#define PSTK_JPEG_INVERSE_H

#include "image/jpeg/kernels.h"

/* jidctint.c's constants, round(x * 2^13), summed so that each multiplies one input. */
enum {
    PSTK__IDCT_ONE = 8192,
    PSTK__IDCT_0_541 = 4433,
    PSTK__IDCT_1_307 = 4433 + 6270,    /* 0.541196100 + 0.765366865 */
    PSTK__IDCT_M1_307 = 4433 - 15137,  /* 0.541196100 - 1.847759065 */
    PSTK__IDCT_1_176 = 9633,           /* 1.175875602 */
    PSTK__IDCT_M0_786 = 9633 - 16069,  /* 1.175875602 - 1.961570560 */
    PSTK__IDCT_0_786 = 9633 - 3196,    /* 1.175875602 - 0.390180644 */
    PSTK__IDCT_M0_601 = 2446 - 7373,   /* 0.298631336 - 0.899976223 */
    PSTK__IDCT_M0_900 = -7373,         /* -0.899976223 */
    PSTK__IDCT_0_601 = 12299 - 7373,   /* 1.501321110 - 0.899976223 */
    PSTK__IDCT_M0_510 = 16819 - 20995, /* 2.053119869 - 2.562915447 */
    PSTK__IDCT_M2_563 = -20995,        /* -2.562915447 */
    PSTK__IDCT_0_510 = 25172 - 20995,  /* 3.072711026 - 2.562915447 */
    PSTK__IDCT_SHIFT_1 = 11, /* bits shifted out in the first pass, which keeps two more bits */
    PSTK__IDCT_SHIFT_2 = 18, /* bits shifted out in the second pass */
    PSTK__IDCT_ROUND_1 = 1 << (11 - 1), /* half of the last bit that the first shift keeps */
    PSTK__IDCT_ROUND_2 = 1 << (18 - 1),
};

/* Places of the zigzag order in the first row of a block. */
#define PSTK__IDCT_FIRST_ROW 0x1800c063ull

/*
 * The order of a block's 64 coefficients before the first pass, as bytes: natural places. Each of
 * the four pairs of rows has sixteen; the even ones of them make the register of the even columns.
 */
#define PSTK__IDCT_NATURAL_PLACES                                                                  \
    {                                                                                              \
        0, 7, 32, 39, 4, 1, 36, 33, 2, 3, 34, 35, 6, 5, 38, 37,             /* rows 0, 4 */        \
            16, 23, 48, 55, 20, 17, 52, 49, 18, 19, 50, 51, 22, 21, 54, 53, /* 2, 6 */             \
            56, 63, 8, 15, 60, 57, 12, 9, 58, 59, 10, 11, 62, 61, 14, 13,   /* 7, 1 */             \
            24, 31, 40, 47, 28, 25, 44, 41, 26, 27, 42, 43, 30, 29, 46, 45  /* 3, 5 */             \
    }

/* The same order in zigzag places. */
#define PSTK__IDCT_ZIGZAG_PLACES                                                                   \
    {                                                                                              \
        0, 28, 10, 54, 14, 1, 39, 19, 5, 6, 23, 32, 27, 15, 52, 45,       /* rows 0, 4 */          \
            3, 43, 21, 61, 25, 8, 50, 34, 12, 17, 37, 47, 41, 30, 59, 56, /* 2, 6 */               \
            35, 63, 2, 42, 57, 36, 16, 4, 48, 49, 7, 13, 62, 58, 29, 26,  /* 7, 1 */               \
            9, 53, 20, 60, 31, 11, 46, 22, 18, 24, 33, 38, 44, 40, 55, 51 /* 3, 5 */               \
    }

/* The inverse: the index in that order for each place of the zigzag order. */
#define PSTK__IDCT_LAYOUT_PLACES                                                                   \
    {                                                                                              \
        0, 5, 34, 16, 39, 8, 9, 42, 21, 48, 2, 53, 24, 43, 4, 13, 38, 25, 56, 7, 50, 18, 55, 10,   \
            57, 20, 47, 12, 1, 46, 29, 52, 11, 58, 23, 32, 37, 26, 59, 6, 61, 28, 35, 17, 60, 15,  \
            54, 27, 40, 41, 22, 63, 14, 49, 3, 62, 31, 36, 45, 30, 51, 19, 44, 33                  \
    }

/*
 * A *corner* is a group whose coefficients all lie in the upper left 4x4 of their blocks, as in
 * many groups of chroma. Half of each pass's inputs are 0. Rows (then: columns) 0 and 2, 1 and 3
 * make the pairs, and a lane holds four columns in the order 0 2 1 3.
 */
#define PSTK__IDCT_CORNER 0x1063bffull /* places of the zigzag order */

/* The order of a corner's coefficients, as bytes; the even ones make the pairs 0 2. */
#define PSTK__IDCT_CORNER_NATURAL_PLACES                                                           \
    {                                                                                              \
        0, 8, 16, 24, 2, 10, 18, 26, 1, 9, 17, 25, 3, 11, 19, 27                                   \
    }
#define PSTK__IDCT_CORNER_ZIGZAG_PLACES                                                            \
    {                                                                                              \
        0, 2, 3, 9, 5, 7, 12, 18, 1, 4, 8, 11, 6, 13, 17, 24                                       \
    }

/* Constants of a corner for inputs 1 and 3, named by their result. */
enum {
    PSTK__IDCT_ODD0_1 = 12299 - 7373 - 3196 + 9633,
    PSTK__IDCT_ODD0_3 = 9633,
    PSTK__IDCT_ODD1_1 = 9633,
    PSTK__IDCT_ODD1_3 = 25172 - 20995 - 16069 + 9633,
    PSTK__IDCT_ODD2_1 = 9633 - 3196,
    PSTK__IDCT_ODD2_3 = 9633 - 20995,
    PSTK__IDCT_ODD3_1 = 9633 - 7373,
    PSTK__IDCT_ODD3_3 = 9633 - 16069,
};

void pstk__jpeg_inverse_avx2(uint8_t *out, size_t stride, const struct pstk__block_row *blocks,
                             const uint16_t *quant);
void pstk__jpeg_inverse_avx512(uint8_t *out, size_t stride, const struct pstk__block_row *blocks,
                               const uint16_t *quant);

#endif
