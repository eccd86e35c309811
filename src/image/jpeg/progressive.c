/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scans of progressive files (ITU T.81, annex G). Runs of blocks without further coefficients
 * end where libjpeg ends them: at 32767 blocks, or when their correction bits pass 937.
 */
#include "image/jpeg/scan.h"

#include "image/jpeg/zigzag.h"

#include <string.h>

#define MAX_RUN 0x7fffu
#define MAX_CORRECTIONS 1000u /* a run is written when a block's 63 might no longer fit */

struct progressive {
    struct pstk__bits *bits;
    const struct pstk__jpeg_scan *scan;
    const struct pstk__huffman *dc[PSTK__JPEG_MAX_COMPONENTS];
    const struct pstk__huffman *ac;
    uint32_t padding;
    int16_t last_dc[PSTK__JPEG_MAX_COMPONENTS];
    uint32_t run;  /* blocks whose end is not yet written */
    uint64_t band; /* places of the scan */
    uint32_t n_corrections;
    uint8_t corrections[MAX_CORRECTIONS]; /* bits that follow the run's symbol; a byte each */
    struct pstk__zigzag_places places;
};

/* Bits of a number. */
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
    struct progressive *p = user;
    if (pstk__bits_ready(p->bits) < 0)
        return -1;
    int32_t dc = block[0] >> p->scan->low;
    int32_t difference = (int16_t)(uint16_t)(dc - p->last_dc[i]);
    uint32_t width = width_of(magnitude_of(difference));
    p->last_dc[i] = (int16_t)dc;
    p->bits->state.missing |= width >> 4;
    pstk__bits_symbol(&p->bits->state, p->dc[i], width,
                      (uint32_t)(difference + (difference >> 31)) & ((1u << width) - 1));
    return 0;
}

static int write_dc_refined(void *user, uint32_t i, const int16_t *block)
{
    struct progressive *p = user;
    (void)i;
    if (pstk__bits_ready(p->bits) < 0)
        return -1;
    pstk__bits_put(&p->bits->state, (uint32_t)(block[0] >> p->scan->low) & 1, 1);
    return 0;
}

/* ---- AC ------------------------------------------------------------------------------------- */

static void put_corrections(struct progressive *p, uint32_t first, uint32_t n)
{
    const uint8_t *bits = p->corrections + first;
    while (n > 0) {
        uint32_t n_now = n < 31 ? n : 31, word = 0;
        for (uint32_t i = 0; i < n_now; i++)
            word = word << 1 | bits[i];
        pstk__bits_put(&p->bits->state, word, (int32_t)n_now);
        bits += n_now;
        n -= n_now;
    }
}

/* Write the run of ended blocks with its correction bits. */
static void end_run(struct progressive *p)
{
    if (p->run == 0)
        return;
    uint32_t width = width_of(p->run) - 1;
    pstk__bits_symbol(&p->bits->state, p->ac, width << 4, 0);
    pstk__bits_put(&p->bits->state, p->run & ((1u << width) - 1), (int32_t)width);
    put_corrections(p, 0, p->n_corrections);
    p->run = p->n_corrections = 0;
}

/* The places of the scan's band where the block is not 0. Those whose bits all lie below the scan's
 * are among them. */
static uint64_t band_of(const struct progressive *p, const int16_t *block)
{
    return pstk__zigzag_map(&p->places, block) & p->band;
}

static int write_ac_first(void *user, uint32_t i, const int16_t *block)
{
    struct progressive *p = user;
    const struct pstk__jpeg_scan *scan = p->scan;
    uint32_t next = scan->first;
    (void)i;
    if (pstk__bits_ready(p->bits) < 0)
        return -1;
    for (uint64_t map = band_of(p, block); map != 0; map &= map - 1) {
        uint32_t place = (uint32_t)__builtin_ctzll(map), n_zeros = place - next;
        int32_t value = block[pstk__zigzag[place]];
        uint32_t magnitude = magnitude_of(value) >> scan->low;
        if (magnitude == 0)
            continue;
        next = place + 1;
        end_run(p);
        for (; n_zeros > 15; n_zeros -= 16)
            pstk__bits_symbol(&p->bits->state, p->ac, 0xf0, 0);
        uint32_t width = width_of(magnitude);
        uint32_t bits = value < 0 ? ~magnitude : magnitude;
        p->bits->state.missing |= width >> 4;
        pstk__bits_symbol(&p->bits->state, p->ac, n_zeros << 4 | width, bits & ((1u << width) - 1));
    }
    if (next <= scan->last && ++p->run == MAX_RUN)
        end_run(p);
    return 0;
}

