/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor: torchvision 0.29's v2.functional on uint8 tensors, as torch 2.15 computes it on a CPU
 * with AVX2 or AVX-512. Colours are of 1 or 3 channels; blurs and warps of any. Sources:
 * torchvision's transforms/v2/functional/{_color,_geometry,_misc}.py, and torch's kernels.
 *
 * Every byte is torch's, except a few of a million, which differ by 1, where torch's own sums
 * depend on its machine and its threads:
 *
 *   contrast        torch rounds the product and the sum of up to 12 values at the end of each
 *                   thread's part one by one. The mean of more than 65793 pixels is a float sum of
 *                   many parts; here it is exact, then rounded
 *   gaussian blur   the weights are those of torch with AVX-512; with AVX2 they differ in their
 *                   last place. Pictures of one channel, at most 20480 pixels with their padding
 *                   and a kernel of 3 pixels on a side: torch multiplies matrices, and MKL rounds
 *   warps           torch multiplies matrices for the positions, too; so it depends on MKL, which
 *                   rounds each operation on the machines where this was compared
 *
 * A position of a perspective that is no number gets the fill, in torch 0.
 * Pure.
 */
#ifndef PSTK_PIXELS_TENSOR_H
#define PSTK_PIXELS_TENSOR_H

#include "pixels/blur.h"
#include "pixels/colour_table.h"
#include "pixels/tensor_kernels.h"

struct pstk__rotation; /* pixels/rotation.h */
struct pstk__rotation_params;

/* Return the kernels of an ISA (AUTO: the best that this CPU runs), NULL when this build or CPU
 * does not have them. */
const struct pstk__tensor_kernels *pstk__tensor_kernels(uint32_t isa);

/* ---- tables; of row 3, see colour_table.h ---- */

/* Make the table of adjust_brightness; factor is finite, at least 0. */
void pstk__tensor_table_brightness(struct pstk__colour_table *table, double factor);
/* Make the table of adjust_contrast for a picture whose gray has this mean. */
void pstk__tensor_table_contrast(struct pstk__colour_table *table, float mean, double factor);
/* Make the table of adjust_gamma; both are finite, at least 0. */
void pstk__tensor_table_gamma(struct pstk__colour_table *table, double gamma, double gain);
/* Make the table of autocontrast. */
void pstk__tensor_table_autocontrast(struct pstk__colour_table *table,
                                     const struct pstk__colour_range *range);

/* ---- colours, in place ---- */

/* Return the mean of the gray. */
float pstk__tensor_mean(const struct pstk__tensor_kernels *k, const struct pstk__picture *picture);
/* Apply rgb_to_grayscale to n pixels of 1 or 3 channels, which `out` gets as well; `out` may be
 * `in` if it has no more channels. */
void pstk__tensor_grayscale(const struct pstk__tensor_kernels *k, uint8_t *out,
                            uint32_t out_channels, const uint8_t *in, uint32_t channels,
                            uint64_t n);
/* Apply adjust_saturation and adjust_hue. One channel stays. */
void pstk__tensor_saturation(const struct pstk__tensor_kernels *k,
                             const struct pstk__picture *picture, double factor);
void pstk__tensor_hue(const struct pstk__tensor_kernels *k, const struct pstk__picture *picture,
                      double factor);

/* ---- neighbours; `out` has the channels of `in`, and other memory ---- */

/* Apply adjust_sharpness. */
void pstk__tensor_sharpness(const struct pstk__tensor_kernels *k, const struct pstk__picture *out,
                            const struct pstk__picture *in, double factor);
/* Return the bytes of scratch, 64-byte aligned, that a blur by a kernel of `size` takes. */
uint64_t pstk__tensor_blur_scratch(const uint32_t size[2], uint32_t width, uint32_t channels);
/* Apply gaussian_blur. */
void pstk__tensor_blur(const struct pstk__tensor_kernels *k, const struct pstk__picture *out,
                       const struct pstk__picture *in, const struct pstk__blur_params *params,
                       void *scratch);

/*
 * The parameters of affine, rotate and perspective. m: maps a pixel of `out` to x and y in the
 * input, pixels from the top left, as for warp.h; has_divisor: m has 8 elements, else 6.
 * is_bilinear: else nearest. fill: NULL: torchvision's None.
 */
struct pstk__tensor_warp {
    const double *m;
    uint32_t has_divisor;
    uint32_t is_bilinear;
    const uint8_t *fill;
};
void pstk__tensor_warp(const struct pstk__tensor_kernels *k, const struct pstk__picture *out,
                       const struct pstk__picture *in, const struct pstk__tensor_warp *warp);
/* Compute torchvision's rotation of pictures of one size; pstk__tensor_warp takes its m.
 * params->translate is NULL. */
void pstk__tensor_rotation_init(struct pstk__rotation *rotation,
                                const struct pstk__rotation_params *params, uint32_t width,
                                uint32_t height);

#endif
