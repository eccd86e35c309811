/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colour: the colour operations of Pillow on whole pictures, bit for bit, as torchvision's
 * functional calls use them on PIL images. They work in place, on 1 (mode L), 3 (RGB) or 4 channels
 * (RGBA). Of 4 channels:
 *
 *   brightness, contrast, saturation, sharpness   as Pillow, which keeps alpha
 *   hue, gamma                                    as torchvision, which sets alpha to 255
 *   grayscale                                     as Pillow, which drops alpha
 *   invert, posterize, solarize, autocontrast,    not for 4 channels: Pillow has no result; here
 *   equalize                                      alpha stays
 *
 * Sources: Pillow's ImageEnhance, ImageOps, Blend.c, Convert.c and Filter.c. Pure.
 */
#ifndef PSTK_PIXELS_COLOUR_H
#define PSTK_PIXELS_COLOUR_H

#include "pixels/colour_kernels.h"

/* Return the kernels of an ISA (AUTO: the best that this CPU runs), NULL when this build or CPU
 * does not have them. */
const struct pstk__colour_kernels *pstk__colour_kernels(uint32_t isa);

/* Map all bytes by a table of pixels/colour_table.h. */
void pstk__colour_apply(const struct pstk__colour_kernels *k, const struct pstk__picture *picture,
                        const struct pstk__colour_table *table);
/* Return the rounded mean of the luma, for pstk__colour_table_contrast. */
uint8_t pstk__colour_mean(const struct pstk__colour_kernels *k,
                          const struct pstk__picture *picture);
/* Count the bytes of each channel. The picture has less than 2^32 pixels. */
void pstk__colour_histogram(struct pstk__colour_histogram *histogram,
                            const struct pstk__picture *picture);

/* Apply ImageEnhance.Color. A factor of 1 changes nothing, 0 removes the colour. factor is finite:
 * Python's double converted to float, as in Pillow. */
void pstk__colour_saturation(const struct pstk__colour_kernels *k,
                             const struct pstk__picture *picture, float factor);
/* Apply torchvision's adjust_hue: a round trip through 8-bit HSV, which changes colours even with a
 * factor of 0. factor is in [-0.5, 0.5], in turns. */
void pstk__colour_hue(const struct pstk__colour_kernels *k, const struct pstk__picture *picture,
                      double factor);
/* Apply Image.convert("L"), to 1 channel or to 3 equal ones. The picture's memory has room for
 * both. */
void pstk__colour_grayscale(const struct pstk__colour_kernels *k, struct pstk__picture *picture,
                            uint32_t channels);
/* Apply ImageOps.autocontrast without cutoff. */
void pstk__colour_autocontrast(const struct pstk__colour_kernels *k,
                               const struct pstk__picture *picture);
/* Apply ImageOps.equalize. */
void pstk__colour_equalize(const struct pstk__colour_kernels *k,
                           const struct pstk__picture *picture);
/* Permute the colours: colour c, 0 to 2, gets the value of colour order[c]. Alpha, and gray, stay.
 */
void pstk__colour_permute(const struct pstk__colour_kernels *k, const struct pstk__picture *picture,
                          const uint32_t order[3]);
/* Apply ImageEnhance.Sharpness: 1 changes nothing, 0 smooths; factor is finite. `out` has the shape
 * of `in` and other memory. The pixels of the border, and small pictures, do not change. */
void pstk__colour_sharpness(const struct pstk__colour_kernels *k, const struct pstk__picture *out,
                            const struct pstk__picture *in, float factor);

#endif
