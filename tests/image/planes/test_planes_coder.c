/* SPDX-License-Identifier: Apache-2.0 */
/* The entropy coder of planes, its tables, and the kernels of each ISA against plain loops. */
#include "support/test.h"

#include "base/cpu.h"
#include "base/crc32c.h"
#include "base/kernels.h"
#include "base/little.h"
#include "image/planes/kernels.h"
#include "image/planes/layout.h"
#include "support/model_draws.h"

#include <penstock/penstock.h>

#define CANARY 0xa5
#define N_TABLES PSTK__N_CONTEXTS
#define MAX_SYMBOLS 4096u
#define N_LANES 3u

static const uint32_t lanes[N_LANES] = {4, 16, 64}; /* all that there are */

/* With k each ISA's kernels in turn, of those that run here. */
#define EACH_ISA(k)                                                                                \
    for (uint32_t v_ = PSTK_KERNELS_C; v_ <= PSTK_KERNELS_NEON; v_++)                              \
        if ((k = pstk__planes_kernels(v_)) != NULL)

static int is_canary(const void *p, size_t n)
{
    const uint8_t *bytes = p;
    size_t i = 0;
    while (i < n && bytes[i] == CANARY)
        i++;
    return i == n;
}

/* ---- models --------------------------------------------------------------------------------- */

TEST(a_fitted_model_has_the_counted_symbols_and_no_others)
{
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t count[256], n = 0;
        struct pstk__model m;
        draw_counts(count, i % N_SHAPES);
        pstk__model_fit(&m, count, draw_order());
        CHECK(is_sound(&m));
        for (uint32_t s = 0; s < 256; s++)
            n += count[s] != 0;
        CHECK_EQ(m.n, n);
        for (uint32_t k = 0; k < m.n; k++)
            CHECK(count[m.symbol[k]] != 0);
    }
}

/* Symbols rarer than the least frequency cause the loss: the others lack their excess. So does,
 * where many are equally frequent, a step from level to level that all of them take at once. */
TEST(a_fitted_model_is_close_to_the_entropy)
{
    static const double most[N_SHAPES] = {
        [ONE] = 0.001,  [TWO] = 0.02,   [SPARSE] = 0.06, [DENSE] = 0.25,
        [SKEWED] = 0.4, [FLAT] = 0.001, [STEPS] = 0.25,
    };
    double worst[N_SHAPES] = {0};
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t count[256];
        double total = 0;
        struct pstk__model m;
        draw_counts(count, i % N_SHAPES);
        pstk__model_fit(&m, count, draw_order());
        for (uint32_t s = 0; s < 256; s++)
            total += count[s];
        const double lost = (coded_bits(count, &m) - entropy(count)) / total;
        worst[i % N_SHAPES] = lost > worst[i % N_SHAPES] ? lost : worst[i % N_SHAPES];
    }
    for (uint32_t i = 0; i < N_SHAPES; i++) {
        printf("# shape %u: at most %.4f bits a symbol are lost\n", i, worst[i]);
        CHECK(worst[i] > -1e-9 && worst[i] < most[i]);
    }
}

TEST(the_cost_of_a_model_is_its_entropy_and_its_bytes)
{
    for (uint32_t i = 0; i < 500; i++) {
        uint32_t count[256], n = 0;
        double total = 0;
        draw_counts(count, i % N_SHAPES);
        for (uint32_t s = 0; s < 256; s++) {
            n += count[s] != 0;
            total += count[s];
        }
        const double bits = (double)pstk__model_cost(count) / 256 - entropy(count);
        /* the logarithms are cut off after 8 bits */
        CHECK(bits > 5.0 * n - total / 128 && bits < 5.0 * n + 512 + total / 128);
    }
    static const uint32_t none[256];
    CHECK_EQ(pstk__model_cost(none), 0);
}

TEST(a_model_is_read_as_it_was_written)
{
    for (uint32_t i = 0; i < 3000; i++) {
        uint32_t count[256];
        uint8_t bytes[PSTK__MODEL_MAX_SIZE + 8];
        struct pstk__model m, back;
        draw_counts(count, i % N_SHAPES);
        pstk__model_fit(&m, count, draw_order());
        memset(bytes, CANARY, sizeof bytes);
        const uint32_t size = pstk__model_write(bytes, &m);
        CHECK(size <= PSTK__MODEL_MAX_SIZE);
        CHECK(is_canary(bytes + size, sizeof bytes - size));
        CHECK_EQ(pstk__model_read(&back, bytes, size, m.order), 0);
        CHECK(back.n == m.n && memcmp(back.symbol, m.symbol, m.n) == 0);
        CHECK(memcmp(back.level, m.level, m.n) == 0);
        CHECK(memcmp(back.frequency, m.frequency, m.n * sizeof *m.frequency) == 0);
    }
}

