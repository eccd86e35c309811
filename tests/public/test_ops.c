/* SPDX-License-Identifier: Apache-2.0 */
/* ops: the functions of ops.h, as a program sees them that has the shared library and the public
 * headers, and nothing else. */
#include "support/test.h"

#include <penstock/penstock.h>

TEST(operations_are_plain_data)
{
    struct pstk_op crop = pstk_random_resized_crop(224, 160);
    CHECK_EQ(crop.kind, PSTK_OP_RANDOM_RESIZED_CROP);
    CHECK(crop.height == 224 && crop.width == 160 && crop.flags == 0);
    CHECK(crop.params.random_resized_crop.min_scale == 0.08 &&
          crop.params.random_resized_crop.max_scale == 1);
    CHECK(crop.params.random_resized_crop.min_ratio == 3.0 / 4 &&
          crop.params.random_resized_crop.max_ratio == 4.0 / 3);
    crop = pstk_random_resized_crop_range(8, 9, 0.2, 0.3, 0.5, 2);
    CHECK(crop.height == 8 && crop.width == 9 && crop.params.random_resized_crop.min_scale == 0.2 &&
          crop.params.random_resized_crop.max_ratio == 2);
    struct pstk_op resize = pstk_resize(3, 4);
    CHECK(resize.kind == PSTK_OP_RESIZE && resize.height == 3 && resize.width == 4);
    resize = pstk_resize_shorter(256);
    CHECK(resize.kind == PSTK_OP_RESIZE_SHORTER && resize.width == 256);
    CHECK(resize.params.resize_shorter.longest == 0 &&
          pstk_resize_shorter_max(256, 400).params.resize_shorter.longest == 400);
    struct pstk_op center = pstk_center_crop(5, 7);
    CHECK(center.kind == PSTK_OP_CENTER_CROP && center.height == 5 && center.width == 7);
    struct pstk_op flip = pstk_random_flip(0.25);
    CHECK(flip.kind == PSTK_OP_RANDOM_FLIP && flip.params.random_flip.probability == 0.25);
    struct pstk_op normalize = pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD);
    CHECK_EQ(normalize.kind, PSTK_OP_NORMALIZE);
    CHECK((float)normalize.params.normalize.mean[0] == 0.485f &&
          (float)normalize.params.normalize.deviation[2] == 0.225f);
    const float four[4] = {0.1f, 0.2f, 0.3f, 0.4f};
    normalize = pstk_normalize_channels(4, four, four);
    CHECK(normalize.kind == PSTK_OP_NORMALIZE && normalize.channels == 4);
    CHECK((float)normalize.params.normalize.mean[3] == 0.4f &&
          (float)normalize.params.normalize.deviation[0] == 0.1f);
    const struct pstk_op gray = pstk_grayscale(3);
    CHECK(gray.kind == PSTK_OP_GRAYSCALE && gray.channels == 3 && gray.params.values[0] == 0);
    CHECK_EQ(pstk_flip_horizontal().kind, PSTK_OP_FLIP_HORIZONTAL);
    CHECK_EQ(pstk_flip_vertical().kind, PSTK_OP_FLIP_VERTICAL);
    CHECK(pstk_random_vertical_flip(0.25).params.random_vertical_flip.probability == 0.25);
    const struct pstk_op cut = pstk_crop_at(-1, 2, 3, 4), pad = pstk_pad(1, 2, 3, 4, PSTK_PAD_EDGE);
    CHECK(cut.params.crop.top == -1 && cut.params.crop.left == 2 && cut.height == 3 &&
          cut.width == 4);
    CHECK(pad.params.pad.left == 1 && pad.params.pad.bottom == 4 &&
          pad.params.pad.mode == PSTK_PAD_EDGE);
    crop = pstk_random_crop(3, 4, 2);
    CHECK(crop.height == 3 && crop.width == 4 && crop.params.random_crop.left == 2 &&
          crop.params.random_crop.bottom == 2);
    CHECK(pstk_random_erasing(0.5, 2).params.random_erasing.value[3] == 2);
    CHECK(pstk_random_iou_crop().params.random_iou_crop.trials == 40 &&
          pstk_random_iou_crop().params.random_iou_crop.options[6] == 1);
    CHECK(pstk_erase(1, 2, 3, 4, 0.5).params.erase.value[0] == 0.5);
    CHECK(pstk_adjust(PSTK_OP_HUE, 0.25).params.hue.hue == 0.25);
    const struct pstk_op jitter = pstk_color_jitter(0.4, 2, 0, 0.1);
    CHECK(jitter.params.color_jitter.min_brightness == 0.6 &&
          jitter.params.color_jitter.max_brightness == 1.4 &&
          jitter.params.color_jitter.min_contrast == 0);
    CHECK(jitter.params.color_jitter.max_contrast == 3 &&
          jitter.params.color_jitter.max_saturation == 1 &&
          jitter.params.color_jitter.min_hue == -0.1);
    CHECK(pstk_random_apply(&gray, 1, 0.2).params.random_apply.probability == 0.2);
    CHECK(pstk_random_choice(&gray, 1).children == &gray);
    CHECK_EQ(pstk_random_order(&gray, 1).n_children, 1);
    CHECK(pstk_random_grayscale(0.2).params.random_grayscale.probability == 0.2);
    CHECK_EQ(pstk_random_channel_permutation().kind, PSTK_OP_RANDOM_CHANNEL_PERMUTATION);
    CHECK(pstk_timm_rand_augment(2, 9, 0.5, PSTK_TIMM_SET_INCREASING)
              .params.timm_rand_augment.max_magnitude == 10);
    CHECK(pstk_aug_mix(3, 4, 0, 0.5).params.aug_mix.alpha == 0.5);
    CHECK(pstk_timm_aug_mix(3, 4, 0, 0.5).params.timm_aug_mix.n_chains == 4);
    const struct pstk_op chain = pstk_mix_chain(0.25);
    CHECK(chain.params.mix_chain.weight == 0.25 &&
          pstk_mix_chains(PSTK_CHAIN_SUM, 0.75, &chain, 1).params.mix.weight == 0.75);
    CHECK(pstk_to_float(PSTK_SCALE_MULTIPLY).params.to_float.scale == 1);
    CHECK(pstk_timm_auto_augment(PSTK_TIMM_POLICY_3A, 0.5).params.timm_auto_augment.deviation ==
          0.5);
    CHECK(pstk_random_photometric_distort(0.4).params.random_photometric_distort.probability ==
          0.4);
    CHECK_EQ(pstk_random_rotation(-3, 4, PSTK_FILTER_BILINEAR).filter, PSTK_FILTER_BILINEAR);
    CHECK(pstk_random_perspective(0.5, 0.4, 0).params.random_perspective.probability == 0.4);
    CHECK(pstk_random_gaussian_blur(5, 0.1, 2).params.random_gaussian_blur.max_sigma == 2);
    CHECK(pstk_random_box_blur(0.1, 2).params.random_box_blur.max_radius == 2);
    CHECK(pstk_call(NULL, NULL, 9).params.call.scratch_size == 9);
    CHECK(pstk_jpeg(75).params.jpeg.quality == 75 &&
          pstk_random_jpeg(5, 90).params.random_jpeg.max_quality == 90);
    CHECK(pstk_gaussian_blur(5, 0.1).params.gaussian_blur.kernel[1] == 5 &&
          pstk_box_blur(3).params.box_blur.radius[1] == 3);
    CHECK(pstk_trivial_augment_wide(31, 0).params.trivial_augment_wide.bins == 31);
    CHECK(pstk_rand_augment(2, 9, 31, 0).params.rand_augment.bins == 31);
    CHECK(pstk_auto_augment(PSTK_AUTO_AUGMENT_SVHN, 0).params.auto_augment.policy == 2);
    CHECK(pstk_rotate(30, 0, 1).params.rotate.expand == 1);
    CHECK(pstk_resize_longest(7).width == 7 && pstk_letterbox(5, 7, 1).height == 5);
    CHECK(pstk_pad_to_size(5, 7, 1).params.pad_to_size.position == 1 &&
          pstk_corner_crop(5, 7, 4).params.corner_crop.corner == 4);
    CHECK(pstk_scale_jitter(5, 7, 0.5, 2).params.scale_jitter.max_scale == 2 &&
          pstk_random_resize(8, 9).params.random_resize.end_side == 9);
    CHECK(pstk_random_zoom_out(1, 4, 0.5).params.random_zoom_out.probability == 0.5);
    const struct pstk_op shortest = pstk_random_shortest_size((const uint32_t[2]){8, 9}, 2, 20);
    CHECK(shortest.width == 20 && shortest.params.random_shortest_size.sides[1] == 9 &&
          shortest.params.random_shortest_size.sides[2] == 0);
}

