/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/scan: writes a scan's Huffman-coded data from the coefficients, as usual encoders do.
 * Coefficients and tables may be hostile. Pure.
 */
#ifndef PSTK_JPEG_SCAN_H
#define PSTK_JPEG_SCAN_H

#include "image/jpeg/bits.h"
#include "image/jpeg/units.h"

/* Write the data of a scan by the script's tables, restart markers included, to `bits`, which were
 * just begun; leave them flushed and settled. padding: the bit, 0 or 1, that fills up a last byte.
 * isa: enum pstk_kernels, which this CPU must run. 0, or EBADMSG: the memory is full, or a symbol
 * has no code. */
int pstk__jpeg_scan_write(const struct pstk__jpeg_units *units,
                          const struct pstk__jpeg_script *script, uint32_t padding, uint32_t isa,
                          struct pstk__bits *bits);

/* Counts of the symbols, by table. */
struct pstk__jpeg_counts {
    uint64_t dc[4][256], ac[4][256];
};

/* Add the symbols of a sequential scan by its tables, whose numbers are below 4. 0, or EBADMSG: a
 * coefficient has no symbol (only -32768 has none). */
int pstk__jpeg_scan_count(const struct pstk__jpeg_frame *frame, const int16_t *const blocks[],
                          const struct pstk__jpeg_scan *scan, struct pstk__jpeg_counts *counts);

/* Write a progressive scan (progressive.c), for scan.c only. */
int pstk__jpeg_progressive_write(const struct pstk__jpeg_units *units,
                                 const struct pstk__jpeg_script *script, uint32_t padding,
                                 struct pstk__bits *bits);

#endif
