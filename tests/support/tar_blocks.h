/* SPDX-License-Identifier: Apache-2.0 */
/* tar_blocks: members of archives in memory, for tests of their reader. */
#ifndef PSTK_TAR_BLOCKS_H
#define PSTK_TAR_BLOCKS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct tar_blocks {
    uint8_t bytes[1 << 16];
    uint64_t size;
};

/* Set a header's checksum again. */
static inline void tar_sum(uint8_t *header)
{
    uint32_t sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
}

/* Append a header and its data, padded; returns the header. */
static inline uint8_t *tar_add(struct tar_blocks *tar, const char *name, char type,
                               const void *data, uint64_t size)
{
    uint8_t *header = tar->bytes + tar->size;
    memset(header, 0, 512 + (size + 511) / 512 * 512);
    strncpy((char *)header, name, 100);
    snprintf((char *)header + 124, 12, "%011o", (unsigned)size);
    header[156] = (uint8_t)type;
    memcpy(header + 257,
           "ustar\0"
           "00",
           8);
    tar_sum(header);
    if (size)
        memcpy(header + 512, data, size);
    tar->size += 512 + (size + 511) / 512 * 512;
    return header;
}

#endif
