/* SPDX-License-Identifier: Apache-2.0 */
#include "image/planes/quant.h"

#include "base/little.h"
#include "image/jpeg/quality.h"

#include <string.h>

enum encoding { BYTES = 0, WORDS = 1, LUMA = 2, CHROMA = 3 };

static int is_scaled(const uint16_t quant[64], uint32_t is_chroma, uint32_t quality)
{
    for (uint32_t i = 0; i < 64; i++)
        if (quant[i] != pstk__jpeg_quality_entry(is_chroma, i, quality))
            return 0;
    return 1;
}

/* Return the lowest quality that gives the table, and in *encoding the standard table that it
 * scales; 0: none. */
static uint32_t find_quality(const uint16_t quant[64], uint32_t *encoding)
{
    for (*encoding = LUMA; *encoding <= CHROMA; ++*encoding)
        for (uint32_t quality = 1; quality <= PSTK__JPEG_MAX_QUALITY; quality++)
            if (is_scaled(quant, *encoding == CHROMA, quality))
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
    uint32_t encoding;
    const uint32_t quality = find_quality(quant, &encoding);
    if (quality == 0)
        return write_entries(out, quant);
    out[0] = (uint8_t)encoding;
    out[1] = (uint8_t)quality;
    return 2;
}

uint32_t pstk__quant_read(uint16_t quant[64], const uint8_t *data, uint64_t size)
{
    const uint32_t encoding = size > 0 ? data[0] : CHROMA + 1;
    const uint32_t n = encoding <= WORDS ? 1 + (64u << encoding) : 2;
    if (encoding > CHROMA || n > size ||
        (encoding >= LUMA && (data[1] < 1 || data[1] > PSTK__JPEG_MAX_QUALITY)))
        return 0;
    for (uint32_t i = 0; i < 64; i++)
        quant[i] = encoding == BYTES   ? data[1 + i]
                   : encoding == WORDS ? pstk__get16(data + 1 + 2 * i)
                                       : pstk__jpeg_quality_entry(encoding == CHROMA, i, data[1]);
    return n;
}
