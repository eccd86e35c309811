/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/coder: codes the blocks of a sequential scan. Pure, inline, so that each ISA compiles it
 * for its CPU.
 */
#ifndef PSTK_JPEG_CODER_H
#define PSTK_JPEG_CODER_H

#include "image/jpeg/bits.h"
#include "image/jpeg/units.h"
#include "image/jpeg/zigzag.h"

#include <string.h>

#define PSTK__JPEG_SMALL 16 /* small values are from -16 to 15 */
#define PSTK__JPEG_SMALL_MISSING 0x80u

/* A scan being written. */
struct pstk__jpeg_coder {
    struct pstk__bits *bits;
    const struct pstk__huffman *dc[PSTK__JPEG_MAX_COMPONENTS], *ac[PSTK__JPEG_MAX_COMPONENTS];
    int16_t last_dc[PSTK__JPEG_MAX_COMPONENTS];
    uint32_t padding;
    struct pstk__zigzag_positions positions;
    /* Indexed by component, run and value + PSTK__JPEG_SMALL: the bits of code and value, shifted
     * left by 8, plus their number, at most 21, and PSTK__JPEG_SMALL_MISSING when there is no code.
     */
    uint32_t small[PSTK__JPEG_MAX_COMPONENTS][16][2 * PSTK__JPEG_SMALL];
};

/* Return the bits of the magnitude of a value that is not 0. */
static inline uint32_t pstk__jpeg_width_of_other(int32_t value)
{
    return 32 - (uint32_t)__builtin_clz((uint32_t)(value < 0 ? -value : value));
}

static inline uint32_t pstk__jpeg_width_of(int32_t value)
{
    return value == 0 ? 0 : pstk__jpeg_width_of_other(value);
}

/* Return the value bits of annex F.1.2.1: negative values minus one, in as many bits. */
static inline uint32_t pstk__jpeg_value_bits(int32_t value, uint32_t width)
{
    return (uint32_t)(value + (value >> 31)) & ((1u << width) - 1);
}

/* Return the difference of two DCs. Decoders keep sums in 16 bits, so a difference beyond 16 bits
 * wraps. */
static inline int32_t pstk__jpeg_dc_difference(int32_t dc, int16_t *last)
{
    int32_t difference = (int16_t)(uint16_t)(dc - *last);
    *last = (int16_t)dc;
    return difference;
}

/* Make the codes of small values after each run. Runs longer than 15 take symbols of their own. */
static inline void pstk__jpeg_small_init(uint32_t small[16][2 * PSTK__JPEG_SMALL],
                                         const struct pstk__huffman *ac)
{
    for (uint32_t run = 0; run < 16; run++)
        for (int32_t value = -PSTK__JPEG_SMALL; value < PSTK__JPEG_SMALL; value++) {
            const uint32_t width = pstk__jpeg_width_of(value);
            const struct pstk__huffman_code code = ac->codes[run << 4 | width];
            small[run][value + PSTK__JPEG_SMALL] =
                (code.bits | pstk__jpeg_value_bits(value, width)) << 8 | code.size |
                (code.missing ? PSTK__JPEG_SMALL_MISSING : 0);
        }
}

/* Begin a scan. Returns -1 when it names a table that does not exist. */
static inline int pstk__jpeg_coder_begin(struct pstk__jpeg_coder *coder,
                                         const struct pstk__jpeg_scan *scan,
                                         const struct pstk__jpeg_script *script, uint32_t padding,
                                         struct pstk__bits *bits)
{
    coder->bits = bits;
    coder->padding = padding;
    memset(coder->last_dc, 0, sizeof coder->last_dc);
    pstk__zigzag_init(&coder->positions);
    for (uint32_t i = 0; i < scan->n_components; i++) {
        if (scan->dc_table[i] > 3 || scan->ac_table[i] > 3)
            return -1;
        coder->dc[i] = &script->dc[scan->dc_table[i]];
        coder->ac[i] = &script->ac[scan->ac_table[i]];
        pstk__jpeg_small_init(coder->small[i], coder->ac[i]);
    }
    return 0;
}

/* Code a block, or a restart: the visitors of a scan; user is the coder. */
static inline __attribute__((always_inline)) int pstk__jpeg_coder_block(void *user, uint32_t i,
                                                                        const int16_t *block)
{
    struct pstk__jpeg_coder *coder = user;
    const struct pstk__huffman *ac = coder->ac[i];

    if (pstk__bits_ready(coder->bits) < 0)
        return -1;
    /* A copy can stay in registers; the original could not, because the bytes written might overlap
     * it. */
    struct pstk__bit_state bit_state = coder->bits->state;
    int32_t difference = pstk__jpeg_dc_difference(block[0], &coder->last_dc[i]);
    uint32_t width = pstk__jpeg_width_of(difference), last = 0, small_codes = 0;
    uint32_t(*small)[2 * PSTK__JPEG_SMALL] = coder->small[i];
    bit_state.missing |= width >> 4; /* -32768 has no symbol */
    pstk__bits_symbol(&bit_state, coder->dc[i], width, pstk__jpeg_value_bits(difference, width));

    for (uint64_t map = pstk__zigzag_map(&coder->positions, block) & ~(uint64_t)1; map != 0;
         map &= map - 1) {
        uint32_t position = (uint32_t)__builtin_ctzll(map), run = position - last - 1;
        int32_t value = block[pstk__zigzag[position]];
        last = position;
        for (; run > 15; run -= 16)
            pstk__bits_symbol(&bit_state, ac, 0xf0, 0);
        const uint32_t at = (uint32_t)(value + PSTK__JPEG_SMALL);
        if (__builtin_expect(at < 2 * PSTK__JPEG_SMALL, 1)) {
            const uint32_t code = small[run][at];
            small_codes |= code;
            pstk__bits_put(&bit_state, code >> 8, (int32_t)(code & 63));
            continue;
        }
        width = pstk__jpeg_width_of_other(value);
        bit_state.missing |= width >> 4;
        pstk__bits_symbol(&bit_state, ac, run << 4 | width, pstk__jpeg_value_bits(value, width));
    }
    if (last != 63)
        pstk__bits_symbol(&bit_state, ac, 0, 0);
    bit_state.missing |= small_codes & PSTK__JPEG_SMALL_MISSING;
    coder->bits->state = bit_state;
    return 0;
}

static inline int pstk__jpeg_coder_restart(void *user, uint32_t number)
{
    struct pstk__jpeg_coder *coder = user;
    if (pstk__bits_ready(coder->bits) < 0)
        return -1;
    pstk__bits_flush(&coder->bits->state, coder->padding);
    pstk__bits_marker(&coder->bits->state, PSTK__JPEG_RST0 + number);
    memset(coder->last_dc, 0, sizeof coder->last_dc);
    return 0;
}

/* Code all blocks of a scan that was begun, on CPUs with these instructions (scan_avx2.c,
 * scan_avx512.c). Returns 0, or a visitor's other result. */
int pstk__jpeg_coder_avx2(const struct pstk__jpeg_units *units, struct pstk__jpeg_coder *coder);
int pstk__jpeg_coder_avx512(const struct pstk__jpeg_units *units, struct pstk__jpeg_coder *coder);

#endif
