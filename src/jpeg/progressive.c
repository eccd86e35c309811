/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scans of progressive files (ITU T.81, annex G). Runs of blocks without further coefficients
 * end where libjpeg ends them: at 32767 blocks, or when their correction bits pass 937.
 */
#include "scan.h"

#include "zigzag.h"

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
    uint32_t run; /* blocks whose end is not yet written */
    uint32_t n_corrections;
    uint8_t corrections[MAX_CORRECTIONS]; /* bits that follow the run's symbol; a byte each */
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
    for (uint32_t i = first; i < first + n; i++)
        pstk__bits_put(&p->bits->state, p->corrections[i], 1);
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

static int write_ac_first(void *user, uint32_t i, const int16_t *block)
{
    struct progressive *p = user;
    const struct pstk__jpeg_scan *scan = p->scan;
    uint32_t n_zeros = 0;
    (void)i;
    if (pstk__bits_ready(p->bits) < 0)
        return -1;
    for (uint32_t k = scan->first; k <= scan->last; k++) {
        int32_t value = block[pstk__zigzag[k]];
        uint32_t magnitude = magnitude_of(value) >> scan->low;
        if (magnitude == 0) {
            n_zeros++;
            continue;
        }
        end_run(p);
        for (; n_zeros > 15; n_zeros -= 16)
            pstk__bits_symbol(&p->bits->state, p->ac, 0xf0, 0);
        uint32_t width = width_of(magnitude);
        uint32_t bits = value < 0 ? ~magnitude : magnitude;
        p->bits->state.missing |= width >> 4;
        pstk__bits_symbol(&p->bits->state, p->ac, n_zeros << 4 | width, bits & ((1u << width) - 1));
        n_zeros = 0;
    }
    if (n_zeros > 0 && ++p->run == MAX_RUN)
        end_run(p);
    return 0;
}

/* The last place at which a coefficient becomes other than 0 in this scan; 0: none does. */
static uint32_t last_new(const int16_t *block, const struct pstk__jpeg_scan *scan)
{
    for (uint32_t k = scan->last; k >= scan->first; k--)
        if (magnitude_of(block[pstk__zigzag[k]]) >> scan->low == 1)
            return k;
    return 0;
}

/* Correction bits of this block wait behind those of the run, until a symbol of this block is
 * written: then the run is, and they follow the symbol. */
static int write_ac_refined(void *user, uint32_t i, const int16_t *block)
{
    struct progressive *p = user;
    const struct pstk__jpeg_scan *scan = p->scan;
    uint32_t n_zeros = 0, n_waiting = 0, first = p->n_corrections;
    uint32_t last = last_new(block, scan);
    (void)i;
    if (pstk__bits_ready(p->bits) < 0)
        return -1;
    for (uint32_t k = scan->first; k <= scan->last; k++) {
        int32_t value = block[pstk__zigzag[k]];
        uint32_t magnitude = magnitude_of(value) >> scan->low;
        if (magnitude == 0) {
            n_zeros++;
            continue;
        }
        for (; n_zeros > 15 && k <= last; n_zeros -= 16) {
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
