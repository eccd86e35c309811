/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/huffman: Huffman tables of JPEG, for coding: from a DHT segment, the standard ones, and
 * optimal ones for given counts (ITU T.81 annexes C and K). Pure.
 */
#ifndef PSTK_JPEG_HUFFMAN_H
#define PSTK_JPEG_HUFFMAN_H

#include <stdint.h>

/* A table as DHT has it. */
struct pstk__huffman_spec {
    uint8_t counts[16];   /* codes of 1..16 bits; at most 256 in all */
    uint8_t symbols[256]; /* shortest first */
};

/* A symbol's code, shifted left by the number of value bits that follow it, which is the symbol's
 * low nibble in all tables of JPEG. */
struct pstk__huffman_code {
    uint32_t bits;
    uint8_t size;    /* bits of code and value: 1..31, 0 when missing */
    uint8_t missing; /* 1: the symbol has no code */
};

struct pstk__huffman {
    struct pstk__huffman_code codes[256];
};

/* Make codes from counts. If the codes do not fit their lengths, or are more than 256, no symbol
 * gets a code; libjpeg refuses such a table when it is used. */
void pstk__huffman_init(struct pstk__huffman *huffman, const struct pstk__huffman_spec *spec);
/* Return a standard table. libjpeg uses these (numbers 0 and 1) when a file defines none. */
const struct pstk__huffman_spec *pstk__huffman_standard(int is_ac, int is_chroma);
/* Make the shortest code of at most 16 bits for symbols with these counts, whose sum is below 2^63.
 * No code is all ones. A symbol with count 0 gets no code. */
void pstk__huffman_optimal(struct pstk__huffman_spec *spec, const uint64_t counts[256]);
/* Return the number of codes. */
uint32_t pstk__huffman_n_codes(const struct pstk__huffman_spec *spec);

#endif
