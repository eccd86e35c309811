/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/write: all strips' symbols with their contexts, then tables, then the coding. The symbols
 * of the whole image are kept: some 80 bytes a block, beside the 128 of its coefficients.
 */
#include "image/planes/write.h"

#include "base/error.h"
#include "base/little.h"
#include "image/planes/layout.h"

#include <penstock/penstock.h>
#include <string.h>

enum run_name { COUNTS, MAPS, VALUES, DC_HIGH, DC_LOW, WIDE_HIGH, WIDE_LOW, N_RUNS };

/* Symbols that a block gives at most: a count, 8 map bytes, 63 values, 2 of the DC, and 2 for each
 * wide value. */
#define BLOCK_SYMBOLS (1 + 8 + 63 + 2 + 2 * 63)
#define SLACK 128 /* kernels may write as many bytes behind what they fill */

/* Few symbols: the states of 64 lanes would be a fiftieth of them and more. */
#define FEW_SYMBOLS 8192
/* A strip is closed when it has as many blocks: below, its 128 bytes of idle state and its seven
 * unfilled groups cost more than what a crop saves by not decoding it. */
#define STRIP_BLOCKS 1536
/* A value rarer than this in its context is told as a wide one: the least frequency that a table
 * has would take more from all others than that costs. */
#define RARE 4096

/* One run of a strip: symbols and their contexts, in order. */
struct run {
    uint8_t *symbol;
    uint8_t *context;
    uint32_t n;
};

struct strip {
    struct run runs[N_RUNS];
    int16_t *values; /* as many as runs[VALUES] */
};

struct work {
    const struct pstk__planes_source *source;
    const struct pstk__planes_kernels *kernels;
    struct pstk__planes_header header;
    struct pstk__arena *arena;
    struct strip *strips;                     /* arena */
    uint64_t *maps;                           /* arena; of a row of blocks */
    uint8_t value_contexts[2][9][64];         /* by chroma, count, zigzag place */
    uint8_t map_contexts[2][8];               /* by chroma, byte */
    uint8_t symbol_of[PSTK__N_CONTEXTS][256]; /* of values: -128 where they are told as wide ones */
    uint32_t count[PSTK__N_CONTEXTS][256];
    uint32_t joined[PSTK__N_CONTEXTS][256];                  /* by table */
    uint8_t table[PSTK__N_CONTEXTS];                         /* of each context */
    struct pstk__model models[PSTK__N_CONTEXTS];             /* by table */
    struct pstk__rans_symbol symbols[PSTK__N_CONTEXTS][256]; /* by table */
    uint8_t *coded;                                          /* arena: a coded strip, at its end */
    uint64_t coded_room;
};

/* ---- coefficients to symbols ---------------------------------------------------------------- */

/* The map bytes of a row's blocks, which `counts` says how many they are of each. */
static void take_maps(struct work *w, struct strip *s, const uint8_t *counts, uint32_t n,
                      uint32_t chroma)
{
    struct run *maps = &s->runs[MAPS];
    const uint32_t end =
        w->kernels->map_tables(maps->context + maps->n, counts, n, w->map_contexts[chroma]);
    uint8_t *symbol = maps->symbol + maps->n;
    for (uint32_t b = 0; b < n; b++) {
        pstk__put64(symbol, w->maps[b]);
        symbol += counts[b];
    }
    maps->n += end;
}

static void take_dcs(struct strip *s, const int16_t *blocks, uint32_t n, int16_t before,
                     uint32_t chroma)
{
    struct run *high = &s->runs[DC_HIGH], *low = &s->runs[DC_LOW];
    for (uint32_t b = 0; b < n; b++, blocks += 64) {
        const uint32_t z = pstk__zigzag16((int16_t)(blocks[0] - before));
        before = blocks[0];
        high->symbol[high->n] = (uint8_t)(z >> 8);
        high->context[high->n++] = (uint8_t)(PSTK__CONTEXT_DC_HIGH + chroma);
        low->symbol[low->n] = (uint8_t)z;
        low->context[low->n++] = (uint8_t)(PSTK__CONTEXT_DC_LOW + 2 * (z > 255) + chroma);
    }
}

