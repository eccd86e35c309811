/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that fit images into a size, and those that resize or place them at random. */
#include "augment/sampled_ops.h"
#include "support/test.h"

#include <math.h>

#define N_DRAWS 100000
#define N_BINS 20

/* Draw for an image of this size. Returns the result of pstk__ops_draw. */
static int draw(const struct pstk_op *ops, uint32_t n, uint32_t width, uint32_t height, uint64_t id,
                struct pstk__sampled_ops *sampled)
{
    static struct pstk_op drawn[8];
    *sampled = (struct pstk__sampled_ops){
        .ops = drawn, .view = {.width = width, .height = height, .channels = 3}};
    return pstk__ops_draw(sampled, ops, 0, n,
                          (struct pstk__random_key){.seed = 3, .sample_id = id});
}

/* As torchvision 0.29's _compute_resized_output_size(size, None, max_size, True), and 1 for 0. */
TEST(the_longer_side_is_exact_and_the_shorter_one_cut_down)
{
    static const uint32_t wanted[][5] = {
        {500, 375, 256, 256, 192}, {375, 500, 256, 192, 256},   {333, 500, 1024, 681, 1024},
        {640, 427, 640, 640, 427}, {65535, 7, 100, 100, 1},     {3, 7, 2, 1, 2},
        {5, 5, 9, 9, 9},           {1, 65535, 65535, 1, 65535}, {7, 3, 65535, 65535, 28086},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const uint32_t *w = wanted[i];
        const struct pstk_op op = pstk_resize_longest(w[2]);
        struct pstk__sampled_ops sampled;
        CHECK_EQ(draw(&op, 1, w[0], w[1], 0, &sampled), 0);
        CHECK(sampled.n == 1 && sampled.ops[0].kind == PSTK_OP_RESIZE);
        CHECK_EQ(sampled.ops[0].width, w[3]);
        CHECK_EQ(sampled.ops[0].height, w[4]);
    }
}

/* As Pillow 12.1's ImageOps.pad, and 1 for 0. */
TEST(a_letterbox_resizes_to_fit_and_pads_on_both_sides)
{
    static const int32_t wanted[][8] = {
        /* image, box, resized, left, top */
        {500, 375, 640, 640, 640, 480, 0, -80},
        {375, 500, 640, 640, 480, 640, -80, 0},
        {640, 427, 416, 416, 416, 278, 0, -69},
        {8, 8, 5, 5, 5, 5, 0, 0},
        {30, 10, 9, 8, 9, 3, 0, -2},
        {4, 9, 10, 9, 4, 9, -3, 0},
        {4, 9, 9, 9, 4, 9, -2, 0},
        {1000, 1, 10, 10, 10, 1, 0, -4},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const int32_t *w = wanted[i];
        for (uint32_t position = 0; position < 2; position++) {
            const struct pstk_op op = pstk_letterbox((uint32_t)w[3], (uint32_t)w[2], position);
            struct pstk__sampled_ops sampled;
            CHECK_EQ(draw(&op, 1, (uint32_t)w[0], (uint32_t)w[1], 0, &sampled), 0);
            CHECK_EQ(sampled.n, 2);
            CHECK_EQ(sampled.ops[0].width, w[4]);
            CHECK_EQ(sampled.ops[0].height, w[5]);
            CHECK(sampled.ops[1].params.crop.left == (position == PSTK_POSITION_CENTER ? w[6] : 0));
            CHECK(sampled.ops[1].params.crop.top == (position == PSTK_POSITION_CENTER ? w[7] : 0));
        }
    }
}

TEST(padding_puts_the_smaller_half_first)
{
    const struct pstk_op middle = pstk_pad_to_size(10, 20, PSTK_POSITION_CENTER);
    const struct pstk_op corner = pstk_pad_to_size(10, 20, PSTK_POSITION_TOP_LEFT);
    struct pstk__sampled_ops sampled;
    CHECK_EQ(draw(&middle, 1, 7, 7, 0, &sampled), 0);
    CHECK(sampled.ops[0].params.crop.top == -1 && sampled.ops[0].params.crop.left == -6);
    CHECK_EQ(draw(&corner, 1, 7, 7, 0, &sampled), 0);
    CHECK(sampled.ops[0].params.crop.top == 0 && sampled.ops[0].params.crop.left == 0);
    CHECK_EQ(draw(&middle, 1, 20, 10, 0, &sampled), 0);
    CHECK_EQ(draw(&middle, 1, 21, 10, 0, &sampled), PSTK_EINVAL);
    CHECK_EQ(draw(&corner, 1, 20, 11, 0, &sampled), PSTK_EINVAL);
}

