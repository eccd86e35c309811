/* SPDX-License-Identifier: Apache-2.0 */
/* pillow_blur.py compares with Pillow and torchvision; this test knows the results. */
#include "base/kernels.h"
#include "pixels/blur.h"
#include "support/picture.h"
#include "support/test.h"

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

/* Over every ISA that this CPU runs. */
#define EACH_ISA(k)                                                                                \
    for (uint32_t k##_v = PSTK_KERNELS_C; k##_v <= PSTK_KERNELS_NEON; k##_v++)                     \
        for (const struct pstk__blur_kernels *k = pstk__blur_kernels(k##_v); k; k = NULL)

/* Two pictures of one shape, and memory for the blur. */
struct bench {
    struct pstk__picture in, out, want;
    void *scratch;
};

static int bench_open(struct bench *b, uint32_t width, uint32_t height, uint32_t channels)
{
    b->scratch = malloc(pstk__blur_scratch(width, height, channels));
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

static int same(const struct pstk__picture *a, const struct pstk__picture *b)
{
    return memcmp(a->pixels, b->pixels, pstk__picture_size(a)) == 0;
}

TEST(every_isa_gives_the_bytes_of_plain_c)
{
    static const uint32_t channels[3] = {1, 3, 4};
    for (uint32_t i = 0; i < 600; i += test_stride(4, 4)) {
        struct bench b;
        const uint32_t width = 1 + draw(150), height = 1 + draw(60);
        CHECK_EQ(bench_open(&b, width, height, channels[i % 3]), 0);
        const float radius[2] = {(float)draw(90) / 10, (float)draw(200) / 10};
        const struct pstk__blur_params params = {
            {2 * draw(width < 30 ? width : 30) + 1, 2 * draw(height < 30 ? height : 30) + 1},
            {0.1 + draw(100) / 20.0, 0.1 + draw(100) / 20.0}};
        int n_bad = 0;
        for (uint32_t boxes = 0; boxes < 2; boxes++) {
            EACH_ISA(k)
            {
                const struct pstk__picture *to = k_v == PSTK_KERNELS_C ? &b.want : &b.out;
                if (boxes)
                    pstk__blur_box_gaussian(k, to, &b.in, radius, b.scratch);
                else
                    pstk__blur_gaussian(k, to, &b.in, &params, b.scratch);
                n_bad += to == &b.out && !same(&b.out, &b.want);
            }
        }
        bench_close(&b);
        CHECK_EQ(n_bad, 0);
    }
}

TEST(one_colour_stays)
{
    for (uint32_t colour = 0; colour < 256; colour++) {
        struct bench b;
        CHECK_EQ(bench_open(&b, 40, 30, 3), 0);
        memset(b.in.pixels, (int)colour, pstk__picture_size(&b.in));
        const float radius[2] = {0.1f + (float)colour / 10, 2};
        const struct pstk__blur_params params = {{23, 9}, {0.1 + colour / 50.0, 3}};
        int n_bad = 0;
        EACH_ISA(k)
        {
            pstk__blur_box_gaussian(k, &b.out, &b.in, radius, b.scratch);
            n_bad += !same(&b.out, &b.in);
            pstk__blur_gaussian(k, &b.out, &b.in, &params, b.scratch);
            n_bad += !same(&b.out, &b.in);
        }
        bench_close(&b);
        CHECK_EQ(n_bad, 0);
    }
}

TEST(no_radius_and_a_kernel_of_one_copy)
{
    struct bench b;
    CHECK_EQ(bench_open(&b, 33, 21, 4), 0);
    int n_bad = 0;
    EACH_ISA(k)
    {
        pstk__blur_box_gaussian(k, &b.out, &b.in, (const float[2]){0, 0}, b.scratch);
        n_bad += !same(&b.out, &b.in);
        memset(b.out.pixels, 0, pstk__picture_size(&b.out));
        pstk__blur_gaussian(k, &b.out, &b.in, &(struct pstk__blur_params){{1, 1}, {2, 2}},
                            b.scratch);
        n_bad += !same(&b.out, &b.in);
    }
    bench_close(&b);
    CHECK_EQ(n_bad, 0);
}

TEST(half_is_rounded_to_the_even_number)
{
    /* With this sigma three weights are 1/4, 1/2, 1/4: between v and v + 1 each output is v + 1/2.
     * Mirrored, the edge sees its neighbour twice. */
    const struct pstk__blur_params params = {{3, 1}, {0.84932180028801907, 1}};
    for (uint32_t v = 0; v < 255; v++) {
        struct bench b;
        CHECK_EQ(bench_open(&b, 64, 3, 1), 0);
        for (uint32_t i = 0; i < 64 * 3; i++)
            b.in.pixels[i] = (uint8_t)(v + i % 2);
        memset(b.want.pixels, (int)(v + v % 2), pstk__picture_size(&b.want));
        int n_bad = 0;
        EACH_ISA(k)
        {
            pstk__blur_gaussian(k, &b.out, &b.in, &params, b.scratch);
            n_bad += !same(&b.out, &b.want);
        }
        bench_close(&b);
        CHECK_EQ(n_bad, 0);
    }
}

TEST(the_isa_asked_for_is_the_one_given)
{
    CHECK(pstk__blur_kernels(PSTK_KERNELS_AUTO) != NULL);
    CHECK(pstk__blur_kernels(PSTK_KERNELS_C) != NULL);
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++) {
        const struct pstk__blur_kernels *k = pstk__blur_kernels(v);
        const uint32_t made = v == PSTK_KERNELS_NEON ? PSTK_KERNELS_C : v; /* none for NEON */
        CHECK((k != NULL) == pstk__kernels_run(v) && (!k || k->isa == made));
    }
    CHECK(pstk__blur_kernels(99) == NULL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(every_isa_gives_the_bytes_of_plain_c), CASE(one_colour_stays),
        CASE(no_radius_and_a_kernel_of_one_copy),   CASE(half_is_rounded_to_the_even_number),
        CASE(the_isa_asked_for_is_the_one_given),
    };
    return RUN_CASES(cases);
}
