/* SPDX-License-Identifier: Apache-2.0 */
#include "image/planes/quant.h"

#include "base/little.h"

#include <string.h>

enum form { BYTES = 0, WORDS = 1, LUMA = 2, CHROMA = 3 };
#define MAX_QUALITY 100

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

/* Return entry i of a standard table at this scale; every entry fits a byte. */
static uint16_t scaled(const uint8_t base[64], uint32_t i, uint32_t scale)
{
    const uint32_t q = (base[i] * scale + 50) / 100;
    return (uint16_t)(q < 1 ? 1 : q > 255 ? 255 : q);
}

static int is_scaled(const uint16_t quant[64], const uint8_t base[64], uint32_t quality)
{
    const uint32_t scale = scale_of(quality);
    for (uint32_t i = 0; i < 64; i++)
        if (quant[i] != scaled(base, i, scale))
            return 0;
    return 1;
}

/* Return the lowest quality that gives the table, with the form of the standard table; 0: none. */
static uint32_t find_quality(const uint16_t quant[64], uint32_t *form)
{
    for (*form = LUMA; *form <= CHROMA; ++*form)
        for (uint32_t quality = 1; quality <= MAX_QUALITY; quality++)
            if (is_scaled(quant, standard[*form - LUMA], quality))
                return quality;
    return 0;
}

static uint32_t write_entries(uint8_t *out, const uint16_t quant[64])
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < 64; i++)
        most |= quant[i];
    out[0] = most > 255 ? WORDS : BYTES;
    for (uint32_t i = 0; i < 64; i++) {
        if (most > 255)
            pstk__put16(out + 1 + 2 * i, quant[i]);
        else
            out[1 + i] = (uint8_t)quant[i];
    }
    return 1 + (64u << out[0]);
}

uint32_t pstk__quant_write(uint8_t out[PSTK__QUANT_MAX_SIZE], const uint16_t quant[64])
{
    uint32_t form;
    const uint32_t quality = find_quality(quant, &form);
    if (quality == 0)
        return write_entries(out, quant);
    out[0] = (uint8_t)form;
    out[1] = (uint8_t)quality;
    return 2;
}

uint32_t pstk__quant_read(uint16_t quant[64], const uint8_t *data, uint64_t size)
{
    const uint32_t form = size > 0 ? data[0] : CHROMA + 1;
    const uint32_t n = form <= WORDS ? 1 + (64u << form) : 2;
    if (form > CHROMA || n > size || (form >= LUMA && (data[1] < 1 || data[1] > MAX_QUALITY)))
        return 0;
    for (uint32_t i = 0; i < 64; i++)
        quant[i] = form == BYTES   ? data[1 + i]
                   : form == WORDS ? pstk__get16(data + 1 + 2 * i)
                                   : scaled(standard[form - LUMA], i, scale_of(data[1]));
    return n;
}
