/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/expand_table: byte shuffles, one for each set of eight bits of a map. A shuffle moves
 * consecutive values to the positions of the bits that are 1, and zeros to the others.
 */
#ifndef PSTK_JPEG_EXPAND_TABLE_H
#define PSTK_JPEG_EXPAND_TABLE_H

#include <stdint.h>

/* Position i takes the value whose index is the number of ones below its bit; an index with bit 7
 * gives a zero. */
#define PLACE_(m, i) ((m) >> (i)&1 ? __builtin_popcount((m) & ((1 << (i)) - 1)) : 0x80)
#define SHUFFLE_(m)                                                                                \
    {                                                                                              \
        PLACE_(m, 0), PLACE_(m, 1), PLACE_(m, 2), PLACE_(m, 3), PLACE_(m, 4), PLACE_(m, 5),        \
            PLACE_(m, 6), PLACE_(m, 7)                                                             \
    }
#define SHUFFLES_4_(m) SHUFFLE_(m), SHUFFLE_((m) + 1), SHUFFLE_((m) + 2), SHUFFLE_((m) + 3)
#define SHUFFLES_16_(m)                                                                            \
    SHUFFLES_4_(m), SHUFFLES_4_((m) + 4), SHUFFLES_4_((m) + 8), SHUFFLES_4_((m) + 12)
#define SHUFFLES_64_(m)                                                                            \
    SHUFFLES_16_(m), SHUFFLES_16_((m) + 16), SHUFFLES_16_((m) + 32), SHUFFLES_16_((m) + 48)

static const uint8_t pstk__expand_table[256][8] = {SHUFFLES_64_(0), SHUFFLES_64_(64),
                                                   SHUFFLES_64_(128), SHUFFLES_64_(192)};

#endif