/* Levels in turn too far apart for a step take three nibbles each, a zero between them two; there
 * are as many as the whole has room for. */
TEST(the_largest_model_keeps_to_its_bound)
{
    struct pstk__model m = {.order = PSTK__MODEL_PLAIN}, back;
    uint8_t bytes[PSTK__MODEL_MAX_SIZE + 8];
    const uint32_t most = 2 * (PSTK__RANS_ONE / 9) < 256 ? 2 * (PSTK__RANS_ONE / 9) : 256;
    uint32_t n_zeros = 256 - most, place = 0;
    for (; m.n < most; place++) {
        m.symbol[m.n] = (uint8_t)place;
        m.level[m.n] = m.n % 2 ? 8 : 1;
        m.n++;
        if (n_zeros > 0)
            place += n_zeros-- > 0;
    }
    memset(bytes, CANARY, sizeof bytes);
    const uint32_t size = pstk__model_write(bytes, &m);
    printf("# %u bytes of at most %u\n", size, PSTK__MODEL_MAX_SIZE);
    CHECK(size >= 3 * most / 2 + 256 - most - 1 && size <= PSTK__MODEL_MAX_SIZE);
    CHECK(is_canary(bytes + size, sizeof bytes - size));
    CHECK_EQ(pstk__model_read(&back, bytes, size, PSTK__MODEL_PLAIN), 0);
    CHECK(is_sound(&back) && memcmp(back.level, m.level, m.n) == 0);
}

/* Each cut into memory of its own, so that a sanitizer sees a read behind it. */
static int cut_is_read(const uint8_t *bytes, uint32_t size, enum pstk__model_order order)
{
    struct pstk__model m;
    uint8_t *cut = calloc(1, size + 1);
    memcpy(cut + 1, bytes, size);
    const int r = pstk__model_read(&m, cut + 1, size, order);
    free(cut);
    return r == 0;
}

/* Cut off, followed by a byte, or with another nibble than 0 where one fills up the last byte. */
TEST(a_model_that_was_cut_off_or_has_more_is_damaged)
{
    for (uint32_t i = 0; i < 300; i++) {
        uint32_t count[256];
        uint8_t bytes[PSTK__MODEL_MAX_SIZE + 1] = {0};
        struct pstk__model m;
        draw_counts(count, i % N_SHAPES);
        pstk__model_fit(&m, count, draw_order());
        const uint32_t size = pstk__model_write(bytes, &m);
        CHECK(cut_is_read(bytes, size, m.order));
        for (uint32_t n = 0; n <= size + 1; n++)
            CHECK(n == size || !cut_is_read(bytes, n, m.order));
        const uint8_t last =
            m.order == PSTK__MODEL_PLAIN ? 255 : 128; /* without it, there is an end */
        const int is_filled = m.symbol[m.n - 1] != last && bytes[size - 1] == 0x0f;
        for (uint32_t more = 1; more < 16 && is_filled; more++) {
            bytes[size - 1] |= (uint8_t)(more << 4);
            CHECK(!cut_is_read(bytes, size, m.order));
            bytes[size - 1] &= 15;
        }
    }
}

/* The last places would be filled by the part that is missing. */
TEST(a_model_that_lacks_its_last_nibble_is_damaged)
{
    uint8_t bytes[129];
    memset(bytes, 0x66, sizeof bytes); /* one level again and again: */
    bytes[0] = 0x60;                   /* 2, so that the sum stays below the whole */
    CHECK(cut_is_read(bytes, 128, PSTK__MODEL_PLAIN));
    bytes[119] = 0xd6; /* behind 239 symbols, zeros: but how many? */
    CHECK(!cut_is_read(bytes, 120, PSTK__MODEL_PLAIN));
    bytes[119] = 0x66;
    bytes[1] = 0x0d;   /* a zero, in two nibbles */
    bytes[128] = 0x1e; /* and at the last place, half of a level */
    CHECK(!cut_is_read(bytes, 129, PSTK__MODEL_PLAIN));
}

TEST(any_bytes_are_a_sound_model_or_damaged)
{
    uint32_t n_read = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        uint8_t bytes[64];
        struct pstk__model m;
        const uint32_t size = draw(sizeof bytes + 1), most = i % 2 ? 16 : 14;
        for (uint32_t k = 0; k < size; k++)
            bytes[k] = (uint8_t)(draw(most) | draw(most) << 4);
        if (size > 0 && draw(2))
            bytes[size - 1] = (uint8_t)(draw(2) ? 0x0f : 0xf0 | (bytes[size - 1] & 15));
        uint8_t *own = malloc(size + 1);
        memcpy(own, bytes, size);
        if (pstk__model_read(&m, own, size, i & 2 ? PSTK__MODEL_PLAIN : PSTK__MODEL_SIGNED) == 0) {
            n_read++;
            CHECK(is_sound(&m));
        }
        free(own);
    }
    CHECK(n_read > 1000);
}

