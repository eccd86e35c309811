/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/frame.h"
#include "image/jpeg/kernels.h"
#include "support/test.h"

#include <penstock/penstock.h>

#define CANARY 0xA5
#define CANARIES 256u /* behind each row */
#define BEFORE 64u    /* bytes of a row before its first sample */

static uint64_t state = 88172645463325252ull;

static uint64_t draw_64(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint32_t draw(uint32_t below)
{
    return (uint32_t)(draw_64() >> 33) % below;
}

static size_t round_64(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

static const struct pstk__jpeg_kernels *isa(uint32_t v)
{
    return pstk__jpeg_kernels(v);
}

TEST(the_best_isa_that_the_cpu_runs_is_chosen)
{
    CHECK(isa(PSTK_KERNELS_C) == &pstk__jpeg_kernels_c);
    CHECK(isa(PSTK_KERNELS_AUTO) != NULL);
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++)
        CHECK(isa(v) == NULL || (isa(v)->isa == v && isa(PSTK_KERNELS_AUTO)->isa >= v));
    CHECK(isa(PSTK_KERNELS_NEON + 1) == NULL);
}

/* ---- inverse DCT ---------------------------------------------------------------------------- */

/* The coefficients that are not 0, and their sizes. */
enum density { FLAT, SPARSE, TYPICAL, DENSE, FULL, FIRST_ROW, MIXED, N_DENSITIES };
enum size { MILD, CODED, FEW_WIDE, HOSTILE, N_SIZES };
enum tables { FINE, BYTES, WORDS, N_TABLES };

static uint64_t draw_map(enum density d)
{
    const uint64_t a = draw_64(), b = draw_64(), c = draw_64();
    switch (d) {
    case FLAT:
        return 0;
    case SPARSE:
        return a & b & c & 0xFFFE;
    case TYPICAL:
        return ((a & b & c) | (a & b & 0xFFFF) | (a & 0xFF)) & ~1ull;
    case DENSE:
        return a & ~1ull;
    case FULL:
        return ~1ull;
    case FIRST_ROW:
        return a & 0x1800c062; /* places of the zigzag order without vertical frequency */
    default:
        return draw_map((enum density)draw(MIXED));
    }
}

static int32_t draw_value(enum size s)
{
    const int32_t extremes[] = {INT16_MIN, INT16_MAX, -128, 127, -127, 128, 1, -1};
    switch (s) {
    case MILD:
        return (int32_t)draw(4) * (draw(2) ? 1 : -1);
    case CODED:
        return (int32_t)draw(255) - 127;
    case FEW_WIDE:
        return draw(40) ? draw_value(MILD) : (int32_t)draw(2048) - 1024;
    default:
        return draw(2) ? extremes[draw(8)] : (int16_t)draw(65536);
    }
}

/* Memory of exactly its size: a sanitizer sees what is read beyond it. */
struct packed {
    struct pstk__block_row row;
    uint64_t *maps;
    int16_t *dc, *wide;
    int8_t *values;
};

static void packed_free(struct packed *p)
{
    free(p->maps);
    free(p->dc);
    free(p->values);
    free(p->wide);
}

static void pack_value(struct packed *p, int32_t value, size_t *n_values, size_t *n_wide)
{
    const int is_wide = value < -127 || value > 127;
    p->values[(*n_values)++] = (int8_t)(is_wide ? -128 : value);
    if (is_wide)
        p->wide[(*n_wide)++] = (int16_t)value;
}

static int packed_draw(struct packed *p, uint32_t n, enum density d, enum size s)
{
    size_t n_values = 0, n_wide = 0;
    *p = (struct packed){.maps = malloc(n * sizeof *p->maps),
                         .dc = malloc(n * sizeof *p->dc),
                         .wide = malloc((size_t)n * 63 * sizeof *p->wide),
                         .values = malloc((size_t)n * 63 + 64)};
    if (p->maps == NULL || p->dc == NULL || p->wide == NULL || p->values == NULL)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        p->maps[i] = draw_map(d);
        p->dc[i] = (int16_t)(s == HOSTILE ? draw_value(s) : (int32_t)draw(400) - 200);
        for (uint64_t map = p->maps[i]; map != 0; map &= map - 1) {
            const int32_t value = draw_value(s);
            pack_value(p, value ? value : 1, &n_values, &n_wide);
        }
    }
    memset(p->values + n_values, 0x80, 64);
    p->values = realloc(p->values, n_values + 64);
    p->wide = realloc(p->wide, n_wide * sizeof *p->wide + 1);
    p->row = (struct pstk__block_row){p->maps, p->dc, p->values, p->wide, n};
    return p->values == NULL || p->wide == NULL ? -1 : 0;
}

