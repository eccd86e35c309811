/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/progressive: writes the scans of progressive files (ITU T.81, annex G). A run of blocks
 * without further coefficients ends where libjpeg ends it: at 32767 blocks, or when its correction
 * bits exceed 937.
 */
#include "image/jpeg/scan.h"

#include "image/jpeg/zigzag.h"

#include <string.h>

#define MAX_RUN 0x7fffu
#define MAX_CORRECTIONS 1000u /* a run is written when the next block's 63 might not fit */

struct progressive {
    struct pstk__bits *bits;
    const struct pstk__jpeg_scan *scan;
    const struct pstk__huffman *dc[PSTK__JPEG_MAX_COMPONENTS];
    const struct pstk__huffman *ac;
    uint32_t padding;
    int16_t last_dc[PSTK__JPEG_MAX_COMPONENTS];
    uint32_t run;  /* blocks whose end is not written yet */
    uint64_t band; /* map of the scan's positions */
    uint32_t n_corrections;
    uint8_t corrections[MAX_CORRECTIONS]; /* bits after the run's symbol, one a byte */
    struct pstk__zigzag_positions positions;
};

/* Return the bits of a number. */
static uint32_t width_of(uint32_t n)
{
    return n == 0 ? 0 : 32 - (uint32_t)__builtin_clz(n);
}

static uint32_t magnitude_of(int32_t value)
{
    return (uint32_t)(value < 0 ? -value : value);
}

/* ---- DC ------------------------------------------------------------------------------------- */

static int write_dc_first(void *user, uint32_t i, const int16_t *block)
{
    struct progressive *progressive = user;
    if (pstk__bits_ready(progressive->bits) < 0)
        return -1;
    int32_t dc = block[0] >> progressive->scan->low;
    int32_t difference = (int16_t)(uint16_t)(dc - progressive->last_dc[i]);
    uint32_t width = width_of(magnitude_of(difference));
    progressive->last_dc[i] = (int16_t)dc;
    progressive->bits->state.missing |= width >> 4;
    pstk__bits_symbol(&progressive->bits->state, progressive->dc[i], width,
                      (uint32_t)(difference + (difference >> 31)) & ((1u << width) - 1));
    return 0;
}

static int write_dc_refined(void *user, uint32_t i, const int16_t *block)
{
    struct progressive *progressive = user;
    (void)i;
    if (pstk__bits_ready(progressive->bits) < 0)
        return -1;
    pstk__bits_put(&progressive->bits->state, (uint32_t)(block[0] >> progressive->scan->low) & 1,
                   1);
    return 0;
}

/* ---- AC ------------------------------------------------------------------------------------- */

static void put_corrections(struct progressive *progressive, uint32_t first, uint32_t n)
{
    const uint8_t *bits = progressive->corrections + first;
    while (n > 0) {
        uint32_t n_now = n < 31 ? n : 31, word = 0;
        for (uint32_t i = 0; i < n_now; i++)
            word = word << 1 | bits[i];
        pstk__bits_put(&progressive->bits->state, word, (int32_t)n_now);
        bits += n_now;
        n -= n_now;
    }
}

/* Write the run of ended blocks and its correction bits. */
static void end_run(struct progressive *progressive)
{
    if (progressive->run == 0)
        return;
    uint32_t width = width_of(progressive->run) - 1;
    pstk__bits_symbol(&progressive->bits->state, progressive->ac, width << 4, 0);
    pstk__bits_put(&progressive->bits->state, progressive->run & ((1u << width) - 1),
                   (int32_t)width);
    put_corrections(progressive, 0, progressive->n_corrections);
    progressive->run = progressive->n_corrections = 0;
}

/* Return the positions in the scan's band at which the block is not 0. They include positions whose
 * bits are all below the scan's. */
static uint64_t band_of(const struct progressive *progressive, const int16_t *block)
{
    return pstk__zigzag_map(&progressive->positions, block) & progressive->band;
}

static int write_ac_first(void *user, uint32_t i, const int16_t *block)
{
    struct progressive *progressive = user;
    const struct pstk__jpeg_scan *scan = progressive->scan;
    uint32_t next = scan->first;
    (void)i;
    if (pstk__bits_ready(progressive->bits) < 0)
        return -1;
    for (uint64_t map = band_of(progressive, block); map != 0; map &= map - 1) {
        uint32_t position = (uint32_t)__builtin_ctzll(map), n_zeros = position - next;
        int32_t value = block[pstk__zigzag[position]];
        uint32_t magnitude = magnitude_of(value) >> scan->low;
        if (magnitude == 0)
            continue;
        next = position + 1;
        end_run(progressive);
        for (; n_zeros > 15; n_zeros -= 16)
            pstk__bits_symbol(&progressive->bits->state, progressive->ac, 0xf0, 0);
        uint32_t width = width_of(magnitude);
        uint32_t bits = value < 0 ? ~magnitude : magnitude;
        progressive->bits->state.missing |= width >> 4;
        pstk__bits_symbol(&progressive->bits->state, progressive->ac, n_zeros << 4 | width,
                          bits & ((1u << width) - 1));
    }
    if (next <= scan->last && ++progressive->run == MAX_RUN)
        end_run(progressive);
    return 0;
}

/* Return the last position in the map at which a coefficient first becomes non-zero in this scan;
 * 0: there is none. */