TEST(matrices_of_warps)
{
    const double zero[2] = {0, 0}, shift[2] = {3, 4}, corners[8] = {0, 0, 9, 0, 9, 9, 0, 9};
    const double line[8] = {0, 0, 1, 1, 2, 2, 3, 3};
    double m[8];
    CHECK_EQ(pstk_affine_matrix(m, 0, shift, 1, zero, zero), 0);
    CHECK(m[0] == 1 && m[1] == 0 && m[2] == -3 && m[3] == 0 && m[4] == 1 && m[5] == -4);
    CHECK_EQ(pstk_affine(m, 0).kind, PSTK_OP_AFFINE);
    CHECK_EQ(pstk_affine_matrix(m, 0, shift, 0, zero, zero), PSTK_EINVAL);
    CHECK_EQ(pstk_perspective_matrix(m, corners, corners), 0);
    CHECK(m[0] == 1 && m[4] == 1);
    CHECK_EQ(pstk_perspective_matrix(m, corners, line), PSTK_EINVAL);
    const struct pstk_op part = pstk_resized_crop(1, 2, 3, 4, 5, 6);
    CHECK(part.kind == PSTK_DRAWN_RESIZED_CROP && part.height == 5 && part.width == 6);
    CHECK(part.params.resized_crop.top == 1 && part.params.resized_crop.left == 2 &&
          part.params.resized_crop.height == 3 && part.params.resized_crop.width == 4);
}

