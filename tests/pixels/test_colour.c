/* SPDX-License-Identifier: Apache-2.0 */
#include "pixels/colour.h"
#include "base/cpu.h"
#include "base/random.h"
#include "support/test.h"

#include <penstock/penstock.h>

#define WIDTH 4u
#define HEIGHT 3u
#define SIZE (WIDTH * HEIGHT * 3)

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

/* Over every ISA that this CPU runs, from one on. */
#define EACH_ISA_FROM(first, k)                                                                    \
    for (uint32_t k##_v = (first); k##_v <= PSTK_KERNELS_NEON; k##_v++)                            \
        for (const struct pstk__colour_kernels *k = pstk__colour_kernels(k##_v); k; k = NULL)
#define EACH_ISA(k) EACH_ISA_FROM(PSTK_KERNELS_C, k)
#define EACH_ISA_BUT_C(k) EACH_ISA_FROM(PSTK_KERNELS_AVX2, k)

/* ---- results of Pillow 12.1 ------------------------------------------------------------------ */

enum operation {
    BRIGHTNESS,
    CONTRAST,
    SATURATION,
    HUE,
    SHARPNESS,
    GRAY,
    GRAYS,
    PERMUTE,
    N_OPERATIONS
};

struct golden {
    enum operation operation;
    double factor;
    uint8_t pixels[SIZE];
};

/* clang-format off */
static const uint8_t colours[SIZE] = {
    255, 0, 0, 12, 200, 90, 250, 251, 252, 0, 0, 0, 30, 60, 200, 255, 255, 255, 128, 64, 32, 17, 99, 180,
    90, 90, 90, 1, 254, 127, 200, 40, 220, 77, 140, 5};
static const struct golden golden[] = {
    {BRIGHTNESS, 1.3, {255, 0, 0, 15, 255, 116, 255, 255, 255, 0, 0, 0, 39, 78, 255, 255, 255, 255, 166, 83,
        41, 22, 128, 233, 116, 116, 116, 1, 255, 165, 255, 52, 255, 100, 182, 6}},
    {CONTRAST, 0.4, {172, 70, 70, 75, 150, 106, 170, 171, 171, 70, 70, 70, 82, 94, 150, 172, 172, 172, 122, 96,
        83, 77, 110, 142, 106, 106, 106, 71, 172, 121, 150, 86, 158, 101, 126, 72}},
    {SATURATION, 2.5, {255, 0, 0, 0, 255, 28, 248, 251, 253, 0, 0, 0, 0, 49, 255, 255, 255, 255, 201, 41, 0, 0,
        121, 255, 90, 90, 90, 0, 255, 71, 255, 0, 255, 33, 191, 0}},
    {HUE, 0.1, {255, 150, 0, 13, 200, 198, 250, 250, 252, 0, 0, 0, 98, 31, 200, 255, 255, 255, 128, 120, 32, 29,
        18, 180, 90, 90, 90, 2, 233, 254, 220, 41, 138, 5, 140, 12}},
    {HUE, -0.25, {138, 0, 255, 200, 185, 13, 250, 252, 250, 0, 0, 0, 31, 200, 86, 255, 255, 255, 116, 32, 128,
        18, 180, 18, 90, 90, 90, 251, 254, 2, 41, 150, 220, 140, 5, 5}},
    {SHARPNESS, 3.0, {255, 0, 0, 12, 200, 90, 250, 251, 252, 0, 0, 0, 30, 60, 200, 255, 255, 255, 160, 0, 0, 17,
        99, 180, 90, 90, 90, 1, 254, 127, 200, 40, 220, 77, 140, 5}},
    {GRAY, 0, {76, 131, 251, 0, 67, 255, 79, 84, 90, 164, 108, 106}},
    {GRAYS, 0, {76, 76, 76, 131, 131, 131, 251, 251, 251, 0, 0, 0, 67, 67, 67, 255, 255, 255, 79, 79, 79, 84, 84,
        84, 90, 90, 90, 164, 164, 164, 108, 108, 108, 106, 106, 106}},
    {PERMUTE, 0, {0, 0, 255, 90, 200, 12, 252, 251, 250, 0, 0, 0, 200, 60, 30, 255, 255, 255, 32, 64, 128, 180,
        99, 17, 90, 90, 90, 127, 254, 1, 220, 40, 200, 5, 140, 77}},
};
static const struct golden_table {
    const char *name;
    uint8_t bytes[8]; /* results for 0, 1, 64, 127, 128, 200, 254, 255 */
} golden_tables[] = {
    {"invert", {255, 254, 191, 128, 127, 55, 1, 0}},
    {"posterize 3", {0, 0, 64, 96, 128, 192, 224, 224}},
    {"posterize 0", {0, 0, 0, 0, 0, 0, 0, 0}},
    {"solarize 127.5", {0, 1, 64, 127, 127, 55, 1, 0}},
    {"solarize_add 60", {60, 61, 124, 187, 128, 200, 254, 255}},
    {"gamma 2.2", {0, 0, 12, 55, 56, 150, 253, 255}},
    {"gamma 0.5 * 1.5", {0, 24, 192, 255, 255, 255, 255, 255}},
    {"brightness 0.7", {0, 0, 44, 88, 89, 140, 177, 178}},
    {"contrast 3 of 100", {0, 0, 0, 181, 184, 255, 255, 255}},
};
/* clang-format on */

/* Change a picture, which has room for 4 channels. The result of SHARPNESS replaces the picture. */
static void change(const struct pstk__colour_kernels *k, struct pstk__picture *picture,
                   enum operation operation, double factor)
{
    static const uint32_t order[3] = {2, 1, 0};
    struct pstk__colour_table table;
    if (operation == BRIGHTNESS)
        pstk__colour_table_brightness(&table, (float)factor);
    else if (operation == CONTRAST)
        pstk__colour_table_contrast(&table, pstk__colour_mean(k, picture), (float)factor);
    if (operation == BRIGHTNESS || operation == CONTRAST)
        pstk__colour_apply(k, picture, &table);
    else if (operation == SATURATION)
        pstk__colour_saturation(k, picture, (float)factor);
    else if (operation == HUE)
        pstk__colour_hue(k, picture, factor);
    else if (operation == PERMUTE)
        pstk__colour_permute(k, picture, order);
    else if (operation != SHARPNESS)
        pstk__colour_grayscale(k, picture, operation == GRAY ? 1 : 3);
    if (operation != SHARPNESS)
        return;
    struct pstk__picture in = *picture;
    in.pixels = malloc(pstk__picture_size(picture));
    if (!in.pixels)
        abort();
    memcpy(in.pixels, picture->pixels, pstk__picture_size(picture));
    pstk__colour_sharpness(k, picture, &in, (float)factor);
    free(in.pixels);
}

TEST(operations_give_the_bytes_of_pillow)
{
    _Alignas(64) uint8_t pixels[4 * SIZE];
    EACH_ISA(k)
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        struct pstk__picture picture = {pixels, WIDTH, HEIGHT, 3};
        memcpy(pixels, colours, SIZE);
        change(k, &picture, golden[i].operation, golden[i].factor);
        CHECK_EQ(picture.channels, golden[i].operation == GRAY ? 1 : 3);
        CHECK_EQ(memcmp(pixels, golden[i].pixels, pstk__picture_size(&picture)), 0);
    }
}

static void fill(struct pstk__colour_table *table, uint32_t which)
{
    if (which == 0)
        pstk__colour_table_invert(table);
    else if (which < 3)
        pstk__colour_table_posterize(table, which == 1 ? 3 : 0);
    else if (which == 3)
        pstk__colour_table_solarize(table, 127.5);
    else if (which == 4)
        pstk__colour_table_solarize_add(table, 60, 128);
    else if (which < 7)
        pstk__colour_table_gamma(table, which == 5 ? 2.2 : 0.5, which == 5 ? 1.0 : 1.5);
    else if (which == 7)
        pstk__colour_table_brightness(table, 0.7f);
    else
        pstk__colour_table_contrast(table, 100, 3.0f);
}

TEST(tables_have_the_bytes_of_pillow)
{
    static const uint8_t at[8] = {0, 1, 64, 127, 128, 200, 254, 255};
    for (uint32_t i = 0; i < sizeof golden_tables / sizeof golden_tables[0]; i++) {
        struct pstk__colour_table table;
        fill(&table, i);
        for (uint32_t n = 0; n < 32; n++)
            CHECK_EQ(table.to[n / 8][at[n % 8]], n < 24 ? golden_tables[i].bytes[n % 8]
                                                 : golden_tables[i].name[0] == 'g' ? 255
                                                                                   : at[n % 8]);
    }
}

/* Return the byte that a power becomes. */
static uint8_t powered(uint32_t v, double gamma, double scale)
{
    const double power = v > 0 ? pstk__exp(gamma * pstk__log(v / 255.0)) : gamma == 0.0;
    return (uint8_t)(scale * power < 255.0 ? scale * power : 255.0);
}

/* With every other gain some byte becomes a whole number, before it is rounded down. */
TEST(gamma_has_the_power_of_every_byte)
{
    for (uint32_t i = 0; i < 4000; i += test_stride(2, 10)) {
        const double whole = draw(300), gain = i % 2 ? whole / (256.0 - 1e-3) : draw(1000) / 250.0;
        const double gamma = draw(3) ? draw(4000) / 1000.0 : draw(200);
        struct pstk__colour_table table;
        pstk__colour_table_gamma(&table, gamma, gain);
        for (uint32_t v = 0; v < 256; v++)
            CHECK_EQ(table.to[0][v], powered(v, gamma, (256.0 - 1e-3) * gain));
    }
}

TEST(a_folded_table_does_one_table_after_the_other)
{
    struct pstk__colour_table tables[9], folded;
    pstk__colour_table_same(&folded);
    for (uint32_t i = 8; i-- > 3;) {
        fill(&tables[i], i);
        pstk__colour_table_then(&folded, &tables[i]);
    }
    for (uint32_t n = 0; n < 1024; n++) {
        uint8_t v = (uint8_t)n;
        for (uint32_t i = 8; i-- > 3;)
            v = tables[i].to[n / 256][v];
        CHECK_EQ(folded.to[n / 256][n % 256], v);
    }
}

/* ---- bytes that are counted ------------------------------------------------------------------ */

TEST(autocontrast_stretches_from_least_to_greatest)
{
    _Alignas(64) uint8_t pixels[128] = {50, 0, 7, 100, 9, 7, 150, 255, 7};
    static const uint8_t wanted[9] = {0, 0, 7, 127, 9, 7, 255, 255, 7};
    const struct pstk__picture picture = {pixels, 3, 1, 3};
    pstk__colour_autocontrast(pstk__colour_kernels(PSTK_KERNELS_AUTO), &picture);
    CHECK_EQ(memcmp(pixels, wanted, sizeof wanted), 0);
}

TEST(equalize_spreads_bytes_by_their_shares)
{
    _Alignas(64) uint8_t pixels[64 * 32 + 64];
    const struct pstk__picture picture = {pixels, 64, 32, 1};
    for (uint32_t i = 0; i < 64 * 32; i++)
        pixels[i] = (uint8_t)(i / 32 + 100); /* 64 bytes, each 32 times */
    pstk__colour_equalize(pstk__colour_kernels(PSTK_KERNELS_AUTO), &picture);
    for (uint32_t i = 0; i < 64 * 32; i++) /* a step of 2016 / 255 = 7, from a half step on */
        CHECK_EQ(pixels[i], (3 + i / 32 * 32) / 7 < 255 ? (3 + i / 32 * 32) / 7 : 255);
}

TEST(a_histogram_counts_every_pixel)
{
    _Alignas(64) uint8_t pixels[4 * 77 * 3 + 64];
    for (uint32_t channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1) {
        const struct pstk__picture picture = {pixels, 77, 3, channels};
        struct pstk__colour_histogram histogram, naive = {0};
        for (uint32_t i = 0; i < 77 * 3 * channels; i++) {
            pixels[i] = (uint8_t)draw(9);
            naive.n[i % channels][pixels[i]]++;
        }
        pstk__colour_histogram(&histogram, &picture);
        CHECK_EQ(memcmp(&histogram, &naive, sizeof naive), 0);
    }
}

/* ---- ISAs -------------------------------------------------------------------------------- */

/* Two pictures of the same pixels, in memory without a byte more than a picture has room for. */
struct pair {
    struct pstk__picture one, other;
};

static int pair_open(struct pair *pair, uint32_t width, uint32_t height, uint32_t channels)
{
    const uint64_t room =
        pstk__picture_room((uint64_t)width * height, channels == 1 ? 3 : channels);
    const uint32_t kind = draw(4);
    pair->one = pair->other = (struct pstk__picture){NULL, width, height, channels};
    pair->one.pixels = aligned_alloc(64, room);
    pair->other.pixels = aligned_alloc(64, room);
    if (!pair->one.pixels || !pair->other.pixels)
        return -1;
    for (uint64_t i = 0; i < pstk__picture_size(&pair->one); i++)
        pair->one.pixels[i] = (uint8_t)(kind == 0 ? draw(2) * 255 : kind == 1 ? 90 : draw(256));
    memcpy(pair->other.pixels, pair->one.pixels, pstk__picture_size(&pair->one));
    return 0;
}

static void pair_close(struct pair *pair)
{
    free(pair->one.pixels);
    free(pair->other.pixels);
}

static int is_equal(const struct pair *pair)
{
    return pair->one.channels == pair->other.channels &&
           memcmp(pair->one.pixels, pair->other.pixels, pstk__picture_size(&pair->one)) == 0;
}

static double draw_factor(enum operation operation)
{
    static const double factors[8] = {0.0, 1.0, 2.0, 0.5, 1e-3, 10.0, -0.5, 3e38};
    if (operation == HUE)
        return draw(255) / 254.0 - 0.5;
    return draw(2) ? factors[draw(8)] : draw(1000) * 2.3e-3;
}

TEST(all_isas_give_the_same_bytes)
{
    static const uint32_t channels[3] = {1, 3, 4};
    const struct pstk__colour_kernels *c = pstk__colour_kernels(PSTK_KERNELS_C);
    const uint32_t n = 6000 / test_stride(6, 20);
    EACH_ISA_BUT_C(k)
    for (uint32_t i = 0; i < n; i++) {
        struct pair pair;
        const enum operation operation = (enum operation)(i % N_OPERATIONS);
        const double factor = draw_factor(operation);
        const int rc = pair_open(&pair, 1 + draw(draw(2) ? 90 : 5), 1 + draw(draw(2) ? 20 : 4),
                                 channels[draw(3)]);
        if (rc == 0) {
            change(c, &pair.one, operation, factor);
            change(k, &pair.other, operation, factor);
        }
        const int equal = rc == 0 && is_equal(&pair);
        pair_close(&pair);
        CHECK(equal);
    }
}

TEST(all_isas_look_up_the_same_bytes)
{
    static const uint32_t channels[3] = {1, 3, 4};
    EACH_ISA_BUT_C(k)
    for (uint32_t i = 0; i < 600; i++) {
        struct pair pair;
        struct pstk__colour_table table;
        pstk__colour_table_invert(&table);
        for (uint32_t n = 0; n < 1024 && i % 2; n++)
            table.to[n / 256][n % 256] = (uint8_t)draw(256);
        const int rc = pair_open(&pair, 1 + draw(90), 1 + draw(9), channels[draw(3)]);
        if (rc == 0) {
            pstk__colour_apply(pstk__colour_kernels(PSTK_KERNELS_C), &pair.one, &table);
            pstk__colour_apply(k, &pair.other, &table);
        }
        const int equal = rc == 0 && is_equal(&pair);
        pair_close(&pair);
        CHECK(equal);
    }
}

TEST(all_isas_find_the_same_range_and_luma)
{
    static const uint32_t channels[3] = {1, 3, 4};
    const struct pstk__colour_kernels *c = pstk__colour_kernels(PSTK_KERNELS_C);
    EACH_ISA_BUT_C(k)
    for (uint32_t i = 0; i < 600; i++) {
        struct pair pair;
        struct pstk__colour_range one, other;
        const int rc = pair_open(&pair, 1 + draw(90), 1 + draw(9), channels[draw(3)]);
        if (rc == 0) {
            c->range(&one, &pair.one);
            k->range(&other, &pair.one);
        }
        const int equal = rc == 0 && memcmp(&one, &other, sizeof one) == 0 &&
                          c->luma_sum(&pair.one) == k->luma_sum(&pair.one);
        pair_close(&pair);
        CHECK(equal);
    }
}

/* All colours with this red. */
static void fill_colours(uint8_t *pixels, uint32_t red)
{
    for (uint32_t i = 0; i < 1u << 16; i++, pixels += 3) {
        pixels[0] = (uint8_t)red;
        pixels[1] = (uint8_t)(i >> 8);
        pixels[2] = (uint8_t)i;
    }
}

/* Red of all saturations and values. */
static void fill_reds(uint8_t *pixels)
{
    for (uint32_t i = 0; i < 1u << 16; i++, pixels += 3) {
        const uint8_t value = (uint8_t)(i >> 8), other = (uint8_t)i;
        pixels[0] = value;
        pixels[1] = pixels[2] = other < value ? other : value;
    }
}

static int is_same_hue(const struct pstk__colour_kernels *k, struct pair *pair, uint8_t shift)
{
    pstk__colour_kernels(PSTK_KERNELS_C)->shift_hue(&pair->one, shift);
    k->shift_hue(&pair->other, shift);
    return is_equal(pair);
}

static int is_same_luma(const struct pstk__colour_kernels *k, struct pair *pair)
{
    pstk__colour_saturation(pstk__colour_kernels(PSTK_KERNELS_C), &pair->one, 0.0f);
    pstk__colour_saturation(k, &pair->other, 0.0f);
    return is_equal(pair);
}

/* Every colour has its hue, its saturation and its value; and every hue with all saturations and
 * values becomes a colour. */
TEST(all_isas_give_every_colour_the_same_hue_and_luma)
{
    struct pair pair;
    CHECK_EQ(pair_open(&pair, 256, 256, 3), 0);
    int equal = 1;
    EACH_ISA_BUT_C(k)
    for (uint32_t i = 0; i < 256 && equal; i += test_stride(17, 17)) {
        fill_colours(pair.one.pixels, i);
        fill_colours(pair.other.pixels, i);
        equal = is_same_hue(k, &pair, (uint8_t)(i + 100));
        fill_reds(pair.one.pixels);
        fill_reds(pair.other.pixels);
        equal = equal && is_same_hue(k, &pair, (uint8_t)i);
        fill_colours(pair.one.pixels, i);
        fill_colours(pair.other.pixels, i);
        equal = equal && is_same_luma(k, &pair);
    }
    pair_close(&pair);
    CHECK(equal);
}

TEST(automatic_is_the_best_isa_of_the_cpu)
{
    const struct pstk__colour_kernels *k = pstk__colour_kernels(PSTK_KERNELS_AUTO);
    CHECK(k->isa <= pstk__cpu_kernels());
    CHECK(pstk__colour_kernels(PSTK_KERNELS_C) != NULL);
    EACH_ISA(other)
    CHECK(other->isa <= k->isa);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(operations_give_the_bytes_of_pillow),
        CASE(tables_have_the_bytes_of_pillow),
        CASE(gamma_has_the_power_of_every_byte),
        CASE(a_folded_table_does_one_table_after_the_other),
        CASE(autocontrast_stretches_from_least_to_greatest),
        CASE(equalize_spreads_bytes_by_their_shares),
        CASE(a_histogram_counts_every_pixel),
        CASE(all_isas_give_the_same_bytes),
        CASE(all_isas_look_up_the_same_bytes),
        CASE(all_isas_find_the_same_range_and_luma),
        CASE(all_isas_give_every_colour_the_same_hue_and_luma),
        CASE(automatic_is_the_best_isa_of_the_cpu),
    };
    return RUN_CASES(cases);
}
