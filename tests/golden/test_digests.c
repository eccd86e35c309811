/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digests: the batches of the golden data sets are those that were written down, with the kernels
 * of every ISA and on every processor. A digest that changes means that a user's batches change:
 * say why in the commit. As tests/public, it sees the shared library and the public headers alone.
 * usage: test_digests FOLDER, that of the data sets.
 */
#include "support/test.h"

#include <penstock/penstock.h>

#define MAX_OPS 6

static const char *folder;

struct pipeline {
    const char *name;
    const char *data; /* a data set of the folder */
    struct pstk_op ops[MAX_OPS];
    uint32_t n_ops, dtype, layout;
    int is_mosaic; /* 1: rows are put together from four */
    uint32_t expected;
};

#define OPS(...)                                                                                   \
    .ops = {__VA_ARGS__}, .n_ops = sizeof((struct pstk_op[]){__VA_ARGS__}) / sizeof(struct pstk_op)

/* Digest the valid rows of one epoch. Returns 0, or a negative result. */
static int digest_epoch(struct pstk_loader *loader, uint32_t *digest, struct pstk_error *err)
{
    struct pstk_batch *batch;
    int result;
    while ((result = pstk_next(loader, &batch, NULL, -1, err)) == 1) {
        const struct pstk_tensor *t = &batch->tensors[0];
        uint64_t size = pstk_dtype_size(t->dtype) * batch->n_valid;
        for (uint32_t i = 1; i < t->n_dims; i++)
            size *= (uint64_t)t->shape[i];
        *digest = pstk_crc32c(*digest, t->data, size);
        pstk_release(&batch, NULL);
    }
    return result;
}

/* Make the digest of two epochs. Returns 0, or a negative result. */
static int digest_of(const struct pipeline *p, uint32_t kernels, uint32_t *digest,
                     struct pstk_error *err)
{
    const struct pstk_output output =
        pstk_output_image("jpg", p->ops, p->n_ops, p->dtype, p->layout);
    char path[4096];
    struct pstk_settings s;
    struct pstk_mosaic mosaic;
    struct pstk_loader *loader;
    snprintf(path, sizeof path, "%s/%s", folder, p->data);
    pstk_settings_init(&s, sizeof s);
    pstk_mosaic_init(&mosaic, sizeof mosaic);
    mosaic.image = "jpg";
    s.path = path;
    s.outputs = &output;
    s.n_outputs = 1;
    s.batch_size = 8;
    s.last_batch = PSTK_LAST_SHORT;
    s.reading.kernels = kernels;
    s.mosaic = p->is_mosaic ? &mosaic : NULL;
    int result = pstk_open(&loader, &s, err);
    *digest = 0;
    for (int epoch = 0; epoch < 2 && result == 0; epoch++)
        result = digest_epoch(loader, digest, err);
    pstk_close(&loader);
    return result;
}

/* Return whether the digest is as written, with each ISA that this machine runs. */
static int is_as_written(const struct pipeline *p)
{
    int is_right = 1;
    for (uint32_t kernels = PSTK_KERNELS_C; kernels <= PSTK_KERNELS_NEON; kernels++) {
        struct pstk_error err;
        uint32_t digest;
        pstk_error_init(&err, sizeof err);
        const int result = digest_of(p, kernels, &digest, &err);
        if (result == PSTK_ENOTSUP && kernels > PSTK_KERNELS_C)
            continue;
        if (result == 0 && digest == p->expected)
            continue;
        printf("# %s, ISA %u: 0x%08x, not 0x%08x; %s\n", p->name, kernels, digest, p->expected,
               err.message);
        is_right = 0;
    }
    return is_right;
}

static int are_as_written(const struct pipeline *pipelines, size_t n)
{
    int are_right = 1;
    for (size_t i = 0; i < n; i++)
        are_right &= is_as_written(&pipelines[i]);
    return are_right;
}

#define ALL(pipelines) are_as_written(pipelines, sizeof(pipelines) / sizeof(pipelines)[0])

