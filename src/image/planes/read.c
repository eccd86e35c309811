/* SPDX-License-Identifier: Apache-2.0 */
#include "image/planes/read.h"

#include "base/error.h"
#include "image/jpeg/zigzag.h"
#include "image/planes/sets.h"
#include "base/little.h"

#include <string.h>

/* Bytes that kernels may write past the end of their output: a vector. */
#define SLACK 64
#define WIDEST PSTK__PLANES_MAX_VALUES

static int bad(struct pstk_error *err, const char *what)
{
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "planes: %s", what);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Fill in the tables whose bytes are in the models, from `number` on, and set each context's
 * number. Tables without bytes are the set's. Returns -1 when they are damaged. */
static int fill_tables(struct pstk__planes_tables *tables, const struct pstk__planes_models *models,
                       uint32_t number, const uint8_t *set, uint8_t out[PSTK__N_CONTEXTS])
{
    uint8_t numbers[PSTK__PLANES_MAX_TABLES];
    for (uint32_t i = 0; i < models->n; i++) {
        struct pstk__model model;
        numbers[i] = (uint8_t)number;
        if (!models->data[i]) {
            numbers[i] = set[models->first[i]];
            continue;
        }
        if (pstk__model_read(&model, models->data[i], models->size[i],
                             pstk__planes_context_order(models->first[i])) < 0)
            return -1;
        tables->kernels->table(&tables->table[number++], &model);
    }
    for (uint32_t c = 0; c < PSTK__N_CONTEXTS; c++)
        out[c] = numbers[models->table[c]];
    return 0;
}

/* Return the table number of each context with a set, whose tables are filled in on first use. */
static const uint8_t *get_set(struct pstk__planes_tables *tables, uint32_t set)
{
    uint8_t *number = tables->number[set - 1];
    if (number[0] == 0) {
        const struct pstk__planes_models models = pstk__planes_set(set);
        fill_tables(tables, &models, set * PSTK__PLANES_TABLES_STEP, NULL, number);
    }
    return number;
}

static int read_models(struct pstk__planes_reader *reader, struct pstk__planes_tables *tables,
                       struct pstk_error *err)
{
    const struct pstk__planes_header *h = &reader->header;
    const uint8_t *set = h->set ? get_set(tables, h->set) : NULL;
    struct pstk__planes_models models;
    if (set && h->models_size == 0) {
        memcpy(reader->table, set, sizeof reader->table);
        return 0;
    }
    const int rc = pstk__planes_models_read(&models, h->models, h->models_size, set != NULL);
    if (rc > 0)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "planes: %d tables of frequencies; an image has at most %d", rc,
                          PSTK__PLANES_MAX_TABLES);
    if (rc < 0 || fill_tables(tables, &models, 0, set, reader->table) < 0)
        return bad(err, "bad tables of frequencies");
    return 0;
}

static void lay_out_tables(struct pstk__planes_reader *reader)
{
    for (uint32_t chroma = 0; chroma < 2; chroma++) {
        for (uint32_t i = 0; i < 8; i++)
            reader->map_tables[chroma][i] = reader->table[pstk__planes_map_context(chroma, i)];
        pstk__planes_value_tables(reader->value_tables[chroma], chroma, reader->table);
    }
}

/* The maxima over the strips of an image. */
struct most {
    uint64_t blocks, rows, values;
};

