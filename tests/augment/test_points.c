/* SPDX-License-Identifier: Apache-2.0 */
/* Points and boxes move as pixels do: the oracle is the centre of a square in an image that
 * pstk_op_apply changes. */
#include "augment/boxes.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 61u
#define HEIGHT 47u
#define MOST 256u /* pixels of a side */

/* 1: ops of this kind are in no drawing, but draw other ops, which move points. */
static int draws_others(uint32_t kind)
{
    return kind == PSTK_OP_RESIZE_LONGEST || kind == PSTK_OP_PAD_TO_SIZE ||
           kind == PSTK_OP_LETTERBOX || kind == PSTK_OP_CORNER_CROP;
}

TEST(every_fixed_operation_that_changes_sizes_or_places_moves_points)
{
    for (uint32_t kind = 0; kind < 1000; kind++) {
        const struct pstk__op_entry *entry = pstk__op_entry(kind);
        if (draws_others(kind))
            continue;
        const uint32_t geometric = PSTK__RESIZES | PSTK__CROPS | PSTK__FLIPS;
        if (entry && entry->change && (entry->size || entry->effects & geometric) && !entry->move)
            printf("# %s lacks move\n", entry->name);
        CHECK(!entry || !entry->change || !(entry->size || entry->effects & geometric) ||
              entry->move);
    }
}

/* The centre of what is bright. */
static struct pstk__point centre_of(const uint8_t *pixels, const struct pstk_shape *shape)
{
    double x = 0, y = 0, sum = 0;
    for (uint32_t i = 0; i < shape->height * shape->width; i++) {
        x += (i % shape->width + 0.5) * pixels[i];
        y += ((double)(i / shape->width) + 0.5) * pixels[i];
        sum += pixels[i];
    }
    return (struct pstk__point){x / sum, y / sum};
}

/* A square of 7 x 7 pixels, applied and moved. */
static void check_op(const struct pstk_op *op, uint32_t left, uint32_t top)
{
    static uint8_t pixels[WIDTH * HEIGHT], out[MOST * MOST];
    const struct pstk_shape shape = {.height = HEIGHT, .width = WIDTH, .channels = 1};
    const struct pstk__view view = {.height = HEIGHT, .width = WIDTH, .channels = 1};
    struct pstk__point point = {left + 3.5, top + 3.5};
    struct pstk_shape out_shape;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    memset(pixels, 0, sizeof pixels);
    for (uint32_t y = top; y < top + 7; y++)
        memset(pixels + y * WIDTH + left, 200, 7);
    CHECK_EQ(pstk_op_apply(op, 0, pixels, &shape, NULL, &out_shape, &err), 0);
    CHECK((uint64_t)out_shape.width * out_shape.height <= sizeof out);
    CHECK_EQ(pstk_op_apply(op, 0, pixels, &shape, out, &out_shape, &err), 0);
    const struct pstk__point centre = centre_of(out, &out_shape);
    pstk__op_entry(op->kind)->move(op, &view, &point, 1);
    if (!(fabs(point.x - centre.x) < 0.5 && fabs(point.y - centre.y) < 0.5))
        printf("# kind %u: (%g, %g), pixels (%g, %g)\n", op->kind, point.x, point.y, centre.x,
               centre.y);
    CHECK(fabs(point.x - centre.x) < 0.5 && fabs(point.y - centre.y) < 0.5);
}

TEST(points_move_with_pixels)
{
    double affine[6], perspective[8];
    const double nowhere[2] = {3, -2}, shear[2] = {8, -4}, centre[2] = {30, 20};
    const double start[8] = {0, 0, 60, 0, 60, 46, 0, 46}, end[8] = {5, 3, 55, 1, 58, 40, 2, 44};
    CHECK_EQ(pstk_affine_matrix(affine, 20, nowhere, 1.1, shear, centre), 0);
    CHECK_EQ(pstk_perspective_matrix(perspective, start, end), 0);
    struct pstk_op warp = {.kind = PSTK_OP_PERSPECTIVE};
    memcpy(warp.params.perspective.matrix, perspective, sizeof perspective);
    struct pstk_op inside = {.kind = PSTK_DRAWN_IOU_CROP, .width = 50, .height = 40};
    inside.params.iou_crop = (struct pstk_crop_params){.top = 4, .left = 8};
    const struct pstk_op list[] = {
        pstk_resize(90, 30),
        pstk_resize_shorter(70),
        pstk_resized_crop(5, 7, 40, 50, 33, 80),
        pstk_center_crop(40, 52),
        pstk_center_crop(70, 80),
        pstk_crop_at(-3, 4, 60, 55),
        pstk_pad(3, 5, 7, 9, 0),
        pstk_flip_horizontal(),
        pstk_flip_vertical(),
        pstk_affine(affine, 0),
        warp,
        pstk_rotate(25, PSTK_FILTER_BILINEAR, 0),
        pstk_rotate(25, PSTK_FILTER_BILINEAR, 1),
        pstk_rotate(90, 0, 1),
        pstk_rotate(180, 0, 0),
        pstk_rotate(270, 0, 1),
        inside,
    };
    for (uint32_t i = 0; i < sizeof list / sizeof list[0]; i++)
        for (uint32_t k = 0; k < 4; k++)
            check_op(&list[i], 14 + k * 8, 16 + k * 3);
}

TEST(points_beyond_a_horizon_go_nowhere_and_their_boxes_are_dropped)
{
    const struct pstk_op flat = pstk_affine((const double[6]){1, 1, 0, 1, 1, 0}, 0);
    struct pstk_op far = {.kind = PSTK_OP_PERSPECTIVE};
    far.params.perspective = (struct pstk_perspective_params){{1, 0, 0, 0, 1, 0, 0.05, 0}};
    const struct pstk__view view = {.height = HEIGHT, .width = WIDTH, .channels = 1};
    struct pstk__point point = {10, 10};
    pstk__op_entry(flat.kind)->move(&flat, &view, &point, 1);
    CHECK(isnan(point.x) && isnan(point.y));
    point = (struct pstk__point){21, 10}; /* x / (1 + 0.05 x) is below 20 */
    pstk__op_entry(far.kind)->move(&far, &view, &point, 1);
    CHECK(isnan(point.x) && isnan(point.y));
    struct pstk__moved_box box = {.whole = {{5, 5}, {25, 15}}};
    struct pstk__boxes boxes = {.boxes = &box, .n = 1};
    pstk__boxes_begin(&boxes, WIDTH, HEIGHT);
    CHECK(!box.is_dropped);
    pstk__boxes_move(&boxes, &far, &view);
    CHECK(box.is_dropped);
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(every_fixed_operation_that_changes_sizes_or_places_moves_points),
        CASE(points_move_with_pixels),
        CASE(points_beyond_a_horizon_go_nowhere_and_their_boxes_are_dropped),
    };
    return RUN_CASES(cases);
}
