/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_colour: measure the colour operations on whole pictures of 224 x 224 RGB, in place, with
 * each ISA that this CPU runs, on one core. Pictures are of random bytes, or smooth with some
 * noise, as photographs are. Prints medians of several rounds, and the lowest; the copy that
 * restores the picture is not measured. benchmarks/bench_colour_pillow.py measures Pillow on the
 * same pictures.
 */
#include "bench.h"
#include "pixels/colour.h"

#define SIDE 224u
#define SIZE (SIDE * SIDE * 3)
#define N_ROUNDS 5
#define N_CALLS 20

struct bench {
    uint8_t *pixels[2]; /* random, smooth */
    struct pstk__picture in, out;
};

typedef void operation(const struct pstk__colour_kernels *k, struct bench *b);

static void brightness(const struct pstk__colour_kernels *k, struct bench *b)
{
    struct pstk__colour_table table;
    pstk__colour_table_brightness(&table, 1.3f);
    pstk__colour_apply(k, &b->in, &table);
}

static void contrast(const struct pstk__colour_kernels *k, struct bench *b)
{
    struct pstk__colour_table table;
    pstk__colour_table_contrast(&table, pstk__colour_mean(k, &b->in), 0.7f);
    pstk__colour_apply(k, &b->in, &table);
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

static void invert(const struct pstk__colour_kernels *k, struct bench *b)
{
    struct pstk__colour_table table;
    pstk__colour_table_invert(&table);
    pstk__colour_apply(k, &b->in, &table);
}

static void solarize(const struct pstk__colour_kernels *k, struct bench *b)
{
    struct pstk__colour_table table;
    pstk__colour_table_solarize(&table, 128);
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
    {"posterize", posterize},   {"invert", invert},
    {"solarize", solarize},     {"autocontrast", autocontrast},
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

static struct bench_runs runs[5][N_OPERATIONS][2]; /* by ISA, on both pictures */

/* Every ISA of every operation once. */
static void run_round(struct bench *b)
{
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++) {
        const struct pstk__colour_kernels *k = pstk__colour_kernels(v);
        for (uint32_t i = 0; k && i < 2 * N_OPERATIONS; i++)
            bench_add(&runs[v][i / 2][i % 2],
                      measure(b, k, operations[i / 2].run, b->pixels[i % 2]));
    }
}

static void report(void)
{
    static const char *const isas[5] = {"", "C", "AVX2", "AVX-512", "NEON"};
    static const char *const kinds[2] = {"random", "smooth"};
    printf("microseconds a picture of 224 x 224 x 3: median, lowest\n");
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++)
        for (uint32_t i = 0; runs[v][0][0].n > 0 && i < 2 * N_OPERATIONS; i++) {
            const struct bench_runs *of = &runs[v][i / 2][i % 2];
            char name[40];
            snprintf(name, sizeof name, "%s, %s", operations[i / 2].name, kinds[i % 2]);
            printf("%-8s %-36s %8.1f %8.1f\n", isas[v], name, bench_median(of), bench_worst(of, 0));
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
    for (uint32_t round = 0; round < N_ROUNDS; round++)
        run_round(&b);
    report();
    free(b.pixels[0]);
    free(b.pixels[1]);
    free(b.in.pixels);
    free(b.out.pixels);
    return 0;
}
