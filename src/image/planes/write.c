/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/write: collects the symbols of all strips with their contexts, chooses the tables, then
 * codes. It keeps the symbols of the whole image: some 80 bytes a block, in addition to the 128 of
 * its coefficients.
 */
#include "image/planes/write.h"

#include "base/error.h"
#include "base/little.h"
#include "image/planes/choose.h"

#include <penstock/penstock.h>
#include <string.h>

enum run_name { COUNTS, MAPS, VALUES, DC_HIGH, DC_LOW, WIDE_HIGH, WIDE_LOW, N_RUNS };

/* Largest number of symbols of a block: a count, 8 map bytes, 63 values, 2 of the DC, and 2 for
 * each wide value. */
#define BLOCK_SYMBOLS (1 + 8 + 63 + 2 + 2 * 63)
#define SLACK 128 /* bytes that kernels may write past their output */
#define WIDE 128  /* the symbol of a wide value */

/*
 * Strips of fewer symbols have 4 lanes, or 16. Measured (benchmarks/bench_lanes), 16 lanes take 36
 * bytes a strip more than 4 and save 2.0 ns a symbol (AVX2: 1.5); 64 take 144 more than 16 and save
 * 0.9 ns (AVX2: 0.3). At both numbers of symbols a byte saves some 50 ns.
 */
#define FEW_SYMBOLS 1024
#define SOME_SYMBOLS 8192
/* A strip is closed when it has this many blocks. With fewer blocks, the strip's 128 bytes of idle
 * state and its seven unfilled groups cost more than a crop saves by not decoding it. */
#define STRIP_BLOCKS 1536
/* A value rarer than 1 / RARE in its context is coded as a wide value, because a table's smallest
 * frequency for it would cost the other symbols more. */
#define RARE 4096

/* One run of a strip: its symbols and their contexts, in order. */
struct run {
    uint8_t *symbol;
    uint8_t *context;
    uint32_t n;
};

struct strip {
    struct run runs[N_RUNS];
    int16_t *values; /* as many values as runs[VALUES] has */
};

struct work {
    const struct pstk__planes_source *source;
    const struct pstk__planes_kernels *kernels;
    struct pstk__planes_header header;
    struct pstk__arena *arena;
    struct strip *strips;                     /* in the arena */
    uint64_t *maps;                           /* in the arena; the maps of a row of blocks */
    uint8_t value_contexts[2][9][64];         /* indexed by chroma, count, zigzag place */
    uint8_t map_contexts[2][8];               /* indexed by chroma, byte */
    uint8_t symbol_of[PSTK__N_CONTEXTS][256]; /* symbols of values; WIDE: coded as a wide value */
    uint32_t plain[PSTK__N_CONTEXTS][256];    /* counts, with rare values as themselves */
    uint32_t count[PSTK__N_CONTEXTS][256];    /* counts, with rare values as wide ones */
    uint32_t joined[PSTK__N_CONTEXTS][256];   /* counts by table */
    struct pstk__planes_choice choice;
    struct pstk__model models[PSTK__PLANES_MAX_TABLES];               /* own models, by table */
    struct pstk__rans_symbol own[PSTK__PLANES_MAX_TABLES][256];       /* symbols of these models */
    const struct pstk__rans_symbol *symbols[PSTK__PLANES_MAX_TABLES]; /* by table */
    const struct pstk__rans_symbol *symbols_of[PSTK__N_CONTEXTS];     /* by context */
    uint8_t *coded; /* in the arena; the coded strip is at its end */
    uint64_t coded_room;
};

/* ---- coefficients to symbols ---------------------------------------------------------------- */

/* Append the map bytes of a row's blocks, counts[b] for block b. */
static void take_maps(struct work *work, struct strip *strip, const uint8_t *counts, uint32_t n,
                      uint32_t chroma)
{
    struct run *maps = &strip->runs[MAPS];
    const uint32_t end =
        work->kernels->map_tables(maps->context + maps->n, counts, n, work->map_contexts[chroma]);
    uint8_t *symbol = maps->symbol + maps->n;
    for (uint32_t b = 0; b < n; b++) {
        pstk__put64(symbol, work->maps[b]);
        symbol += counts[b];
    }
    maps->n += end;
}

