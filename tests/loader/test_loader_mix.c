/* SPDX-License-Identifier: Apache-2.0 */
/* A loader that mixes delivers what mixing its plain batches gives: for any number of threads,
 * short batches, ranks, and on a device. */
#include "cuda_fake.h"
#include "mix/mix.h"
#include "support/sample_set.h"
#include "support/test.h"

#define N_SAMPLES 103
#define BATCH 8
#define N_CLASSES 320
#define HEIGHT 12u
#define WIDTH 14u
#define IMAGE_SIZE (BATCH * 3u * HEIGHT * WIDTH)

static char path[4200];

#define FIRST 3 /* sample: the labels of those before it are negative */

struct setup {
    struct pstk_op ops[3];
    struct pstk_output outputs[3];
    struct pstk_mix mix;
    struct pstk_settings settings;
};

static void setup_init(struct setup *setup, uint32_t dtype, uint32_t layout)
{
    setup->ops[0] = pstk_random_resized_crop(HEIGHT, WIDTH);
    setup->ops[1] = pstk_random_flip(0.5);
    setup->ops[2] = pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD);
    setup->outputs[0] = pstk_output_image("img", setup->ops, 3, dtype, layout);
    setup->outputs[1] = pstk_output_scalar("cls", PSTK_I64);
    setup->outputs[2] = pstk_output_ragged("boxes");
    pstk_mix_init(&setup->mix, sizeof setup->mix);
    setup->mix.image = "img";
    setup->mix.label = "cls";
    setup->mix.n_classes = N_CLASSES;
    setup->mix.mixup_alpha = 0.8;
    setup->mix.cutmix_alpha = 1;
    struct pstk_settings *s = &setup->settings;
    pstk_settings_init(s, sizeof *s);
    s->path = path;
    s->outputs = setup->outputs;
    s->n_outputs = 3;
    s->batch_size = BATCH;
    s->order.kind = PSTK_ORDER_SEQUENTIAL;
    s->last_batch = PSTK_LAST_SHORT;
    s->order.position = FIRST;
    s->seed = 5;
}

/* All bytes of a batch that a program sees. */
struct copy {
    uint8_t image[IMAGE_SIZE * 4];
    uint8_t targets[BATCH * N_CLASSES * 4];
    int64_t labels[BATCH], partners[BATCH];
    float lams[BATCH];
    uint32_t n_valid;
    uint64_t position;
};

static void copy_tensor(const struct pstk_batch *b, uint32_t tensor, void *to, cudaStream_t stream)
{
    const struct pstk_tensor *t = &b->tensors[tensor];
    if (stream)
        pstk_batch_read(b, tensor, to, t->size, stream, NULL);
    else
        memcpy(to, t->data, t->size);
}

static void copy_batch(struct copy *copy, const struct pstk_batch *b, cudaStream_t stream)
{
    memset(copy, 0, sizeof *copy);
    copy->n_valid = b->n_valid;
    copy->position = b->position;
    copy_tensor(b, 0, copy->image, stream);
    if (b->tensors[1].dtype == PSTK_F32)
        copy_tensor(b, 1, copy->targets, stream);
    else
        copy_tensor(b, 1, copy->labels, stream);
    if (b->n_tensors < 5)
        return;
    copy_tensor(b, 3, copy->partners, stream);
    copy_tensor(b, 4, copy->lams, stream);
}

#define MAX_BATCHES 32

/* Copy the batches of an epoch. Returns their number, or an error. */
static int copy_epoch(const struct pstk_settings *s, struct copy *copies)
{
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    cudaStream_t stream = NULL;
    int n = 0, r;
    pstk_error_init(&err, sizeof err);
    if (s->device.kind == PSTK_CUDA)
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (pstk_open(&loader, s, &err) < 0) {
        printf("# %s\n", err.message);
        return -1;
    }
    while ((r = pstk_next(loader, &b, stream, -1, &err)) == 1 && n < MAX_BATCHES) {
        copy_batch(&copies[n++], b, stream);
        pstk_release(&b, stream);
    }
    if (r < 0)
        printf("# %s\n", err.message);
    pstk_close(&loader);
    if (stream)
        cudaStreamDestroy(stream);
    return r < 0 ? r : n;
}