/* Nibbles, in memory of their own, as a model. */
static int is_read(const char *hex)
{
    uint8_t bytes[32] = {0};
    uint32_t n = 0;
    for (; hex[n] != 0; n++)
        bytes[n / 2] |=
            (uint8_t)((hex[n] <= '9' ? hex[n] - '0' : hex[n] - 'a' + 10) << 4 * (n % 2));
    return cut_is_read(bytes, (n + 1) / 2, PSTK__MODEL_PLAIN);
}

TEST(no_symbols_at_all_or_more_than_the_whole_are_damaged)
{
    char top[3], low[3], high[3], model[16];
    snprintf(top, sizeof top, "%02x", PSTK__MODEL_MAX_LEVEL); /* as frequent as the whole */
    snprintf(low, sizeof low, "%02x", PSTK__MODEL_MAX_LEVEL - 1);
    snprintf(high, sizeof high, "%02x", PSTK__MODEL_MAX_LEVEL + 1);
    CHECK(!is_read(""));
    CHECK(!is_read("f"));
    CHECK(!is_read("dfdfdfdfdfdfdfdfdfdfdfdfdfdfdfdf"));
    CHECK(!is_read("dfdfdfdfdfdfdfdfdfdfdfdfdfdfdfdf6"));
    CHECK(is_read("dfdfdfdfdfdfdfdfdfdfdfdfdfdfdfde6"));
    CHECK(!is_read("dfdfdfdfdfdfdfdfdfdfdfdfdfdfdfdef6"));
    snprintf(model, sizeof model, "e%sf", top);
    CHECK(is_read(model));
    snprintf(model, sizeof model, "e%s6f", top);
    CHECK(!is_read(model));
    snprintf(model, sizeof model, "e%se%sf", low, top);
    CHECK(is_read(model)); /* the top one has what is left */
    snprintf(model, sizeof model, "e%sf", high);
    CHECK(!is_read(model));
    CHECK(!is_read("00f")); /* 8, 2, -4 */
    CHECK(!is_read("02f")); /* 8, 2, -2 */
    CHECK(!is_read("e00f"));
}

/* ---- tables --------------------------------------------------------------------------------- */

static void naive_table(struct pstk__rans_table *t, const struct pstk__model *m)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t k = 0; k < m->frequency[i]; k++)
            t->slot[at++] = m->symbol[i] | (uint32_t)m->frequency[i] << 8 | k << 20;
}

TEST(each_isa_fills_the_same_table)
{
    enum { SLOTS = PSTK__RANS_ONE, SLACK = PSTK__RANS_TABLE_SLACK / 4 };
    static uint32_t slots[SLOTS + SLACK + 64];
    const struct pstk__planes_kernels *k;
    for (uint32_t i = 0; i < 300; i++) {
        uint32_t count[256];
        struct pstk__model m;
        struct pstk__rans_table want;
        draw_counts(count, i % N_SHAPES);
        pstk__model_fit(&m, count, draw_order());
        naive_table(&want, &m);
        EACH_ISA(k)
        {
            memset(slots, CANARY, sizeof slots);
            k->table((struct pstk__rans_table *)(void *)slots, &m);
            CHECK(memcmp(slots, &want, sizeof want) == 0);
            CHECK(is_canary(slots + SLOTS + SLACK, 64 * sizeof *slots));
        }
    }
}

TEST(symbols_for_coding_are_those_of_the_table)
{
    for (uint32_t i = 0; i < 300; i++) {
        uint32_t count[256];
        struct pstk__model m;
        struct pstk__rans_symbol symbols[256];
        struct pstk__rans_table t;
        draw_counts(count, i % N_SHAPES);
        pstk__model_fit(&m, count, draw_order());
        pstk__model_symbols(symbols, &m);
        naive_table(&t, &m);
        for (uint32_t s = 0; s < 256; s++) {
            CHECK_EQ(symbols[s].frequency != 0, count[s] != 0);
            for (uint32_t f = 0; f < symbols[s].frequency; f++)
                CHECK_EQ(t.slot[symbols[s].first + f],
                         s | (uint32_t)symbols[s].frequency << 8 | f << 20);
        }
    }
}

/* ---- strips --------------------------------------------------------------------------------- */

/* Runs of symbols of many tables, and their code. */
struct strip {
    struct pstk__model models[N_TABLES];
    struct pstk__rans_symbol symbols[N_TABLES][256];
    uint8_t tables[N_TABLES * sizeof(struct pstk__rans_table) + PSTK__RANS_TABLE_SLACK];
    uint32_t n_lanes, n_runs;
    uint32_t n[3];                       /* symbols, by run */
    uint8_t symbol[3][MAX_SYMBOLS];      /* by run */
    uint8_t number[3][MAX_SYMBOLS + 64]; /* numbers in the table; as many as a vector reads */
    uint8_t room[6 * MAX_SYMBOLS + 4 * PSTK__RANS_LANES];
    uint8_t *code; /* in room */
    uint32_t size;
};

