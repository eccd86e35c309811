/* SPDX-License-Identifier: Apache-2.0 */
/* Crops and flips pushed down: which of them, and where to. That pixels stay the same is a fact of
 * tests/sample/test_sample_ops.c. */
#include "augment/pushdown.h"

#include "support/test.h"

#define WIDTH 100u
#define HEIGHT 80u
#define MAX_OPS 8

/* The result for a list of ops. */
struct pushed {
    struct pstk__geometry g;
    struct pstk_op ops[PSTK__PUSHDOWN_ROOM(MAX_OPS)];
    uint32_t n;
};

static struct pushed push_down(const struct pstk_op *ops, uint32_t n)
{
    struct pushed pushed;
    pstk__geometry_init(&pushed.g, WIDTH, HEIGHT);
    pushed.n = pstk__ops_push_down(&pushed.g, 3, pushed.ops, ops, n);
    return pushed;
}

static void check_rectangle(const struct pstk__geometry *g, int64_t left, int64_t top,
                            uint32_t width, uint32_t height)
{
    CHECK_EQ(g->crop_left, left);
    CHECK_EQ(g->crop_top, top);
    CHECK_EQ(g->crop_width, width);
    CHECK_EQ(g->crop_height, height);
}

static void check_crop(const struct pstk_op *op, double left, double top, uint32_t width,
                       uint32_t height)
{
    CHECK_EQ(op->kind, PSTK_OP_CROP);
    CHECK(op->params.crop.left == left && op->params.crop.top == top);
    CHECK_EQ(op->width, width);
    CHECK_EQ(op->height, height);
}

static struct pstk_op iou_crop(uint32_t left, uint32_t top, uint32_t width, uint32_t height)
{
    struct pstk_op op = {.kind = PSTK_DRAWN_IOU_CROP, .width = width, .height = height};
    op.params.iou_crop = (struct pstk_crop_params){.top = top, .left = left};
    return op;
}

TEST(a_crop_inside_comes_before_colours)
{
    const struct pstk_op ops[] = {pstk_adjust(PSTK_OP_BRIGHTNESS, 2),
                                  pstk_adjust(PSTK_OP_SATURATION, 2), pstk_grayscale(3),
                                  pstk_crop_at(7, 5, 30, 40), pstk_adjust(PSTK_OP_HUE, 0.1)};
    const struct pushed pushed = push_down(ops, 5);
    check_rectangle(&pushed.g, 5, 7, 40, 30);
    CHECK_EQ(pushed.n, 4);
    CHECK_EQ(pushed.ops[0].kind, PSTK_OP_BRIGHTNESS);
    CHECK_EQ(pushed.ops[2].kind, PSTK_OP_GRAYSCALE);
    CHECK_EQ(pushed.ops[3].kind, PSTK_OP_HUE);
}

/* The recipe of SSD: 20 of 60 pixels are padding on the left, after the flip on the right. */
TEST(only_the_part_that_a_zoomed_crop_shows_is_decoded)
{
    struct pstk_op ops[] = {pstk_adjust(PSTK_OP_HUE, 0.1), pstk_crop_at(-50, -70, 240, 300),
                            iou_crop(50, 60, 60, 40), pstk_flip_horizontal(), pstk_resize(30, 30)};
    ops[1].fill[0] = 123;
    const struct pushed pushed = push_down(ops, 5);
    check_rectangle(&pushed.g, 0, 10, 40, 40);
    CHECK_EQ(pushed.g.flip, 1);
    CHECK_EQ(pushed.n, 3);
    CHECK_EQ(pushed.ops[0].kind, PSTK_OP_HUE);
    check_crop(&pushed.ops[1], 0, 0, 60, 40);
    CHECK_EQ(pushed.ops[1].fill[0], 123);
    CHECK_EQ(pushed.ops[2].kind, PSTK_OP_RESIZE);
}

/* Contrast looks at the whole picture; a crop after it may still come before later colours. */
TEST(nothing_comes_before_an_op_that_looks_at_the_whole_picture)
{
    const uint32_t kinds[] = {PSTK_OP_CONTRAST, PSTK_OP_EQUALIZE, PSTK_OP_SHARPNESS};
    for (int i = 0; i < 3; i++) {
        const struct pstk_op ops[] = {pstk_adjust(kinds[i], 2), pstk_adjust(PSTK_OP_HUE, 0.1),
                                      pstk_crop_at(7, 5, 30, 40), pstk_flip_vertical()};
        const struct pushed pushed = push_down(ops, 4);
        check_rectangle(&pushed.g, 0, 0, WIDTH, HEIGHT);
        CHECK_EQ(pushed.n, 4);
        CHECK_EQ(pushed.ops[0].kind, kinds[i]);
        check_crop(&pushed.ops[1], 5, 7, 40, 30);
        CHECK_EQ(pushed.ops[2].kind, PSTK_OP_FLIP_VERTICAL);
        CHECK_EQ(pushed.ops[3].kind, PSTK_OP_HUE);
    }
}

/* The padding is inverted, too. */
TEST(padding_stays_before_colours_that_follow_it)
{
    const struct pstk_op ops[] = {pstk_crop_at(-1, -2, HEIGHT, WIDTH),
                                  pstk_adjust(PSTK_OP_INVERT, 0), pstk_crop_at(0, 0, 10, 20)};
    const struct pushed pushed = push_down(ops, 3);
    check_rectangle(&pushed.g, 0, 0, WIDTH - 2, HEIGHT - 1);
    CHECK_EQ(pushed.n, 3);
    check_crop(&pushed.ops[0], -2, -1, WIDTH, HEIGHT);
    check_crop(&pushed.ops[1], 0, 0, 20, 10);
    CHECK_EQ(pushed.ops[2].kind, PSTK_OP_INVERT);
}

/* The second crop shows columns again that the first removed: they are padding. */
TEST(columns_removed_by_a_crop_are_padding_in_the_next_crop)
{
    const struct pstk_op ops[] = {pstk_crop_at(0, 20, HEIGHT, 50),
                                  pstk_crop_at(0, -10, HEIGHT, 60)};
    const struct pushed pushed = push_down(ops, 2);
    check_rectangle(&pushed.g, 20, 0, 50, HEIGHT);
    CHECK_EQ(pushed.n, 1);
    check_crop(&pushed.ops[0], -10, 0, 60, HEIGHT);
}

/* Mirrored edges are made of the picture, and a crop beside it shows none of it. */
TEST(other_padding_stays_where_it_is)
{
    const struct pstk_op ops[] = {pstk_pad(3, 3, 3, 3, PSTK_PAD_REFLECT),
                                  pstk_crop_at(0, 2 * WIDTH, 9, 9), pstk_crop_at(1, 1, 5, 5)};
    const struct pushed pushed = push_down(ops, 3);
    check_rectangle(&pushed.g, 0, 0, WIDTH, HEIGHT);
    CHECK_EQ(pushed.n, 3);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pushed.ops[i].kind, ops[i].kind);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_crop_inside_comes_before_colours),
        CASE(only_the_part_that_a_zoomed_crop_shows_is_decoded),
        CASE(nothing_comes_before_an_op_that_looks_at_the_whole_picture),
        CASE(padding_stays_before_colours_that_follow_it),
        CASE(columns_removed_by_a_crop_are_padding_in_the_next_crop),
        CASE(other_padding_stays_where_it_is),
    };
    return RUN_CASES(cases);
}
