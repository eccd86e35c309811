/* SPDX-License-Identifier: Apache-2.0 */
/* fill: fills pixels with one colour. */
#ifndef PSTK_PIXELS_FILL_H
#define PSTK_PIXELS_FILL_H

#include <stdint.h>
#include <string.h>

/* Fill n pixels of `size` bytes: write one, then repeatedly copy all pixels written so far. */
static inline void pstk__fill_pixels(uint8_t *out, uint32_t n, const uint8_t fill[4], uint32_t size)
{
    const size_t end = (size_t)n * size;
    size_t done = n > 0 ? size : 0;
    memcpy(out, fill, done);
    for (; done < end; done *= 2)
        memcpy(out + done, out, done < end - done ? done : end - done);
}

#endif