static void draw_quant(uint16_t quant[64], enum tables t)
{
    for (int i = 0; i < 64; i++)
        quant[i] = (uint16_t)(t == FINE ? 1 + draw(20) : t == BYTES ? 1 + draw(255) : draw(65536));
    if (t == BYTES && draw(2))
        memset(quant, 0, 128), quant[draw(64)] = 255;
}

/* Rows of samples with canaries around what may be written. */
struct samples {
    uint8_t *memory, *first;
    size_t stride, width; /* bytes that may be written */
    uint32_t n_rows;
};

static int samples_open(struct samples *s, uint32_t n_rows, size_t width)
{
    *s = (struct samples){.stride = width + CANARIES, .width = width, .n_rows = n_rows};
    s->memory = aligned_alloc(64, 64 + n_rows * s->stride);
    if (s->memory == NULL)
        return -1;
    s->first = s->memory + 64;
    memset(s->memory, CANARY, 64 + n_rows * s->stride);
    return 0;
}

static int samples_intact(const struct samples *s)
{
    for (size_t i = 0; i < 64; i++)
        if (s->memory[i] != CANARY)
            return 0;
    for (uint32_t y = 0; y < s->n_rows; y++)
        for (size_t x = s->width; x < s->stride; x++)
            if (s->first[y * s->stride + x] != CANARY)
                return 0;
    return 1;
}

static int samples_equal(const struct samples *a, const struct samples *b, size_t width)
{
    for (uint32_t y = 0; y < a->n_rows; y++)
        if (memcmp(a->first + y * a->stride, b->first + y * b->stride, width) != 0)
            return 0;
    return 1;
}

/* 1 when every ISA gives the samples of the reference, and leaves the others alone. */
static int inverse_agrees(const struct pstk__block_row *row, const uint16_t quant[64])
{
    struct samples want = {0}, got;
    const size_t width = (size_t)row->n_blocks * 8;
    int good = samples_open(&want, 8, round_64(width)) == 0;
    if (good)
        pstk__jpeg_kernels_c.inverse(want.first, want.stride, row, quant);
    for (uint32_t v = PSTK_KERNELS_C; good && v <= PSTK_KERNELS_NEON; v++) {
        if (isa(v) == NULL)
            continue;
        good = samples_open(&got, 8, round_64(width)) == 0;
        if (good)
            isa(v)->inverse(got.first, got.stride, row, quant);
        good = good && samples_intact(&got) && samples_equal(&want, &got, width);
        free(got.memory);
        if (!good)
            printf("# ISA %u, %u blocks\n", v, row->n_blocks);
    }
    free(want.memory);
    return good;
}

static int drawn_inverse_agrees(uint32_t n, enum density d, enum size s, enum tables t)
{
    struct packed p;
    uint16_t quant[64];
    draw_quant(quant, t);
    const int good = packed_draw(&p, n, d, s) == 0 && inverse_agrees(&p.row, quant);
    packed_free(&p);
    if (!good)
        printf("# density %d, size %d, tables %d\n", d, s, t);
    return good;
}

TEST(every_row_of_1_to_70_blocks_equals_the_reference)
{
    for (uint32_t n = 1; n <= 70; n++)
        for (int d = 0; d < N_DENSITIES; d++)
            for (int s = 0; s < HOSTILE; s++)
                for (int t = 0; t < WORDS; t++)
                    CHECK(drawn_inverse_agrees(n, (enum density)d, (enum size)s, (enum tables)t));
}

TEST(all_isas_agree_on_hostile_coefficients_that_overflow)
{
    for (uint32_t n = 1; n <= 70; n++)
        for (int d = 0; d < N_DENSITIES; d++)
            for (int s = 0; s < N_SIZES; s++)
                for (int t = 0; t < N_TABLES; t++)
                    if (s == HOSTILE || t == WORDS)
                        CHECK(
                            drawn_inverse_agrees(n, (enum density)d, (enum size)s, (enum tables)t));
}

