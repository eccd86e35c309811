/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/plain: is a file whole? Asked of the plainest JPEGs, which nearly all are: Huffman-coded,
 * sequential, gray or of three colours, one scan, each marker where it belongs. It goes through
 * their codes without making coefficients of them, in about a quarter of the time of a decode.
 * Pure.
 *
 * It only ever says yes: what it takes, libjpeg decodes without a warning that means damage (a test
 * mutates files to see to it). Of all others, damaged ones among them, it says nothing; libjpeg
 * then decides, and says what is wrong.
 */
#ifndef PSTK_JPEG_PLAIN_H
#define PSTK_JPEG_PLAIN_H

#include "image/jpeg/frame.h"

#define PSTK__JPEG_LOOKUP_BITS 11 /* codes up to so long are found in one step */

#define PSTK__JPEG_LOOKUP_ENDS 0x8000u
#define PSTK__JPEG_LOOKUP_NONE 0x4000u /* 64 coefficients: too many for any block */

/* A Huffman table for reading. */
struct pstk__jpeg_lookup {
    int is_defined; /* by the file, validly */
    int is_ac;
    /* By the next bits, the code that they begin with, as plain.c's say() has it. 0: it is longer
     * than the bits, or there is none. */
    uint32_t one[1u << PSTK__JPEG_LOOKUP_BITS];
    /* By the next bits, of AC tables: all symbols whose codes lie in them whole, up to an end of
     * block: bits, those of the values included, and, shifted left by 8, the coefficients passed;
     * PSTK__JPEG_LOOKUP_ENDS more where the block ends; _NONE where there is no such symbol. */
    uint16_t some[1u << PSTK__JPEG_LOOKUP_BITS];
    uint32_t limit[18]; /* by length: end of its codes, shifted left to 16 bits; [17] is past all */
    int32_t offset[17]; /* by length: index of a symbol = code + offset */
    uint8_t symbols[256];
};

/* A file's header. Large: some 100 KiB, of which only the tables that the file has are touched. */
struct pstk__jpeg_plain {
    struct pstk__jpeg_frame frame; /* laid out; without quantisation and colour */
    const uint8_t *data;           /* borrowed */
    uint64_t size;
    uint64_t scan_at; /* offset of the entropy-coded data */
    uint32_t restart_interval;
    uint8_t quant_table[4], dc_table[4], ac_table[4]; /* by component */
    uint32_t quant_tables;                            /* bits: those the file defines */
    struct pstk__jpeg_lookup dc[4], ac[4];
};

/* Read the header. 1: it is of this kind. The file is borrowed as long as `plain` is used. */
int pstk__jpeg_plain_open(struct pstk__jpeg_plain *plain, const void *data, uint64_t size);
/* Go through all of the scan. 1: the file is whole. */
int pstk__jpeg_plain_check(const struct pstk__jpeg_plain *plain);

#endif
