/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/op_params.h - the parameters of operations by name: the member `params` of struct
 * pstk_op. They have the name of the kind in lower case: those of PSTK_OP_RANDOM_CROP are
 * params.random_crop. Kinds without such a member have no parameters.
 *
 * All are doubles, also whole numbers, enumerators, and flags, which are 0 or 1. So params.values
 * has each of them at its position, and 0 at positions that no kind uses.
 */
#ifndef PENSTOCK_OP_PARAMS_H
#define PENSTOCK_OP_PARAMS_H

#define PSTK_MAX_OP_PARAMS 12

/* ---- geometry ------------------------------------------------------------------------------ */

struct pstk_random_resized_crop_params {
    /* smallest part of the area of the image, 0 to 1 */
    double min_scale;
    /* largest part of the area of the image, min_scale to 1, not 0 */
    double max_scale;
    /* width / height, 1/65535 to max_ratio */
    double min_ratio;
    /* width / height, to 65535 */
    double max_ratio;
};

/* A part of the image. */
struct pstk_resized_crop_params {
    /* pixels, 0 to 65535 */
    double top;
    /* pixels, 0 to 65535 */
    double left;
    /* pixels, 1 to 65535 */
    double height;
    /* pixels, 1 to 65535 */
    double width;
};

struct pstk_resize_shorter_params {
    /* limit on the longer side, pixels, above the shorter side to 65535; 0: any */
    double longest;
};

struct pstk_scale_jitter_params {
    /* 0.001 to max_scale */
    double min_scale;
    /* largest scale; the longer of width and height, so scaled, has at most 65535 pixels */
    double max_scale;
};

struct pstk_random_shortest_size_params {
    /* lengths of the shorter side, pixels, 1 to 65535; 0: no more */
    double sides[PSTK_MAX_OP_PARAMS];
};

struct pstk_random_resize_params {
    /* smallest length of the shorter side, pixels, 1 to 65535 */
    double min_side;
    /* upper limit, itself excluded, pixels, above min_side to 65535 */
    double end_side;
};

/* Top left corner of the part of width x height. */
struct pstk_crop_params {
    /* pixels, whole, -1e6 to 1e6; IOU_CROP: 0 to 65535 */
    double top;
    /* pixels, whole, -1e6 to 1e6; IOU_CROP: 0 to 65535 */
    double left;
};

/* Padding that comes before the crop. */
struct pstk_random_crop_params {
    /* pixels of padding, 0 to 65535 */
    double left;
    /* pixels of padding, 0 to 65535 */
    double top;
    /* pixels of padding, 0 to 65535 */
    double right;
    /* pixels of padding, 0 to 65535 */
    double bottom;
    /* 1: pad what is still smaller than the crop */
    double pad_if_needed;
    /* enum pstk_pad_mode */
    double mode;
};

struct pstk_corner_crop_params {
    /* enum pstk_corner */
    double corner;
};

struct pstk_random_iou_crop_params {
    /* smallest part of the width, and of the height, above 0 to max_scale */
    double min_scale;
    /* min_scale to 1 */
    double max_scale;
    /* width / height, 1/65535 to max_aspect_ratio */
    double min_aspect_ratio;
    /* width / height, to 65535 */
    double max_aspect_ratio;
    /* number of trials for each IoU, 1 to 1000 */
    double trials;
    /* IoUs to draw from, 0 to 1; -1 after the last */
    double options[7];
};

struct pstk_pad_params {
    /* pixels, 0 to 65535 */
    double left;
    /* pixels, 0 to 65535 */
    double top;
    /* pixels, 0 to 65535 */
    double right;
    /* pixels, 0 to 65535 */
    double bottom;
    /* enum pstk_pad_mode */
    double mode;
};

struct pstk_position_params {
    /* enum pstk_position */
    double position;
};

struct pstk_random_zoom_out_params {
    /* side of the canvas, in sides of the image, 1 to max_sides */
    double min_sides;
    /* min_sides to 16 */
    double max_sides;
    /* 0 to 1 */
    double probability;
};

struct pstk_random_rotation_params {
    /* degrees, counter-clockwise, -3600 to max_angle */
    double min_angle;
    /* degrees, min_angle to 3600 */
    double max_angle;
    /* 1: the image grows to show all of the result */
    double expand;
    /* 1: `center` is set; 0: the middle */
    double has_center;
    /* x and y, pixels, -1e9 to 1e9 */
    double center[2];
};