TEST(corners_are_those_of_torchvision)
{
    static const int32_t wanted[5][2] = {{0, 0}, {0, 9}, {3, 0}, {3, 9}, {2, 4}}; /* top, left */
    for (uint32_t corner = 0; corner < 5; corner++) {
        const struct pstk_op op = pstk_corner_crop(4, 6, corner);
        struct pstk__sampled_ops sampled;
        CHECK_EQ(draw(&op, 1, 15, 7, 0, &sampled), 0);
        CHECK(sampled.ops[0].params.crop.top == wanted[corner][0]);
        CHECK(sampled.ops[0].params.crop.left == wanted[corner][1]);
        CHECK_EQ(draw(&op, 1, 5, 7, 0, &sampled), PSTK_EINVAL);
    }
}

static uint32_t one_to(struct pstk__random *r, uint32_t most)
{
    return 1 + (uint32_t)pstk__random_below(r, most);
}

/* One of the resizes that keep the aspect ratio. */
static struct pstk_op any_resize(struct pstk__random *r)
{
    const uint32_t a = one_to(r, 300), b = one_to(r, 300), c = one_to(r, 300);
    switch (pstk__random_below(r, 5)) {
    case 0:
        return pstk_resize_longest(a);
    case 1:
        return pstk_letterbox(a, b, 0);
    case 2:
        return pstk_scale_jitter(a, b, 0.01 * one_to(r, 100), 1.0 + one_to(r, 3));
    case 3:
        return pstk_random_shortest_size((uint32_t[3]){a, b, c}, 3, c % 3 ? one_to(r, 600) : 65535);
    default:
        return pstk_random_resize(a, a + b);
    }
}

TEST(no_image_is_resized_by_more_than_the_bounds_say_nor_to_more_than_the_largest)
{
    for (uint64_t i = 0; i < 50000; i++) {
        struct pstk__random r;
        pstk__random_init(&r, &(struct pstk__random_key){.seed = 5, .sample_id = i});
        const uint32_t width = one_to(&r, i % 2 ? 3000 : 40),
                       height = one_to(&r, i % 3 ? 3000 : 40);
        const struct pstk_op op = any_resize(&r);
        struct pstk__resize_bounds b = {.max_in_width = width + one_to(&r, 100),
                                        .max_in_height = height + one_to(&r, 100)};
        const struct pstk__view whole = {.width = width, .height = height, .channels = 3};
        const struct pstk__view after = pstk__op_view(&op, &whole);
        const struct pstk__largest before = {width, height, (uint64_t)width * height};
        const struct pstk__largest most = pstk__op_largest(&op, &after, before);
        struct pstk__sampled_ops sampled;
        const int rc = draw(&op, 1, width, height, i, &sampled);
        if (rc == PSTK_EFBIG)
            continue;
        const struct pstk__view view =
            pstk__op_view(&sampled.ops[0], &whole); /* after the resize alone */
        pstk__ops_bound(&op, 1, &b);
        CHECK_EQ(rc, 0);
        CHECK((uint64_t)width * b.min_out_width <= (uint64_t)b.max_in_width * view.width);
        CHECK((uint64_t)height * b.min_out_height <= (uint64_t)b.max_in_height * view.height);
        if (op.kind == PSTK_OP_RANDOM_RESIZE &&
            (view.width > most.width || view.height > most.height))
            continue; /* refused where it is a picture */
        CHECK(view.width <= most.width && view.height <= most.height);
        CHECK((uint64_t)view.width * view.height <= most.n_pixels);
    }
}

/* Return chi-square of counts that should be equal. 19 degrees of freedom: 50 is passed once in
 * 8000 trials. */
static double unevenness(const uint32_t *counts, uint32_t n)
{
    double sum = 0;
    const double wanted = (double)N_DRAWS / n;
    for (uint32_t i = 0; i < n; i++)
        sum += (counts[i] - wanted) * (counts[i] - wanted) / wanted;
    return sum;
}

/* The scale of 3000 x 1500 pixels in 1000 x 500, of which a pixel is a 1000th. */
TEST(a_scale_jitter_draws_scales_uniformly)
{
    const struct pstk_op op = pstk_scale_jitter(1000, 1000, 0.1, 2.1);
    uint32_t counts[N_BINS] = {0};
    for (uint64_t i = 0; i < N_DRAWS; i++) {
        struct pstk__sampled_ops sampled;
        CHECK_EQ(draw(&op, 1, 3000, 1500, i, &sampled), 0);
        const struct pstk_op *resize = &sampled.ops[0];
        CHECK(resize->width >= 100 && resize->width < 2100 && resize->width / 2 == resize->height);
        counts[(resize->width - 100) / 100]++;
    }
    CHECK(unevenness(counts, N_BINS) < 50);
}

