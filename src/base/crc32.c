/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32.h"

#include "base/little.h"

void pstk__crc32_init(struct pstk__crc32 *crc32)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1)));
        crc32->tables[0][b] = crc;
    }
    for (uint32_t b = 0; b < 256; b++)
        for (int k = 1; k < 8; k++) {
            const uint32_t before = crc32->tables[k - 1][b];
            crc32->tables[k][b] = before >> 8 ^ crc32->tables[0][before & 0xff];
        }
}

uint32_t pstk__crc32_continue(const struct pstk__crc32 *crc32, uint32_t crc, const void *data,
                              size_t size)
{
    const uint32_t(*const t)[256] = crc32->tables;
    const uint8_t *b = data;
    crc = ~crc;
    for (; size >= 8; b += 8, size -= 8) {
        const uint32_t low = pstk__get32(b) ^ crc, high = pstk__get32(b + 4);
        crc = t[7][low & 0xff] ^ t[6][low >> 8 & 0xff] ^ t[5][low >> 16 & 0xff] ^ t[4][low >> 24] ^
              t[3][high & 0xff] ^ t[2][high >> 8 & 0xff] ^ t[1][high >> 16 & 0xff] ^
              t[0][high >> 24];
    }
    for (; size > 0; b++, size--)
        crc = crc >> 8 ^ t[0][(crc ^ *b) & 0xff];
    return ~crc;
}
