/* SPDX-License-Identifier: Apache-2.0 */
/* crc32: the CRC-32 of ZIP (ISO-HDLC): reflected 0xEDB88320, init and xorout ~0. Pure. */
#ifndef PSTK_CRC32_H
#define PSTK_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* The tables, 8 KiB, owned by the caller. */
struct pstk__crc32 {
    uint32_t tables[8][256]; /* [k][b] = b x^(8 + 8 k) mod P, reflected */
};

void pstk__crc32_init(struct pstk__crc32 *crc32);
/* Continue `crc` (0 at the start) over size bytes, 8 at a time (Kounavis and Berry, 2005). */
uint32_t pstk__crc32_continue(const struct pstk__crc32 *crc32, uint32_t crc, const void *data,
                              size_t size);

#endif