struct pstk_rotate_params {
    /* degrees, counter-clockwise, -3600 to 3600 */
    double angle;
    /* 1: the image grows to show all of the result */
    double expand;
    /* 1: `center` is set; 0: the middle */
    double has_center;
    /* x and y, pixels, -1e9 to 1e9 */
    double center[2];
};

struct pstk_random_affine_params {
    /* degrees, -3600 to max_angle */
    double min_angle;
    /* degrees, min_angle to 3600 */
    double max_angle;
    /* largest shift in x, in widths, and in y, in heights, 0 to 1 */
    double translate[2];
    /* 1e-6 to max_scale */
    double min_scale;
    /* min_scale to 1e6 */
    double max_scale;
    /* degrees, -3600 to max_shear_x */
    double min_shear_x;
    /* degrees, min_shear_x to 3600 */
    double max_shear_x;
    /* degrees, -3600 to max_shear_y */
    double min_shear_y;
    /* degrees, min_shear_y to 3600 */
    double max_shear_y;
    /* x and y, pixels, -1e9 to 1e9; only with the flag PSTK_OP_HAS_CENTER */
    double center[2];
};

struct pstk_affine_params {
    /* matrix: a pixel (x, y) comes from (m0 x + m1 y + m2, m3 x + m4 y + m5) */
    double matrix[6];
};

struct pstk_random_perspective_params {
    /* largest move of the corners inwards: 0, none, to 1, to the middle */
    double distortion;
    /* 0 to 1 */
    double probability;
};

struct pstk_perspective_params {
    /* matrix: a pixel (x, y) comes from the point of AFFINE, divided by m6 x + m7 y + 1 */
    double matrix[8];
};

/* ---- colours ------------------------------------------------------------------------------- */

struct pstk_factor_params {
    /* factor, 0 to 1e6; 1 changes nothing */
    double factor;
};

struct pstk_hue_params {
    /* part of a turn, -0.5 to 0.5 */
    double hue;
};

struct pstk_gamma_params {
    /* 0 to 1e6 */
    double gamma;
    /* 0 to 1e6 */
    double gain;
};

struct pstk_posterize_params {
    /* number of upper bits that are kept, 0 to 8 */
    double bits;
};

struct pstk_solarize_params {
    /* smallest byte that is inverted, 0 to 256 */
    double threshold;
};

struct pstk_solarize_add_params {
    /* -255 to 255 */
    double add;
    /* limit below which `add` is added to a byte, 0 to 256 */
    double threshold;
};

struct pstk_permute_channels_params {
    /* for each of three channels the index of its source, 0 to 2 */
    double order[3];
};

/* A range that is only 1 (hue: 0) leaves its adjustment out. */
struct pstk_color_jitter_params {
    /* factor, 0 to 1e6 */
    double min_brightness;
    /* factor, 0 to 1e6 */
    double max_brightness;
    /* factor, 0 to 1e6 */
    double min_contrast;
    /* factor, 0 to 1e6 */
    double max_contrast;
    /* factor, 0 to 1e6 */
    double min_saturation;
    /* factor, 0 to 1e6 */
    double max_saturation;
    /* part of a turn, -0.5 to 0.5 */
    double min_hue;
    /* part of a turn, -0.5 to 0.5 */
    double max_hue;
};

struct pstk_random_photometric_distort_params {
    /* factor, 0 to 1e6 */
    double min_brightness;
    /* factor, 0 to 1e6 */
    double max_brightness;
    /* factor, 0 to 1e6 */
    double min_contrast;
    /* factor, 0 to 1e6 */
    double max_contrast;
    /* factor, 0 to 1e6 */
    double min_saturation;
    /* factor, 0 to 1e6 */
    double max_saturation;
    /* part of a turn, -0.5 to 0.5 */
    double min_hue;
    /* part of a turn, -0.5 to 0.5 */
    double max_hue;
    /* probability of each adjustment, and of the permutation, 0 to 1 */
    double probability;
};

struct pstk_gaussian_blur_params {
    /* width and height, pixels, odd, 1 to 127 */
    double kernel[2];
    /* standard deviations in x and in y, pixels, above 0 to 1e4 */
    double sigma[2];
};

