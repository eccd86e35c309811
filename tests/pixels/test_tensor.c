/* SPDX-License-Identifier: Apache-2.0 */
/* tests/python/test_tensor_reference.py compares with torchvision; this test knows some results. */
#include "pixels/tensor.h"
#include "augment/op.h"
#include "pixels/tensor_fma.h"
#include "support/picture.h"
#include "support/test.h"

#include <math.h>

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

static double draw_unit(void)
{
    return draw(1u << 30) / (double)(1u << 30);
}

/* Over every ISA that this CPU runs. */
#define EACH_ISA(k)                                                                                \
    for (uint32_t k##_v = PSTK_KERNELS_C; k##_v <= PSTK_KERNELS_NEON; k##_v++)                     \
        for (const struct pstk__tensor_kernels *k = pstk__tensor_kernels(k##_v); k; k = NULL)

TEST(a_product_and_a_sum_round_once)
{
    uint32_t n_twice = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        const float a = (float)(draw_unit() * 255), b = (float)(draw_unit() * 3 - 1.5);
        const float c = (float)((draw_unit() - 0.5) * ldexp(1, (int)draw(40) - 20));
        CHECK(pstk__fma(a, b, c) == fmaf(a, b, c));
        n_twice += a * b + c != fmaf(a, b, c);
    }
    CHECK(n_twice > 1000); /* else it does not matter */
}

/* clang-format off */
static const uint8_t colours[SIZE] = {
    255, 0, 0, 12, 200, 90, 250, 251, 252, 0, 0, 0, 30, 60, 200, 255, 255, 255, 128, 64, 32, 17, 99, 180,
    90, 90, 90, 1, 254, 127, 200, 40, 220, 77, 140, 5};
/* Results of torchvision 0.29: saturation 2.5, hue -0.3, sharpness 1.7, gray, contrast 0.4. */
static const uint8_t golden[5][SIZE] = {
    {255, 0, 0, 0, 255, 28, 250, 252, 255, 0, 0, 0, 0, 51, 255, 255, 255, 255, 201, 41, 0, 0, 123, 255,
     91, 91, 91, 0, 255, 73, 255, 0, 255, 35, 192, 0},
    {51, 0, 255, 200, 128, 12, 251, 252, 250, 0, 0, 0, 30, 200, 34, 255, 255, 255, 83, 32, 128, 66, 180, 17,
     90, 90, 90, 254, 178, 1, 40, 204, 220, 140, 5, 50},
    {255, 0, 0, 12, 200, 90, 250, 251, 252, 0, 0, 0, 30, 60, 200, 255, 255, 255, 139, 24, 0, 17, 99, 180,
     90, 90, 90, 1, 254, 127, 200, 40, 220, 77, 140, 5},
    {76, 76, 76, 131, 131, 131, 250, 250, 250, 0, 0, 0, 66, 66, 66, 254, 254, 254, 79, 79, 79, 83, 83, 83,
     89, 89, 89, 163, 163, 163, 108, 108, 108, 105, 105, 105},
    {172, 70, 70, 75, 150, 106, 170, 170, 171, 70, 70, 70, 82, 94, 150, 172, 172, 172, 121, 95, 83, 77, 109,
     142, 106, 106, 106, 70, 171, 121, 150, 86, 158, 101, 126, 72},
};
/* clang-format on */

/* Write to `out` what the i-th of golden does. `in` may change. */
static void run_golden(const struct pstk__tensor_kernels *k, uint32_t i,
                       const struct pstk__picture *out, const struct pstk__picture *in)
{
    struct pstk__colour_table table;
    if (i == 0)
        pstk__tensor_saturation(k, in, 2.5);
    else if (i == 1)
        pstk__tensor_hue(k, in, -0.3);
    pstk__tensor_table_contrast(&table, pstk__tensor_mean(k, in), 0.4);
    for (uint64_t b = 0; b < pstk__picture_size(in); b++)
        out->pixels[b] = i == 4 ? table.to[0][in->pixels[b]] : in->pixels[b];
    if (i == 2)
        pstk__tensor_sharpness(k, out, in, 1.7);
    else if (i == 3)
        pstk__tensor_grayscale(k, out->pixels, 3, in->pixels, 3, WIDTH * HEIGHT);
}

TEST(colours_are_torchvisions)
{
    struct pstk__picture in, out;
    CHECK(picture_open(&in, WIDTH, HEIGHT, 3) == 0 && picture_open(&out, WIDTH, HEIGHT, 3) == 0);
    int n_bad = 0;
    EACH_ISA(k)
    {
        for (uint32_t i = 0; i < 5; i++) {
            memcpy(in.pixels, colours, SIZE);
            run_golden(k, i, &out, &in);
            n_bad += memcmp(out.pixels, golden[i], SIZE) != 0;
        }
    }
    picture_close(&in);
    picture_close(&out);
    CHECK_EQ(n_bad, 0);
}

/* Three pictures of one shape, and memory for the blur. */
struct bench {
    struct pstk__picture in, out, want;
    void *scratch;
};

static int bench_open(struct bench *b, const uint32_t size[2], uint32_t channels)
{
    const uint32_t width = 3 + draw(150), height = 3 + draw(40);
    b->scratch = aligned_alloc(64, (size_t)(pstk__tensor_blur_scratch(size, width, channels) + 63) &
                                       ~(size_t)63);
    const int bad = picture_open(&b->in, width, height, channels) < 0 ||
                    picture_open(&b->out, width, height, channels) < 0 ||
                    picture_open(&b->want, width, height, channels) < 0 || b->scratch == NULL;
    for (uint64_t i = 0; !bad && i < pstk__picture_size(&b->in); i++)
        b->in.pixels[i] = (uint8_t)draw(256);
    return bad ? -1 : 0;
}

static void bench_close(struct bench *b)
{
    picture_close(&b->in);
    picture_close(&b->out);
    picture_close(&b->want);
    free(b->scratch);
}

TEST(every_isa_gives_the_bytes_of_plain_c)
{
    static const uint32_t channels[3] = {1, 3, 4};
    for (uint32_t i = 0; i < 300; i += test_stride(4, 4)) {
        struct bench b;
        const struct pstk__blur_params params = {{3, 1 + 2 * draw(3)}, {0.1 + draw_unit(), 1.5}};
        CHECK_EQ(bench_open(&b, params.size, channels[i % 3]), 0);
        const double m[8] = {
            1 + draw_unit(),  draw_unit() - 0.5,  draw(9),           draw_unit() - 0.5, 1,
            -(double)draw(9), draw_unit() * 1e-3, draw_unit() * 1e-3};
        const double factor = draw_unit() * 3;
        const uint8_t fill[4] = {1, 2, 200, 4};
        int n_bad = 0;
        for (uint32_t what = 0; what < 8; what++)
            EACH_ISA(k)
            {
                const struct pstk__picture *to = k_v == PSTK_KERNELS_C ? &b.want : &b.out;
                const struct pstk__tensor_warp warp = {m, what == 2, what > 0,
                                                       what == 3 ? fill : NULL};
                memcpy(to->pixels, b.in.pixels, pstk__picture_size(&b.in));
                if (what < 4)
                    pstk__tensor_warp(k, to, &b.in, &warp);
                else if (what == 4 && params.size[1] / 2 < b.in.height)
                    pstk__tensor_blur(k, to, &b.in, &params, b.scratch);
                else if (what == 5 && b.in.channels < 4)
                    pstk__tensor_sharpness(k, to, &b.in, factor);
                else if (what == 6)
                    pstk__tensor_saturation(k, to, factor);
                else if (what == 7)
                    pstk__tensor_hue(k, to, factor / 3 - 0.5);
                n_bad += to == &b.out &&
                         memcmp(b.out.pixels, b.want.pixels, pstk__picture_size(&b.in)) != 0;
            }
        bench_close(&b);
        CHECK_EQ(n_bad, 0);
    }
}

TEST(operations_without_a_tensor_reference_are_refused)
{
    struct pstk_op ops[2] = {pstk_resize(20, 30), pstk_box_blur(2)};
    struct pstk_error err;
    struct pstk__view view = {.channels = 3, .dtype = PSTK_U8};
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__ops_check(ops, 2, &view, &err), 0);
    for (int i = 0; i < 2; i++)
        ops[i].flags = PSTK_OP_TENSOR;
    view = (struct pstk__view){.channels = 3, .dtype = PSTK_U8};
    CHECK_EQ(pstk__ops_check(ops, 2, &view, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "ops[1] (box blur): this operation has no tensor reference") != NULL);
    ops[1] = pstk_adjust(PSTK_OP_HUE, 0.1);
    ops[1].flags = PSTK_OP_TENSOR;
    view = (struct pstk__view){.channels = 4, .dtype = PSTK_U8};
    CHECK_EQ(pstk__ops_check(ops, 2, &view, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "takes 1 or 3 channels") != NULL);
    ops[1].flags = 8;
    CHECK_EQ(pstk__ops_check(ops, 2, &view, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "flags") != NULL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_product_and_a_sum_round_once),
        CASE(colours_are_torchvisions),
        CASE(every_isa_gives_the_bytes_of_plain_c),
        CASE(operations_without_a_tensor_reference_are_refused),
    };
    return RUN_CASES(cases);
}