/* A row of blocks, all but the symbols of its values. */
static void take_row(struct work *w, struct strip *s, const int16_t *blocks, uint32_t n,
                     int16_t before, uint32_t chroma)
{
    struct run *counts = &s->runs[COUNTS], *values = &s->runs[VALUES];
    uint8_t *count = counts->symbol + counts->n;
    const uint32_t n_values = w->kernels->take(w->maps, s->values + values->n, blocks, n);
    for (uint32_t b = 0; b < n; b++)
        count[b] = w->maps[b] ? (uint8_t)((71 - (uint32_t)__builtin_clzll(w->maps[b])) / 8) : 0;
    memset(counts->context + counts->n, (int)(PSTK__CONTEXT_COUNT + chroma), n);
    counts->n += n;
    take_maps(w, s, count, n, chroma);
    w->kernels->value_tables(values->context + values->n, w->maps, count, n,
                             w->value_contexts[chroma]);
    values->n += n_values;
    take_dcs(s, blocks, n, before, chroma);
}

/* The DC of a row's first block is told against the first of the row above, of a strip's first one
 * against 0. */
static void take_strip(struct work *w, uint32_t strip)
{
    for (uint32_t c = 0; c < w->header.frame.n_components; c++) {
        const uint32_t stride = w->header.frame.component[c].stride;
        uint32_t begin, end;
        int16_t above = 0;
        pstk__planes_strip_rows(&w->header, strip, c, &begin, &end);
        for (uint32_t y = begin; y < end; y++) {
            const int16_t *blocks = w->source->image->blocks[c] + (size_t)y * stride * 64;
            take_row(w, &w->strips[strip], blocks, stride, above, c > 0);
            above = blocks[0];
        }
    }
}

static int is_wide(int16_t v)
{
    return v < -127 || v > 127;
}

static void put_wide(struct strip *s, int16_t v, uint32_t chroma)
{
    const uint32_t z = pstk__zigzag16(v);
    struct run *high = &s->runs[WIDE_HIGH], *low = &s->runs[WIDE_LOW];
    high->symbol[high->n] = (uint8_t)(z >> 8);
    high->context[high->n++] = (uint8_t)(PSTK__CONTEXT_WIDE_HIGH + chroma);
    low->symbol[low->n] = (uint8_t)z;
    low->context[low->n++] = (uint8_t)(PSTK__CONTEXT_WIDE_LOW + chroma);
}

static uint32_t is_chroma(uint32_t value_context)
{
    return value_context >= PSTK__CONTEXT_VALUE + PSTK__N_LEVELS;
}

/* ---- which values are wide ------------------------------------------------------------------ */

/* Count the values that are no wide ones by their contexts, and mark those that are rare. */
static void find_rare(struct work *w)
{
    for (uint32_t k = 0; k < w->header.n_strips; k++) {
        const struct strip *s = &w->strips[k];
        for (uint32_t i = 0; i < s->runs[VALUES].n; i++)
            if (!is_wide(s->values[i]))
                w->count[s->runs[VALUES].context[i]][s->values[i] & 255]++;
    }
    for (uint32_t c = PSTK__CONTEXT_VALUE; c < PSTK__CONTEXT_DC_HIGH; c++) {
        uint64_t total = 0;
        for (uint32_t s = 0; s < 256; s++)
            total += w->count[c][s];
        for (uint32_t s = 0; s < 256; s++)
            w->symbol_of[c][s] = (uint64_t)w->count[c][s] * RARE < total ? 128 : (uint8_t)s;
        memset(w->count[c], 0, sizeof w->count[c]);
    }
}

static void take_values(struct work *w, struct strip *s)
{
    struct run *values = &s->runs[VALUES];
    for (uint32_t i = 0; i < values->n; i++) {
        const int16_t v = s->values[i];
        const uint32_t context = values->context[i];
        const uint8_t symbol = is_wide(v) ? 128 : w->symbol_of[context][v & 255];
        values->symbol[i] = symbol;
        if (symbol == 128)
            put_wide(s, v, is_chroma(context));
    }
}

/* ---- tables --------------------------------------------------------------------------------- */

static void count_symbols(struct work *w)
{
    for (uint32_t k = 0; k < w->header.n_strips; k++)
        for (uint32_t i = 0; i < N_RUNS; i++) {
            const struct run *r = &w->strips[k].runs[i];
            for (uint32_t n = 0; n < r->n; n++)
                w->count[r->context[n]][r->symbol[n]]++;
        }
}