/* Make of a plain batch what the mix makes of it. */
static void mix_copy(struct copy *copy, const struct setup *setup)
{
    struct pstk_mixed_row rows[BATCH];
    uint32_t labels[BATCH];
    const struct pstk_settings *s = &setup->settings;
    const struct pstk_mix_key key = {.size = sizeof key,
                                     .n_rows = copy->n_valid,
                                     .height = HEIGHT,
                                     .width = WIDTH,
                                     .seed = s->seed,
                                     .epoch = s->order.epoch,
                                     .position = copy->position,
                                     .rank = s->ranks.rank};
    const struct pstk__mix_images images = {.data = copy->image,
                                            .n = copy->n_valid,
                                            .dtype = setup->outputs[0].dtype,
                                            .layout = setup->outputs[0].image.layout,
                                            .height = HEIGHT,
                                            .width = WIDTH,
                                            .channels = 3,
                                            .pairing = setup->mix.pairing,
                                            .kernels = PSTK_KERNELS_C};
    pstk_mix_draw(&setup->mix, &key, rows, NULL);
    if (setup->mix.image)
        pstk__mix_images(&images, rows);
    for (uint32_t i = 0; i < copy->n_valid; i++)
        labels[i] = (uint32_t)copy->labels[i];
    if (setup->mix.targets == PSTK_MIX_DENSE) {
        pstk__mix_targets((float *)(void *)copy->targets, &setup->mix, rows, labels, copy->n_valid);
        memset(copy->labels, 0, sizeof copy->labels);
        return;
    }
    for (uint32_t i = 0; i < copy->n_valid; i++) {
        copy->partners[i] = copy->labels[rows[i].partner];
        copy->lams[i] = (float)rows[i].lam;
    }
}

static struct copy plain[MAX_BATCHES], mixed[MAX_BATCHES];

/* Return whether the loader's batches are the mixed plain ones. */
static int is_mixed_right(struct setup *setup)
{
    struct pstk_settings *s = &setup->settings;
    const uint32_t device = s->device.kind;
    s->mix = NULL;
    s->device.kind = PSTK_HOST;
    const int n = copy_epoch(s, plain);
    s->mix = &setup->mix;
    s->device.kind = device;
    if (n <= 0 || copy_epoch(s, mixed) != n)
        return 0;
    for (int i = 0; i < n; i++) {
        mix_copy(&plain[i], setup);
        if (memcmp(&plain[i], &mixed[i], sizeof *plain) != 0) {
            printf("# batch %d of %d differs\n", i, n);
            return 0;
        }
    }
    return 1;
}

TEST(batches_are_their_plain_rows_mixed)
{
    static const uint32_t dtypes[] = {PSTK_F32, PSTK_F16, PSTK_BF16};
    for (uint32_t k = 0; k < 24; k++) {
        struct setup setup;
        setup_init(&setup, dtypes[k % 3], k / 3 % 2 ? PSTK_NHWC : PSTK_NCHW);
        setup.settings.n_threads = 1 + k % 4;
        setup.settings.last_batch = k % 5 ? PSTK_LAST_SHORT : PSTK_LAST_DROP;
        setup.settings.order.epoch = k;
        setup.mix.mode = k / 2 % 2;
        setup.mix.pairing = k / 4 % 2;
        setup.mix.targets = k / 8 % 2;
        setup.mix.probability = k % 7 ? 1 : 0.5;
        setup.mix.smoothing = setup.mix.targets == PSTK_MIX_DENSE ? 0.1 : 0;
        CHECK(is_mixed_right(&setup));
    }
}

TEST(each_rank_draws_for_itself)
{
    double lams[2];
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct setup setup;
        setup_init(&setup, PSTK_F32, PSTK_NCHW);
        setup.mix.targets = PSTK_MIX_PAIRS;
        setup.settings.ranks.rank = rank;
        setup.settings.ranks.world = 2;
        CHECK(is_mixed_right(&setup));
        lams[rank] = (double)mixed[0].lams[0];
    }
    CHECK(lams[0] != lams[1]);
}

