/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/gather.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Copy pixels of `size` bytes. Each except the last is copied with `copied` bytes; the next pixel
 * overwrites the bytes past it. */
INLINE void gather_by(uint8_t *out, const uint8_t *in, const uint32_t *input, uint32_t n,
                      uint32_t size, uint32_t copied)
{
    for (uint32_t i = 0; i + 1 < n; i++, out += size)
        memcpy(out, in + (size_t)input[i] * size, copied);
    memcpy(out, in + (size_t)input[n - 1] * size, size);
}

void pstk__gather_pixels(uint8_t *out, const uint8_t *in, const uint32_t *input, uint32_t n,
                         uint32_t size)
{
    if (size == 1)
        gather_by(out, in, input, n, 1, 1);
    else if (size == 2)
        gather_by(out, in, input, n, 2, 2);
    else if (size == 3)
        gather_by(out, in, input, n, 3, 4);
    else
        gather_by(out, in, input, n, 4, 4);
}
