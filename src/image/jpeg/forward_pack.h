/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/forward_pack: packs the coefficients of a block. Pure, inline, so that each ISA compiles
 * it for its CPU. */
#ifndef PSTK_JPEG_FORWARD_PACK_H
#define PSTK_JPEG_FORWARD_PACK_H

#include "image/jpeg/forward.h"
#include "image/jpeg/zigzag.h"

/* Append a block in natural order. */
static inline __attribute__((always_inline)) void pstk__block_pack(struct pstk__block_writer *to,
                                                                   const int16_t *block)
{
    uint64_t map = 0;
    int8_t *value = to->values;
    *to->dc++ = block[0];
    for (uint32_t z = 1; z < 64; z++) {
        const int16_t x = block[pstk__zigzag[z]];
        const int is_wide = x < -127 || x > 127;
        map |= (uint64_t)(x != 0) << z;
        *to->wide = x;
        to->wide += is_wide;
        *value = (int8_t)(is_wide ? -128 : x);
        value += x != 0;
    }
    to->values = value;
    *to->maps++ = map;
}

#endif
