/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/scan: a scan's Huffman-coded data from the coefficients, as the usual encoder writes it.
 * Pure. Coefficients and tables may be hostile.
 */
#ifndef PSTK_JPEG_SCAN_H
#define PSTK_JPEG_SCAN_H

#include "image/jpeg/bits.h"
#include "image/jpeg/units.h"

/* Write the data of a scan by the script's tables, restart markers included, to `bits`, which was
 * just begun, and leave it flushed and settled. padding: 0 or 1, the bits that fill up a last byte.
 * variant: enum pstk_kernels, one that this CPU runs. 0, or EBADMSG: the memory is full, or the
 * tables have no code for what there is. */
int pstk__jpeg_scan_write(const struct pstk__jpeg_units *units,
                          const struct pstk__jpeg_script *script, uint32_t padding,
                          uint32_t variant, struct pstk__bits *bits);

/* How often each symbol occurs. */
struct pstk__jpeg_counts {
    uint64_t dc[4][256], ac[4][256];
};

/* Add the symbols of a sequential scan, by its tables, which are below 4. 0, or EBADMSG: a
 * coefficient has no symbol (only -32768 has none). */
int pstk__jpeg_scan_count(const struct pstk__jpeg_frame *frame, const int16_t *const blocks[],
                          const struct pstk__jpeg_scan *scan, struct pstk__jpeg_counts *counts);

/* Of progressive.c: the block visitor of a progressive scan, for scan.c alone. */
int pstk__jpeg_progressive_write(const struct pstk__jpeg_units *units,
                                 const struct pstk__jpeg_script *script, uint32_t padding,
                                 struct pstk__bits *bits);

#endif