static const struct pstk__rans_table *tables_of(const struct strip *s)
{
    return (const struct pstk__rans_table *)(const void *)s->tables;
}

/* Models of a shape, N_SHAPES for all. */
static void draw_tables(struct strip *s, uint32_t shape)
{
    struct pstk__rans_table *t = (struct pstk__rans_table *)(void *)s->tables;
    for (uint32_t i = 0; i < N_TABLES; i++) {
        uint32_t count[256];
        draw_counts(count, shape == N_SHAPES ? i % N_SHAPES : shape);
        pstk__model_fit(&s->models[i], count, draw_order());
        pstk__model_symbols(s->symbols[i], &s->models[i]);
        naive_table(&t[i], &s->models[i]);
    }
}

/* By chance as the table has it, or, rare, with every symbol as likely as the others. */
static uint8_t draw_symbol(const struct strip *s, uint32_t number, int rare)
{
    const struct pstk__model *m = &s->models[number];
    return rare ? m->symbol[draw(m->n)] : (uint8_t)tables_of(s)[number].slot[draw(PSTK__RANS_ONE)];
}

static void draw_run(struct strip *s, uint32_t run, uint32_t n, int rare)
{
    s->n[run] = n;
    for (uint32_t i = 0; i < n; i++) {
        s->number[run][i] = (uint8_t)draw(N_TABLES);
        s->symbol[run][i] = draw_symbol(s, s->number[run][i], rare);
    }
    s->n_runs = run + 1;
}

/* The last symbol first, in the groups' order of lanes, as rans.h has it. */
static void code_strip(struct strip *s, uint32_t n_lanes)
{
    struct pstk__rans_writer w;
    uint8_t *end = s->room + sizeof s->room;
    s->n_lanes = n_lanes;
    pstk__rans_write_begin(&w, n_lanes, end);
    for (uint32_t run = s->n_runs; run-- > 0;)
        for (uint32_t k = (s->n[run] + n_lanes - 1) / n_lanes * n_lanes; k-- > 0;) {
            const uint32_t quarter = n_lanes / 4, lane = k % n_lanes;
            const uint32_t i = k - lane + 4 * (lane % quarter) + lane / quarter;
            if (i < s->n[run])
                pstk__rans_put(&w, lane, &s->symbols[s->number[run][i]][s->symbol[run][i]]);
        }
    pstk__rans_write_end(&w);
    s->code = w.at;
    s->size = (uint32_t)(end - w.at);
}

/* The result of decoding. */
struct decoded {
    int result;      /* result of the first call that failed, or 0 */
    uint32_t failed; /* the step that failed: 1 begin, 2.. the runs, 9 end */
    int is_clean;    /* nothing was written behind the last vector */
    uint8_t out[3][MAX_SYMBOLS + 64 + 64];
    struct pstk__rans_reader reader; /* behind the runs */
    uint64_t used;
};

/* From memory of the code's size and of `behind` other bytes, of which no result may depend. */
static void decode_from(struct decoded *d, const struct strip *s, const uint8_t *code,
                        uint32_t size, uint32_t behind, const struct pstk__planes_kernels *k)
{
    uint8_t *own = malloc(size + behind + 1u);
    memcpy(own + 1, code, size);
    for (uint32_t i = 0; i < behind; i++)
        own[1 + size + i] = (uint8_t)draw(256);
    memset(d->out, CANARY, sizeof d->out);
    d->is_clean = 1;
    d->failed = 1;
    d->result = pstk__rans_begin(&d->reader, tables_of(s), s->n_lanes, own + 1, size);
    if (d->result == 0)
        d->reader.limit += behind;
    for (uint32_t run = 0; d->result == 0 && run < s->n_runs; run++) {
        const uint32_t room = (s->n[run] + 63) / 64 * 64;
        d->failed = 2 + run;
        d->result = k->run(&d->reader, d->out[run], s->number[run], s->n[run]);
        d->is_clean &= is_canary(d->out[run] + room, sizeof d->out[run] - room);
    }
    if (d->result == 0) {
        d->used = (uint64_t)(d->reader.at - own - 1);
        d->failed = 9;
        d->result = pstk__rans_end(&d->reader);
    }
    d->failed = d->result == 0 ? 0 : d->failed;
    free(own);
}

static int is_strip(const struct decoded *d, const struct strip *s)
{
    int same = d->result == 0 && d->is_clean && d->used == s->size;
    for (uint32_t run = 0; same && run < s->n_runs; run++)
        same = memcmp(d->out[run], s->symbol[run], s->n[run]) == 0;
    return same;
}

