/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/scan.h"

#include "image/jpeg/coder.h"

#include <penstock/penstock.h>
#include <string.h>

/* ---- writing -------------------------------------------------------------------------------- */

static int write_sequential(const struct pstk__jpeg_units *units,
                            const struct pstk__jpeg_script *script, uint32_t padding, uint32_t isa,
                            struct pstk__bits *bits)
{
    struct pstk__jpeg_coder coder;
    const struct pstk__jpeg_visitor visitor = {pstk__jpeg_coder_block, pstk__jpeg_coder_restart,
                                               &coder};
    if (pstk__jpeg_coder_begin(&coder, units->scan, script, padding, bits) < 0)
        return -1;
#if defined(__x86_64__)
    if (isa == PSTK_KERNELS_AVX512)
        return pstk__jpeg_coder_avx512(units, &coder);
    if (isa == PSTK_KERNELS_AVX2)
        return pstk__jpeg_coder_avx2(units, &coder);
#endif
    (void)isa;
    return pstk__jpeg_visit(units, &visitor);
}

int pstk__jpeg_scan_write(const struct pstk__jpeg_units *units,
                          const struct pstk__jpeg_script *script, uint32_t padding, uint32_t isa,
                          struct pstk__bits *bits)
{
    int r = units->scan->progressive ? pstk__jpeg_progressive_write(units, script, padding, bits)
                                     : write_sequential(units, script, padding, isa, bits);
    if (r < 0 || pstk__bits_ready(bits) < 0)
        return PSTK_EBADMSG;
    pstk__bits_flush(&bits->state, padding);
    return pstk__bits_settle(bits) < 0 || bits->state.missing ? PSTK_EBADMSG : 0;
}

/* ---- counting ------------------------------------------------------------------------------- */

struct counter {
    uint64_t *dc[PSTK__JPEG_MAX_COMPONENTS], *ac[PSTK__JPEG_MAX_COMPONENTS];
    int16_t last_dc[PSTK__JPEG_MAX_COMPONENTS];
    struct pstk__zigzag_positions positions;
};

static inline __attribute__((always_inline)) int count_block(void *user, uint32_t i,
                                                             const int16_t *block)
{
    struct counter *counter = user;
    uint32_t width = pstk__jpeg_width_of(pstk__jpeg_dc_difference(block[0], &counter->last_dc[i])),
             last = 0, widest = width;
    counter->dc[i][width]++;
    for (uint64_t map = pstk__zigzag_map(&counter->positions, block) & ~(uint64_t)1; map != 0;
         map &= map - 1) {
        uint32_t position = (uint32_t)__builtin_ctzll(map), run = position - last - 1;
        last = position;
        for (; run > 15; run -= 16)
            counter->ac[i][0xf0]++;
        width = pstk__jpeg_width_of_other(block[pstk__zigzag[position]]);
        widest = width > widest ? width : widest;
        counter->ac[i][run << 4 | width]++;
    }
    if (last != 63)
        counter->ac[i][0]++;
    return widest > 15 ? PSTK_EBADMSG : 0;
}

static int count_restart(void *user, uint32_t number)
{
    struct counter *counter = user;
    (void)number;
    memset(counter->last_dc, 0, sizeof counter->last_dc);
    return 0;
}

int pstk__jpeg_scan_count(const struct pstk__jpeg_frame *frame, const int16_t *const blocks[],
                          const struct pstk__jpeg_scan *scan, struct pstk__jpeg_counts *counts)
{
    const struct pstk__jpeg_units units = {frame, blocks, scan};
    struct counter counter;
    const struct pstk__jpeg_visitor visitor = {count_block, count_restart, &counter};
    memset(counter.last_dc, 0, sizeof counter.last_dc);
    pstk__zigzag_init(&counter.positions);
    for (uint32_t i = 0; i < scan->n_components; i++) {
        counter.dc[i] = counts->dc[scan->dc_table[i]];
        counter.ac[i] = counts->ac[scan->ac_table[i]];
    }
    return pstk__jpeg_visit(&units, &visitor);
}
