/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/passes: the kernels that are loops over bytes and blocks, in C that a compiler can
 * vectorise. Each ISA's file includes this once. It defines PASS_TARGET, the attribute to compile
 * them with, and lists PASSES as members of its struct pstk__planes_kernels.
 */
#include "base/little.h"
#include "image/planes/layout.h"

/* Sixteen slots, at any address of a uint32_t. */
typedef uint32_t pass_slots __attribute__((vector_size(64), aligned(4), may_alias));

/* Fill a decoding table. It writes sixteen slots at a time, past a symbol's end into the next
 * symbol's slots, which are filled later. Few symbols have more slots, so the loop is rarely
 * mispredicted. */
PASS_TARGET static void pass_table(struct pstk__rans_table *table, const struct pstk__model *model)
{
    pass_slots places;
    uint32_t *slot = table->slot;
    for (uint32_t k = 0; k < 16; k++)
        places[k] = k << 20;
    for (uint32_t s = 0; s < model->n; s++) {
        const uint32_t n = model->frequency[s], e = model->symbol[s] | n << 8;
        uint32_t i = 0;
        do {
            *(pass_slots *)(slot + i) = places + (e + (i << 20));
            i += 16;
        } while (i < n);
        slot += n;
    }
}

PASS_TARGET static uint32_t pass_max(const uint8_t *counts, uint32_t n)
{
    uint8_t most = 0;
    for (uint32_t b = 0; b < n; b++)
        most = counts[b] > most ? counts[b] : most;
    return most;
}

PASS_TARGET static uint32_t pass_map_tables(uint8_t *out, const uint8_t *counts, uint32_t n,
                                            const uint8_t tables[8])
{
    const uint64_t eight = pstk__get64(tables);
    uint32_t at = 0;
    for (uint32_t b = 0; b < n; b++) {
        pstk__put64(out + at, eight);
        at += counts[b];
    }
    return at;
}

PASS_TARGET static uint32_t pass_maps(uint64_t *maps, const uint8_t **bytes, const uint8_t *counts,
                                      uint32_t n, uint64_t *all)
{
    static const uint64_t low_bytes[9] = {0,
                                          0xff,
                                          0xffff,
                                          0xffffff,
                                          0xffffffff,
                                          0xffffffffff,
                                          0xffffffffffff,
                                          0xffffffffffffff,
                                          0xffffffffffffffff};
    const uint8_t *at = *bytes;
    uint64_t seen = 0;
    uint32_t bits = 0;
    for (uint32_t b = 0; b < n; b++) {
        const uint32_t count = counts[b];
        const uint64_t map = pstk__get64(at) & low_bytes[count];
        maps[b] = map;
        seen |= map;
        bits += (uint32_t)__builtin_popcountll(map);
        at += count;
    }
    *bytes = at;
    *all |= seen;
    return bits;
}

PASS_TARGET static uint32_t pass_count_bits(const uint64_t *maps, uint32_t n)
{
    uint32_t bits = 0;
    for (uint32_t b = 0; b < n; b++)
        bits += (uint32_t)__builtin_popcountll(maps[b]);
    return bits;
}

PASS_TARGET static void pass_low_tables(uint8_t *out, const uint8_t *high, uint32_t n,
                                        const uint8_t tables[2])
{
    const uint8_t zero = tables[0], other = tables[1];
    for (uint32_t i = 0; i < n; i++)
        out[i] = high[i] ? other : zero;
}

PASS_TARGET static void pass_sum_dc(int16_t *dc, const uint8_t *high, const uint8_t *low,
                                    uint32_t n, int16_t before)
{
    uint16_t sum = (uint16_t)before;
    for (uint32_t i = 0; i < n; i++)
        dc[i] = pstk__unzigzag16((uint32_t)high[i] << 8 | low[i]);
    for (uint32_t i = 0; i < n; i++) {
        sum = (uint16_t)(sum + (uint16_t)dc[i]);
        dc[i] = (int16_t)sum;
    }
}

#define PASSES                                                                                     \
    .table = pass_table, .most = pass_max, .map_tables = pass_map_tables, .maps = pass_maps,       \
    .count_bits = pass_count_bits, .low_tables = pass_low_tables, .sum_dc = pass_sum_dc