TEST(an_operation_applies_to_pixels_of_the_program)
{
    const uint8_t pixels[6] = {1, 2, 3, 4, 5, 6};
    const struct pstk_shape shape = {.height = 2, .width = 3, .channels = 1};
    const struct pstk_op flip = pstk_flip_horizontal(), random = pstk_random_flip(1);
    struct pstk_op drawn = pstk_resize(4, 4);
    const struct pstk_op outside = pstk_resized_crop(1, 0, 2, 3, 4, 4);
    struct pstk_shape made = {0}, none = {0};
    struct pstk_error err;
    uint8_t out[16];
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_op_apply(&flip, PSTK_KERNELS_AUTO, pixels, &shape, out, &made, &err), 0);
    CHECK(made.height == 2 && made.width == 3 && made.channels == 1);
    CHECK(out[0] == 3 && out[1] == 2 && out[2] == 1 && out[3] == 6 && out[5] == 4);
    drawn.filter = PSTK_FILTER_RANDOM;
    CHECK_EQ(pstk_op_apply(&drawn, PSTK_KERNELS_AUTO, pixels, &shape, out, &made, &err),
             PSTK_EINVAL);
    CHECK(strstr(err.message, "op.filter: value is RANDOM") != NULL);
    const struct pstk_op larger = pstk_resize(4, 4);
    CHECK_EQ(pstk_op_apply(&larger, PSTK_KERNELS_C, pixels, &shape, NULL, &made, &err), 0);
    CHECK(made.height == 4 && made.width == 4);
    CHECK_EQ(pstk_op_apply(&outside, 0, pixels, &shape, out, &made, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "the image has 2 x 3 pixels; must contain the part") != NULL);
    CHECK_EQ(pstk_op_apply(&outside, 0, pixels, &shape, NULL, &made, &err), PSTK_EINVAL);
    const struct pstk_shape thin = {.height = 1, .width = 100, .channels = 1};
    const struct pstk_op shorter = pstk_resize_shorter(2);
    CHECK_EQ(pstk_op_apply(&shorter, 0, pixels, &thin, NULL, &made, &err), PSTK_EFBIG);
    CHECK_EQ(pstk_op_apply(&random, 0, pixels, &shape, out, &made, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "(random flip); must be a fixed operation") != NULL);
    CHECK_EQ(pstk_op_apply(&flip, 77, pixels, &shape, out, &made, &err), PSTK_ENOTSUP);
    CHECK_EQ(pstk_op_apply(&flip, 0, pixels, &none, out, &made, &err), PSTK_EINVAL);
}