/* One block whose coefficient at a place of the zigzag order (0 the DC) is what it is. */
static int single_agrees(uint32_t place, int32_t value, uint16_t factor)
{
    struct packed p;
    uint16_t quant[64];
    size_t n_values = 0, n_wide = 0;
    for (int i = 0; i < 64; i++)
        quant[i] = factor;
    if (packed_draw(&p, 1, FULL, HOSTILE) < 0)
        return 0;
    p.maps[0] = 1ull << place & ~1ull;
    p.dc[0] = (int16_t)(place ? 0 : value);
    if (place)
        pack_value(&p, value, &n_values, &n_wide);
    const int good = inverse_agrees(&p.row, quant);
    packed_free(&p);
    return good;
}

TEST(a_block_with_one_coefficient_equals_the_reference_for_every_place)
{
    const int32_t values[] = {1, -1, 127, -127, 128, -128, 129, 2047, -2048, 32767, -32768};
    const uint16_t factors[] = {0, 1, 2, 3, 64, 65, 128, 255, 256, 257, 32767, 32768, 65535};
    for (uint32_t place = 0; place < 64; place++)
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            for (size_t k = 0; k < sizeof factors / sizeof *factors; k++)
                CHECK(single_agrees(place, values[i], factors[k]));
}

/* Beyond 8191 the shortcut for blocks without vertical frequencies wraps. */
TEST(every_dc_equals_the_reference)
{
    enum { N = 64 };
    uint64_t maps[N] = {0};
    int16_t dc[N], wide[1] = {0};
    int8_t values[64 + N];
    uint16_t quant[64];
    memset(values, 1, sizeof values);
    for (int i = 0; i < 64; i++)
        quant[i] = 1;
    for (int32_t first = INT16_MIN; first <= INT16_MAX; first += N) {
        for (int i = 0; i < N; i++) {
            dc[i] = (int16_t)(first + i);
            maps[i] = draw(3) ? 0 : 2;
        }
        const struct pstk__block_row row = {maps, dc, values, wide, N};
        CHECK(inverse_agrees(&row, quant));
    }
}

/* ---- upsampling ----------------------------------------------------------------------------- */

/* A row of n samples with the memory around it that kernels.h promises, and no more. */
static uint8_t *row_open(uint8_t **memory, uint32_t n, int extreme)
{
    const size_t size = BEFORE + round_64(n) + 64;
    *memory = aligned_alloc(64, size);
    for (size_t i = 0; *memory != NULL && i < size; i++)
        (*memory)[i] = (uint8_t)(extreme ? draw(2) * 255 : draw(256));
    return *memory + BEFORE;
}

enum upsampling { H2V1, H2V2, H1V2_UPPER, H1V2_LOWER, N_UPSAMPLINGS };

static void upsample(const struct pstk__jpeg_kernels *k, enum upsampling u, uint8_t *out,
                     const uint8_t *near, const uint8_t *far, uint32_t n)
{
    if (u == H2V1)
        k->h2v1(out, near, n);
    else if (u == H2V2)
        k->h2v2(out, near, far, n);
    else
        k->h1v2(out, near, far, n, u == H1V2_UPPER ? 1 : 2);
}

static int upsampling_agrees(enum upsampling u, uint32_t n, int extreme)
{
    uint8_t *memory[2];
    const uint8_t *near = row_open(&memory[0], n, extreme), *far = row_open(&memory[1], n, extreme);
    const size_t width = u <= H2V2 ? 2 * (size_t)n : n;
    struct samples want = {0}, got;
    int good = memory[0] && memory[1] && samples_open(&want, 1, round_64(width) + 64) == 0;
    if (good)
        upsample(&pstk__jpeg_kernels_c, u, want.first, near, far, n);
    for (uint32_t v = PSTK_KERNELS_C; good && v <= PSTK_KERNELS_NEON; v++) {
        if (isa(v) == NULL)
            continue;
        good = samples_open(&got, 1, round_64(width) + 64) == 0;
        if (good)
            upsample(isa(v), u, got.first, near, far, n);
        good = good && samples_intact(&got) && samples_equal(&want, &got, width);
        free(got.memory);
        if (!good)
            printf("# ISA %u, upsampling %d, %u samples\n", v, (int)u, n);
    }
    free(want.memory);
    free(memory[0]);
    free(memory[1]);
    return good;
}

TEST(upsampled_rows_of_every_length_equal_the_reference)
{
    for (uint32_t n = 1; n <= 300; n++)
        for (int u = 0; u < N_UPSAMPLINGS; u++)
            CHECK(upsampling_agrees((enum upsampling)u, n, 0) &&
                  upsampling_agrees((enum upsampling)u, n, 1));
}

