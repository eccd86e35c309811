/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c: Castagnoli, reflected 0x82F63B78, init and xorout ~0 (RFC 3720 B.4). Pure. */
#ifndef PSTK_CRC32C_H
#define PSTK_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continue `crc` (0 at the start) over size bytes, with the CPU's instruction where it has one. */
uint32_t pstk__crc32c(uint32_t crc, const void *data, size_t size);
/* Continue `crc` and copy the bytes to `to`, which may not overlap. */
uint32_t pstk__crc32c_copy(uint32_t crc, void *to, const void *data, size_t size);
/* Continue `crc` by a table, without the CPU's instruction: the reference. */
uint32_t pstk__crc32c_c(uint32_t crc, const void *data, size_t size);

#endif