/* Both failed at the same place, or both gave the same. */
static int is_same(const struct decoded *a, const struct decoded *b, const struct strip *s)
{
    if (a->failed != b->failed || !a->is_clean || !b->is_clean)
        return 0;
    if (a->failed != 0 && a->failed != 9)
        return 1;
    int same =
        a->used == b->used && memcmp(a->reader.state, b->reader.state, 4 * (size_t)s->n_lanes) == 0;
    for (uint32_t run = 0; same && run < s->n_runs; run++)
        same = memcmp(a->out[run], b->out[run], s->n[run]) == 0;
    return same;
}

static struct strip strip; /* too large for the stack */
static struct decoded want, got;

/* Return whether some ISA does not give the strip's symbols back, of some number of lanes. */
static int strip_is_lost(void)
{
    const struct pstk__planes_kernels *k;
    for (uint32_t i = 0; i < N_LANES; i++) {
        code_strip(&strip, lanes[i]);
        EACH_ISA(k)
        {
            decode_from(&got, &strip, strip.code, strip.size, draw(2) * draw(400), k);
            if (is_strip(&got, &strip))
                continue;
            printf("# ISA %u, %u lanes, runs of %u, %u, %u: result %d at %u\n", k->isa, lanes[i],
                   strip.n[0], strip.n_runs > 1 ? strip.n[1] : 0, strip.n_runs > 2 ? strip.n[2] : 0,
                   got.result, got.failed);
            return 1;
        }
    }
    return 0;
}

TEST(runs_of_every_length_are_decoded_by_every_isa)
{
    for (uint32_t n = 0; n <= 300; n++) {
        if (n % 20 == 0)
            draw_tables(&strip, N_SHAPES);
        draw_run(&strip, 0, n, n % 2);
        CHECK(!strip_is_lost());
        /* with words behind it, so that vectors take it up to its end */
        draw_run(&strip, 1, draw(700), 0);
        draw_run(&strip, 2, draw(300), 1);
        CHECK(!strip_is_lost());
    }
}

TEST(tables_of_every_shape_are_decoded_by_every_isa)
{
    for (uint32_t i = 0; i < 20 * N_SHAPES; i++) {
        draw_tables(&strip, i % N_SHAPES);
        draw_run(&strip, 0, MAX_SYMBOLS - draw(200), i / N_SHAPES % 2);
        draw_run(&strip, 1, draw(MAX_SYMBOLS), 0);
        CHECK(!strip_is_lost());
    }
}

TEST(symbols_that_are_certain_take_no_bytes)
{
    draw_tables(&strip, ONE);
    draw_run(&strip, 0, 4000, 0);
    CHECK(!strip_is_lost());
    for (uint32_t k = 0; k < N_LANES; k++) {
        code_strip(&strip, lanes[k]);
        CHECK_EQ(strip.size, 4 * lanes[k]);
    }
}

TEST(code_is_as_long_as_its_symbols_are_unlikely)
{
    for (uint32_t i = 0; i < 2 * N_SHAPES; i++) {
        double bits = 0;
        draw_tables(&strip, i % N_SHAPES);
        draw_run(&strip, 0, 4000, i >= N_SHAPES);
        for (uint32_t k = 0; k < 4000; k++)
            bits += PSTK__RANS_BITS -
                    log2(strip.symbols[strip.number[0][k]][strip.symbol[0][k]].frequency);
        const uint32_t n_lanes = lanes[i % N_LANES];
        code_strip(&strip, n_lanes);
        /* a state holds up to two bytes more than at the start, and is rounded by symbols of large
         * frequency: some 2^-5 of a bit each at the very worst */
        CHECK(strip.size >= bits / 8 && strip.size <= bits / 8 * 1.005 + 4 * n_lanes + 16);
    }
}

/* The format: other bytes for the same symbols would be another version. */
TEST(a_known_strip_has_the_bytes_it_always_had)
{
    static const uint32_t known[N_LANES][2] = {
        {1666, 0x0accee74}, {1700, 0xf62e58e7}, {1846, 0xc302d61a}};
    uint32_t x = 1;
    for (uint32_t t = 0; t < N_TABLES; t++) {
        uint32_t count[256] = {0};
        for (uint32_t s = 0; s < 256; s++)
            count[s] = s % (t + 1) == 0 ? 1 + 40000 / (s + 1) : 0;
        pstk__model_fit(&strip.models[t], count, t % 2 ? PSTK__MODEL_SIGNED : PSTK__MODEL_PLAIN);
        pstk__model_symbols(strip.symbols[t], &strip.models[t]);
    }
    strip.n_runs = 2;
    for (uint32_t run = 0; run < 2; run++) {
        strip.n[run] = 1000 + run;
        for (uint32_t i = 0; i < strip.n[run]; i++) {
            x = x * 1664525 + 1013904223;
            strip.number[run][i] = (uint8_t)(x >> 24) % N_TABLES;
            const struct pstk__model *m = &strip.models[strip.number[run][i]];
            strip.symbol[run][i] = m->symbol[(x >> 8 & 0xffff) % m->n];
        }
    }
    for (uint32_t i = 0; i < N_LANES; i++) {
        code_strip(&strip, lanes[i]);
        const uint32_t crc = pstk__crc32c(0, strip.code, strip.size);
        printf("# %u bytes, 0x%08x\n", strip.size, crc);
        CHECK(strip.size == known[i][0] && crc == known[i][1]);
    }
}

