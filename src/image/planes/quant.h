/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/quant: codes quantisation tables in few bytes. Nearly every encoder scales the two tables
 * of ITU T.81, K.1 and K.2, by a quality of 1 to 100, as libjpeg does; such a table takes 2 bytes.
 * Pure.
 */
#ifndef PSTK_PLANES_QUANT_H
#define PSTK_PLANES_QUANT_H

#include <stdint.h>

#define PSTK__QUANT_MAX_SIZE 129 /* largest number of bytes written */

/* Write a table (natural order); returns its size in bytes. */
uint32_t pstk__quant_write(uint8_t out[PSTK__QUANT_MAX_SIZE], const uint16_t quant[64]);
/* Read a table from data[0, size). Returns the bytes that it takes; 0: damaged. */
uint32_t pstk__quant_read(uint16_t quant[64], const uint8_t *data, uint64_t size);

#endif
