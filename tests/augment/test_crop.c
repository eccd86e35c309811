/* SPDX-License-Identifier: Apache-2.0 */
/* Crops, padding and flips against loops over single pixels. */
#include "augment/sampled_ops.h"
#include "support/test.h"

#include <penstock/ops.h>
#include <stdlib.h>

#define MOST 90u /* pixels of a side, padded */

struct grid {
    struct pstk_shape shape;
    uint8_t pixels[MOST * MOST * 4];
};

static uint32_t state = 1;

static uint32_t below(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * n >> 32);
}

static void fill_random(struct grid *g)
{
    static const uint32_t channels[] = {1, 3, 4};
    g->shape = (struct pstk_shape){
        .height = 1 + below(20), .width = 1 + below(20), .channels = channels[below(3)]};
    for (uint32_t i = 0; i < g->shape.height * g->shape.width * g->shape.channels; i++)
        g->pixels[i] = (uint8_t)below(256);
}

/* The place that a pad shows at i of n pixels, step by step; -1: the fill. */
static int64_t naive_source(int64_t i, int64_t n, uint32_t mode)
{
    while (i < 0 || i >= n) {
        if (mode == PSTK_PAD_CONSTANT)
            return -1;
        if (mode == PSTK_PAD_EDGE || n == 1)
            return i < 0 ? 0 : n - 1;
        if (mode == PSTK_PAD_REFLECT)
            i = i < 0 ? -i : 2 * (n - 1) - i;
        else
            i = i < 0 ? -1 - i : 2 * n - 1 - i;
    }
    return i;
}

/* Pixels from (left, top) on, of a picture padded without end. */
static void naive_part(struct grid *g, int64_t left, int64_t top, uint32_t width, uint32_t height,
                       uint32_t mode, const uint8_t fill[4])
{
    static struct grid from;
    const uint32_t size = g->shape.channels;
    from = *g;
    g->shape.width = width;
    g->shape.height = height;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            const int64_t sx = naive_source(x + left, from.shape.width, mode);
            const int64_t sy = naive_source(y + top, from.shape.height, mode);
            memcpy(g->pixels + (y * width + x) * size,
                   sx < 0 || sy < 0 ? fill
                                    : from.pixels + ((size_t)sy * from.shape.width + sx) * size,
                   size);
        }
}

static void apply(struct grid *g, const struct pstk_op *op)
{
    static struct grid from;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    from = *g;
    const int rc =
        pstk_op_apply(op, PSTK_KERNELS_AUTO, from.pixels, &from.shape, g->pixels, &g->shape, &err);
    if (rc < 0)
        printf("# %s\n", err.message);
    CHECK_EQ(rc, 0);
}

static int same(const struct grid *a, const struct grid *b)
{
    return memcmp(&a->shape, &b->shape, sizeof a->shape) == 0 &&
           memcmp(a->pixels, b->pixels,
                  (size_t)a->shape.height * a->shape.width * a->shape.channels) == 0;
}

static void set_fill(struct pstk_op *op)
{
    for (int c = 0; c < 4; c++)
        op->fill[c] = (uint8_t)below(256);
}

TEST(crops_cut_and_pad_with_the_fill)
{
    static struct grid ours, naive;
    for (int i = 0; i < 3000; i++) {
        fill_random(&ours);
        naive = ours;
        struct pstk_op op = pstk_crop_at((int32_t)below(60) - 30, (int32_t)below(60) - 30,
                                         1 + below(30), 1 + below(30));
        set_fill(&op);
        naive_part(&naive, (int64_t)op.params.crop.left, (int64_t)op.params.crop.top, op.width,
                   op.height, PSTK_PAD_CONSTANT, op.fill);
        apply(&ours, &op);
        CHECK(same(&ours, &naive));
    }
}

TEST(pads_of_every_mode)
{
    static struct grid ours, naive;
    for (int i = 0; i < 3000; i++) {
        const uint32_t l = below(30), t = below(30), r = below(30), b = below(30);
        fill_random(&ours);
        naive = ours;
        struct pstk_op op = pstk_pad(l, t, r, b, below(4));
        set_fill(&op);
        naive_part(&naive, -(int64_t)l, -(int64_t)t, ours.shape.width + l + r,
                   ours.shape.height + t + b, (uint32_t)op.params.pad.mode, op.fill);
        apply(&ours, &op);
        CHECK(same(&ours, &naive));
    }
}

TEST(vertical_flips_turn_rows_over)
{
    static struct grid ours, from;
    const struct pstk_op op = pstk_flip_vertical();
    for (int i = 0; i < 100; i++) {
        fill_random(&ours);
        from = ours;
        apply(&ours, &op);
        const size_t stride = (size_t)from.shape.width * from.shape.channels;
        for (uint32_t y = 0; y < from.shape.height; y++)
            CHECK(memcmp(ours.pixels + y * stride,
                         from.pixels + (from.shape.height - 1 - y) * stride, stride) == 0);
    }
}

