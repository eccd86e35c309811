/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/alpha.h"

#define ALPHA 3u /* index of the channel */

/* Return a * b / 255, rounded to nearest. */
static inline uint8_t product(uint32_t a, uint32_t b)
{
    const uint32_t v = a * b + 128;
    return (uint8_t)((v + (v >> 8)) >> 8);
}

void pstk__alpha_multiply(uint8_t *out, const uint8_t *rgba, uint32_t n_pixels)
{
    for (uint32_t i = 0; i < n_pixels; i++, out += 4, rgba += 4) {
        for (uint32_t c = 0; c < ALPHA; c++)
            out[c] = product(rgba[c], rgba[ALPHA]);
        out[ALPHA] = rgba[ALPHA];
    }
}

/* Divide by alpha. Rounding lets a colour exceed alpha only slightly, but Pillow clamps the
 * quotient, too. */
void pstk__alpha_divide(uint8_t *rgba, uint32_t n_pixels)
{
    for (uint32_t i = 0; i < n_pixels; i++, rgba += 4) {
        const uint32_t alpha = rgba[ALPHA];
        if (alpha == 0 || alpha == 255)
            continue;
        for (uint32_t c = 0; c < ALPHA; c++) {
            const uint32_t v = 255u * rgba[c] / alpha;
            rgba[c] = (uint8_t)(v < 255 ? v : 255);
        }
    }
}
