/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colour_table: the operations that map each byte by itself, as tables. Neighbouring operations
 * combine into one table (pstk__colour_table_then), which one pass over a picture applies
 * (pstk__colour_apply). Source: Pillow's ImageOps, ImageEnhance and Blend.c, and torchvision's
 * adjust_gamma. Pure.
 */
#ifndef PSTK_PIXELS_COLOUR_TABLE_H
#define PSTK_PIXELS_COLOUR_TABLE_H

#include "pixels/picture.h"

/*
 * A table maps a pixel's byte v of channel c to to[c][v]. Row 0 is gray or red. Rows past a
 * picture's channels are not read. Row 3, alpha, maps each byte to itself, except where a function
 * below says otherwise.
 */
struct pstk__colour_table {
    uint8_t to[4][256];
};

/* The number of pixels with each byte value, by channel. Rows past the picture's channels are 0. */
struct pstk__colour_histogram {
    uint32_t n[4][256];
};

/* The smallest and the largest byte of each channel. */
struct pstk__colour_range {
    uint8_t least[4], most[4];
};

/* Fill a table with a byte's own value. */
void pstk__colour_table_same(struct pstk__colour_table *table);
/* Append `next`: `table` then maps by its old entries, followed by `next`. */
void pstk__colour_table_then(struct pstk__colour_table *table,
                             const struct pstk__colour_table *next);

/* ---- those of an operation's settings ---- */

/* Make the table of ImageOps.invert. */
void pstk__colour_table_invert(struct pstk__colour_table *table);
/* Make the table of ImageOps.posterize: keep the upper `bits` bits, 0 to 8. */
void pstk__colour_table_posterize(struct pstk__colour_table *table, uint32_t bits);
/* Make the table of ImageOps.solarize: invert bytes from `threshold` on, which is not a NaN. */
void pstk__colour_table_solarize(struct pstk__colour_table *table, double threshold);
/* Make the table of timm's solarize_add: add to bytes below `threshold`, and clip. */
void pstk__colour_table_solarize_add(struct pstk__colour_table *table, int32_t add,
                                     int32_t threshold);
/*
 * Make the table of torchvision's adjust_gamma for PIL images: floor(255.999 * gain * (v / 255) ^
 * gamma), clipped. gamma is finite and at least 0, gain 0 to 1e6. Row 3 is 255, as Pillow's result
 * for RGBA.
 *
 * Python takes the power from libm. Here it is computed in the same way on every machine, to 3e-14
 * of its value; so a byte may differ by 1 when the product is this close to an integer.
 */
void pstk__colour_table_gamma(struct pstk__colour_table *table, double gamma, double gain);
/* Make the table of ImageEnhance.Brightness; factor is finite. */
void pstk__colour_table_brightness(struct pstk__colour_table *table, float factor);
/* Make the table of ImageEnhance.Contrast for a picture whose pstk__colour_mean is `mean`; factor
 * is finite. */
void pstk__colour_table_contrast(struct pstk__colour_table *table, uint8_t mean, float factor);

/* ---- those of a picture's bytes ---- */

/* Make the table of ImageOps.autocontrast without cutoff. */
void pstk__colour_table_autocontrast(struct pstk__colour_table *table,
                                     const struct pstk__colour_range *range);
/* Make the table of ImageOps.equalize. */
void pstk__colour_table_equalize(struct pstk__colour_table *table,
                                 const struct pstk__colour_histogram *histogram);

#endif