struct joiner {
    uint32_t n;                           /* tables so far */
    uint32_t first[PSTK__N_CONTEXTS];     /* context */
    uint64_t cost[PSTK__N_CONTEXTS];      /* of each alone */
    uint64_t with_next[PSTK__N_CONTEXTS]; /* of each and the next, joined */
};

static uint64_t cost_of_both(const uint32_t a[256], const uint32_t b[256])
{
    uint32_t sum[256];
    for (uint32_t s = 0; s < 256; s++)
        sum[s] = a[s] + b[s];
    return pstk__model_cost(sum);
}

/* Join table i and the next. */
static void join(struct work *w, struct joiner *j, uint32_t i)
{
    for (uint32_t s = 0; s < 256; s++)
        w->joined[i][s] += w->joined[i + 1][s];
    j->cost[i] = j->with_next[i];
    j->n--;
    for (uint32_t k = i + 1; k < j->n; k++) {
        memcpy(w->joined[k], w->joined[k + 1], sizeof w->joined[k]);
        j->first[k] = j->first[k + 1];
        j->cost[k] = j->cost[k + 1];
        j->with_next[k] = j->with_next[k + 1];
    }
    if (i > 0)
        j->with_next[i - 1] = cost_of_both(w->joined[i - 1], w->joined[i]);
    if (i + 1 < j->n)
        j->with_next[i] = cost_of_both(w->joined[i], w->joined[i + 1]);
}

/* The table that is best joined to the next; j->n: none, each join would cost bits. */
static uint32_t best_join(const struct joiner *j)
{
    uint32_t best = j->n;
    uint64_t most = 0;
    for (uint32_t i = 0; i + 1 < j->n; i++) {
        const uint64_t apart = j->cost[i] + j->cost[i + 1];
        if (apart < j->with_next[i] || (best != j->n && apart - j->with_next[i] <= most))
            continue;
        best = i;
        most = apart - j->with_next[i];
    }
    return best;
}

/* Join neighbouring contexts as long as that saves: tables cost bytes and time. A context without
 * symbols joins for nothing. */
