/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/quality.h"

/* K.1 (luma) and K.2 (chroma) of ITU T.81, natural order. */
static const uint8_t standard[2][64] = {
    {
        16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
        14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
        18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
        49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
    },
    {
        17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
        99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    },
};

/* Return the percentage by which a quality scales the tables. */
static uint32_t scale_of(uint32_t quality)
{
    return quality < 50 ? 5000 / quality : 200 - 2 * quality;
}

uint16_t pstk__jpeg_quality_entry(uint32_t is_chroma, uint32_t i, uint32_t quality)
{
    const uint32_t q = (standard[is_chroma][i] * scale_of(quality) + 50) / 100;
    return (uint16_t)(q < 1 ? 1 : q > 255 ? 255 : q);
}
