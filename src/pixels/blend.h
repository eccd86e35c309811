/* SPDX-License-Identifier: Apache-2.0 */
/* blend: computes Pillow's Image.blend of bytes. Pure. */
#ifndef PSTK_PIXELS_BLEND_H
#define PSTK_PIXELS_BLEND_H

#include <stdint.h>

/* Blend two bytes in float; the result is clipped and truncated. A factor of 0 gives `from`, 1
 * gives `to`; it is finite. Pillow does not clip with factors from 0 to 1, for which clipping
 * changes nothing. */
static inline uint8_t pstk__blend(uint8_t from, uint8_t to, float factor)
{
    const float v = (float)from + factor * (float)(to - from);
    return (uint8_t)(v <= 0.0f ? 0.0f : v >= 255.0f ? 255.0f : v);
}

#endif