TEST(a_rank_may_have_no_rows)
{
    for (uint32_t rank = 0; rank < 2; rank++)
        for (uint32_t targets = 0; targets < 2; targets++) {
            struct setup setup;
            setup_init(&setup, PSTK_F32, PSTK_NCHW);
            setup.mix.targets = targets;
            setup.settings.ranks.rank = rank;
            setup.settings.ranks.world = 2;
            setup.settings.order.position = N_SAMPLES - 1;
            CHECK(is_mixed_right(&setup));
            CHECK_EQ(mixed[0].n_valid, rank == (N_SAMPLES - 1) % 2);
        }
}

TEST(targets_are_made_without_images)
{
    struct setup setup;
    setup_init(&setup, PSTK_U8, PSTK_NHWC);
    setup.ops[2] = pstk_flip_horizontal();
    setup.mix.image = NULL;
    setup.mix.mixup_alpha = setup.mix.cutmix_alpha = 0;
    setup.mix.smoothing = 0.1;
    CHECK(is_mixed_right(&setup));
}

TEST(a_device_gets_batches_that_were_mixed_on_the_host)
{
    for (uint32_t k = 0; k < 8; k++) {
        struct setup setup;
        setup_init(&setup, k % 2 ? PSTK_F16 : PSTK_F32, PSTK_NCHW);
        setup.mix.targets = k / 2 % 2;
        setup.settings.last_batch = k / 4 ? PSTK_LAST_SHORT : PSTK_LAST_DROP;
        cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 100});
        setup.settings.device.kind = PSTK_CUDA;
        const int right = is_mixed_right(&setup);
        CHECK_EQ(cuda_fake_close(), 0);
        CHECK(right);
    }
}

/* ---- what cannot be ----------------------------------------------------------------------------
 */

TEST(a_label_that_is_no_class_makes_its_sample_bad)
{
    struct setup setup;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    setup_init(&setup, PSTK_F32, PSTK_NCHW);
    setup.settings.mix = &setup.mix;
    setup.settings.order.position = 0; /* labels are -7, -4, -1, 2, ... */
    CHECK_EQ(pstk_open(&loader, &setup.settings, &err), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), PSTK_EINVAL);
    CHECK_EQ(err.sample_id, 0);
    CHECK(strstr(err.message, "field cls") &&
          strstr(err.message, "label of sample 0: value is -7;"));
    pstk_close(&loader);
    setup.settings.bad_sample = PSTK_BAD_REPLACE;
    setup.mix.targets = PSTK_MIX_PAIRS;
    CHECK_EQ(pstk_open(&loader, &setup.settings, &err), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), 1);
    CHECK_EQ(b->n_replacements, 3);
    CHECK(strstr(b->reports[2].error.message, "label of sample 2: value is -1; must be from 0 to"));
    pstk_release(&b, NULL);
    pstk_close(&loader);
    setup.mix.n_classes = 3;
    setup.settings.bad_sample = PSTK_BAD_ERROR;
    setup.settings.order.position = FIRST;
    CHECK_EQ(pstk_open(&loader, &setup.settings, &err), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "value is 5; must be from 0 to 2"));
    pstk_close(&loader);
}

/* 1: pstk_open refuses; the message has the text. */
static int is_refused(struct setup *setup, const char *says)
{
    struct pstk_loader *loader;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    setup->settings.mix = &setup->mix;
    const int r = pstk_open(&loader, &setup->settings, &err);
    if ((r == PSTK_EINVAL || r == PSTK_ENOMEM) && strstr(err.message, says))
        return 1;
    printf("# %d: %s\n", r, err.message);
    return 0;
}