static struct most max_of(const struct pstk__planes_header *h)
{
    struct most most = {0};
    uint32_t n_luma;
    most.blocks = pstk__planes_strip_blocks(h, 0, &n_luma); /* only the last strip may be lower */
    for (uint32_t c = 0; c < h->frame.n_components; c++) {
        uint32_t begin, end;
        pstk__planes_strip_rows(h, 0, c, &begin, &end);
        most.rows += end - begin;
    }
    for (uint32_t i = 0; i < h->n_strips; i++) {
        const uint32_t n = pstk__planes_entry_read(h, i).n_values;
        most.values = n > most.values ? n : most.values;
    }
    return most;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/*
 * Take a strip's memory. There are two strips, with 8 bytes of map and 2 of DC for each block, 1
 * byte and 2 for each value (any may be wide), and an entry for each row of blocks. The strip being
 * decoded also needs a count for each block, the symbols of the longest run (8 map bytes for each
 * block, one for each value, or two for each wide value), and the table numbers of a run.
 */
static int strip_memory(struct pstk__strip *strip, const struct most *most,
                        struct pstk__arena *arena)
{
    strip->number = UINT32_MAX;
    strip->maps = pstk__arena_get(arena, most->blocks * sizeof *strip->maps);
    strip->dc = pstk__arena_get(arena, most->blocks * sizeof *strip->dc);
    strip->values = pstk__arena_get(arena, most->values + SLACK);
    strip->wide = pstk__arena_get(arena, most->values * sizeof *strip->wide);
    strip->rows = pstk__arena_get(arena, (most->rows + 1) * sizeof *strip->rows);
    return strip->maps && strip->dc && strip->values && strip->wide && strip->rows ? 0 : -1;
}

static int get_memory(struct pstk__planes_reader *reader, struct pstk__arena *arena)
{
    const struct pstk__planes_header *h = &reader->header;
    const struct most most = max_of(h);
    reader->offsets = pstk__arena_get(arena, (h->n_strips + 1ull) * sizeof *reader->offsets);
    reader->counts = pstk__arena_get(arena, most.blocks + SLACK);
    reader->bytes = pstk__arena_get(arena, max64(8 * most.blocks, 2 * most.values + SLACK) + SLACK);
    reader->numbers = pstk__arena_get(arena, max64(8 * most.blocks, most.values) + SLACK);
    if (!reader->offsets || !reader->counts || !reader->bytes || !reader->numbers)
        return -1;
    for (uint32_t i = 0; i < 2; i++)
        if (strip_memory(&reader->strips[i], &most, arena) < 0)
            return -1;
    return 0;
}

/* Bytes of this for each block, with 63 values; PIECES have the arena's alignment and slack. */
#define BYTES_PER_BLOCK (2 * (8 + 2 + WIDEST + 2 * WIDEST) + 1 + 2 * WIDEST + WIDEST)
#define PIECES 14

uint64_t pstk__planes_read_scratch(uint32_t max_width, uint32_t max_height)
{
    /* An MCU row has at most 4 components of 4 rows of (width / 8, rounded up to a factor). The
     * header's check limits values to 63 a block. */
    const uint64_t row = 16 * ((uint64_t)max_width / 8 + 4);
    const uint64_t all = row * ((uint64_t)max_height / 8 + 1);
    uint64_t blocks = row > PSTK__PLANES_STRIP_BLOCKS ? row : PSTK__PLANES_STRIP_BLOCKS;
    blocks = blocks < all ? blocks : all;
    const uint64_t rows = 16 * ((uint64_t)max_height / 8 + 1);
    return blocks * BYTES_PER_BLOCK + 2 * (rows + 1) * sizeof(struct pstk__strip_row) +
           (rows + 1) * sizeof(uint64_t) + PIECES * (64 + 2 * SLACK);
}

int pstk__planes_open(struct pstk__planes_reader *reader, const void *data, uint64_t size,
                      const struct pstk__image_info *info, struct pstk__planes_tables *tables,
                      struct pstk__arena *arena, struct pstk_error *err)
{
    int rc = pstk__planes_header_read(&reader->header, data, size, err);
    if (rc < 0)
        return rc;
    if (reader->header.frame.width != info->width || reader->header.frame.height != info->height)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "planes of %u x %u pixels, their record says %u x %u",
                          reader->header.frame.width, reader->header.frame.height, info->width,
                          info->height);
    reader->kernels = tables->kernels;
    reader->tables = tables->table;
    if (get_memory(reader, arena) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "planes need more scratch memory than the image's size allows for");
    rc = read_models(reader, tables, err);
    if (rc < 0)
        return rc;
    lay_out_tables(reader);
    reader->offsets[0] = 0;
    for (uint32_t i = 0; i < reader->header.n_strips; i++)
        reader->offsets[i + 1] =
            reader->offsets[i] +
            pstk__planes_padded(pstk__planes_entry_read(&reader->header, i).size);
    return 0;
}