TEST(every_pair_of_samples_is_upsampled_as_by_the_reference)
{
    static uint8_t near[64 + 65536 + 64], far[64 + 65536 + 64], want[131072 + 64], got[131072 + 64];
    for (int i = 0; i < 65536 + 128; i++) {
        near[i] = (uint8_t)(i >> 8);
        far[i] = (uint8_t)i;
    }
    for (uint32_t v = PSTK_KERNELS_AVX2; v <= PSTK_KERNELS_NEON; v++)
        for (int u = H2V2; isa(v) != NULL && u < N_UPSAMPLINGS; u++) {
            upsample(isa(PSTK_KERNELS_C), (enum upsampling)u, want, near + 64, far + 64, 65536);
            upsample(isa(v), (enum upsampling)u, got, near + 64, far + 64, 65536);
            CHECK(memcmp(want, got, u == H2V2 ? 131072 : 65536) == 0);
        }
}

/* ---- colour --------------------------------------------------------------------------------- */

static int color_agrees(uint32_t color, uint32_t n)
{
    static const uint32_t n_components[6] = {
        [PSTK__JPEG_GRAY] = 1, [PSTK__JPEG_YCC] = 3,  [PSTK__JPEG_RGB] = 3,
        [PSTK__JPEG_CMYK] = 4, [PSTK__JPEG_YCCK] = 4,
    };
    uint8_t *memory[4] = {NULL};
    const uint8_t *samples[4] = {NULL};
    struct samples want, got;
    for (uint32_t i = 0; i < n_components[color]; i++)
        samples[i] = row_open(&memory[i], n, draw(4) == 0);
    int good = samples_open(&want, 1, 3 * round_64(n)) == 0;
    if (good)
        pstk__jpeg_kernels_c.rgb[color](want.first, samples, n);
    for (uint32_t v = PSTK_KERNELS_C; good && v <= PSTK_KERNELS_NEON; v++) {
        if (isa(v) == NULL)
            continue;
        good = samples_open(&got, 1, 3 * round_64(n)) == 0;
        if (good)
            isa(v)->rgb[color](got.first, samples, n);
        good = good && samples_intact(&got) && samples_equal(&want, &got, 3 * (size_t)n);
        free(got.memory);
        if (!good)
            printf("# ISA %u, color %u, %u pixels\n", v, color, n);
    }
    free(want.memory);
    for (int i = 0; i < 4; i++)
        free(memory[i]);
    return good;
}

TEST(rows_of_every_length_and_color_equal_the_reference)
{
    for (uint32_t n = 1; n <= 300; n++)
        for (uint32_t color = PSTK__JPEG_GRAY; color <= PSTK__JPEG_YCCK; color++)
            CHECK(color_agrees(color, n));
}

TEST(every_ycc_color_equals_the_reference)
{
    enum { N = 65536 };
    static uint8_t planes[3][N], want[3 * N], got[3 * N];
    const uint8_t *const samples[4] = {planes[0], planes[1], planes[2], NULL};
    for (int i = 0; i < N; i++) {
        planes[0][i] = (uint8_t)i;
        planes[2][i] = (uint8_t)(i >> 8);
    }
    for (int cb = 0; cb < 256; cb++) {
        memset(planes[1], cb, N);
        isa(PSTK_KERNELS_C)->rgb[PSTK__JPEG_YCC](want, samples, N);
        for (uint32_t v = PSTK_KERNELS_AVX2; v <= PSTK_KERNELS_NEON; v++) {
            if (isa(v) == NULL)
                continue;
            isa(v)->rgb[PSTK__JPEG_YCC](got, samples, N);
            CHECK(memcmp(want, got, sizeof want) == 0);
        }
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(the_best_isa_that_the_cpu_runs_is_chosen),
        CASE(every_row_of_1_to_70_blocks_equals_the_reference),
        CASE(all_isas_agree_on_hostile_coefficients_that_overflow),
        CASE(a_block_with_one_coefficient_equals_the_reference_for_every_place),
        CASE(every_dc_equals_the_reference),
        CASE(upsampled_rows_of_every_length_equal_the_reference),
        CASE(every_pair_of_samples_is_upsampled_as_by_the_reference),
        CASE(rows_of_every_length_and_color_equal_the_reference),
        CASE(every_ycc_color_equals_the_reference),
    };
    return RUN_CASES(cases);
}
