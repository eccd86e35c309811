/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/rans: the entropy coder of planes: static range asymmetric numeral systems (J. Duda, 2013,
 * arXiv:1311.2540) of byte symbols. Many interleaved states share one stream of 16-bit words (as in
 * F. Giesen, "Interleaved entropy coders", arXiv:1402.3392). Pure.
 *
 * Tables have 2^10 slots; a symbol of frequency f has f of them. States are 32 bits, at least 2^16.
 * A run's symbols are coded in groups of n_lanes, one symbol for each lane (the last group may lack
 * some). In a group lane j takes symbol 4 (j mod n/4) + j / (n/4), n = n_lanes. With 64 lanes, the
 * same lane of four vectors then has four bytes of one 32-bit word; with 16, the lanes are the
 * symbols' 4 x 4 transpose. A lane whose state falls below 2^16 takes the next word, lanes in
 * order.
 */
#ifndef PSTK_PLANES_RANS_H
#define PSTK_PLANES_RANS_H

#include "base/little.h"

#include <stdint.h>

#define PSTK__RANS_BITS 10
#define PSTK__RANS_ONE (1u << PSTK__RANS_BITS)
#define PSTK__RANS_LOW (1u << 16) /* smallest state, in which coding begins and ends */
/* Lanes of a coder: 4, 16 or 64. Each has a state of 4 bytes, so fewer symbols take fewer lanes. */
#define PSTK__RANS_FEW_LANES 4
#define PSTK__RANS_SOME_LANES 16
#define PSTK__RANS_LANES 64

/* A decoding table: for each slot symbol | frequency << 8 | (slot - the symbol's first) << 20.
 * Tables are adjacent; filling one may write 15 slots after it. */
struct pstk__rans_table {
    uint32_t slot[PSTK__RANS_ONE];
};
#define PSTK__RANS_TABLE_SLACK 64 /* bytes after the last table */

/* A strip being decoded. Invariant: begin <= at <= end <= limit, and end - at is even. */
struct pstk__rans_reader {
    uint32_t state[PSTK__RANS_LANES];
    uint32_t n_lanes;
    const uint8_t *at;
    const uint8_t *end;
    const uint8_t *limit; /* end of readable memory, because vectors read ahead; begin sets it to
                             end */
    const struct pstk__rans_table *tables;
};

/* Begin with data[0, size): n_lanes states (u32), then the words. Returns -1 when they are too
 * short, or odd. */
int pstk__rans_begin(struct pstk__rans_reader *reader, const struct pstk__rans_table *tables,
                     uint32_t n_lanes, const uint8_t *data, uint64_t size);
/* Decode a run of n symbols, each by the table of its number; every number is below the tables'
 * count. Returns -1 when the words are used up. Plain C, the reference. */
int pstk__rans_run(struct pstk__rans_reader *reader, uint8_t *out, const uint8_t *table,
                   uint32_t n);
/* Return 0 when all words were used and every lane is in the state in which coding began, else -1.
 */
int pstk__rans_end(const struct pstk__rans_reader *reader);

/* A symbol to code. */
struct pstk__rans_symbol {
    uint64_t reciprocal; /* 2^42 / frequency, rounded up */
    uint16_t frequency;  /* 1..2^10 */
    uint16_t first;      /* first slot of the symbol */
};

/* A strip being encoded, from its last symbol to its first. Bytes grow downwards from `at`. */
struct pstk__rans_writer {
    uint32_t state[PSTK__RANS_LANES];
    uint32_t n_lanes;
    uint8_t *at;
};

void pstk__rans_write_begin(struct pstk__rans_writer *writer, uint32_t n_lanes, uint8_t *end);
/*
 * Code one symbol of a lane. Needs 2 bytes of room below `at`. A product replaces the division.
 * After the first step x < f 2^22, and the reciprocal is m = (2^42 + e) / f with e < f <= 2^10. So
 * x m < 2^64 and x e < 2^42, and (x m) >> 42 is x / f rounded down.
 */
static inline void pstk__rans_put(struct pstk__rans_writer *writer, uint32_t lane,
                                  const struct pstk__rans_symbol *symbol)
{
    uint32_t x = writer->state[lane];
    const uint32_t f = symbol->frequency, full = x >> (32 - PSTK__RANS_BITS) >= f;
    pstk__put16(writer->at - 2, (uint16_t)x);
    writer->at -= 2 * full;
    x >>= 16 * full;
    const uint32_t q = (uint32_t)(x * symbol->reciprocal >> 42);
    writer->state[lane] = x + symbol->first + q * (PSTK__RANS_ONE - f);
}
/* Write the states, which take 4 * n_lanes bytes of room. The strip then begins at `at`. */
void pstk__rans_write_end(struct pstk__rans_writer *writer);

#endif