static void choose_tables(struct work *w)
{
    struct joiner j = {.n = PSTK__N_CONTEXTS};
    memcpy(w->joined, w->count, sizeof w->joined);
    for (uint32_t c = 0; c < PSTK__N_CONTEXTS; c++) {
        j.first[c] = c;
        j.cost[c] = pstk__model_cost(w->joined[c]);
        if (c + 1 < PSTK__N_CONTEXTS)
            j.with_next[c] = cost_of_both(w->joined[c], w->joined[c + 1]);
    }
    for (uint32_t i; j.n > 1 && (i = best_join(&j)) != j.n;)
        join(w, &j, i);
    for (uint32_t i = 0; i < j.n; i++) {
        const uint32_t end = i + 1 < j.n ? j.first[i + 1] : PSTK__N_CONTEXTS;
        for (uint32_t c = j.first[i]; c < end; c++)
            w->table[c] = (uint8_t)i;
        pstk__model_fit(&w->models[i], w->joined[i], pstk__planes_context_order(j.first[i]));
        pstk__model_symbols(w->symbols[i], &w->models[i]);
    }
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* The bits that tell which contexts share a table; then the tables. */
#define MODELS_SIZE (PSTK__PLANES_JOINED_SIZE + PSTK__N_CONTEXTS * PSTK__MODEL_MAX_SIZE)

static uint32_t write_models(const struct work *w, uint8_t *out)
{
    uint32_t size = PSTK__PLANES_JOINED_SIZE;
    memset(out, 0, PSTK__PLANES_JOINED_SIZE);
    for (uint32_t c = 0; c < PSTK__N_CONTEXTS; c++) {
        if (c > 0 && w->table[c] == w->table[c - 1])
            out[c / 8] |= (uint8_t)(1u << c % 8);
        else
            size += pstk__model_write(out + size, &w->models[w->table[c]]);
    }
    return size;
}

/* From the last symbol to the first: decoding goes the other way. */
static void write_run(const struct work *w, struct pstk__rans_writer *r, const struct run *run)
{
    const uint32_t lanes = r->n_lanes, quarter = lanes / 4;
    for (uint32_t group = (run->n + lanes - 1) / lanes * lanes; group > 0;) {
        group -= lanes;
        for (uint32_t v = 4, lane = lanes; v-- > 0;)
            for (uint32_t i = group + lanes - 4 + v, k = 0; k < quarter; k++, i -= 4) {
                lane--;
                if (i < run->n)
                    pstk__rans_put(r, lane, &w->symbols[w->table[run->context[i]]][run->symbol[i]]);
            }
    }
}

/* Code a strip; it lies in [*at, *at + size). */
static uint32_t write_strip(struct work *w, uint32_t strip, const uint8_t **at)
{
    struct pstk__rans_writer r;
    pstk__rans_write_begin(&r, w->header.n_lanes, w->coded + w->coded_room);
    for (uint32_t i = N_RUNS; i-- > 0;)
        write_run(w, &r, &w->strips[strip].runs[i]);
    pstk__rans_write_end(&r);
    *at = r.at;
    return (uint32_t)(w->coded + w->coded_room - r.at);
}

/* What is left of the room for the field. */
struct output {
    uint8_t *at;
    uint64_t room;
};

/* -1: there is no room. data NULL: leave it to be filled. */
static int put(struct output *o, const void *data, uint64_t size)
{
    if (size > o->room)
        return -1;
    if (size > 0 && data != NULL)
        memcpy(o->at, data, size);
    o->at += size;
    o->room -= size;
    return 0;
}

static int write_all(struct work *w, struct output *o)
{
    uint8_t head[PSTK__PLANES_MAX_HEAD], models[MODELS_SIZE];
    struct pstk__planes_header *h = &w->header;
    h->models_size = write_models(w, models);
    h->skeleton_size = w->source->skeleton_size;
    h->skeleton_plain_size = w->source->image->skeleton_size;
    if (put(o, head, pstk__planes_header_write(head, h)) < 0)
        return -1;
    uint8_t *sizes = o->at;
    if (put(o, NULL, 4ull * h->n_strips) < 0 || put(o, models, h->models_size) < 0)
        return -1;
    for (uint32_t s = 0; s < h->n_strips; s++) {
        const uint8_t *strip;
        const uint32_t size = write_strip(w, s, &strip);
        pstk__put32(sizes + 4 * (size_t)s, size);
        if (put(o, strip, size) < 0)
            return -1;
    }
    return put(o, w->source->skeleton, h->skeleton_size);
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* With n strips the image has fewer than (n + 1/2) STRIP_BLOCKS blocks, so one of more than a MCU
 * row has less than 3 STRIP_BLOCKS: within what the format allows. */
static void choose_strips(struct pstk__planes_header *h)
{
    const uint32_t rows = pstk__planes_mcu_rows(&h->frame);
    const uint32_t blocks = pstk__planes_mcu_row_blocks(&h->frame);
    uint32_t n = (rows * blocks + STRIP_BLOCKS / 2) / STRIP_BLOCKS;
    n = n < 1 ? 1 : n > rows ? rows : n;
    h->strip_height = (rows + n - 1) / n;
    h->n_strips = (rows + h->strip_height - 1) / h->strip_height;
}

/* Most symbols a block has in each run. */
static const uint8_t per_block[N_RUNS] = {1, 8, 63, 1, 1, 63, 63};

static uint64_t strip_blocks(const struct pstk__planes_header *h)
{
    return (uint64_t)h->strip_height * pstk__planes_mcu_row_blocks(&h->frame);
}

/* Bytes of arena that a piece of n bytes takes, with its slack. */
#define PIECE(n) (((n) + SLACK + 63) & ~63ull)

/* What get_memory takes beside the work: of each strip the runs and the values; a row's maps; a
 * coded strip, each symbol of which is at most a word. */
static uint64_t memory_of(const struct pstk__planes_header *h)
{
    const uint64_t blocks = strip_blocks(h);
    uint64_t strip = PIECE(2 * 63 * blocks);
    for (uint32_t i = 0; i < N_RUNS; i++)
        strip += 2 * PIECE(per_block[i] * blocks);
    return h->n_strips * strip + PIECE(h->n_strips * sizeof(struct strip)) +
           PIECE(8ull * pstk__planes_mcu_row_blocks(&h->frame)) +
           PIECE(2 * BLOCK_SYMBOLS * blocks + 4 * PSTK__RANS_LANES);
}

static int get_strip(struct work *w, struct strip *s)
{
    const uint64_t blocks = strip_blocks(&w->header);
    s->values = pstk__arena_get(w->arena, 2 * 63 * blocks + SLACK);
    int missing = s->values == NULL;
    for (uint32_t i = 0; i < N_RUNS; i++) {
        s->runs[i].n = 0;
        s->runs[i].symbol = pstk__arena_get(w->arena, per_block[i] * blocks + SLACK);
        s->runs[i].context = pstk__arena_get(w->arena, per_block[i] * blocks + SLACK);
        missing |= s->runs[i].symbol == NULL || s->runs[i].context == NULL;
    }
    return missing ? -1 : 0;
}

static int get_memory(struct work *w)
{
    const struct pstk__planes_header *h = &w->header;
    w->strips = pstk__arena_get(w->arena, h->n_strips * sizeof *w->strips);
    w->maps = pstk__arena_get(w->arena, 8ull * pstk__planes_mcu_row_blocks(&h->frame));
    w->coded_room = 2 * BLOCK_SYMBOLS * strip_blocks(h) + 4 * PSTK__RANS_LANES;
    w->coded = pstk__arena_get(w->arena, w->coded_room);
    if (w->strips == NULL || w->maps == NULL || w->coded == NULL)
        return -1;
    for (uint32_t i = 0; i < h->n_strips; i++)
        if (get_strip(w, &w->strips[i]) < 0)
            return -1;
    return 0;
}

uint64_t pstk__planes_write_scratch(const struct pstk__jpeg_frame *f)
{
    struct pstk__planes_header h = {.frame = *f};
    choose_strips(&h);
    return PIECE(sizeof(struct work)) + memory_of(&h);
}

static void lay_out_contexts(struct work *w)
{
    memset(w->value_contexts, 0, sizeof w->value_contexts);
    for (uint32_t chroma = 0; chroma < 2; chroma++) {
        for (uint32_t i = 0; i < 8; i++)
            w->map_contexts[chroma][i] = (uint8_t)pstk__planes_map_context(chroma, i);
        for (uint32_t count = 1; count <= 8; count++)
            for (uint32_t z = 1; z < 64; z++)
                w->value_contexts[chroma][count][z] =
                    (uint8_t)pstk__planes_value_context(chroma, count, z);
    }
}

static int write_image(struct work *w, struct output *o)
{
    uint64_t n = 0;
    lay_out_contexts(w);
    memset(w->count, 0, sizeof w->count);
    for (uint32_t k = 0; k < w->header.n_strips; k++)
        take_strip(w, k);
    find_rare(w);
    for (uint32_t k = 0; k < w->header.n_strips; k++)
        take_values(w, &w->strips[k]);
    count_symbols(w);
    choose_tables(w);
    for (uint32_t k = 0; k < w->header.n_strips; k++)
        for (uint32_t i = 0; i < N_RUNS; i++)
            n += w->strips[k].runs[i].n;
    w->header.n_lanes = n < FEW_SYMBOLS ? PSTK__RANS_FEW_LANES : PSTK__RANS_LANES;
    return write_all(w, o);
}

int64_t pstk__planes_write(const struct pstk__planes_source *source, uint8_t *out,
                           uint64_t capacity, struct pstk__arena *arena, struct pstk_error *err)
{
    const struct pstk__jpeg_image *image = source->image;
    const size_t mark = arena->used;
    struct output o = {.at = out, .room = capacity < UINT32_MAX ? capacity : UINT32_MAX};
    struct work *w = pstk__arena_get(arena, sizeof *w);
    int rc = -1;
    if (w != NULL) {
        w->source = source;
        w->kernels =
            source->kernels != NULL ? source->kernels : pstk__planes_kernels(PSTK_VARIANT_AUTO);
        w->arena = arena;
        w->header = (struct pstk__planes_header){.frame = image->frame,
                                                 .orientation = image->orientation,
                                                 .rebuild = image->rebuild,
                                                 .parameters = image->parameters};
        choose_strips(&w->header);
        rc = get_memory(w);
    }
    if (rc < 0) {
        pstk__arena_reset(arena, mark);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE,
                          "no memory to write the planes of an image of %u x %u pixels",
                          image->frame.width, image->frame.height);
    }
    rc = write_image(w, &o);
    pstk__arena_reset(arena, mark);
    return rc < 0 ? 0 : o.at - out;
}
