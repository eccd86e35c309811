/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/plain: checks that a file is whole, and reads its coefficients, for the plainest JPEGs,
 * which are nearly all: Huffman-coded, sequential, gray or of three colours, one scan, no stray
 * markers. The check reads the codes without making coefficients, in about a quarter of the time of
 * a decode. Pure.
 *
 * A positive answer is certain: libjpeg decodes such a file without a warning that means damage,
 * and reads the same coefficients (tests mutate files to verify this). A negative answer means
 * nothing: the file may be sound. libjpeg then decides and reports the damage.
 */
#ifndef PSTK_JPEG_PLAIN_H
#define PSTK_JPEG_PLAIN_H

#include "image/jpeg/frame.h"

#define PSTK__JPEG_LOOKUP_BITS 11 /* codes up to this length are found in one step */

#define PSTK__JPEG_LOOKUP_ENDS 0x8000u
#define PSTK__JPEG_LOOKUP_NONE 0x4000u /* 64 coefficients: more than any block has */

/* A Huffman table, for reading. */
struct pstk__jpeg_lookup {
    int is_defined; /* 1: the file defines it, validly */
    int is_ac;
    /* Indexed by the next bits: the code that they begin with, as plain.c's say() returns it. 0: it
     * is longer than these bits, or there is none. */
    uint32_t one[1u << PSTK__JPEG_LOOKUP_BITS];
    /* Indexed by the next bits, for AC tables: all symbols whose codes lie within them, up to an
     * end of block. The low byte has the bits of codes and values, the next the number of
     * coefficients passed. PSTK__JPEG_LOOKUP_ENDS is added when the block ends; _NONE: there is no
     * such symbol. */
    uint16_t some[1u << PSTK__JPEG_LOOKUP_BITS];
    /* Indexed by the next bits, for AC tables: the coefficient whose code and value lie within
     * them. The low bytes are those of `some` for this one symbol; the upper half is its value. */
    uint32_t coefficient[1u << PSTK__JPEG_LOOKUP_BITS];
    uint32_t limit[18]; /* by length: end of its codes, shifted left to 16 bits; [17]: UINT32_MAX */
    int32_t offset[17]; /* by length: index of a symbol = code + offset */
    uint8_t symbols[256];
};

/* A file's header. It takes some 170 KiB, but only the file's own tables are touched. */
struct pstk__jpeg_plain {
    struct pstk__jpeg_frame frame; /* laid out; without quantisation and colour */
    const uint8_t *data;           /* borrowed */
    uint64_t size;
    uint64_t scan_at; /* offset of the entropy-coded data */
    uint32_t restart_interval;
    uint8_t quant_table[4], dc_table[4], ac_table[4]; /* by component */
    uint32_t quant_tables;                            /* bit i: the file defines table i */
    struct pstk__jpeg_lookup dc[4], ac[4];
};

/* Read the header. Returns 1 when the file is of this kind. Borrows the file as long as `plain` is
 * used. */
int pstk__jpeg_plain_open(struct pstk__jpeg_plain *plain, const void *data, uint64_t size);
/* Read all of the scan. Returns 1 when the file is whole. */
int pstk__jpeg_plain_check(struct pstk__jpeg_plain *plain);
/* Read all of the scan as check does, and write the coefficients of each component: rows * stride
 * blocks in natural order, MCU padding included. */
int pstk__jpeg_plain_read(struct pstk__jpeg_plain *plain, int16_t *const blocks[]);

#endif