TEST(the_ops_drawn_for_a_sample_are_known_beforehand)
{
    const struct pstk_op ops[3] = {pstk_random_resized_crop(8, 8), pstk_random_flip(1),
                                   pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD)};
    const struct pstk_shape shape = {.height = 40, .width = 50, .channels = 3};
    struct pstk_draw draw = {.size = sizeof draw, .seed = 3, .sample_id = 7};
    struct pstk_op drawn[2], again[2];
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_ops_draw(ops, 3, &shape, &draw, NULL, 0, &err), 2);
    CHECK_EQ(pstk_ops_draw(ops, 3, &shape, &draw, drawn, 2, &err), 2);
    CHECK_EQ(pstk_ops_draw(ops, 3, &shape, &draw, again, 1, &err), 2);
    CHECK(drawn[0].kind == PSTK_DRAWN_RESIZED_CROP && drawn[1].kind == PSTK_OP_FLIP_HORIZONTAL);
    CHECK(memcmp(drawn[0].params.values, again[0].params.values, sizeof drawn[0].params.values) ==
          0);
    draw.sample_id = 8;
    CHECK_EQ(pstk_ops_draw(ops, 3, &shape, &draw, again, 2, &err), 2);
    CHECK(memcmp(drawn[0].params.values, again[0].params.values, sizeof drawn[0].params.values) !=
          0);
    CHECK_EQ(pstk_ops_draw(NULL, 3, &shape, &draw, again, 2, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_ops_draw(ops, 3, &shape, &draw, NULL, 2, &err), PSTK_EINVAL);
    draw.size = 4;
    CHECK_EQ(pstk_ops_draw(ops, 3, &shape, &draw, again, 2, &err), PSTK_EINVAL);
}

TEST(the_mix_drawn_for_a_batch_is_known_beforehand)
{
    struct pstk_mix_key key = {.size = sizeof key, .n_rows = 3, .height = 9, .width = 8};
    struct pstk_mixed_row rows[3];
    struct pstk_mix mix;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    pstk_mix_init(&mix, sizeof mix);
    CHECK(mix.size == sizeof mix && mix.probability == 1 && mix.switch_probability == 0.5);
    mix.n_classes = 10;
    mix.cutmix_alpha = 1;
    CHECK_EQ(pstk_mix_draw(&mix, &key, rows, &err), 0);
    CHECK(rows[0].kind == PSTK_MIX_CUTMIX && rows[0].partner == 2 && rows[2].partner == 1);
    CHECK(rows[0].lam == 1 - rows[0].height * rows[0].width / 72.0);
    mix.mixup_alpha = -1;
    CHECK_EQ(pstk_mix_draw(&mix, &key, rows, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "mix.mixup_alpha: value is -1; must be from 0 to") != NULL);
}

TEST(the_parts_of_a_mosaic_are_known_beforehand)
{
    const struct pstk_mix_key key = {.size = sizeof key, .n_rows = 5, .height = 8, .width = 8};
    struct pstk_mosaic_row rows[5];
    struct pstk_mosaic mosaic;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    pstk_mosaic_init(&mosaic, sizeof mosaic);
    CHECK(mosaic.size == sizeof mosaic && mosaic.probability == 1 && mosaic.center_min == 0.25);
    CHECK_EQ(pstk_mosaic_draw(&mosaic, &key, rows, &err), 0);
    CHECK(rows[4].n_parts == 4 && rows[4].parts[0].row == 4 && rows[4].parts[1].row < 4);
    CHECK_EQ(rows[4].parts[3].left, rows[4].center_x);
    mosaic.center_max = 0;
    CHECK_EQ(pstk_mosaic_draw(&mosaic, &key, rows, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "mosaic.center_min: value is 0.25; must be at most") != NULL);
}

TEST(a_mix_adds_its_chains_and_is_not_for_lists)
{
    const struct pstk_op children[] = {pstk_mix_chain(0.25), pstk_adjust(PSTK_OP_INVERT, 0),
                                       pstk_mix_chain(0.25)};
    const struct pstk_op mix = pstk_mix_chains(PSTK_CHAIN_SUM, 0.5, children, 3);
    const struct pstk_shape shape = {.height = 1, .width = 3, .channels = 1};
    const uint8_t pixels[3] = {0, 255, 101};
    uint8_t out[3];
    struct pstk_shape after;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_op_apply(&mix, 0, pixels, &shape, out, &after, &err), 0);
    CHECK(out[0] == 63 && out[1] == 191 && out[2] == 114); /* 3/4 x + 1/4 (255 - x) */
    const struct pstk_draw draw = {.size = sizeof draw};
    const struct pstk_op lists[2][2] = {{pstk_resize(3, 3), mix}, {pstk_resize(3, 3), children[0]}};
    for (int i = 0; i < 2; i++)
        CHECK(pstk_ops_draw(lists[i], 2, &shape, &draw, NULL, 0, &err) < 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_mix_adds_its_chains_and_is_not_for_lists),
        CASE(operations_are_plain_data),
        CASE(matrices_of_warps),
        CASE(an_operation_applies_to_pixels_of_the_program),
        CASE(the_ops_drawn_for_a_sample_are_known_beforehand),
        CASE(the_mix_drawn_for_a_batch_is_known_beforehand),
        CASE(the_parts_of_a_mosaic_are_known_beforehand),
    };
    return RUN_CASES(cases);
}
