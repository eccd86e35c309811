/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_colour: measure the colour operations on whole pictures of 224 x 224 RGB, in place, with
 * each variant that this CPU runs, on one core. Pictures are of random bytes, or smooth with some
 * noise, as photographs are. Prints medians of several turns; the copy that restores the picture is
 * not measured. benchmarks/bench_colour_pillow.py measures Pillow on the same pictures.
 */
#include "bench.h"
#include "picture/colour.h"

#define SIDE 224u
#define SIZE (SIDE * SIDE * 3)
#define N_ROUNDS 15
#define N_CALLS 20

struct bench {
    uint8_t *pixels[2]; /* random, smooth */
    struct pstk__picture in, out;
};

typedef void operation(const struct pstk__colour_kernels *k, struct bench *b);

static void brightness(const struct pstk__colour_kernels *k, struct bench *b)
{
    pstk__colour_brightness(k, &b->in, 1.3f);
}

static void contrast(const struct pstk__colour_kernels *k, struct bench *b)
{
    pstk__colour_contrast(k, &b->in, 0.7f);
}

static void saturation(const struct pstk__colour_kernels *k, struct bench *b)
{
    pstk__colour_saturation(k, &b->in, 1.3f);
}

static void hue(const struct pstk__colour_kernels *k, struct bench *b)
{
    pstk__colour_hue(k, &b->in, 0.1);
}

static void sharpness(const struct pstk__colour_kernels *k, struct bench *b)
{
    pstk__colour_sharpness(k, &b->out, &b->in, 1.5f);
}

static void gamma_2(const struct pstk__colour_kernels *k, struct bench *b)
{
    struct pstk__colour_table table;
    pstk__colour_table_gamma(&table, 2.2, 1.0);
    pstk__colour_apply(k, &b->in, &table);
}

static void posterize(const struct pstk__colour_kernels *k, struct bench *b)
{
    struct pstk__colour_table table;
    pstk__colour_table_posterize(&table, 4);
    pstk__colour_apply(k, &b->in, &table);
}

static void autocontrast(const struct pstk__colour_kernels *k, struct bench *b)
{
    pstk__colour_autocontrast(k, &b->in);
}

static void equalize(const struct pstk__colour_kernels *k, struct bench *b)
{
    pstk__colour_equalize(k, &b->in);
}

static void gray(const struct pstk__colour_kernels *k, struct bench *b)
{
    pstk__colour_grayscale(k, &b->in, 1);
}

static void grays(const struct pstk__colour_kernels *k, struct bench *b)
{
    pstk__colour_grayscale(k, &b->in, 3);
}

static void permute(const struct pstk__colour_kernels *k, struct bench *b)
{
    pstk__colour_permute(k, &b->in, (const uint32_t[3]){2, 1, 0});
}

static const struct {
    const char *name;
    operation *run;
} operations[] = {
    {"brightness", brightness}, {"contrast", contrast},
    {"saturation", saturation}, {"hue", hue},
    {"sharpness", sharpness},   {"gamma", gamma_2},
    {"posterize", posterize},   {"autocontrast", autocontrast},
    {"equalize", equalize},     {"grayscale 1", gray},
    {"grayscale 3", grays},     {"permute", permute},
};
#define N_OPERATIONS (sizeof operations / sizeof operations[0])

static void fill(struct bench *b)
{
    uint64_t state = 1;
    for (uint32_t i = 0; i < SIZE; i++) {
        const uint32_t x = i / 3 % SIDE, y = i / 3 / SIDE, c = i % 3;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        b->pixels[0][i] = (uint8_t)(state >> 32);
        b->pixels[1][i] = (uint8_t)((x + 2 * y + 60 * c) / 4 + (state >> 40) % 16 + 20);
    }
}

/* Microseconds an image. */
static double measure(struct bench *b, const struct pstk__colour_kernels *k, operation *run,
                      const uint8_t *pixels)
{
    double passed = 0;
    for (uint32_t i = 0; i < N_CALLS; i++) {
        memcpy(b->in.pixels, pixels, SIZE);
        b->in.channels = 3;
        const double begin = bench_now();
        run(k, b);
        passed += bench_now() - begin;
    }
    return passed * 1e6 / N_CALLS;
}

static void report(struct bench *b, uint32_t i)
{
    static const char *const variants[4] = {"", "C", "AVX2", "AVX-512"};
    static const char *const kinds[2] = {"random", "smooth"};
    for (uint32_t kind = 0; kind < 2; kind++)
        for (uint32_t variant = PSTK_KERNELS_C; variant <= PSTK_KERNELS_AVX512; variant++) {
            const struct pstk__colour_kernels *k = pstk__colour_kernels(variant);
            struct bench_runs runs = {0};
            for (uint32_t round = 0; k && round < N_ROUNDS; round++)
                bench_add(&runs, measure(b, k, operations[i].run, b->pixels[kind]));
            if (k)
                printf("%-14s %-8s %-8s %9.1f us\n", operations[i].name, kinds[kind],
                       variants[variant], bench_median(&runs));
        }
}

int main(void)
{
    struct bench b = {.in = {.width = SIDE, .height = SIDE, .channels = 3}};
    b.pixels[0] = malloc(SIZE);
    b.pixels[1] = malloc(SIZE);
    b.in.pixels = aligned_alloc(64, pstk__picture_room(SIDE * SIDE, 3));
    b.out = b.in;
    b.out.pixels = aligned_alloc(64, pstk__picture_room(SIDE * SIDE, 3));
    if (!b.pixels[0] || !b.pixels[1] || !b.in.pixels || !b.out.pixels)
        return 1;
    fill(&b);
    for (uint32_t i = 0; i < N_OPERATIONS; i++)
        report(&b, i);
    free(b.pixels[0]);
    free(b.pixels[1]);
    free(b.in.pixels);
    free(b.out.pixels);
    return 0;
}