TEST(crops_and_their_types_have_their_digests)
{
    const struct pstk_op normalize = pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD);
    const struct pipeline pipelines[] = {
        {"random crop, u8", "planes", OPS(pstk_random_resized_crop(48, 56), pstk_random_flip(0.5)),
         .dtype = PSTK_U8, .expected = 0x768cfdc0},
        {"random crop, f16 NCHW", "planes",
         OPS(pstk_random_resized_crop(33, 31), pstk_random_flip(0.5), normalize), .dtype = PSTK_F16,
         .layout = PSTK_NCHW, .expected = 0x4bfbdfb0},
        {"centre crop, f32 NCHW", "exact",
         OPS(pstk_resize_shorter(40), pstk_center_crop(32, 32), normalize), .dtype = PSTK_F32,
         .layout = PSTK_NCHW, .expected = 0x2293cd7c},
        {"whole image, bf16", "pixels", OPS(pstk_resize(40, 24), normalize), .dtype = PSTK_BF16,
         .expected = 0x74edd250},
        {"letterbox, divided", "planes", OPS(pstk_letterbox(64, 64, 0), pstk_to_float(0)),
         .dtype = PSTK_F32, .expected = 0x3322dde7},
    };
    CHECK(ALL(pipelines));
}

TEST(drawn_operations_have_their_digests)
{
    const struct pipeline pipelines[] = {
        {"TrivialAugmentWide", "planes",
         OPS(pstk_random_resized_crop(48, 48), pstk_trivial_augment_wide(31, PSTK_FILTER_BILINEAR)),
         .dtype = PSTK_U8, .expected = 0x356f06f2},
        {"RandAugment", "planes",
         OPS(pstk_resize(48, 48), pstk_rand_augment(3, 9, 31, PSTK_FILTER_NEAREST)),
         .dtype = PSTK_U8, .expected = 0xd57ecf5d},
        {"AutoAugment", "planes",
         OPS(pstk_resize(48, 48), pstk_auto_augment(PSTK_AUTO_AUGMENT_SVHN, PSTK_FILTER_BILINEAR)),
         .dtype = PSTK_U8, .expected = 0xd6de62c4},
        {"AugMix", "exact", OPS(pstk_resize(40, 40), pstk_aug_mix(3, 3, 0, 1)), .dtype = PSTK_U8,
         .expected = 0x72388fa5},
        {"timm's RandAugment", "planes",
         OPS(pstk_resize(48, 48), pstk_timm_rand_augment(2, 9, 0.5, PSTK_TIMM_SET_INCREASING),
             pstk_random_erasing(0.5, 0)),
         .dtype = PSTK_U8, .expected = 0xe17dbd22},
        {"colours", "planes",
         OPS(pstk_resize(48, 48), pstk_color_jitter(0.4, 0.4, 0.4, 0.2),
             pstk_random_photometric_distort(0.7), pstk_random_grayscale(0.3)),
         .dtype = PSTK_U8, .expected = 0xf4d75e56},
        {"warps", "planes",
         OPS(pstk_resize(48, 48), pstk_random_rotation(-40, 40, PSTK_FILTER_BILINEAR),
             pstk_random_perspective(0.5, 0.7, PSTK_FILTER_BICUBIC),
             pstk_random_vertical_flip(0.5)),
         .dtype = PSTK_U8, .expected = 0x450da013},
        {"blurs and JPEGs", "planes",
         OPS(pstk_resize(48, 48), pstk_random_gaussian_blur(5, 0.1, 2),
             pstk_random_box_blur(0.1, 2), pstk_random_jpeg(20, 90)),
         .dtype = PSTK_U8, .expected = 0xa6d6ce43},
    };
    CHECK(ALL(pipelines));
}

TEST(mosaics_have_their_digests)
{
    const struct pipeline pipelines[] = {
        {"u8", "pixels", OPS(pstk_random_resized_crop(16, 16)), .dtype = PSTK_U8, .is_mosaic = 1,
         .expected = 0xeb4b0f61},
        {"f16", "pixels",
         OPS(pstk_random_resized_crop(16, 16),
             pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD)),
         .dtype = PSTK_F16, .layout = PSTK_NCHW, .is_mosaic = 1, .expected = 0x7e7c4c8d},
    };
    CHECK(ALL(pipelines));
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        CASE(crops_and_their_types_have_their_digests),
        CASE(drawn_operations_have_their_digests),
        CASE(mosaics_have_their_digests),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: test_digests FOLDER\n");
        return 2;
    }
    folder = argv[1];
    return RUN_CASES(cases);
}