/* ---- a strip -------------------------------------------------------------------------------- */

/* A strip being decoded. Blocks [0, n_luma) are the first component's. */
struct decoding {
    struct pstk__planes_reader *r;
    struct pstk__strip *s;
    struct pstk__rans_reader rans;
    uint32_t n_luma, n_blocks;
    uint32_t n_luma_values, n_values; /* n_values: from the list of strips */
};

static int run(struct decoding *decoding, uint8_t *out, uint32_t n)
{
    return decoding->r->kernels->run(&decoding->rans, out, decoding->r->numbers, n);
}

/* Set the table numbers of a run with one symbol a block. */
static void number_blocks(struct decoding *decoding, uint32_t context)
{
    const uint8_t *table = decoding->r->table;
    memset(decoding->r->numbers, table[context], decoding->n_luma);
    memset(decoding->r->numbers + decoding->n_luma, table[context + 1],
           decoding->n_blocks - decoding->n_luma);
}

static int decode_counts(struct decoding *decoding)
{
    number_blocks(decoding, PSTK__CONTEXT_COUNT);
    if (run(decoding, decoding->r->counts, decoding->n_blocks) < 0)
        return -1;
    return decoding->r->kernels->most(decoding->r->counts, decoding->n_blocks) <= 8 ? 0 : -1;
}

/* Decode the maps, whose bytes come block after block. There is memory for the number of values in
 * the list of strips. */
static int decode_maps(struct decoding *decoding)
{
    struct pstk__planes_reader *reader = decoding->r;
    const struct pstk__planes_kernels *k = reader->kernels;
    const struct pstk__planes_header *h = &reader->header;
    struct pstk__strip_row *row = decoding->s->rows;
    const uint8_t *at = reader->bytes;
    uint32_t block = 0, value = 0;
    uint64_t all = 0;
    uint32_t n =
        k->map_tables(reader->numbers, reader->counts, decoding->n_luma, reader->map_tables[0]);
    n += k->map_tables(reader->numbers + n, reader->counts + decoding->n_luma,
                       decoding->n_blocks - decoding->n_luma, reader->map_tables[1]);
    if (run(decoding, reader->bytes, n) < 0)
        return -1;
    for (uint32_t c = 0; c < h->frame.n_components; c++) {
        const uint32_t stride = h->frame.component[c].stride;
        uint32_t begin, end;
        pstk__planes_strip_rows(h, decoding->s->number, c, &begin, &end);
        decoding->n_luma_values = c == 1 ? value : decoding->n_luma_values;
        for (uint32_t y = begin; y < end; y++, row++, block += stride) {
            *row = (struct pstk__strip_row){.block = block, .value = value};
            value += k->maps(decoding->s->maps + block, &at, reader->counts + block, stride, &all);
        }
    }
    *row = (struct pstk__strip_row){.block = block, .value = value};
    decoding->n_luma_values = h->frame.n_components == 1 ? value : decoding->n_luma_values;
    return (all & 1) || value != decoding->n_values ? -1 : 0;
}

static int decode_values(struct decoding *decoding)
{
    struct pstk__planes_reader *reader = decoding->r;
    const uint64_t *maps = decoding->s->maps;
    reader->kernels->value_tables(reader->numbers, maps, reader->counts, decoding->n_luma,
                                  reader->value_tables[0]);
    reader->kernels->value_tables(reader->numbers + decoding->n_luma_values,
                                  maps + decoding->n_luma, reader->counts + decoding->n_luma,
                                  decoding->n_blocks - decoding->n_luma, reader->value_tables[1]);
    return run(decoding, (uint8_t *)decoding->s->values, decoding->n_values);
}

/* Sum differences to DCs, one row after another. The first DC of a row is relative to the one above
 * it. */