TEST(a_mix_that_the_outputs_do_not_allow_is_refused_by_name)
{
    struct setup setup;
#define REFUSED(member, value, says)                                                               \
    do {                                                                                           \
        setup_init(&setup, PSTK_F32, PSTK_NCHW);                                                   \
        setup.member = value;                                                                      \
        CHECK(is_refused(&setup, says));                                                           \
    } while (0)
    REFUSED(mix.image, NULL, "mix.image: value is NULL; must be the name of an output");
    REFUSED(mix.image, "no",
            "mix.image: value is 'no'; must be the name of an image output: 'img'");
    REFUSED(mix.image, "cls",
            "mix.image: value is 'cls'; must be the name of an image output: 'img'");
    REFUSED(mix.label, NULL, "mix.label: value is NULL; must be the name of an output");
    REFUSED(mix.label, "no",
            "mix.label: value is 'no'; must be the name of a scalar output: 'cls'");
    REFUSED(mix.label, "img",
            "mix.label: value is 'img'; must be the name of a scalar output: 'cls'");
    REFUSED(mix.n_classes, 0, "mix.n_classes: value is 0; must be at least 1");
    REFUSED(mix.n_classes, UINT32_MAX, "over max_memory");
#undef REFUSED
    setup_init(&setup, PSTK_U8, PSTK_NCHW);
    setup.outputs[0].image.n_ops = 2;
    CHECK(is_refused(&setup, "mix.image: output 'img' has dtype u8; must have f16, bf16 or f32"));
    setup_init(&setup, PSTK_F32, PSTK_NCHW);
    setup.mix.mixup_alpha = setup.mix.cutmix_alpha = 0;
    CHECK(
        is_refused(&setup, "mix.image: must be NULL, because mixup_alpha and cutmix_alpha are 0"));
    setup_init(&setup, PSTK_F32, PSTK_NCHW);
    setup.mix.targets = PSTK_MIX_PAIRS;
    setup.outputs[2].name = "cls_lambda";
    CHECK(
        is_refused(&setup, "mix.targets: adds the tensor 'cls_lambda', which outputs[2] is, too"));
}

TEST(a_mosaic_has_an_image_and_is_not_for_loaders_that_mix)
{
    struct setup setup;
    struct pstk_mosaic mosaic;
    setup_init(&setup, PSTK_F32, PSTK_NCHW);
    pstk_mosaic_init(&mosaic, sizeof mosaic);
    setup.settings.mosaic = &mosaic;
    CHECK(is_refused(&setup, "mosaic.image: value is NULL; must be the name of an output"));
    mosaic.image = "img";
    CHECK(is_refused(&setup, "mosaic: must be NULL, because mix is set"));
    mosaic.center_max = 2;
    CHECK(is_refused(&setup, "mosaic.center_max: value is 2; must be from 0 to 1"));
    mosaic.size = 0;
    CHECK(is_refused(&setup, "mosaic: not initialised, call pstk_mosaic_init first"));
}

TEST(tensors_that_pairs_add_come_last)
{
    struct setup setup;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    setup_init(&setup, PSTK_F32, PSTK_NCHW);
    setup.mix.targets = PSTK_MIX_PAIRS;
    setup.settings.mix = &setup.mix;
    setup.settings.observe.report_crops = 1;
    CHECK_EQ(pstk_open(&loader, &setup.settings, NULL), 0);
    memset(&setup.mix, 0xff, sizeof setup.mix); /* the loader has copies */
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
    CHECK_EQ(b->n_tensors, 5);
    CHECK_STR(b->tensors[3].name, "cls_partner");
    CHECK_STR(b->tensors[4].name, "cls_lambda");
    CHECK(b->tensors[3].dtype == PSTK_I64 && b->tensors[4].dtype == PSTK_F32);
    CHECK(b->tensors[3].n_dims == 1 && b->tensors[3].shape[0] == BATCH);
    CHECK(b->crops[0].image_width > 0 && b->crops[4 * BATCH + 1].image_width == 0);
    pstk_release(&b, NULL);
    pstk_close(&loader);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(batches_are_their_plain_rows_mixed),
        CASE(each_rank_draws_for_itself),
        CASE(a_rank_may_have_no_rows),
        CASE(targets_are_made_without_images),
        CASE(a_device_gets_batches_that_were_mixed_on_the_host),
        CASE(a_label_that_is_no_class_makes_its_sample_bad),
        CASE(a_mix_that_the_outputs_do_not_allow_is_refused_by_name),
        CASE(a_mosaic_has_an_image_and_is_not_for_loaders_that_mix),
        CASE(tensors_that_pairs_add_come_last),
    };
    sample_set_path(path, sizeof path);
    sample_set_make(path, N_SAMPLES, 0, PSTK_CODEC_NONE);
    const int r = RUN_CASES(cases);
    sample_set_remove(path);
    return r;
}
