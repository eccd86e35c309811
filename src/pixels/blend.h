/* SPDX-License-Identifier: Apache-2.0 */
/* blend: Pillow's Image.blend of bytes. Pure. */
#ifndef PSTK_PIXELS_BLEND_H
#define PSTK_PIXELS_BLEND_H

#include <stdint.h>

/* Blend two bytes, a factor of 0 giving `from` and 1 giving `to`: in float, clipped, truncated.
 * factor is finite. Pillow does not clip with factors from 0 to 1, where it changes nothing. */
static inline uint8_t pstk__blend(uint8_t from, uint8_t to, float factor)
{
    const float v = (float)from + factor * (float)(to - from);
    return (uint8_t)(v <= 0.0f ? 0.0f : v >= 255.0f ? 255.0f : v);
}

#endif
