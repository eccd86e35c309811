/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/kernels: the loops that decoding a strip spends its time in, through a table by variant.
 * Pure. The C entry is the reference for the others. Most are plain loops (passes.h) that the
 * compiler turns into each variant's instructions.
 */
#ifndef PSTK_PLANES_KERNELS_H
#define PSTK_PLANES_KERNELS_H

#include "image/planes/model.h"

struct pstk__planes_kernels {
    uint32_t variant; /* enum pstk_kernels */
    /* As pstk__rans_run. May write up to a multiple of 64 symbols and read as many table numbers.
     */
    int (*run)(struct pstk__rans_reader *r, uint8_t *out, const uint8_t *table, uint32_t n);
    /* The decoding table of a model. May write 15 slots after it. */
    void (*table)(struct pstk__rans_table *t, const struct pstk__model *m);
    /* The largest of n counts. */
    uint32_t (*most)(const uint8_t *counts, uint32_t n);
    /* For each block's `count` map bytes, the numbers of their tables, tables[0..count); returns
     * how many there are. May write 8 bytes after the last. */
    uint32_t (*map_tables)(uint8_t *out, const uint8_t *counts, uint32_t n,
                           const uint8_t tables[8]);
    /* Maps of n blocks from their bytes, of which `counts` says how many each has, moving *bytes
     * on; returns how many bits they have. Reads 8 bytes after the last. *all: their union is
     * added. */
    uint32_t (*maps)(uint64_t *maps, const uint8_t **bytes, const uint8_t *counts, uint32_t n,
                     uint64_t *all);
    /*
     * For each value of n blocks, in their order, the number of the table that it is coded by:
     * tables[counts[b]][z] for each bit z of maps[b]. May write up to 64 bytes after the last.
     */
    void (*value_tables)(uint8_t *out, const uint64_t *maps, const uint8_t *counts, uint32_t n,
                         const uint8_t tables[9][64]);
    /* For packing: of n blocks of coefficients in natural order, the maps, and the AC coefficients
     * that are not 0 in zigzag order; returns how many those are. May write 64 values after the
     * last. */
    uint32_t (*take)(uint64_t *maps, int16_t *values, const int16_t *blocks, uint32_t n);
    /* How many of n values are -128. */
    uint32_t (*count_wide)(const int8_t *values, uint32_t n);
    /* Bits of n maps. */
    uint32_t (*count_bits)(const uint64_t *maps, uint32_t n);
    /* For each of n high bytes, tables[0] where it is 0, else tables[1]. */
    void (*low_tables)(uint8_t *out, const uint8_t *high, uint32_t n, const uint8_t tables[2]);
    /* A row's DCs: `before` and the sums of n zigzag-coded differences. */
    void (*sum_dc)(int16_t *dc, const uint8_t *high, const uint8_t *low, uint32_t n,
                   int16_t before);
};

/* The kernels asked for (AUTO: the best this CPU runs), NULL when this build or CPU lacks them. */
const struct pstk__planes_kernels *pstk__planes_kernels(uint32_t variant);

/* C pieces that other variants use where they have no own. */
uint32_t pstk__planes_take(uint64_t *maps, int16_t *values, const int16_t *blocks, uint32_t n);

/* The entries, for kernels.c alone. */
extern const struct pstk__planes_kernels pstk__planes_kernels_c;
extern const struct pstk__planes_kernels pstk__planes_kernels_avx2;
extern const struct pstk__planes_kernels pstk__planes_kernels_avx512;

#endif