/* ---- damage --------------------------------------------------------------------------------- */

/* 1 when an ISA's verdict on these bytes is not that of C. want is left with C's. */
static int verdicts_differ(const uint8_t *code, uint32_t size)
{
    const struct pstk__planes_kernels *k;
    decode_from(&want, &strip, code, size, 0, &pstk__planes_kernels_c);
    EACH_ISA(k)
    {
        decode_from(&got, &strip, code, size, draw(2) * draw(400), k);
        if (!is_same(&want, &got, &strip)) {
            printf("# ISA %u, %u lanes, %u bytes: failed at %u, C at %u\n", k->isa, strip.n_lanes,
                   size, got.failed, want.failed);
            return 1;
        }
    }
    return 0;
}

TEST(code_that_was_cut_off_is_damaged)
{
    for (uint32_t i = 0; i < N_LANES; i++) {
        draw_tables(&strip, DENSE);
        draw_run(&strip, 0, 500, 0);
        draw_run(&strip, 1, 300, 1);
        code_strip(&strip, lanes[i]);
        for (uint32_t size = 0; size < strip.size; size++) {
            CHECK(!verdicts_differ(strip.code, size));
            CHECK(want.result < 0);
        }
    }
}

TEST(code_with_bytes_to_spare_is_damaged)
{
    static uint8_t code[sizeof strip.room + 512];
    for (uint32_t i = 0; i < 2 * N_LANES; i++) {
        draw_tables(&strip, i % 2 ? N_SHAPES : ONE);
        draw_run(&strip, 0, 1000, 0);
        code_strip(&strip, lanes[i / 2]);
        memset(code, 0, sizeof code);
        memcpy(code, strip.code, strip.size);
        CHECK(!verdicts_differ(code, strip.size) && want.result == 0);
        for (uint32_t more = 1; more <= 512; more++) {
            CHECK(!verdicts_differ(code, strip.size + more));
            CHECK(want.result < 0);
        }
    }
}

TEST(a_state_below_the_least_is_damaged)
{
    draw_tables(&strip, DENSE);
    draw_run(&strip, 0, 1000, 0);
    for (uint32_t i = 0; i < N_LANES; i++) {
        const uint32_t n_lanes = lanes[i];
        code_strip(&strip, n_lanes);
        for (uint32_t lane = 0; lane < n_lanes; lane++) {
            uint8_t saved[4];
            memcpy(saved, strip.code + 4 * lane, 4);
            pstk__put32(strip.code + 4 * lane, PSTK__RANS_LOW - 1);
            CHECK(!verdicts_differ(strip.code, strip.size));
            CHECK_EQ(want.failed, 1);
            memcpy(strip.code + 4 * lane, saved, 4);
        }
    }
}

/* The states at the end are no checksum: where rare symbols abound, one taken for another can lead
 * to the same state. But no other code gives the same symbols. */