static void take_dcs(struct strip *strip, const int16_t *blocks, uint32_t n, int16_t before,
                     uint32_t chroma)
{
    struct run *high = &strip->runs[DC_HIGH], *low = &strip->runs[DC_LOW];
    for (uint32_t b = 0; b < n; b++, blocks += 64) {
        const uint32_t z = pstk__zigzag16((int16_t)(blocks[0] - before));
        before = blocks[0];
        high->symbol[high->n] = (uint8_t)(z >> 8);
        high->context[high->n++] = (uint8_t)(PSTK__CONTEXT_DC_HIGH + chroma);
        low->symbol[low->n] = (uint8_t)z;
        low->context[low->n++] = (uint8_t)(PSTK__CONTEXT_DC_LOW + 2 * (z > 255) + chroma);
    }
}

/* Give each value the symbol of a value that is not rare. */
static void name_values(uint8_t *symbol, const int16_t *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        symbol[i] = values[i] < -127 || values[i] > 127 ? WIDE : (uint8_t)values[i];
}

/* Append a row of blocks. Values have the symbols that name_values gives. */
static void take_row(struct work *work, struct strip *strip, const int16_t *blocks, uint32_t n,
                     int16_t before, uint32_t chroma)
{
    struct run *counts = &strip->runs[COUNTS], *values = &strip->runs[VALUES];
    uint8_t *count = counts->symbol + counts->n;
    const uint32_t n_values = work->kernels->take(work->maps, strip->values + values->n, blocks, n);
    for (uint32_t b = 0; b < n; b++)
        count[b] =
            work->maps[b] ? (uint8_t)((71 - (uint32_t)__builtin_clzll(work->maps[b])) / 8) : 0;
    memset(counts->context + counts->n, (int)(PSTK__CONTEXT_COUNT + chroma), n);
    counts->n += n;
    take_maps(work, strip, count, n, chroma);
    work->kernels->value_tables(values->context + values->n, work->maps, count, n,
                                work->value_contexts[chroma]);
    name_values(values->symbol + values->n, strip->values + values->n, n_values);
    values->n += n_values;
    take_dcs(strip, blocks, n, before, chroma);
}

/* Append a strip. The DC of a row's first block is relative to the first one of the row above; in
 * the first row of a strip, to 0. */
static void take_strip(struct work *work, uint32_t strip)
{
    for (uint32_t c = 0; c < work->header.frame.n_components; c++) {
        const uint32_t stride = work->header.frame.component[c].stride;
        uint32_t begin, end;
        int16_t above = 0;
        pstk__planes_strip_rows(&work->header, strip, c, &begin, &end);
        for (uint32_t y = begin; y < end; y++) {
            const int16_t *blocks = work->source->image->blocks[c] + (size_t)y * stride * 64;
            take_row(work, &work->strips[strip], blocks, stride, above, c > 0);
            above = blocks[0];
        }
    }
}