struct pstk_random_gaussian_blur_params {
    /* width and height, pixels, odd, 1 to 127 */
    double kernel[2];
    /* pixels, above 0 to max_sigma */
    double min_sigma;
    /* pixels, to 1e4 */
    double max_sigma;
};

struct pstk_box_blur_params {
    /* radii in x and in y, pixels, 0 to 1e4 */
    double radius[2];
};

struct pstk_random_box_blur_params {
    /* pixels, 0 to max_radius */
    double min_radius;
    /* pixels, to 1e4 */
    double max_radius;
};

struct pstk_jpeg_params {
    /* whole, 1 to 100 */
    double quality;
};

struct pstk_random_jpeg_params {
    /* whole, 1 to max_quality */
    double min_quality;
    /* whole, to 100 */
    double max_quality;
};

/* ---- policies ------------------------------------------------------------------------------ */

struct pstk_trivial_augment_wide_params {
    /* number of bins of the magnitude, 2 to 256 */
    double bins;
};

struct pstk_rand_augment_params {
    /* 1 to 32 */
    double n_ops;
    /* bin of the magnitude, 0 to bins - 1 */
    double magnitude;
    /* number of bins of the magnitude, 2 to 256 */
    double bins;
};

struct pstk_auto_augment_params {
    /* enum pstk_auto_augment_policy */
    double policy;
};

struct pstk_aug_mix_params {
    /* 1 to 10 */
    double severity;
    /* 1 to 16 */
    double n_chains;
    /* operations of a chain, 1 to 16; 0: 1 to 3 of them */
    double depth;
    /* parameter of the distribution of weights, 0.01 to 100 */
    double alpha;
    /* 1: all operations; 0: without brightness, saturation, contrast and sharpness */
    double all_ops;
};

struct pstk_timm_rand_augment_params {
    /* number of operations, 1 to 32; a set with weights: at most its operations */
    double n_ops;
    /* magnitude, 0 to 1000; 10 is the greatest change of most */
    double magnitude;
    /* probability of each operation, 0 to 1 */
    double probability;
    /* standard deviation of the magnitude, 0 to 1000 */
    double deviation;
    /* 1: the magnitude is uniform from 0 to `magnitude`; the deviation is not used */
    double is_uniform;
    /* upper limit of drawn magnitudes, 0 to 1000 */
    double max_magnitude;
    /* enum pstk_timm_set */
    double set;
};

struct pstk_timm_auto_augment_params {
    /* enum pstk_timm_policy */
    double policy;
    /* standard deviation of magnitudes, 0 to 1000 */
    double deviation;
};

struct pstk_timm_aug_mix_params {
    /* 0 to 1000 */
    double magnitude;
    /* 1 to 16 */
    double n_chains;
    /* operations of a chain, 1 to 16; 0: 1 to 3 of them */
    double depth;
    /* parameter of the distribution of weights, 0.01 to 100 */
    double alpha;
    /* 1: chains are blended one after the other */
    double blended;
    /* standard deviation of magnitudes, 0 to 1000 */
    double deviation;
    /* 1: magnitudes are uniform from 0 to `magnitude`; the deviation is not used */
    double is_uniform;
};

struct pstk_mix_params {
    /* enum pstk_chain_mode */
    double mode;
    /* weight of the image, 0 to 1 */
    double weight;
};

struct pstk_mix_chain_params {
    /* 0 to 1 */
    double weight;
};

/* ---- operations that hold others, or happen by chance ---------------------------------------- */

struct pstk_probability_params {
    /* 0 to 1 */
    double probability;
};

struct pstk_random_choice_params {
    /* weight of each child, 0 to 1e6; all 0: equal probabilities */
    double weights[PSTK_MAX_OP_PARAMS];
};

struct pstk_call_params {
    /* bytes, whole, 0 to 2^32 */
    double scratch_size;
    /* random bits, four whole numbers below 2^32. A list draws its own and does not use these */
    double random[4];
};

/* ---- the row ------------------------------------------------------------------------------- */

struct pstk_normalize_params {
    /* mean of each channel, a fraction of 255 */
    double mean[4];
    /* standard deviation of each channel, a fraction of 255, above 0 */
    double deviation[4];
    /* enum pstk_scale */
    double scale;
};