/* torchvision takes the width of the target for the height of the image. */
TEST(a_scale_jitter_fits_as_torchvisions)
{
    const struct pstk_op op = pstk_scale_jitter(100, 200, 1, 1);
    struct pstk__sampled_ops sampled;
    CHECK_EQ(draw(&op, 1, 50, 400, 0, &sampled), 0);
    CHECK(sampled.ops[0].width == 25 && sampled.ops[0].height == 200);
    CHECK_EQ(draw(&op, 1, 400, 50, 0, &sampled), 0);
    CHECK(sampled.ops[0].width == 100 && sampled.ops[0].height == 12);
}

TEST(a_random_shortest_size_draws_each_length_alike)
{
    static const uint32_t sides[] = {480, 512, 544, 576, 608, 640, 672, 704, 736, 768, 800};
    const struct pstk_op op = pstk_random_shortest_size(sides, 11, 0);
    uint32_t counts[11] = {0};
    for (uint64_t i = 0; i < N_DRAWS; i++) {
        struct pstk__sampled_ops sampled;
        CHECK_EQ(draw(&op, 1, 800, 400, i, &sampled), 0);
        const struct pstk_op *resize = &sampled.ops[0];
        CHECK(resize->height % 32 == 0 && resize->width == 2 * resize->height);
        counts[(resize->height - 480) / 32]++;
    }
    CHECK(unevenness(counts, 11) < 36); /* 10 degrees of freedom: once in 10000 trials */
}

/* If a product of doubles is just below a whole number, it is cut down, as in Python. */
TEST(a_random_shortest_size_is_cut_down_as_torchvisions)
{
    static const uint32_t wanted[][6] = {
        {500, 333, 800, 1333, 1201, 800},
        {640, 200, 800, 1333, 1333, 416},
        {7, 49, 100, 0, 100, 700},
        {3, 1000, 5, 1000, 3, 1000},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const uint32_t *w = wanted[i];
        const struct pstk_op op = pstk_random_shortest_size(&w[2], 1, w[3]);
        const double factor = w[3] > 0 ? fmin((double)w[2] / (w[0] < w[1] ? w[0] : w[1]),
                                              (double)w[3] / (w[0] < w[1] ? w[1] : w[0]))
                                       : (double)w[2] / (w[0] < w[1] ? w[0] : w[1]);
        struct pstk__sampled_ops sampled;
        CHECK_EQ(draw(&op, 1, w[0], w[1], 0, &sampled), 0);
        CHECK_EQ(sampled.ops[0].width, (uint32_t)(w[0] * factor));
        CHECK_EQ(sampled.ops[0].height, (uint32_t)(w[1] * factor));
        CHECK(sampled.ops[0].width + 1 >= w[4] && sampled.ops[0].width <= w[4]);
        CHECK(sampled.ops[0].height + 1 >= w[5] && sampled.ops[0].height <= w[5]);
    }
}

TEST(a_picture_that_would_become_too_long_is_an_error_of_its_sample)
{
    const struct pstk_op op = pstk_random_shortest_size((const uint32_t[1]){10}, 1, 0);
    struct pstk__sampled_ops sampled;
    CHECK_EQ(draw(&op, 1, 160, 10, 0, &sampled), 0);
    CHECK_EQ(draw(&op, 1, 161, 10, 0, &sampled), PSTK_EFBIG);
    const struct pstk_op zoom = pstk_random_zoom_out(16, 16, 1), zooms[2] = {zoom, zoom};
    CHECK_EQ(draw(zooms, 2, 4096, 10, 0, &sampled), 0);
    CHECK_EQ(sampled.view.width, PSTK__MAX_PICTURE_SIDE);
    CHECK_EQ(draw(zooms, 2, 4097, 10, 0, &sampled), PSTK_EFBIG);
}

TEST(a_random_resize_draws_each_length_below_its_end)
{
    const struct pstk_op op = pstk_random_resize(30, 50);
    uint32_t counts[N_BINS] = {0};
    for (uint64_t i = 0; i < N_DRAWS; i++) {
        struct pstk__sampled_ops sampled;
        CHECK_EQ(draw(&op, 1, 400, 300, i, &sampled), 0);
        CHECK(sampled.ops[0].kind == PSTK_OP_RESIZE_SHORTER);
        CHECK(sampled.ops[0].width >= 30 && sampled.ops[0].width < 50);
        counts[sampled.ops[0].width - 30]++;
    }
    CHECK(unevenness(counts, N_BINS) < 50);
}

