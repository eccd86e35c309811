/* SPDX-License-Identifier: Apache-2.0 */
#include "format/table/more.h"

#include "base/crc32c.h"
#include "base/little.h"

void pstk__table_more_seal(uint8_t *bytes, uint64_t size)
{
    pstk__put32(bytes, pstk__crc32c(0, bytes + PSTK__MORE_CRC, size - PSTK__MORE_CRC));
}

const char *pstk__table_more_read(const uint8_t *bytes, uint64_t size, uint32_t n,
                                  const uint8_t *data[PSTK_MAX_FIELDS],
                                  uint32_t sizes[PSTK_MAX_FIELDS])
{
    if (size < PSTK__MORE_CRC ||
        pstk__get32(bytes) != pstk__crc32c(0, bytes + PSTK__MORE_CRC, size - PSTK__MORE_CRC))
        return "the CRC32C of its columns is wrong";
    uint64_t at = PSTK__MORE_CRC;
    for (uint32_t i = 0; i < n; i++) {
        if (size - at < 4 || pstk__get32(bytes + at) > size - at - 4)
            return "its columns end early";
        sizes[i] = pstk__get32(bytes + at);
        data[i] = bytes + at + 4;
        at += 4 + (uint64_t)sizes[i];
    }
    return at == size ? NULL : "more follows its columns";
}