static int draw(const struct pstk_op *op, const struct pstk_shape *shape, uint64_t sample_id,
                struct pstk_op drawn[4], struct pstk_error *err)
{
    const struct pstk_draw by = {.size = sizeof by, .seed = 3, .sample_id = sample_id};
    pstk_error_init(err, sizeof *err);
    return pstk_ops_draw(op, 1, shape, &by, drawn, 4, err);
}

/* torchvision's forward, with the draws of the op: padded, padded again where it is too small, then
 * cut. */
static void naive_random_crop(struct grid *g, const struct pstk_op *op, uint64_t sample_id)
{
    const struct pstk_random_crop_params *p = &op->params.random_crop;
    const uint32_t mode = (uint32_t)p->mode;
    struct pstk__random r;
    pstk__random_init(&r, &(struct pstk__random_key){.seed = 3, .sample_id = sample_id});
    naive_part(g, -(int64_t)p->left, -(int64_t)p->top,
               g->shape.width + (uint32_t)(p->left + p->right),
               g->shape.height + (uint32_t)(p->top + p->bottom), mode, op->fill);
    if (g->shape.width < op->width)
        naive_part(g, (int64_t)g->shape.width - op->width, 0, 2 * op->width - g->shape.width,
                   g->shape.height, mode, op->fill);
    if (g->shape.height < op->height)
        naive_part(g, 0, (int64_t)g->shape.height - op->height, g->shape.width,
                   2 * op->height - g->shape.height, mode, op->fill);
    const uint64_t top = pstk__random_below(&r, g->shape.height - op->height + 1);
    const uint64_t left = pstk__random_below(&r, g->shape.width - op->width + 1);
    naive_part(g, (int64_t)left, (int64_t)top, op->width, op->height, mode, op->fill);
}

TEST(random_crops_pad_and_cut_as_torchvision)
{
    static struct grid ours, naive;
    for (uint64_t id = 0; id < 3000; id++) {
        struct pstk_op drawn[4], op = pstk_random_crop(1 + below(25), 1 + below(25), 0);
        struct pstk_error err;
        fill_random(&ours);
        naive = ours;
        set_fill(&op);
        for (int i = 0; i < 4; i++) /* left, top, right, bottom */
            op.params.values[i] = below(2) ? below(5) : 0;
        op.params.random_crop.pad_if_needed = 1;
        op.params.random_crop.mode = below(4);
        const int n = draw(&op, &ours.shape, id, drawn, &err);
        CHECK(n >= 1 && n <= (int)pstk__ops_max(&op, 1));
        for (int i = 0; i < n; i++)
            apply(&ours, &drawn[i]);
        naive_random_crop(&naive, &op, id);
        CHECK(same(&ours, &naive));
    }
}

TEST(random_crops_reach_every_offset_equally)
{
    const struct pstk_shape shape = {.height = 6, .width = 8, .channels = 3};
    const struct pstk_op op = pstk_random_crop(5, 4, 1);
    struct pstk_op drawn[4];
    struct pstk_error err;
    int seen[4][7] = {{0}};
    for (uint64_t id = 0; id < 28000; id++) {
        CHECK_EQ(draw(&op, &shape, id, drawn, &err), 1);
        const int top = (int)drawn[0].params.crop.top + 1,
                  left = (int)drawn[0].params.crop.left + 1;
        CHECK(top >= 0 && top < 4 && left >= 0 && left < 7);
        seen[top][left]++;
    }
    for (int i = 0; i < 28; i++)
        CHECK(seen[i / 7][i % 7] > 840 && seen[i / 7][i % 7] < 1160); /* 5 deviations */
}

TEST(a_random_crop_that_does_not_fit_is_an_error)
{
    const struct pstk_shape shape = {.height = 6, .width = 8, .channels = 3};
    struct pstk_op drawn[4], op = pstk_random_crop(9, 8, 1);
    struct pstk_error err;
    CHECK_EQ(draw(&op, &shape, 0, drawn, &err), PSTK_EINVAL);
    CHECK(
        strstr(err.message, "crop of 9 x 8 pixels does not fit into the image, which has 8 x 10"));
    op.params.random_crop.pad_if_needed = 1;
    CHECK_EQ(draw(&op, &shape, 0, drawn, &err), 1);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(crops_cut_and_pad_with_the_fill),
        CASE(pads_of_every_mode),
        CASE(vertical_flips_turn_rows_over),
        CASE(random_crops_pad_and_cut_as_torchvision),
        CASE(random_crops_reach_every_offset_equally),
        CASE(a_random_crop_that_does_not_fit_is_an_error),
    };
    return RUN_CASES(cases);
}