struct pstk_to_float_params {
    /* enum pstk_scale */
    double scale;
};

struct pstk_random_erasing_params {
    /* 0 to 1 */
    double probability;
    /* smallest part of the area of the row, 0 to max_scale; boxes share it */
    double min_scale;
    /* min_scale to 1 */
    double max_scale;
    /* height / width, 1/65535 to max_ratio */
    double min_ratio;
    /* height / width, to 65535 */
    double max_ratio;
    /* value of each channel; dtype u8: whole, 0 to 255 */
    double value[4];
    /* 1: normal values; 2: one normal value for each channel of a box; 0: `value` */
    double is_normal;
    /* smallest number of boxes, 1 to max_count; 0, and max_count 0: one */
    double min_count;
    /* min_count to 32 */
    double max_count;
};

struct pstk_erase_params {
    /* pixels, 0 to 65535 */
    double top;
    /* pixels, 0 to 65535 */
    double left;
    /* pixels, 0 to 65535 */
    double height;
    /* pixels, 0 to 65535 */
    double width;
    /* value of each channel; dtype u8: whole, 0 to 255 */
    double value[4];
    /* 1: normal values, drawn by `key`; 0: `value` */
    double is_normal;
    /* two whole numbers below 2^32 */
    double key[2];
};

/* ---- all ----------------------------------------------------------------------------------- */

union pstk_op_params {
    /* all parameters, by position */
    double values[PSTK_MAX_OP_PARAMS];

    struct pstk_random_resized_crop_params random_resized_crop;
    struct pstk_resized_crop_params resized_crop;
    struct pstk_resize_shorter_params resize_shorter;
    struct pstk_scale_jitter_params scale_jitter;
    struct pstk_random_shortest_size_params random_shortest_size;
    struct pstk_random_resize_params random_resize;
    struct pstk_crop_params crop, iou_crop;
    struct pstk_random_crop_params random_crop;
    struct pstk_corner_crop_params corner_crop;
    struct pstk_random_iou_crop_params random_iou_crop;
    struct pstk_pad_params pad;
    struct pstk_position_params pad_to_size, letterbox;
    struct pstk_random_zoom_out_params random_zoom_out;
    struct pstk_probability_params random_flip, random_vertical_flip;
    struct pstk_random_rotation_params random_rotation;
    struct pstk_rotate_params rotate;
    struct pstk_random_affine_params random_affine;
    struct pstk_affine_params affine;
    struct pstk_random_perspective_params random_perspective;
    struct pstk_perspective_params perspective;

    struct pstk_factor_params brightness, contrast, saturation, sharpness;
    struct pstk_hue_params hue;
    struct pstk_gamma_params gamma;
    struct pstk_posterize_params posterize;
    struct pstk_solarize_params solarize;
    struct pstk_solarize_add_params solarize_add;
    struct pstk_permute_channels_params permute_channels;
    struct pstk_color_jitter_params color_jitter;
    struct pstk_probability_params random_grayscale;
    struct pstk_random_photometric_distort_params random_photometric_distort;
    struct pstk_gaussian_blur_params gaussian_blur;
    struct pstk_random_gaussian_blur_params random_gaussian_blur;
    struct pstk_box_blur_params box_blur;
    struct pstk_random_box_blur_params random_box_blur;
    struct pstk_jpeg_params jpeg;
    struct pstk_random_jpeg_params random_jpeg;

    struct pstk_trivial_augment_wide_params trivial_augment_wide;
    struct pstk_rand_augment_params rand_augment;
    struct pstk_auto_augment_params auto_augment;
    struct pstk_aug_mix_params aug_mix;
    struct pstk_timm_rand_augment_params timm_rand_augment;
    struct pstk_timm_auto_augment_params timm_auto_augment;
    struct pstk_timm_aug_mix_params timm_aug_mix;
    struct pstk_mix_params mix;
    struct pstk_mix_chain_params mix_chain;

    struct pstk_probability_params random_apply;
    struct pstk_random_choice_params random_choice;
    struct pstk_call_params call;

    struct pstk_normalize_params normalize;
    struct pstk_to_float_params to_float;
    struct pstk_random_erasing_params random_erasing;
    struct pstk_erase_params erase;
};

#endif
