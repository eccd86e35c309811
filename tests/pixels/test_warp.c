/* SPDX-License-Identifier: Apache-2.0 */
/* pillow_warp.py compares the plain C kernels with Pillow; this test compares the ISAs. */
#include "base/cpu.h"
#include "base/kernels.h"
#include "pixels/warp.h"
#include "support/picture.h"
#include "support/test.h"

#include <math.h>

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

static double draw_within(double lo, double hi)
{
    return lo + (hi - lo) * (draw(1u << 30) / (double)(1u << 30));
}

/* Over every ISA that this CPU runs. */
#define EACH_ISA(k)                                                                                \
    for (uint32_t k##_v = PSTK_KERNELS_C; k##_v <= PSTK_KERNELS_NEON; k##_v++)                     \
        for (const struct pstk__warp_kernels *k = pstk__warp_kernels(k##_v); k; k = NULL)

static const uint8_t fill[4] = {11, 22, 33, 44};

static uint32_t draw_side(void)
{
    const uint32_t most[4] = {2, 9, 70, 200};
    return 1 + draw(most[draw(4)]);
}

static int picture_draw(struct pstk__picture *picture, uint32_t width, uint32_t height,
                        uint32_t channels)
{
    if (picture_open(picture, width, height, channels) < 0)
        return -1;
    for (uint64_t i = 0; i < pstk__picture_size(picture); i++)
        picture->pixels[i] = (uint8_t)draw(256);
    return 0;
}

/* Turns, whole numbers, and numbers that are large or none; m[6] and m[7] bend a little. */
static void draw_matrix(double m[8], uint32_t width, uint32_t height)
{
    static const double large[5] = {40000, 1e7, 1e12, INFINITY, NAN};
    const uint32_t kind = draw(8);
    const double angle = draw_within(0, 7), scale = draw_within(0.3, 2);
    m[0] = m[4] = scale * cos(angle);
    m[1] = scale * sin(angle);
    m[3] = -m[1];
    m[2] = width / 2.0 - (m[0] + m[1]) * width / 2.0;
    m[5] = height / 2.0 - (m[3] + m[4]) * height / 2.0;
    m[6] = draw_within(-1, 1) / (width + height);
    m[7] = draw_within(-1, 1) / (width + height);
    for (uint32_t i = 0; i < 6 && kind == 1; i++)
        m[i] = ((int)draw(17) - 8) / 4.0;
    if (kind == 2)
        m[draw(8)] = large[draw(5)];
    if (kind == 3) {
        m[0] *= draw_within(0.5, 3);
        m[1] = m[2] = m[3] = 0;
    }
}

/* ---- ISAs ------------------------------------------------------------------------------ */

struct job {
    const struct pstk__picture *in;
    uint32_t perspective, filter;
    double m[8];
};

/* Transform a copy of the input. */
static int warp(const struct job *job, const struct pstk__warp_kernels *kernels,
                const struct pstk__picture *out)
{
    struct pstk__picture copy;
    const struct pstk__picture *in = job->in;
    if (picture_open(&copy, in->width, in->height, in->channels) < 0)
        return -1;
    memcpy(copy.pixels, in->pixels, pstk__picture_size(in));
    if (job->perspective)
        pstk__warp_perspective(kernels, out, &copy, job->m, job->filter, fill);
    else
        pstk__warp_affine(kernels, out, &copy, job->m, job->filter, fill);
    picture_close(&copy);
    return 0;
}

/* Return whether every ISA gives the same bytes, and writes none outside of the picture but the
 * padding. */
static int isas_agree(const struct job *job, uint32_t width, uint32_t height)
{
    struct pstk__picture want, out;
    const uint32_t channels = job->in->channels;
    int agree = picture_open(&want, width, height, channels) == 0 &&
                warp(job, pstk__warp_kernels(PSTK_KERNELS_C), &want) == 0;
    EACH_ISA(k)
    {
        agree = agree && picture_open(&out, width, height, channels) == 0 &&
                warp(job, k, &out) == 0 &&
                memcmp(out.pixels, want.pixels, pstk__picture_size(&out)) == 0;
        picture_close(&out);
    }
    picture_close(&want);
    return agree;
}

TEST(every_isa_gives_the_bytes_of_plain_c)
{
    static const uint32_t channels[4] = {1, 3, 4, 2};
    for (uint32_t i = 0; i < 2000; i += test_stride(4, 4)) {
        struct pstk__picture in;
        const uint32_t width = draw_side(), height = draw_side(), filter = draw(3);
        const uint32_t n_kinds = filter == PSTK__WARP_NEAREST ? 4 : 3;
        CHECK_EQ(picture_draw(&in, width, height, channels[draw(n_kinds)]), 0);
        struct job job = {.in = &in, .perspective = draw(2), .filter = filter};
        draw_matrix(job.m, width, height);
        const int agree =
            draw(2) ? isas_agree(&job, width, height) : isas_agree(&job, draw_side(), draw_side());
        picture_close(&in);
        CHECK(agree);
    }
}

/* ---- nearest ------------------------------------------------------------------------------- */

static int32_t fixed(double v)
{
    return (int32_t)floor(v * 65536 + 0.5);
}

/* Pillow's affine_fixed as it is written there, with pixels of any size. */
static void naive_nearest(uint8_t *out, const struct pstk__picture *in, uint32_t width,
                          uint32_t height, const double m[6])
{
    const uint32_t size = in->channels;
    uint32_t x_row = (uint32_t)fixed(m[2] + m[0] * 0.5 + m[1] * 0.5);
    uint32_t y_row = (uint32_t)fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
    for (uint32_t row = 0; row < height; row++) {
        uint32_t x = x_row, y = y_row;
        for (uint32_t column = 0; column < width; column++, out += size) {
            const int64_t left = (int32_t)x >> 16, top = (int32_t)y >> 16;
            const int inside = left >= 0 && left < in->width && top >= 0 && top < in->height;
            memcpy(out, inside ? in->pixels + (uint64_t)(top * in->width + left) * size : fill,
                   size);
            x += (uint32_t)fixed(m[0]);
            y += (uint32_t)fixed(m[3]);
        }
        x_row += (uint32_t)fixed(m[1]);
        y_row += (uint32_t)fixed(m[4]);
    }
}

TEST(nearest_takes_pixels_of_one_to_four_bytes)
{
    for (uint32_t i = 0; i < 2000; i += test_stride(4, 4)) {
        const uint32_t size = 1 + i % 4, width = draw_side(), height = draw_side();
        struct pstk__picture in, out, want;
        CHECK(picture_draw(&in, draw_side(), draw_side(), size) == 0 &&
              picture_open(&out, width, height, size) == 0 &&
              picture_open(&want, width, height, size) == 0);
        double m[6];
        for (uint32_t c = 0; c < 6; c++)
            m[c] = draw_within(-2, 2) * (c % 3 == 2 ? in.width : 1);
        naive_nearest(want.pixels, &in, width, height, m);
        int n_bad = 0;
        EACH_ISA(k)
        {
            memset(out.pixels, 0xee, pstk__picture_size(&out));
            pstk__warp_affine(k, &out, &in, m, PSTK__WARP_NEAREST, fill);
            n_bad += memcmp(out.pixels, want.pixels, pstk__picture_size(&out)) != 0;
        }
        picture_close(&in);
        picture_close(&out);
        picture_close(&want);
        CHECK_EQ(n_bad, 0);
    }
}

#define N_GATHERED 100u

/* Inputs that rise by equal steps, at most to the last pixel, or the same in reverse order. */
static void draw_inputs(uint32_t input[N_GATHERED], uint32_t n, uint32_t width)
{
    const double step = draw_within(0, (width - 1.0) / N_GATHERED);
    const uint32_t falls = draw(4) == 0;
    for (uint32_t i = 0; i < n; i++)
        input[i] = (uint32_t)((falls ? n - 1 - i : i) * step);
}

TEST(a_gather_takes_near_and_far_pixels_up_to_the_last)
{
    for (uint32_t i = 0; i < 20000; i += test_stride(4, 4)) {
        const uint32_t size = 1 + i % 4, n = 1 + draw(N_GATHERED), width = 1 + draw(1000);
        struct pstk__picture in, out;
        uint32_t input[N_GATHERED];
        CHECK(picture_draw(&in, width, 1, size) == 0 && picture_open(&out, n, 1, size) == 0);
        draw_inputs(input, n, width);
        int n_bad = 0;
        EACH_ISA(k)
        {
            k->gather(out.pixels, in.pixels, input, n, size);
            for (uint32_t at = 0; at < n; at++)
                n_bad += memcmp(out.pixels + (size_t)at * size,
                                in.pixels + (size_t)input[at] * size, size) != 0;
        }
        picture_close(&in);
        picture_close(&out);
        CHECK_EQ(n_bad, 0);
    }
}

TEST(the_isa_asked_for_is_the_one_given)
{
    CHECK(pstk__warp_kernels(PSTK_KERNELS_AUTO) != NULL);
    CHECK(pstk__warp_kernels(PSTK_KERNELS_C) != NULL);
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++) {
        const struct pstk__warp_kernels *k = pstk__warp_kernels(v);
        const uint32_t made = v == PSTK_KERNELS_NEON ? PSTK_KERNELS_C : v; /* none for NEON */
        CHECK((k != NULL) == pstk__kernels_run(v) && (!k || k->isa == made));
    }
    CHECK(pstk__warp_kernels(99) == NULL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(every_isa_gives_the_bytes_of_plain_c),
        CASE(nearest_takes_pixels_of_one_to_four_bytes),
        CASE(a_gather_takes_near_and_far_pixels_up_to_the_last),
        CASE(the_isa_asked_for_is_the_one_given),
    };
    return RUN_CASES(cases);
}
