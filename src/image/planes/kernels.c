/* SPDX-License-Identifier: Apache-2.0 */
/* planes/kernels: chooses the ISA, and has the plain C kernels. */
#include "image/planes/kernels.h"

#include "base/kernels.h"
#include "image/jpeg/zigzag.h"

#define PASS_TARGET
#include "image/planes/passes.h"

#include <penstock/penstock.h>

static void value_tables_c(uint8_t *out, const uint64_t *maps, const uint8_t *counts, uint32_t n,
                           const uint8_t tables[9][64])
{
    for (uint32_t b = 0; b < n; b++)
        for (uint64_t map = maps[b]; map != 0; map &= map - 1)
            *out++ = tables[counts[b]][__builtin_ctzll(map)];
}

static uint32_t count_wide_c(const int8_t *values, uint32_t n)
{
    uint32_t wide = 0;
    for (uint32_t i = 0; i < n; i++)
        wide += values[i] == PSTK__PLANES_WIDE;
    return wide;
}

static uint32_t take_c(uint64_t *maps, int16_t *values, const int16_t *blocks, uint32_t n)
{
    int16_t *out = values;
    for (uint32_t b = 0; b < n; b++, blocks += 64) {
        uint64_t map = 0;
        for (uint32_t z = 1; z < 64; z++) {
            const int16_t v = blocks[pstk__zigzag[z]];
            *out = v;
            out += v != 0;
            map |= (uint64_t)(v != 0) << z;
        }
        maps[b] = map;
    }
    return (uint32_t)(out - values);
}

const struct pstk__planes_kernels pstk__planes_kernels_c = {
    .isa = PSTK_KERNELS_C,
    .run = pstk__rans_run,
    .value_tables = value_tables_c,
    .take = take_c,
    .count_wide = count_wide_c,
    PASSES,
};

const struct pstk__planes_kernels *pstk__planes_kernels(uint32_t isa)
{
    static const void *const entries[] = {
        &pstk__planes_kernels_c,
#if defined(__x86_64__)
        &pstk__planes_kernels_avx2,
        &pstk__planes_kernels_avx512,
#endif
    };
    return pstk__kernels_choose(entries, sizeof entries / sizeof entries[0], isa);
}
