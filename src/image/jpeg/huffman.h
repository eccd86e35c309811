/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/huffman: Huffman tables of JPEG for coding: from a DHT segment, the standard ones, and
 * optimal ones for given counts (ITU T.81 annexes C and K). Pure.
 */
#ifndef PSTK_JPEG_HUFFMAN_H
#define PSTK_JPEG_HUFFMAN_H

#include <stdint.h>

/* As DHT has it. */
struct pstk__huffman_spec {
    uint8_t counts[16];   /* codes of 1..16 bits; no more than 256 together */
    uint8_t symbols[256]; /* shortest first */
};

/* A symbol's code, shifted left by as many value bits as follow it: those of the symbol's low
 * nibble, in all tables of JPEG. */
struct pstk__huffman_code {
    uint32_t bits;
    uint8_t size;    /* bits of code and value: 1..31, 0 when missing */
    uint8_t missing; /* 1: the symbol has no code */
};

struct pstk__huffman {
    struct pstk__huffman_code codes[256];
};

/* Codes from counts. A table whose codes do not fit their lengths, or of over 256 of them, has no
 * code for any symbol: libjpeg refuses it when it is used. */
void pstk__huffman_init(struct pstk__huffman *huffman, const struct pstk__huffman_spec *spec);
/* One of the standard tables: libjpeg takes these (0 and 1) where a file defines none. */
const struct pstk__huffman_spec *pstk__huffman_standard(int is_ac, int is_chroma);
/* The shortest code of at most 16 bits for symbols that occur as often as given; none is all ones.
 * A symbol that does not occur gets no code. Sum of the counts: below 2^63. */
void pstk__huffman_optimal(struct pstk__huffman_spec *spec, const uint64_t counts[256]);
/* Number of codes. */
uint32_t pstk__huffman_n_codes(const struct pstk__huffman_spec *spec);

#endif