/* The last place of the map at which a coefficient becomes other than 0 in this scan; 0: none does.
 */
static uint32_t last_new(const int16_t *block, const struct pstk__jpeg_scan *scan, uint64_t map)
{
    while (map != 0) {
        uint32_t place = 63 - (uint32_t)__builtin_clzll(map);
        if (magnitude_of(block[pstk__zigzag[place]]) >> scan->low == 1)
            return place;
        map ^= (uint64_t)1 << place;
    }
    return 0;
}

/* Correction bits of this block wait behind those of the run, until a symbol of this block is
 * written: then the run is, and they follow the symbol. */
static int write_ac_refined(void *user, uint32_t i, const int16_t *block)
{
    struct progressive *p = user;
    const struct pstk__jpeg_scan *scan = p->scan;
    uint64_t map = band_of(p, block);
    uint32_t n_zeros = 0, n_waiting = 0, first = p->n_corrections, next = scan->first;
    uint32_t last = last_new(block, scan, map);
    (void)i;
    if (pstk__bits_ready(p->bits) < 0)
        return -1;
    for (; map != 0; map &= map - 1) {
        uint32_t place = (uint32_t)__builtin_ctzll(map);
        int32_t value = block[pstk__zigzag[place]];
        uint32_t magnitude = magnitude_of(value) >> scan->low;
        if (magnitude == 0)
            continue;
        n_zeros += place - next;
        next = place + 1;
        for (; n_zeros > 15 && place <= last; n_zeros -= 16) {
            end_run(p);
            pstk__bits_symbol(&p->bits->state, p->ac, 0xf0, 0);
            put_corrections(p, first, n_waiting);
            first = n_waiting = 0;
        }
        if (magnitude > 1) {
            p->corrections[first + n_waiting++] = magnitude & 1;
            continue;
        }
        end_run(p);
        pstk__bits_symbol(&p->bits->state, p->ac, n_zeros << 4 | 1, value >= 0);
        put_corrections(p, first, n_waiting);
        first = n_waiting = n_zeros = 0;
    }
    n_zeros += scan->last + 1 - next;
    if (n_zeros > 0 || n_waiting > 0) {
        p->run++;
        p->n_corrections += n_waiting;
        if (p->run == MAX_RUN || p->n_corrections > MAX_CORRECTIONS - 63)
            end_run(p);
    }
    return 0;
}

/* ---- scans ---------------------------------------------------------------------------------- */

static int write_restart(void *user, uint32_t number)
{
    struct progressive *p = user;
    if (pstk__bits_ready(p->bits) < 0)
        return -1;
    end_run(p);
    pstk__bits_flush(&p->bits->state, p->padding);
    pstk__bits_marker(&p->bits->state, PSTK__JPEG_RST0 + number);
    memset(p->last_dc, 0, sizeof p->last_dc);
    return 0;
}

/* The tables that a scan of this kind uses. */
static int choose_tables(struct progressive *p, const struct pstk__jpeg_script *script)
{
    const struct pstk__jpeg_scan *scan = p->scan;
    if (scan->first > 0) {
        p->ac = &script->ac[scan->ac_table[0] & 3];
        return scan->ac_table[0] > 3 ? -1 : 0;
    }
    for (uint32_t i = 0; i < scan->n_components; i++) {
        if (scan->dc_table[i] > 3 && scan->high == 0)
            return -1;
        p->dc[i] = &script->dc[scan->dc_table[i] & 3];
    }
    return 0;
}

int pstk__jpeg_progressive_write(const struct pstk__jpeg_units *units,
                                 const struct pstk__jpeg_script *script, uint32_t padding,
                                 struct pstk__bits *bits)
{
    struct progressive p = {.bits = bits, .scan = units->scan, .padding = padding};
    p.band = ~(uint64_t)0 >> (63 - p.scan->last) & ~(uint64_t)0 << p.scan->first;
    pstk__zigzag_init(&p.places);
    struct pstk__jpeg_visitor visitor = {.restart = write_restart, .user = &p};
    if (choose_tables(&p, script) < 0)
        return -1;
    if (p.scan->first == 0)
        visitor.block = p.scan->high == 0 ? write_dc_first : write_dc_refined;
    else
        visitor.block = p.scan->high == 0 ? write_ac_first : write_ac_refined;
    int r = pstk__jpeg_visit(units, &visitor);
    if (r != 0 || pstk__bits_ready(bits) < 0)
        return -1;
    end_run(&p);
    return 0;
}