/* The side of the canvas, and where the image lies in the room that is left. */
TEST(a_zoom_out_draws_sides_and_places_uniformly)
{
    const struct pstk_op op = pstk_random_zoom_out(1.5, 3.5, 1);
    uint32_t sides[N_BINS] = {0}, left[N_BINS] = {0}, top[N_BINS] = {0};
    for (uint64_t i = 0; i < N_DRAWS; i++) {
        struct pstk__sampled_ops sampled;
        CHECK_EQ(draw(&op, 1, 60000, 30000, i, &sampled), 0);
        const struct pstk_op *crop = &sampled.ops[0];
        CHECK(crop->width >= 90000 && crop->width < 210000 && crop->width / 2 == crop->height);
        const double x = -crop->params.crop.left / (crop->width - 60000);
        const double y = -crop->params.crop.top / (crop->height - 30000);
        CHECK(x >= 0 && x < 1 && y >= 0 && y < 1);
        sides[(crop->width - 90000) / 6000]++;
        left[(uint32_t)(x * N_BINS)]++;
        top[(uint32_t)(y * N_BINS)]++;
    }
    CHECK(unevenness(sides, N_BINS) < 50);
    CHECK(unevenness(left, N_BINS) < 50);
    CHECK(unevenness(top, N_BINS) < 50);
}

TEST(zooming_out_comes_as_often_as_its_probability_says)
{
    const double p[] = {0.0, 0.3, 0.5, 1.0};
    for (int k = 0; k < 4; k++) {
        const struct pstk_op op = pstk_random_zoom_out(1, 4, p[k]);
        uint32_t n = 0;
        for (uint64_t i = 0; i < 20000; i++) {
            struct pstk__sampled_ops sampled;
            CHECK_EQ(draw(&op, 1, 40, 30, i, &sampled), 0);
            n += sampled.n;
        }
        CHECK(fabs(n - 20000 * p[k]) <= 5 * sqrt(20000 * p[k] * (1 - p[k])));
    }
}

TEST(rows_come_as_they_are_decoded_where_they_can)
{
    const struct pstk_op longest = pstk_resize_longest(9), pad = pstk_pad_to_size(9, 9, 0);
    const struct pstk_op crop = pstk_center_crop(8, 8), corner = pstk_corner_crop(8, 8, 1);
    const struct pstk_op jitter = pstk_scale_jitter(9, 9, 0.1, 2), flip = pstk_random_flip(1);
    const struct pstk_op zoom = pstk_random_zoom_out(1, 4, 1), resize = pstk_resize(8, 8);
    const struct pstk_op gray = pstk_grayscale(3);
    struct pstk_op box = pstk_letterbox(9, 9, 0), part = pstk_random_crop(9, 9, 0);
    part.params.random_crop.pad_if_needed = 1;
    box.fill[0] = part.fill[0] = 114;
    const struct {
        struct pstk_op ops[4];
        uint32_t n, prefix;
    } list[] = {
        {{longest, pad, flip}, 3, 3}, {{gray, longest, pad}, 3, 3}, {{longest, pad, resize}, 3, 2},
        {{box, flip, crop}, 3, 3},    {{crop, box}, 2, 1},          {{box, box}, 2, 1},
        {{jitter, part, flip}, 3, 3}, {{jitter, corner}, 2, 2},     {{flip, corner}, 2, 2},
        {{box, gray}, 2, 1},          {{box, corner, flip}, 3, 3},  {{zoom, flip, resize}, 3, 2},
        {{crop, zoom, resize}, 3, 1}, {{crop, pad}, 2, 1},          {{resize, flip, corner}, 3, 3},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct pstk__view view = {.channels = 3, .dtype = PSTK_U8};
        CHECK_EQ(pstk__ops_check(list[i].ops, list[i].n, &view, NULL), 0);
        CHECK_EQ(pstk__ops_prefix(list[i].ops, list[i].n), list[i].prefix);
    }
}

static void check_refused(const struct pstk_op *ops, uint32_t n, const char *says)
{
    struct pstk_error err;
    struct pstk__view view = {.channels = 3, .dtype = PSTK_U8};
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__ops_check(ops, n, &view, &err), PSTK_EINVAL);
    if (strstr(err.message, says) == NULL)
        printf("# %s\n", err.message);
    CHECK(strstr(err.message, says) != NULL);
}

