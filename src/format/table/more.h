/* SPDX-License-Identifier: Apache-2.0 */
/*
 * more: the columns of a table's row, which the index stores after the values of the image. Pure.
 *
 * The bytes: a CRC32C of the bytes after it; for each field its size as u32, and its value.
 */
#ifndef PSTK_TABLE_MORE_H
#define PSTK_TABLE_MORE_H

#include <penstock/format.h>

#define PSTK__MORE_CRC 4 /* bytes before the first field */

/* Set the CRC32C of complete bytes. */
void pstk__table_more_seal(uint8_t *bytes, uint64_t size);
/* Find the values of n fields in the bytes: data[i], of sizes[i] bytes. Returns NULL, or the reason
 * of a failure, static storage. */
const char *pstk__table_more_read(const uint8_t *bytes, uint64_t size, uint32_t n,
                                  const uint8_t *data[PSTK_MAX_FIELDS],
                                  uint32_t sizes[PSTK_MAX_FIELDS]);

#endif
