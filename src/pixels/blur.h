/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blur: the two Gaussian blurs. Pictures have 1, 3 or 4 channels, all blurred alike: neither
 * multiplies colours by alpha. `in` and `out` have the same shape, and do not overlap.
 */
#ifndef PSTK_PIXELS_BLUR_H
#define PSTK_PIXELS_BLUR_H

#include "pixels/blur_kernels.h"

/* Return the kernels of an ISA (AUTO: the best that this CPU runs), NULL when this build or CPU
 * does not have them. */
const struct pstk__blur_kernels *pstk__blur_kernels(uint32_t isa);

/* Return the bytes of scratch, 64-byte aligned, that a blur of a picture of this shape takes. Never
 * falls with more pixels on a side. */
uint64_t pstk__blur_scratch(uint32_t width, uint32_t height, uint32_t channels);

/*
 * Blur as Pillow 12.1's ImageFilter.GaussianBlur((radius[0], radius[1])): three extended boxes on
 * each axis. Source: Pillow's BoxBlur.c. radius: standard deviation across and down, pixels, 0 to
 * 10000. Every byte is Pillow's.
 */
void pstk__blur_box_gaussian(const struct pstk__blur_kernels *kernels,
                             const struct pstk__picture *out, const struct pstk__picture *in,
                             const float radius[2], void *scratch);

/* A Gaussian of an odd number of pixels on each axis, x and y. */
struct pstk__blur_params {
    uint32_t size[2]; /* 1 to PSTK__BLUR_MAX_KERNEL; half of it is less than the picture's side */
    double sigma[2];  /* standard deviation, pixels; > 0 */
};

/*
 * Blur as torchvision 0.29's v2.functional.gaussian_blur(image, size, sigma) does with a PIL image:
 * float32 sums, edges mirrored, rounded to nearest, ties to even. torchvision sums a kernel of two
 * dimensions, this function one axis and then the other; and the last places of torchvision's
 * weights and sums depend on its machine. So a sum next to the middle between two whole numbers may
 * be rounded to the other one: 7 of a million bytes of random pictures differ, by 1.
 */
void pstk__blur_gaussian(const struct pstk__blur_kernels *kernels, const struct pstk__picture *out,
                         const struct pstk__picture *in, const struct pstk__blur_params *params,
                         void *scratch);

#endif