TEST(wrong_operations_are_refused)
{
    struct pstk_op longest = pstk_resize_longest(9), shortest = pstk_random_resize(8, 9);
    struct pstk_op gap = pstk_random_shortest_size((const uint32_t[2]){9, 9}, 2, 70000);
    struct pstk_op turn = pstk_random_rotation(0, 9, 0), far = turn, has = turn;
    struct pstk_op warp = {.kind = PSTK_OP_RANDOM_AFFINE}, flags, unflagged;
    warp.params.random_affine.min_scale = warp.params.random_affine.max_scale = 1;
    flags = unflagged = warp;
    longest.height = 9;
    shortest.params.random_resize.min_side = 8.5;
    turn.params.random_rotation.expand = 2;
    far.params.random_rotation.center[1] = NAN;
    has.params.random_rotation.has_center = 7;
    flags.flags = 4;
    unflagged.params.random_affine.center[0] = 4;
    const struct {
        struct pstk_op op;
        const char *says;
    } list[] = {
        {longest, "(resize longest): height: value is 9; must be 0"},
        {pstk_resize_longest(0), "side (width): value is 0; must be from 1"},
        {pstk_pad_to_size(8, 8, 2), "(pad to size): position: value is 2; must be 0 or 1"},
        {pstk_pad_to_size(0, 8, 0), "height: value is 0"},
        {pstk_letterbox(8, 8, 3), "(letterbox): position: value is 3"},
        {pstk_corner_crop(8, 8, 5), "(corner crop): corner: value is 5; must be from 0 to 4"},
        {pstk_scale_jitter(8, 8, 0, 1), "(scale jitter): scale: value is (0, 1); must be"},
        {pstk_scale_jitter(60000, 8, 1, 2), "to 1.09225, where 60000 pixels become 65535"},
        {pstk_scale_jitter(8, 8, 1, NAN), "scale: value is (1, nan)"},
        {pstk_random_zoom_out(0.5, 1, 1), "(random zoom out): sides: value is (0.5, 1); must be"},
        {pstk_random_zoom_out(1, 17, 1), "sides: value is (1, 17)"},
        {pstk_random_zoom_out(1, 4, 2), "probability: value is 2"},
        {pstk_random_shortest_size(NULL, 0, 0), "(random shortest size): sides: value is empty"},
        {gap, "longest (width): value is 70000; must be 0, or at most 65535"},
        {shortest, "(random resize): min_side: value is 8.5; must be a whole"},
        {pstk_random_resize(9, 9), "end_side: value is 9; must be above min_side, 9"},
        {turn, "(random rotation): expand: value is 2; must be 0 or 1"},
        {has, "has_center: value is 7; must be 0 or 1"},
        {far, "center: value is (0, nan)"},
        {flags, "(random affine): flags: value is 0x4; must be 0 or PSTK_OP_HAS_CENTER"},
        {unflagged, "params.values[10]: value is 4; must be 0, because it is not used"},
        {pstk_random_resize(8, 9), "ops do not fix the size"},
        {pstk_random_zoom_out(1, 4, 1), "ops do not fix the size"},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        check_refused(&list[i].op, 1, list[i].says);
    const struct pstk_op resize = pstk_resize(10, 8);
    check_refused((struct pstk_op[2]){resize, pstk_pad_to_size(9, 9, 0)}, 2,
                  "padding to 9 x 9 pixels: the image has 10 x 8 there; must not be larger");
    check_refused((struct pstk_op[2]){resize, pstk_corner_crop(9, 9, 0)}, 2,
                  "a corner crop of 9 x 9 pixels: the image has 10 x 8 there; must not be smaller");
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(the_longer_side_is_exact_and_the_shorter_one_cut_down),
        CASE(a_letterbox_resizes_to_fit_and_pads_on_both_sides),
        CASE(padding_puts_the_smaller_half_first),
        CASE(corners_are_those_of_torchvision),
        CASE(no_image_is_resized_by_more_than_the_bounds_say_nor_to_more_than_the_largest),
        CASE(a_scale_jitter_draws_scales_uniformly),
        CASE(a_scale_jitter_fits_as_torchvisions),
        CASE(a_random_shortest_size_draws_each_length_alike),
        CASE(a_random_shortest_size_is_cut_down_as_torchvisions),
        CASE(a_picture_that_would_become_too_long_is_an_error_of_its_sample),
        CASE(a_random_resize_draws_each_length_below_its_end),
        CASE(a_zoom_out_draws_sides_and_places_uniformly),
        CASE(zooming_out_comes_as_often_as_its_probability_says),
        CASE(rows_come_as_they_are_decoded_where_they_can),
        CASE(wrong_operations_are_refused),
    };
    return RUN_CASES(cases);
}
