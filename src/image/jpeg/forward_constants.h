/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/forward_constants: constants of the colour conversion and of the forward DCT. */
#ifndef PSTK_JPEG_FORWARD_CONSTANTS_H
#define PSTK_JPEG_FORWARD_CONSTANTS_H

/* round(x * 2^16), x as in jccolor.c */
enum {
    PSTK__F_0_08131 = 5329,
    PSTK__F_0_11400 = 7471,
    PSTK__F_0_16874 = 11059,
    PSTK__F_0_29900 = 19595,
    PSTK__F_0_33126 = 21709,
    PSTK__F_0_41869 = 27439,
    PSTK__F_0_50000 = 32768,
    PSTK__F_0_58700 = 38470,
};
#define PSTK__COLOUR_HALF (1 << 15)
/* Makes 255.5, a pure colour's value, 255. */
#define PSTK__COLOUR_CENTRE ((128 << 16) + PSTK__COLOUR_HALF - 1)

/* round(x * 2^13), x as in jfdctint.c */
#define PSTK__DCT_FRACTION 13 /* bits of fraction of these constants */
#define PSTK__DCT_BETWEEN 2   /* additional bits of numbers between the passes */

enum {
    PSTK__F_0_298 = 2446,
    PSTK__F_0_390 = 3196,
    PSTK__F_0_541 = 4433,
    PSTK__F_0_765 = 6270,
    PSTK__F_0_899 = 7373,
    PSTK__F_1_175 = 9633,
    PSTK__F_1_501 = 12299,
    PSTK__F_1_847 = 15137,
    PSTK__F_1_961 = 16069,
    PSTK__F_2_053 = 16819,
    PSTK__F_2_562 = 20995,
    PSTK__F_3_072 = 25172,
};

#endif
