/* SPDX-License-Identifier: Apache-2.0 */
/* gather: pixels of a row by their places. */
#ifndef PSTK_GATHER_H
#define PSTK_GATHER_H

#include <stdint.h>
#include <string.h>

/* Copy pixels of `size` bytes: `copied` bytes of each but the last, whose bytes past the pixel the
 * next one overwrites. The sizes are constants for the compiler. */
static inline __attribute__((always_inline)) void pstk__gather_by(uint8_t *out, const uint8_t *in,
                                                                  const uint32_t *input, uint32_t n,
                                                                  uint32_t size, uint32_t copied)
{
    for (uint32_t i = 0; i + 1 < n; i++, out += size)
        memcpy(out, in + (size_t)input[i] * size, copied);
    memcpy(out, in + (size_t)input[n - 1] * size, size);
}

/* Copy the pixels input[0] to input[n - 1] of a row; n >= 1. */
static inline void pstk__gather_pixels(uint8_t *out, const uint8_t *in, const uint32_t *input,
                                       uint32_t n, uint32_t size)
{
    if (size == 1)
        pstk__gather_by(out, in, input, n, 1, 1);
    else if (size == 2)
        pstk__gather_by(out, in, input, n, 2, 2);
    else if (size == 3)
        pstk__gather_by(out, in, input, n, 3, 4);
    else
        pstk__gather_by(out, in, input, n, 4, 4);
}

#endif
