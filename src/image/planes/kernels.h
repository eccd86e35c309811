/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/kernels: the loops that take most of the time of decoding a strip, in a table for each
 * ISA. The plain C kernels are the reference for the others. Most are plain loops (passes.h), which
 * the compiler compiles for each ISA. Pure.
 */
#ifndef PSTK_PLANES_KERNELS_H
#define PSTK_PLANES_KERNELS_H

#include "image/planes/model.h"

struct pstk__planes_kernels {
    uint32_t isa; /* enum pstk_kernels */
    /* Decode a run, as pstk__rans_run. May write up to a multiple of 64 symbols, and read as many
     * table numbers. */
    int (*run)(struct pstk__rans_reader *r, uint8_t *out, const uint8_t *table, uint32_t n);
    /* Fill in the decoding table of a model. May write 15 slots after it. */
    void (*table)(struct pstk__rans_table *t, const struct pstk__model *m);
    /* Return the largest of n counts. */
    uint32_t (*most)(const uint8_t *counts, uint32_t n);
    /* Write the table numbers of all map bytes: tables[0..count) for each block. Returns their
     * number. May write 8 bytes after the last. */
    uint32_t (*map_tables)(uint8_t *out, const uint8_t *counts, uint32_t n,
                           const uint8_t tables[8]);
    /* Assemble the maps of n blocks from their bytes, counts[b] for block b, and move *bytes past
     * them. Returns the number of bits set. Reads 8 bytes after the last. Adds the union of the
     * maps to *all. */
    uint32_t (*maps)(uint64_t *maps, const uint8_t **bytes, const uint8_t *counts, uint32_t n,
                     uint64_t *all);
    /*
     * Write the table number of each value of n blocks, in their order: tables[counts[b]][z] for
     * each bit z of maps[b]. May write up to 64 bytes after the last.
     */
    void (*value_tables)(uint8_t *out, const uint64_t *maps, const uint8_t *counts, uint32_t n,
                         const uint8_t tables[9][64]);
    /* Packing only: from n blocks of coefficients in natural order, write the maps, and the AC
     * coefficients that are not 0 in zigzag order. Returns the number of these. May write 64 values
     * after the last. */
    uint32_t (*take)(uint64_t *maps, int16_t *values, const int16_t *blocks, uint32_t n);
    /* Count the values that are -128. May read 31 bytes after the last. */
    uint32_t (*count_wide)(const int8_t *values, uint32_t n);
    /* Count the bits set in n maps. */
    uint32_t (*count_bits)(const uint64_t *maps, uint32_t n);
    /* Write for each of n high bytes tables[0] if it is 0, else tables[1]. */
    void (*low_tables)(uint8_t *out, const uint8_t *high, uint32_t n, const uint8_t tables[2]);
    /* Compute a row's DCs: `before` plus the sums of n zigzag-coded differences. */
    void (*sum_dc)(int16_t *dc, const uint8_t *high, const uint8_t *low, uint32_t n,
                   int16_t before);
};

/* Return the kernels of an ISA (AUTO: the best that this CPU runs), NULL when this build or CPU
 * does not have them. */
const struct pstk__planes_kernels *pstk__planes_kernels(uint32_t isa);

/* The tables, for kernels.c only. */
extern const struct pstk__planes_kernels pstk__planes_kernels_c;
extern const struct pstk__planes_kernels pstk__planes_kernels_avx2;
extern const struct pstk__planes_kernels pstk__planes_kernels_avx512;

#endif