TEST(a_changed_bit_is_damage_or_gives_other_symbols_by_every_isa)
{
    uint32_t n_taken = 0, n_trials = 0;
    for (uint32_t i = 0; i < 4 * N_LANES; i++) {
        draw_tables(&strip, i % 2 ? DENSE : N_SHAPES);
        draw_run(&strip, 0, 200 + draw(200), 0);
        draw_run(&strip, 1, draw(300), 1);
        code_strip(&strip, lanes[i / 4]);
        for (uint32_t bit = draw(3); bit < 8 * strip.size; bit += 1 + draw(5), n_trials++) {
            strip.code[bit / 8] ^= (uint8_t)(1u << bit % 8);
            CHECK(!verdicts_differ(strip.code, strip.size));
            CHECK(!is_strip(&want, &strip));
            n_taken += want.result == 0;
            strip.code[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
    printf("# %u of %u changes were taken\n", n_taken, n_trials);
    CHECK(n_trials > 3000 && n_taken < n_trials / 4);
}

TEST(any_words_give_the_same_in_every_isa)
{
    for (uint32_t i = 0; i < 600; i++) {
        static uint8_t code[4096];
        const uint32_t size = draw(sizeof code / 2 + 1) * 2;
        if (i % 20 == 0)
            draw_tables(&strip, N_SHAPES);
        draw_run(&strip, 0, draw(2000), 0);
        strip.n_lanes = lanes[i % N_LANES];
        for (uint32_t k = 0; k < size; k++)
            code[k] = (uint8_t)draw(256);
        for (uint32_t lane = 0; lane < strip.n_lanes && 4 * lane + 4 <= size; lane++)
            code[4 * lane + 2] |= 1; /* states that pass */
        CHECK(!verdicts_differ(code, size));
    }
}

/* ---- loops over blocks ---------------------------------------------------------------------- */

#define MAX_BLOCKS 200u

/* Blocks of a strip: counts, the map bytes they stand for, and maps. */
struct blocks {
    uint32_t n, n_bytes, n_values;
    uint8_t counts[MAX_BLOCKS];
    uint8_t bytes[8 * MAX_BLOCKS + 8];
    uint64_t maps[MAX_BLOCKS];
};

static void draw_blocks(struct blocks *b, uint32_t n)
{
    const uint32_t fullness = draw(4);
    *b = (struct blocks){.n = n};
    memset(b->bytes, 0xff, sizeof b->bytes); /* bytes past the block's are not its own */
    for (uint32_t i = 0; i < n; i++) {
        b->counts[i] = (uint8_t)(fullness == 3 ? 8 : fullness == 0 ? 0 : draw(9));
        for (uint32_t k = 0; k < b->counts[i]; k++) {
            uint8_t byte = (uint8_t)(fullness == 3 ? 255 : draw(256) & draw(256));
            byte &= (uint8_t)(k == 0 ? 0xfe : 0xff); /* the DC has no bit */
            b->bytes[b->n_bytes++] = byte;
            b->maps[i] |= (uint64_t)byte << 8 * k;
        }
        b->n_values += (uint32_t)__builtin_popcountll(b->maps[i]);
    }
}

static struct blocks blocks;

TEST(each_isa_numbers_map_bytes_and_values_alike)
{
    static uint8_t out[64 * MAX_BLOCKS + 128], expected[64 * MAX_BLOCKS];
    static uint8_t map_tables[8], value_tables[9][64];
    const struct pstk__planes_kernels *k;
    for (uint32_t i = 0; i < 3 * MAX_BLOCKS; i++) {
        uint32_t n = 0;
        draw_blocks(&blocks, i / 3);
        for (uint32_t z = 0; z < sizeof value_tables; z++)
            value_tables[z / 64][z % 64] = (uint8_t)draw(N_TABLES);
        for (uint32_t z = 0; z < 8; z++)
            map_tables[z] = (uint8_t)draw(N_TABLES);
        for (uint32_t b = 0; b < blocks.n; b++)
            for (uint32_t z = 0; z < 64; z++)
                if (blocks.maps[b] >> z & 1)
                    expected[n++] = value_tables[blocks.counts[b]][z];
        EACH_ISA(k)
        {
            memset(out, CANARY, sizeof out);
            k->value_tables(out, blocks.maps, blocks.counts, blocks.n,
                            (const uint8_t(*)[64])value_tables);
            CHECK(memcmp(out, expected, n) == 0 && is_canary(out + n + 64, sizeof out - n - 64));
            memset(out, CANARY, sizeof out);
            CHECK_EQ(k->map_tables(out, blocks.counts, blocks.n, map_tables), blocks.n_bytes);
            CHECK(is_canary(out + blocks.n_bytes + 8, sizeof out - blocks.n_bytes - 8));
            for (uint32_t b = 0, at = 0; b < blocks.n; at += blocks.counts[b++])
                CHECK(memcmp(out + at, map_tables, blocks.counts[b]) == 0);
        }
    }
}

TEST(each_isa_makes_the_same_maps)
{
    static uint64_t maps[MAX_BLOCKS + 8];
    const struct pstk__planes_kernels *k;
    for (uint32_t i = 0; i < 3 * MAX_BLOCKS; i++) {
        uint64_t expected = 1ull << 63;
        draw_blocks(&blocks, i / 3);
        for (uint32_t b = 0; b < blocks.n; b++)
            expected |= blocks.maps[b];
        EACH_ISA(k)
        {
            const uint8_t *at = blocks.bytes;
            uint64_t all = 1ull << 63;
            memset(maps, CANARY, sizeof maps);
            CHECK_EQ(k->maps(maps, &at, blocks.counts, blocks.n, &all), blocks.n_values);
            CHECK_EQ(at - blocks.bytes, blocks.n_bytes);
            CHECK(all == expected);
            CHECK(memcmp(maps, blocks.maps, blocks.n * sizeof *maps) == 0);
            CHECK(is_canary(maps + blocks.n, 8 * sizeof *maps));
            CHECK_EQ(k->count_bits(maps, blocks.n), blocks.n_values);
        }
    }
}

TEST(each_isa_counts_alike)
{
    const struct pstk__planes_kernels *k;
    for (uint32_t n = 0; n < 700; n++) {
        uint8_t *bytes = malloc(n + 31); /* the readable bytes, for a sanitizer */
        uint32_t most = 0, n_wide = 0;
        memset(bytes, 128, n + 31);
        for (uint32_t i = 0; i < n; i++) {
            bytes[i] = (uint8_t)(draw(3) ? 128 : n % 3 ? draw(256) : draw(10));
            most = bytes[i] > most ? bytes[i] : most;
            n_wide += bytes[i] == 128;
        }
        EACH_ISA(k)
        {
            CHECK_EQ(k->most(bytes, n), most);
            CHECK_EQ(k->count_wide((const int8_t *)bytes, n), n_wide);
        }
        free(bytes);
    }
}

TEST(each_isa_takes_dcs_alike)
{
    static uint8_t high[400], low[400], numbers[464];
    static int16_t dc[464];
    const struct pstk__planes_kernels *k;
    for (uint32_t n = 0; n < 400; n++) {
        const uint8_t tables[2] = {(uint8_t)draw(N_TABLES), (uint8_t)draw(N_TABLES)};
        const int16_t before = (int16_t)(uint16_t)draw(65536);
        for (uint32_t i = 0; i < n; i++) {
            high[i] = (uint8_t)(draw(2) ? 0 : draw(256));
            low[i] = (uint8_t)draw(256);
        }
        EACH_ISA(k)
        {
            uint16_t sum = (uint16_t)before;
            memset(numbers, CANARY, sizeof numbers);
            memset(dc, CANARY, sizeof dc);
            k->low_tables(numbers, high, n, tables);
            k->sum_dc(dc, high, low, n, before);
            for (uint32_t i = 0; i < n; i++) {
                sum = (uint16_t)(sum + (uint16_t)pstk__unzigzag16(high[i] * 256u + low[i]));
                CHECK_EQ(dc[i], (int16_t)sum);
                CHECK_EQ(numbers[i], tables[high[i] != 0]);
            }
            CHECK(is_canary(dc + n, sizeof dc - n * sizeof *dc));
            CHECK(is_canary(numbers + n, sizeof numbers - n));
        }
    }
}

TEST(there_are_kernels_for_each_isa_that_this_cpu_runs)
{
    CHECK(pstk__planes_kernels(PSTK_KERNELS_C) == &pstk__planes_kernels_c);
    CHECK(pstk__planes_kernels(PSTK_KERNELS_AUTO) != NULL);
    if (pstk__cpu_kernels() != PSTK_KERNELS_NEON) /* NEON has those of C */
        CHECK_EQ(pstk__planes_kernels(PSTK_KERNELS_AUTO)->isa, pstk__cpu_kernels());
    CHECK(pstk__planes_kernels(PSTK_KERNELS_NEON + 1) == NULL);
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++)
        CHECK_EQ(pstk__planes_kernels(v) != NULL, pstk__kernels_run(v));
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_fitted_model_has_the_counted_symbols_and_no_others),
        CASE(a_fitted_model_is_close_to_the_entropy),
        CASE(the_cost_of_a_model_is_its_entropy_and_its_bytes),
        CASE(a_model_is_read_as_it_was_written),
        CASE(the_largest_model_keeps_to_its_bound),
        CASE(a_model_that_was_cut_off_or_has_more_is_damaged),
        CASE(a_model_that_lacks_its_last_nibble_is_damaged),
        CASE(any_bytes_are_a_sound_model_or_damaged),
        CASE(no_symbols_at_all_or_more_than_the_whole_are_damaged),
        CASE(each_isa_fills_the_same_table),
        CASE(symbols_for_coding_are_those_of_the_table),
        CASE(runs_of_every_length_are_decoded_by_every_isa),
        CASE(tables_of_every_shape_are_decoded_by_every_isa),
        CASE(symbols_that_are_certain_take_no_bytes),
        CASE(code_is_as_long_as_its_symbols_are_unlikely),
        CASE(a_known_strip_has_the_bytes_it_always_had),
        CASE(code_that_was_cut_off_is_damaged),
        CASE(code_with_bytes_to_spare_is_damaged),
        CASE(a_state_below_the_least_is_damaged),
        CASE(a_changed_bit_is_damage_or_gives_other_symbols_by_every_isa),
        CASE(any_words_give_the_same_in_every_isa),
        CASE(each_isa_numbers_map_bytes_and_values_alike),
        CASE(each_isa_makes_the_same_maps),
        CASE(each_isa_counts_alike),
        CASE(each_isa_takes_dcs_alike),
        CASE(there_are_kernels_for_each_isa_that_this_cpu_runs),
    };
    return RUN_CASES(cases);
}