static uint32_t last_new(const int16_t *block, const struct pstk__jpeg_scan *scan, uint64_t map)
{
    while (map != 0) {
        uint32_t position = 63 - (uint32_t)__builtin_clzll(map);
        if (magnitude_of(block[pstk__zigzag[position]]) >> scan->low == 1)
            return position;
        map ^= (uint64_t)1 << position;
    }
    return 0;
}

/* A block's correction bits that follow its next symbol: n of them, in progressive->corrections
 * from `first` on. Bits before `first` belong to the run of blocks before it. */
struct waiting {
    uint32_t first, n;
};

/* Write a symbol of a refined block. It ends the run of blocks before, and is followed by the
 * correction bits of the coefficients that it skips. */
static inline void put_refined(struct progressive *progressive, uint32_t symbol, uint32_t sign,
                               struct waiting *waiting)
{
    end_run(progressive);
    pstk__bits_symbol(&progressive->bits->state, progressive->ac, symbol, sign);
    put_corrections(progressive, waiting->first, waiting->n);
    waiting->first = waiting->n = 0;
}

/*
 * Write a block of a refining scan (T.81, G.1.2.3, figure G.7). A coefficient with a bit in an
 * earlier scan gets one more bit, its correction. One that gets its first bit here is coded as a
 * symbol: its sign, and the number of coefficients before it that are still 0, at most 15. Sixteen
 * of those have a symbol of their own (0xf0), but only if a new coefficient follows. After the last
 * new one (`last`) they belong to the end of the block, which joins the run of ended blocks.
 */
static int write_ac_refined(void *user, uint32_t i, const int16_t *block)
{
    struct progressive *progressive = user;
    const struct pstk__jpeg_scan *scan = progressive->scan;
    uint64_t map = band_of(progressive, block);
    struct waiting waiting = {.first = progressive->n_corrections, .n = 0};
    uint32_t n_zeros = 0, next = scan->first, last = last_new(block, scan, map);
    (void)i;
    if (pstk__bits_ready(progressive->bits) < 0)
        return -1;
    for (; map != 0; map &= map - 1) {
        uint32_t position = (uint32_t)__builtin_ctzll(map);
        int32_t value = block[pstk__zigzag[position]];
        uint32_t magnitude = magnitude_of(value) >> scan->low;
        if (magnitude == 0)
            continue;
        n_zeros += position - next;
        next = position + 1;
        for (; n_zeros > 15 && position <= last; n_zeros -= 16)
            put_refined(progressive, 0xf0, 0, &waiting);
        if (magnitude > 1) {
            progressive->corrections[waiting.first + waiting.n++] = magnitude & 1;
            continue;
        }
        put_refined(progressive, n_zeros << 4 | 1, value >= 0, &waiting);
        n_zeros = 0;
    }
    n_zeros += scan->last + 1 - next;
    if (n_zeros > 0 || waiting.n > 0) {
        progressive->run++;
        progressive->n_corrections += waiting.n;
        if (progressive->run == MAX_RUN || progressive->n_corrections > MAX_CORRECTIONS - 63)
            end_run(progressive);
    }
    return 0;
}

/* ---- scans ---------------------------------------------------------------------------------- */

static int write_restart(void *user, uint32_t number)
{
    struct progressive *progressive = user;
    if (pstk__bits_ready(progressive->bits) < 0)
        return -1;
    end_run(progressive);
    pstk__bits_flush(&progressive->bits->state, progressive->padding);
    pstk__bits_marker(&progressive->bits->state, PSTK__JPEG_RST0 + number);
    memset(progressive->last_dc, 0, sizeof progressive->last_dc);
    return 0;
}

/* Choose the tables for a scan of this kind. */
static int choose_tables(struct progressive *progressive, const struct pstk__jpeg_script *script)
{
    const struct pstk__jpeg_scan *scan = progressive->scan;
    if (scan->first > 0) {
        progressive->ac = &script->ac[scan->ac_table[0] & 3];
        return scan->ac_table[0] > 3 ? -1 : 0;
    }
    for (uint32_t i = 0; i < scan->n_components; i++) {
        if (scan->dc_table[i] > 3 && scan->high == 0)
            return -1;
        progressive->dc[i] = &script->dc[scan->dc_table[i] & 3];
    }
    return 0;
}

int pstk__jpeg_progressive_write(const struct pstk__jpeg_units *units,
                                 const struct pstk__jpeg_script *script, uint32_t padding,
                                 struct pstk__bits *bits)
{
    struct progressive progressive = {.bits = bits, .scan = units->scan, .padding = padding};
    progressive.band =
        ~(uint64_t)0 >> (63 - progressive.scan->last) & ~(uint64_t)0 << progressive.scan->first;
    pstk__zigzag_init(&progressive.positions);
    struct pstk__jpeg_visitor visitor = {.restart = write_restart, .user = &progressive};
    if (choose_tables(&progressive, script) < 0)
        return -1;
    if (progressive.scan->first == 0)
        visitor.block = progressive.scan->high == 0 ? write_dc_first : write_dc_refined;
    else
        visitor.block = progressive.scan->high == 0 ? write_ac_first : write_ac_refined;
    int r = pstk__jpeg_visit(units, &visitor);
    if (r != 0 || pstk__bits_ready(bits) < 0)
        return -1;
    end_run(&progressive);
    return 0;
}
