/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_tensor: measure the operations of the tensor reference on a picture of 224 x 224 RGB of
 * random bytes, with each ISA that this CPU runs, on one core. Prints medians of several
 * rounds, and the lowest. benchmarks/bench_tensor_torchvision.py measures torchvision on such a
 * picture.
 */
#include "bench.h"
#include "pixels/colour.h"
#include "pixels/tensor.h"

#define SIDE 224u
#define N_ROUNDS 5
#define N_CALLS 10

struct bench {
    const struct pstk__colour_kernels *colour;
    const struct pstk__tensor_kernels *tensor;
    struct pstk__picture in, out;
    void *scratch;
};

static void brightness(struct bench *b)
{
    struct pstk__colour_table table;
    pstk__tensor_table_brightness(&table, 1.3);
    pstk__colour_apply(b->colour, &b->out, &table);
}

static void contrast(struct bench *b)
{
    struct pstk__colour_table table;
    pstk__tensor_table_contrast(&table, pstk__tensor_mean(b->tensor, &b->out), 1.3);
    pstk__colour_apply(b->colour, &b->out, &table);
}

static void gamma_2(struct bench *b)
{
    struct pstk__colour_table table;
    pstk__tensor_table_gamma(&table, 2.2, 1.0);
    pstk__colour_apply(b->colour, &b->out, &table);
}

static void autocontrast(struct bench *b)
{
    struct pstk__colour_range range;
    struct pstk__colour_table table;
    b->colour->range(&range, &b->out);
    pstk__tensor_table_autocontrast(&table, &range);
    pstk__colour_apply(b->colour, &b->out, &table);
}

static void saturation(struct bench *b)
{
    pstk__tensor_saturation(b->tensor, &b->out, 1.3);
}

static void hue(struct bench *b)
{
    pstk__tensor_hue(b->tensor, &b->out, 0.1);
}

static void sharpness(struct bench *b)
{
    pstk__tensor_sharpness(b->tensor, &b->out, &b->in, 1.5);
}

static void grays(struct bench *b)
{
    pstk__tensor_grayscale(b->tensor, b->out.pixels, 3, b->in.pixels, 3, SIDE * SIDE);
}

static const struct pstk__blur_params small = {{9, 9}, {1.2, 1.2}}, large = {{23, 23}, {1.2, 1.2}};

static void blur_9(struct bench *b)
{
    pstk__tensor_blur(b->tensor, &b->out, &b->in, &small, b->scratch);
}

static void blur_23(struct bench *b)
{
    pstk__tensor_blur(b->tensor, &b->out, &b->in, &large, b->scratch);
}

/* A turn by 17 degrees about the middle, and a slight perspective. */
static const double matrix[8] = {0.956, 0.292, -27.8, -0.292, 0.956, 37.7, 1e-4, 2e-4};

static void warp(struct bench *b, uint32_t has_divisor, uint32_t is_bilinear)
{
    const struct pstk__tensor_warp to = {
        .m = matrix, .has_divisor = has_divisor, .is_bilinear = is_bilinear};
    pstk__tensor_warp(b->tensor, &b->out, &b->in, &to);
}

static void rotate_nearest(struct bench *b)
{
    warp(b, 0, 0);
}

static void rotate_bilinear(struct bench *b)
{
    warp(b, 0, 1);
}

static void perspective_bilinear(struct bench *b)
{
    warp(b, 1, 1);
}

static const struct {
    const char *name;
    void (*run)(struct bench *b);
} operations[] = {
    {"brightness", brightness},
    {"contrast", contrast},
    {"gamma", gamma_2},
    {"autocontrast", autocontrast},
    {"saturation", saturation},
    {"hue", hue},
    {"sharpness", sharpness},
    {"grayscale 3", grays},
    {"gaussian blur 9", blur_9},
    {"gaussian blur 23", blur_23},
    {"rotate nearest", rotate_nearest},
    {"rotate bilinear", rotate_bilinear},
    {"perspective bilinear", perspective_bilinear},
};
#define N_OPERATIONS (sizeof operations / sizeof operations[0])

static struct bench_runs runs[5][N_OPERATIONS]; /* by ISA */

/* Every ISA of every operation once. */
static void run_round(struct bench *b)
{
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++) {
        b->colour = pstk__colour_kernels(v);
        b->tensor = pstk__tensor_kernels(v);
        for (uint32_t i = 0; b->colour && b->tensor && i < N_OPERATIONS; i++) {
            const uint32_t n_calls = v == PSTK_KERNELS_C ? 1 : N_CALLS;
            memcpy(b->out.pixels, b->in.pixels, pstk__picture_size(&b->in));
            const double begin = bench_now();
            for (uint32_t call = 0; call < n_calls; call++)
                operations[i].run(b);
            bench_add(&runs[v][i], (bench_now() - begin) * 1e6 / n_calls);
        }
    }
}

int main(void)
{
    static const char *const isas[5] = {"", "C", "AVX2", "AVX-512", "NEON"};
    const uint64_t room = pstk__picture_room(SIDE * SIDE, 3);
    const uint64_t scratch = (pstk__tensor_blur_scratch(large.size, SIDE, 3) + 63) & ~63ull;
    struct bench b = {.in = {aligned_alloc(64, room), SIDE, SIDE, 3},
                      .out = {aligned_alloc(64, room), SIDE, SIDE, 3},
                      .scratch = aligned_alloc(64, scratch)};
    uint64_t state = 1;
    if (!b.in.pixels || !b.out.pixels || !b.scratch)
        return 1;
    for (uint64_t i = 0; i < pstk__picture_size(&b.in); i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        b.in.pixels[i] = (uint8_t)(state >> 32);
    }
    for (uint32_t round = 0; round < N_ROUNDS; round++)
        run_round(&b);
    printf("microseconds a picture of 224 x 224 x 3: median, lowest\n");
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++)
        for (uint32_t i = 0; runs[v][0].n > 0 && i < N_OPERATIONS; i++)
            printf("%-8s %-36s %8.1f %8.1f\n", isas[v], operations[i].name,
                   bench_median(&runs[v][i]), bench_worst(&runs[v][i], 0));
    free(b.in.pixels);
    free(b.out.pixels);
    free(b.scratch);
    return 0;
}