static void sum_dc(struct decoding *decoding, const uint8_t *high, const uint8_t *low)
{
    const struct pstk__planes_header *h = &decoding->r->header;
    int16_t *dc = decoding->s->dc;
    for (uint32_t c = 0; c < h->frame.n_components; c++) {
        const uint32_t stride = h->frame.component[c].stride;
        uint32_t begin, end;
        int16_t above = 0;
        pstk__planes_strip_rows(h, decoding->s->number, c, &begin, &end);
        for (uint32_t y = begin; y < end; y++, dc += stride, high += stride, low += stride) {
            decoding->r->kernels->sum_dc(dc, high, low, stride, above);
            above = dc[0];
        }
    }
}

static int decode_dc(struct decoding *decoding)
{
    struct pstk__planes_reader *reader = decoding->r;
    uint8_t *high = reader->bytes, *low = reader->counts; /* the counts are not needed any more */
    number_blocks(decoding, PSTK__CONTEXT_DC_HIGH);
    if (run(decoding, high, decoding->n_blocks) < 0)
        return -1;
    for (uint32_t chroma = 0; chroma < 2; chroma++) {
        const uint32_t begin = chroma ? decoding->n_luma : 0,
                       end = chroma ? decoding->n_blocks : decoding->n_luma;
        const uint8_t tables[2] = {reader->table[PSTK__CONTEXT_DC_LOW + chroma],
                                   reader->table[PSTK__CONTEXT_DC_LOW + 2 + chroma]};
        reader->kernels->low_tables(reader->numbers + begin, high + begin, end - begin, tables);
    }
    if (run(decoding, low, decoding->n_blocks) < 0)
        return -1;
    sum_dc(decoding, high, low);
    return 0;
}

/* Set the index of each row's first wide value, and the number of wide values in luma and in all.
 */
static void find_wide(struct decoding *decoding, uint32_t *n_luma, uint32_t *n)
{
    struct pstk__strip_row *row = decoding->s->rows;
    const int8_t *values = decoding->s->values;
    *n = *n_luma = 0;
    for (;; row++) {
        row->wide = *n;
        if (row->block <= decoding->n_luma)
            *n_luma = *n;
        if (row->block == decoding->n_blocks)
            return;
        *n += decoding->r->kernels->count_wide(values + row->value, row[1].value - row->value);
    }
}

static int decode_wide(struct decoding *decoding)
{
    struct pstk__planes_reader *reader = decoding->r;
    uint8_t *high = reader->bytes;
    uint32_t n_luma, n;
    find_wide(decoding, &n_luma, &n);
    if (n == 0)
        return 0;
    uint8_t *low = high + n + SLACK;
    for (uint32_t i = 0; i < 2; i++) {
        const uint8_t *table =
            reader->table + (i ? PSTK__CONTEXT_WIDE_LOW : PSTK__CONTEXT_WIDE_HIGH);
        memset(reader->numbers, table[0], n_luma);
        memset(reader->numbers + n_luma, table[1], n - n_luma);
        if (run(decoding, i ? low : high, n) < 0)
            return -1;
    }
    for (uint32_t i = 0; i < n; i++)
        decoding->s->wide[i] = pstk__unzigzag16((uint32_t)high[i] << 8 | low[i]);
    return 0;
}

/* Decode the runs in order: each determines the number of symbols of the next ones. */
static int decode_runs(struct decoding *decoding)
{
    if (decode_counts(decoding) < 0 || decode_maps(decoding) < 0 || decode_values(decoding) < 0 ||
        decode_dc(decoding) < 0 || decode_wide(decoding) < 0)
        return -1;
    return pstk__rans_end(&decoding->rans);
}

/* Return 1 when the bytes after a strip, at most 3, are zero. */
static int has_zeros(const uint8_t *at, const uint8_t *end)
{
    uint32_t other = 0;
    for (; at < end; at++)
        other |= *at;
    return other == 0;
}

