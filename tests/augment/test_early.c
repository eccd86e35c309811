/* SPDX-License-Identifier: Apache-2.0 */
/* Crops and flips done early: which of them, and where to. That pixels stay the same is a fact of
 * tests/sample/test_sample_ops.c. */
#include "augment/early.h"

#include "support/test.h"

#define WIDTH 100u
#define HEIGHT 80u
#define MAX_OPS 8

/* What a list becomes. */
struct early {
    struct pstk__geometry g;
    struct pstk_op ops[PSTK__EARLY_ROOM(MAX_OPS)];
    uint32_t n;
};

static struct early early_of(const struct pstk_op *ops, uint32_t n)
{
    struct early e;
    pstk__geometry_init(&e.g, WIDTH, HEIGHT);
    e.n = pstk__ops_early(&e.g, 3, e.ops, ops, n);
    return e;
}

static void check_window(const struct pstk__geometry *g, int64_t left, int64_t top, uint32_t width,
                         uint32_t height)
{
    CHECK_EQ(g->window_left, left);
    CHECK_EQ(g->window_top, top);
    CHECK_EQ(g->window_width, width);
    CHECK_EQ(g->window_height, height);
}

static void check_crop(const struct pstk_op *op, double left, double top, uint32_t width,
                       uint32_t height)
{
    CHECK_EQ(op->kind, PSTK_OP_CROP);
    CHECK(op->params[1] == left && op->params[0] == top);
    CHECK_EQ(op->width, width);
    CHECK_EQ(op->height, height);
}

static struct pstk_op iou_crop(uint32_t left, uint32_t top, uint32_t width, uint32_t height)
{
    return (struct pstk_op){
        .kind = PSTK_OP_IOU_CROP, .width = width, .height = height, .params = {top, left}};
}

TEST(a_crop_inside_comes_before_colours)
{
    const struct pstk_op ops[] = {pstk_adjust(PSTK_OP_BRIGHTNESS, 2),
                                  pstk_adjust(PSTK_OP_SATURATION, 2), pstk_grayscale(3),
                                  pstk_crop_at(7, 5, 30, 40), pstk_adjust(PSTK_OP_HUE, 0.1)};
    const struct early e = early_of(ops, 5);
    check_window(&e.g, 5, 7, 40, 30);
    CHECK_EQ(e.n, 4);
    CHECK_EQ(e.ops[0].kind, PSTK_OP_BRIGHTNESS);
    CHECK_EQ(e.ops[2].kind, PSTK_OP_GRAYSCALE);
    CHECK_EQ(e.ops[3].kind, PSTK_OP_HUE);
}

/* The recipe of SSD: 20 of 60 pixels are padding on the left, after the flip on the right. */
TEST(only_the_part_that_a_zoomed_crop_shows_is_decoded)
{
    struct pstk_op ops[] = {pstk_adjust(PSTK_OP_HUE, 0.1), pstk_crop_at(-50, -70, 240, 300),
                            iou_crop(50, 60, 60, 40), pstk_flip_horizontal(), pstk_resize(30, 30)};
    ops[1].fill[0] = 123;
    const struct early e = early_of(ops, 5);
    check_window(&e.g, 0, 10, 40, 40);
    CHECK_EQ(e.g.flip, 1);
    CHECK_EQ(e.n, 3);
    CHECK_EQ(e.ops[0].kind, PSTK_OP_HUE);
    check_crop(&e.ops[1], 0, 0, 60, 40);
    CHECK_EQ(e.ops[1].fill[0], 123);
    CHECK_EQ(e.ops[2].kind, PSTK_OP_RESIZE);
}

/* Contrast looks at the whole picture; a crop after it may still come before later colours. */
TEST(nothing_comes_before_an_op_that_looks_at_the_whole_picture)
{
    const uint32_t kinds[] = {PSTK_OP_CONTRAST, PSTK_OP_EQUALIZE, PSTK_OP_SHARPNESS};
    for (int i = 0; i < 3; i++) {
        const struct pstk_op ops[] = {pstk_adjust(kinds[i], 2), pstk_adjust(PSTK_OP_HUE, 0.1),
                                      pstk_crop_at(7, 5, 30, 40), pstk_flip_vertical()};
        const struct early e = early_of(ops, 4);
        check_window(&e.g, 0, 0, WIDTH, HEIGHT);
        CHECK_EQ(e.n, 4);
        CHECK_EQ(e.ops[0].kind, kinds[i]);
        check_crop(&e.ops[1], 5, 7, 40, 30);
        CHECK_EQ(e.ops[2].kind, PSTK_OP_FLIP_VERTICAL);
        CHECK_EQ(e.ops[3].kind, PSTK_OP_HUE);
    }
}

/* The padding is inverted, too. */
TEST(padding_stays_before_colours_that_follow_it)
{
    const struct pstk_op ops[] = {pstk_crop_at(-1, -2, HEIGHT, WIDTH),
                                  pstk_adjust(PSTK_OP_INVERT, 0), pstk_crop_at(0, 0, 10, 20)};
    const struct early e = early_of(ops, 3);
    check_window(&e.g, 0, 0, WIDTH - 2, HEIGHT - 1);
    CHECK_EQ(e.n, 3);
    check_crop(&e.ops[0], -2, -1, WIDTH, HEIGHT);
    check_crop(&e.ops[1], 0, 0, 20, 10);
    CHECK_EQ(e.ops[2].kind, PSTK_OP_INVERT);
}

/* The second crop shows columns again that the first removed: they are padding. */
TEST(what_a_crop_removed_is_not_seen_again)
{
    const struct pstk_op ops[] = {pstk_crop_at(0, 20, HEIGHT, 50),
                                  pstk_crop_at(0, -10, HEIGHT, 60)};
    const struct early e = early_of(ops, 2);
    check_window(&e.g, 20, 0, 50, HEIGHT);
    CHECK_EQ(e.n, 1);
    check_crop(&e.ops[0], -10, 0, 60, HEIGHT);
}

/* Mirrored edges are made of the picture, and a window beside it shows none of it. */
TEST(other_padding_stays_where_it_is)
{
    const struct pstk_op ops[] = {pstk_pad(3, 3, 3, 3, PSTK_PAD_REFLECT),
                                  pstk_crop_at(0, 2 * WIDTH, 9, 9), pstk_crop_at(1, 1, 5, 5)};
    const struct early e = early_of(ops, 3);
    check_window(&e.g, 0, 0, WIDTH, HEIGHT);
    CHECK_EQ(e.n, 3);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(e.ops[i].kind, ops[i].kind);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_crop_inside_comes_before_colours),
        CASE(only_the_part_that_a_zoomed_crop_shows_is_decoded),
        CASE(nothing_comes_before_an_op_that_looks_at_the_whole_picture),
        CASE(padding_stays_before_colours_that_follow_it),
        CASE(what_a_crop_removed_is_not_seen_again),
        CASE(other_padding_stays_where_it_is),
    };
    return RUN_CASES(cases);
}