static void put_wide(struct strip *strip, int16_t v, uint32_t chroma)
{
    const uint32_t z = pstk__zigzag16(v);
    struct run *high = &strip->runs[WIDE_HIGH], *low = &strip->runs[WIDE_LOW];
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

/* Count the symbols of a wide value. */
static void count_wide(uint32_t count[PSTK__N_CONTEXTS][256], int16_t v, uint32_t chroma,
                       uint32_t n)
{
    const uint32_t z = pstk__zigzag16(v);
    count[PSTK__CONTEXT_WIDE_HIGH + chroma][z >> 8] += n;
    count[PSTK__CONTEXT_WIDE_LOW + chroma][z & 255] += n;
}

/* Count every other symbol of a run in `more`. Equal symbols often follow each other, and an
 * increment waits for the last increment of the same count. */
static void count_run(uint32_t count[PSTK__N_CONTEXTS][256], uint32_t more[PSTK__N_CONTEXTS][256],
                      const struct run *run)
{
    const uint8_t *context = run->context, *symbol = run->symbol;
    const uint32_t n = run->n;
    for (uint32_t i = 0; i + 1 < n; i += 2) {
        count[context[i]][symbol[i]]++;
        more[context[i + 1]][symbol[i + 1]]++;
    }
    if (n % 2 != 0)
        count[context[n - 1]][symbol[n - 1]]++;
}

/* Return the index of the next wide value from i on, or n. */
static uint32_t next_wide(const struct run *values, uint32_t i)
{
    const uint8_t *wide = memchr(values->symbol + i, WIDE, values->n - i);
    return wide ? (uint32_t)(wide - values->symbol) : values->n;
}

/* Count all symbols. Only values that must be wide count as wide. */
static void count_symbols(struct work *work)
{
    memset(work->plain, 0, sizeof work->plain);
    memset(work->count, 0, sizeof work->count);
    for (uint32_t k = 0; k < work->header.n_strips; k++) {
        const struct strip *strip = &work->strips[k];
        const struct run *values = &strip->runs[VALUES];
        for (uint32_t i = 0; i < WIDE_HIGH; i++)
            count_run(work->plain, work->count, &strip->runs[i]);
        for (uint32_t i = next_wide(values, 0); i < values->n; i = next_wide(values, i + 1))
            count_wide(work->plain, strip->values[i], is_chroma(values->context[i]), 1);
    }
    for (uint32_t c = 0; c < PSTK__N_CONTEXTS; c++)
        for (uint32_t s = 0; s < 256; s++)
            work->plain[c][s] += work->count[c][s];
}

/* Count the values whose symbol_of is WIDE as wide ones. */
static void move_wide(struct work *work)
{
    memcpy(work->count, work->plain, sizeof work->count);
    for (uint32_t c = PSTK__CONTEXT_VALUE; c < PSTK__CONTEXT_DC_HIGH; c++)
        for (uint32_t s = 0; s < 256; s++)
            if (work->symbol_of[c][s] != s && work->count[c][s] > 0) {
                count_wide(work->count, (int8_t)s, is_chroma(c), work->count[c][s]);
                work->count[c][WIDE] += work->count[c][s];
                work->count[c][s] = 0;
            }
}

/* Find the values of a context that are rare. */
static void find_rare(struct work *work, uint32_t context)
{
    const uint32_t *count = work->plain[context];
    uint64_t total = 0;
    for (uint32_t s = 0; s < 256; s++)
        total += s == WIDE ? 0 : count[s];
    for (uint32_t s = 0; s < 256; s++)
        work->symbol_of[context][s] = (uint64_t)count[s] * RARE < total ? WIDE : (uint8_t)s;
}

/* Make the rare values wide, and append the symbols of wide ones. */
static void widen_values(const struct work *work, struct strip *strip)
{
    const struct run *values = &strip->runs[VALUES];
    const uint8_t *context = values->context;
    uint8_t *symbol = values->symbol;
    const uint32_t n = values->n;
    for (uint32_t i = 0; i < n; i++)
        symbol[i] = work->symbol_of[context[i]][symbol[i]];
    for (uint32_t i = next_wide(values, 0); i < n; i = next_wide(values, i + 1))
        put_wide(strip, strip->values[i], is_chroma(context[i]));
}

/* ---- tables --------------------------------------------------------------------------------- */

/* Return the set's symbols for a table, or NULL. */
static const struct pstk__rans_symbol *given_symbols(const struct work *work, uint32_t i)
{
    const struct pstk__planes_choice *choice = &work->choice;
    if (choice->is_own[i])
        return NULL;
    const struct pstk__planes_set *set = &work->source->sets[choice->set - 1];
    return set->symbols[set->table[choice->first[i]]];
}

/* Make values wide when the set's tables have no slot for them. */
static void choose_wide(struct work *work)
{
    for (uint32_t c = PSTK__CONTEXT_VALUE; c < PSTK__CONTEXT_DC_HIGH; c++) {
        const struct pstk__rans_symbol *given = given_symbols(work, work->choice.table[c]);
        for (uint32_t s = 0; given && s < 256; s++)
            work->symbol_of[c][s] = given[s].frequency > 0 ? (uint8_t)s : WIDE;
    }
    move_wide(work);
}

/* Sum up the counts of each table's contexts. */
static void sum_tables(struct work *work)
{
    memset(work->joined, 0, sizeof work->joined);
    for (uint32_t c = 0; c < PSTK__N_CONTEXTS; c++)
        for (uint32_t s = 0; s < 256; s++)
            work->joined[work->choice.table[c]][s] += work->count[c][s];
}

/* Return 1 when each symbol that occurs has a slot. */
static int has_all(const struct pstk__rans_symbol symbol[256], const uint32_t count[256])
{
    uint32_t missing = 0;
    for (uint32_t s = 0; s < 256; s++)
        missing += count[s] > 0 && symbol[s].frequency == 0;
    return missing == 0;
}

/* Set a table's symbols: the set's, or fitted to the counts. Choosing wide values adds to the
 * counts of wide contexts, whose symbols the set's table may then lack. */
static void set_table(struct work *work, uint32_t i)
{
    struct pstk__planes_choice *choice = &work->choice;
    work->symbols[i] = given_symbols(work, i);
    if (work->symbols[i] && has_all(work->symbols[i], work->joined[i]))
        return;
    choice->n_own += !choice->is_own[i];
    choice->is_own[i] = 1;
    work->symbols[i] = work->own[i];
    pstk__model_fit(&work->models[i], work->joined[i],
                    pstk__planes_context_order(choice->first[i]));
    pstk__model_symbols(work->own[i], &work->models[i]);
}

static void choose_tables(struct work *work)
{
    count_symbols(work);
    for (uint32_t c = PSTK__CONTEXT_VALUE; c < PSTK__CONTEXT_DC_HIGH; c++)
        find_rare(work, c);
    move_wide(work);
    pstk__planes_choose(&work->choice, work->count, work->source->sets, work->joined);
    if (work->choice.set)
        choose_wide(work);
    sum_tables(work);
    for (uint32_t i = 0; i < work->choice.n; i++)
        set_table(work, i);
    for (uint32_t c = 0; c < PSTK__N_CONTEXTS; c++)
        work->symbols_of[c] = work->symbols[work->choice.table[c]];
    for (uint32_t k = 0; k < work->header.n_strips; k++)
        widen_values(work, &work->strips[k]);
    work->header.set = work->choice.set;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Bytes for the bits that mark shared and own tables, the sizes of the tables, and the tables. */
#define MODELS_SIZE                                                                                \
    (PSTK__PLANES_JOINED_SIZE + PSTK__PLANES_OWN_SIZE +                                            \
     PSTK__PLANES_MAX_TABLES * (2 + PSTK__MODEL_MAX_SIZE))

static uint32_t write_models(const struct work *work, uint8_t out[MODELS_SIZE])
{
    const struct pstk__planes_choice *choice = &work->choice;
    uint8_t *own = out + PSTK__PLANES_JOINED_SIZE;
    uint8_t *sizes = own + (choice->set ? PSTK__PLANES_OWN_SIZE : 0),
            *at = sizes + 2 * choice->n_own;
    if (choice->n_own == 0)
        return 0;
    memset(out, 0, PSTK__PLANES_JOINED_SIZE + PSTK__PLANES_OWN_SIZE);
    for (uint32_t c = 1; c < PSTK__N_CONTEXTS; c++)
        if (choice->table[c] == choice->table[c - 1])
            out[c / 8] |= (uint8_t)(1u << c % 8);
    for (uint32_t i = 0; i < choice->n; i++) {
        if (!choice->is_own[i])
            continue;
        if (choice->set)
            own[i / 8] |= (uint8_t)(1u << i % 8);
        const uint32_t size = pstk__model_write(at, &work->models[i]);
        pstk__put16(sizes, (uint16_t)size);
        sizes += 2;
        at += size;
    }
    return (uint32_t)(at - out);
}

/* Code the run's symbols from `group` on, one a lane, from the last to the first. Inlined for each
 * number of lanes, and for whole groups. */
static inline __attribute__((always_inline)) void
write_group(const struct work *work, struct pstk__rans_writer *writer, const struct run *run,
            uint32_t group, const int is_whole, const uint32_t lanes)
{
    for (uint32_t v = 4, lane = lanes; v-- > 0;)
        for (uint32_t i = group + lanes - 4 + v, k = 0; k < lanes / 4; k++, i -= 4) {
            lane--;
            if (is_whole || i < run->n)
                pstk__rans_put(writer, lane, &work->symbols_of[run->context[i]][run->symbol[i]]);
        }
}

static inline __attribute__((always_inline)) void write_groups(const struct work *work,
                                                               struct pstk__rans_writer *writer,
                                                               const struct run *run,
                                                               const uint32_t lanes)
{
    struct pstk__rans_writer copy =
        *writer; /* a copy, because the words written might overlap the original */
    uint32_t group = run->n / lanes * lanes;
    if (group < run->n)
        write_group(work, &copy, run, group, 0, lanes);
    while (group > 0) {
        group -= lanes;
        write_group(work, &copy, run, group, 1, lanes);
    }
    *writer = copy;
}

/* Code a run from the last symbol to the first, because decoding runs forwards. */
static void write_run(const struct work *work, struct pstk__rans_writer *writer,
                      const struct run *run)
{
    if (writer->n_lanes == PSTK__RANS_FEW_LANES)
        write_groups(work, writer, run, PSTK__RANS_FEW_LANES);
    else if (writer->n_lanes == PSTK__RANS_SOME_LANES)
        write_groups(work, writer, run, PSTK__RANS_SOME_LANES);
    else
        write_groups(work, writer, run, PSTK__RANS_LANES);
}

/* Code a strip to [*at, *at + size); returns size. */
static uint32_t write_strip(struct work *work, uint32_t strip, const uint8_t **at)
{
    struct pstk__rans_writer writer;
    pstk__rans_write_begin(&writer, work->header.n_lanes, work->coded + work->coded_room);
    for (uint32_t i = N_RUNS; i-- > 0;)
        write_run(work, &writer, &work->strips[strip].runs[i]);
    pstk__rans_write_end(&writer);
    *at = writer.at;
    return (uint32_t)(work->coded + work->coded_room - writer.at);
}

/* The room left for the field. */
struct output {
    uint8_t *begin, *at;
    uint64_t room;
};

/* Append bytes; with data NULL, leave room to fill in. Returns -1 when there is not enough room. */
static int put(struct output *output, const void *data, uint64_t size)
{
    if (size > output->room)
        return -1;
    if (size > 0 && data)
        memcpy(output->at, data, size);
    output->at += size;
    output->room -= size;
    return 0;
}

/* Write zero bytes up to a multiple of 4 in the field. */
static int put_padding(struct output *output)
{
    static const uint8_t zeros[3];
    return put(output, zeros, -(uint64_t)(output->at - output->begin) & 3);
}

/* Write everything before the strips. *list: address of the list of strips, which the caller fills
 * in. */
static int write_head(struct work *work, struct output *output, uint8_t **list)
{
    uint8_t head[PSTK__PLANES_MAX_HEAD], quant[PSTK__PLANES_MAX_QUANT], models[MODELS_SIZE];
    struct pstk__planes_header *h = &work->header;
    h->models_size = write_models(work, models);
    h->skeleton_size = work->source->skeleton_size;
    h->skeleton_plain_size = work->source->image->skeleton_size;
    if (put(output, head, pstk__planes_header_write(head, h)) < 0)
        return -1;
    *list = output->at;
    if (put(output, NULL, PSTK__PLANES_ENTRY_SIZE * (uint64_t)h->n_strips) < 0 ||
        put(output, quant, pstk__planes_quant_write(quant, &h->frame)) < 0 ||
        put(output, models, h->models_size) < 0)
        return -1;
    return put_padding(output);
}

static int write_all(struct work *work, struct output *output)
{
    uint8_t *list;
    if (write_head(work, output, &list) < 0)
        return -1;
    for (uint32_t s = 0; s < work->header.n_strips; s++) {
        const uint8_t *strip;
        const struct pstk__planes_entry entry = {.size = write_strip(work, s, &strip),
                                                 .n_values = work->strips[s].runs[VALUES].n};
        pstk__planes_entry_write(list, s, entry);
        if (put(output, strip, entry.size) < 0 || put_padding(output) < 0)
            return -1;
    }
    return put(output, work->source->skeleton, work->header.skeleton_size);
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* Choose the strips. With n strips the image has fewer than (n + 1/2) STRIP_BLOCKS blocks, so a
 * strip of more than one MCU row has fewer than 3 STRIP_BLOCKS: within the format's limit. */
static void choose_strips(struct pstk__planes_header *h)
{
    const uint32_t rows = pstk__planes_mcu_rows(&h->frame);
    const uint32_t blocks = pstk__planes_mcu_row_blocks(&h->frame);
    uint32_t n = (rows * blocks + STRIP_BLOCKS / 2) / STRIP_BLOCKS;
    n = n < 1 ? 1 : n > rows ? rows : n;
    h->strip_height = (rows + n - 1) / n;
    h->n_strips = (rows + h->strip_height - 1) / h->strip_height;
}

/* Choose the number of lanes by the mean number of a strip's symbols. */
static uint32_t choose_lanes(const struct work *work)
{
    const uint32_t n_strips = work->header.n_strips;
    uint64_t n = 0;
    for (uint32_t k = 0; k < n_strips; k++)
        for (uint32_t i = 0; i < N_RUNS; i++)
            n += work->strips[k].runs[i].n;
    return n < (uint64_t)FEW_SYMBOLS * n_strips    ? PSTK__RANS_FEW_LANES
           : n < (uint64_t)SOME_SYMBOLS * n_strips ? PSTK__RANS_SOME_LANES
                                                   : PSTK__RANS_LANES;
}

/* Largest number of symbols of a block in each run. */
static const uint8_t per_block[N_RUNS] = {1, 8, 63, 1, 1, 63, 63};

static uint64_t strip_blocks(const struct pstk__planes_header *h)
{
    return (uint64_t)h->strip_height * pstk__planes_mcu_row_blocks(&h->frame);
}

/* Bytes of arena for a piece of n bytes, slack included. */
#define PIECE(n) (((n) + SLACK + 63) & ~63ull)

/* Return the bytes that get_memory takes: runs and values of each strip, the maps of a row, and a
 * coded strip, whose symbols take at most a word each. */
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

static int get_strip(struct work *work, struct strip *strip)
{
    const uint64_t blocks = strip_blocks(&work->header);
    strip->values = pstk__arena_get(work->arena, 2 * 63 * blocks + SLACK);
    int missing = !strip->values;
    for (uint32_t i = 0; i < N_RUNS; i++) {
        strip->runs[i].n = 0;
        strip->runs[i].symbol = pstk__arena_get(work->arena, per_block[i] * blocks + SLACK);
        strip->runs[i].context = pstk__arena_get(work->arena, per_block[i] * blocks + SLACK);
        missing |= !strip->runs[i].symbol || !strip->runs[i].context;
    }
    return missing ? -1 : 0;
}

static int get_memory(struct work *work)
{
    const struct pstk__planes_header *h = &work->header;
    work->strips = pstk__arena_get(work->arena, h->n_strips * sizeof *work->strips);
    work->maps = pstk__arena_get(work->arena, 8ull * pstk__planes_mcu_row_blocks(&h->frame));
    work->coded_room = 2 * BLOCK_SYMBOLS * strip_blocks(h) + 4 * PSTK__RANS_LANES;
    work->coded = pstk__arena_get(work->arena, work->coded_room);
    if (!work->strips || !work->maps || !work->coded)
        return -1;
    for (uint32_t i = 0; i < h->n_strips; i++)
        if (get_strip(work, &work->strips[i]) < 0)
            return -1;
    return 0;
}

uint64_t pstk__planes_write_scratch(const struct pstk__jpeg_frame *f)
{
    struct pstk__planes_header h = {.frame = *f};
    choose_strips(&h);
    return PIECE(sizeof(struct work)) + memory_of(&h);
}

static void lay_out_contexts(struct work *work)
{
    memset(work->value_contexts, 0, sizeof work->value_contexts);
    for (uint32_t chroma = 0; chroma < 2; chroma++) {
        for (uint32_t i = 0; i < 8; i++)
            work->map_contexts[chroma][i] = (uint8_t)pstk__planes_map_context(chroma, i);
        for (uint32_t count = 1; count <= 8; count++)
            for (uint32_t z = 1; z < 64; z++)
                work->value_contexts[chroma][count][z] =
                    (uint8_t)pstk__planes_value_context(chroma, count, z);
    }
}

static int write_image(struct work *work, struct output *output)
{
    lay_out_contexts(work);
    for (uint32_t k = 0; k < work->header.n_strips; k++)
        take_strip(work, k);
    choose_tables(work);
    work->header.n_lanes = work->source->n_lanes ? work->source->n_lanes : choose_lanes(work);
    return write_all(work, output);
}

int64_t pstk__planes_write(const struct pstk__planes_source *source, uint8_t *out,
                           uint64_t capacity, struct pstk__arena *arena, struct pstk_error *err)
{
    const struct pstk__jpeg_image *image = source->image;
    const size_t mark = arena->used;
    struct output output = {
        .begin = out, .at = out, .room = capacity < UINT32_MAX ? capacity : UINT32_MAX};
    struct work *work = pstk__arena_get(arena, sizeof *work);
    int rc = -1;
    if (work) {
        work->source = source;
        work->kernels = source->kernels ? source->kernels : pstk__planes_kernels(PSTK_KERNELS_AUTO);
        work->arena = arena;
        work->header = (struct pstk__planes_header){.frame = image->frame,
                                                    .orientation = image->orientation,
                                                    .rebuild = image->rebuild,
                                                    .parameters = image->parameters};
        choose_strips(&work->header);
        rc = get_memory(work);
    }
    if (rc < 0) {
        pstk__arena_reset(arena, mark);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE,
                          "no memory to write the planes of an image of %u x %u pixels",
                          image->frame.width, image->frame.height);
    }
    rc = write_image(work, &output);
    pstk__arena_reset(arena, mark);
    return rc < 0 ? 0 : output.at - out;
}