static int decode_strip(struct pstk__planes_reader *reader, struct pstk__strip *strip,
                        uint32_t number)
{
    const struct pstk__planes_header *h = &reader->header;
    const struct pstk__planes_entry entry = pstk__planes_entry_read(h, number);
    struct decoding decoding = {.r = reader, .s = strip, .n_values = entry.n_values};
    const uint8_t *data = h->strips + reader->offsets[number];
    decoding.n_blocks = pstk__planes_strip_blocks(h, number, &decoding.n_luma);
    strip->number = number;
    int rc = pstk__rans_begin(&decoding.rans, reader->tables, h->n_lanes, data, entry.size);
    decoding.rans.limit = h->skeleton + h->skeleton_size;
    if (rc == 0)
        rc = decode_runs(&decoding);
    if (rc == 0 && !has_zeros(data + entry.size, h->strips + reader->offsets[number + 1]))
        rc = -1;
    strip->number = rc == 0 ? number : UINT32_MAX;
    return rc;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Return strip `number`, decoded. NULL when it is damaged. */
static struct pstk__strip *get_strip(struct pstk__planes_reader *reader, uint32_t number,
                                     struct pstk_error *err)
{
    struct pstk__strip *strip = &reader->strips[number % 2];
    if (strip->number == number || decode_strip(reader, strip, number) == 0)
        return strip;
    pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "planes: strip %u of %u is damaged", number,
               reader->header.n_strips);
    return NULL;
}

int pstk__planes_row(void *user, uint32_t component, uint32_t row, uint32_t first, uint32_t n,
                     struct pstk__block_row *out, struct pstk_error *err)
{
    struct pstk__planes_reader *reader = user;
    const struct pstk__planes_header *h = &reader->header;
    const uint32_t v = h->frame.n_components == 1 ? 1 : h->frame.component[component].v;
    const struct pstk__strip *strip = get_strip(reader, row / (v * h->strip_height), err);
    if (!strip)
        return PSTK_EBADMSG;
    const struct pstk__strip_row *at = strip->rows;
    for (uint32_t c = 0; c <= component; c++) {
        uint32_t begin, end;
        pstk__planes_strip_rows(h, strip->number, c, &begin, &end);
        at += c == component ? row - begin : end - begin;
    }
    uint32_t value = at->value, wide = at->wide;
    value += reader->kernels->count_bits(strip->maps + at->block, first);
    if (at[1].wide > wide)
        wide += reader->kernels->count_wide(strip->values + at->value, value - at->value);
    *out = (struct pstk__block_row){.maps = strip->maps + at->block + first,
                                    .dc = strip->dc + at->block + first,
                                    .values = strip->values + value,
                                    .wide = strip->wide + wide,
                                    .n_blocks = n};
    return 0;
}

static void expand_row(int16_t *block, const struct pstk__block_row *row)
{
    const int8_t *value = row->values;
    const int16_t *wide = row->wide;
    for (uint32_t b = 0; b < row->n_blocks; b++, block += 64) {
        memset(block, 0, 64 * sizeof *block);
        block[0] = row->dc[b];
        for (uint64_t map = row->maps[b]; map != 0; map &= map - 1) {
            const int8_t v = *value++;
            block[pstk__zigzag[__builtin_ctzll(map)]] = v == PSTK__PLANES_WIDE ? *wide++ : v;
        }
    }
}

int pstk__planes_expand(struct pstk__planes_reader *reader, int16_t *const blocks[4],
                        struct pstk_error *err)
{
    const struct pstk__planes_header *h = &reader->header;
    for (uint32_t strip = 0; strip < h->n_strips; strip++)
        for (uint32_t c = 0; c < h->frame.n_components; c++) {
            const uint32_t stride = h->frame.component[c].stride;
            uint32_t begin, end;
            pstk__planes_strip_rows(h, strip, c, &begin, &end);
            for (uint32_t y = begin; y < end; y++) {
                struct pstk__block_row row;
                const int rc = pstk__planes_row(reader, c, y, 0, stride, &row, err);
                if (rc < 0)
                    return rc;
                expand_row(blocks[c] + (size_t)y * stride * 64, &row);
            }
        }
    return 0;
}
