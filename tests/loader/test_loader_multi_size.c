/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of several sizes is that of a loader with its size alone: for any number of threads and
 * slots, ranks, seeks, and on a device, whose slots change their shapes with them. */
#include "cuda_fake.h"
#include "support/sample_set.h"
#include "support/test.h"

#define N_SAMPLES 103
#define BATCH 8
#define N_SIZES 3
#define EVERY 2

static char path[4200];

struct setup {
    struct pstk_op ops[N_SIZES][3];
    struct pstk_op_list lists[N_SIZES];
    struct pstk_output outputs[3];
    struct pstk_settings settings;
};

static const uint32_t sides[N_SIZES][2] = {{12, 14}, {33, 7}, {5, 6}};

static void setup_init(struct setup *setup, uint32_t dtype, uint32_t layout)
{
    for (uint32_t v = 0; v < N_SIZES; v++) {
        setup->ops[v][0] = pstk_random_resized_crop(sides[v][0], sides[v][1]);
        setup->ops[v][1] = pstk_random_flip(0.5);
        setup->ops[v][2] = pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD);
        setup->lists[v] =
            (struct pstk_op_list){.ops = setup->ops[v], .n_ops = dtype == PSTK_U8 ? 2 : 3};
    }
    setup->outputs[0] = pstk_output_scalar("cls", PSTK_I64);
    setup->outputs[1] = pstk_output_image("img", NULL, 0, dtype, layout);
    setup->outputs[2] = pstk_output_ragged("boxes");
    setup->outputs[1].image.size_ops = setup->lists;
    setup->outputs[1].image.n_sizes = N_SIZES;
    setup->outputs[1].image.every = EVERY;
    struct pstk_settings *s = &setup->settings;
    pstk_settings_init(s, sizeof *s);
    s->path = path;
    s->outputs = setup->outputs;
    s->n_outputs = 3;
    s->batch_size = BATCH;
    s->last_batch = PSTK_LAST_SHORT;
    s->seed = 5;
}

/* Leave in the settings one list for all batches. */
static void leave(struct setup *setup, uint32_t v)
{
    struct pstk_output *o = &setup->outputs[1];
    o->image.size_ops = NULL;
    o->image.n_sizes = o->image.every = 0;
    o->image.ops = setup->lists[v].ops;
    o->image.n_ops = setup->lists[v].n_ops;
}

/* A copy of the parts of a batch that a program sees. */
struct copy {
    uint8_t image[BATCH * 33 * 7 * 3 * 4];
    uint8_t boxes[4096];
    int64_t labels[BATCH], offsets[BATCH + 1];
    int64_t shape[10], strides[10];
    uint64_t size, position;
    uint32_t n_valid, size_index;
};

static int copy_tensor(const struct pstk_batch *b, uint32_t tensor, void *to, uint64_t room,
                       cudaStream_t stream)
{
    const struct pstk_tensor *t = &b->tensors[tensor];
    if (t->size > room)
        return -1;
    if (stream)
        return pstk_batch_read(b, tensor, to, t->size, stream, NULL);
    memcpy(to, t->data, t->size);
    return 0;
}

static int copy_batch(struct copy *copy, const struct pstk_batch *b, cudaStream_t stream)
{
    const struct pstk_tensor *t = &b->tensors[1];
    memset(copy, 0, sizeof *copy);
    copy->n_valid = b->n_valid;
    copy->position = b->position;
    copy->size_index = b->size_index;
    copy->size = t->size;
    memcpy(copy->shape, t->shape, sizeof copy->shape);
    memcpy(copy->strides, t->strides, sizeof copy->strides);
    memcpy(copy->offsets, b->tensors[2].offsets, (b->n_rows + 1) * sizeof *copy->offsets);
    return copy_tensor(b, 0, copy->labels, sizeof copy->labels, stream) |
           copy_tensor(b, 1, copy->image, sizeof copy->image, stream) |
           copy_tensor(b, 2, copy->boxes, sizeof copy->boxes, stream);
}

#define MAX_BATCHES 40

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
        if (copy_batch(&copies[n++], b, stream) < 0)
            printf("# batch %d is too large\n", n);
        pstk_release(&b, stream);
    }
    if (r < 0)
        printf("# %s\n", err.message);
    pstk_close(&loader);
    if (stream)
        cudaStreamDestroy(stream);
    return r < 0 ? r : n;
}

static struct copy all[MAX_BATCHES], alone[MAX_BATCHES];

/* Return whether the loader's batches are those of loaders with one size; all sizes occur in
 * `seen`. */
static int is_right(const struct setup *setup, uint32_t *seen)
{
    const int n = copy_epoch(&setup->settings, all);
    for (uint32_t v = 0; v < N_SIZES; v++) {
        struct setup one = *setup;
        for (uint32_t k = 0; k < N_SIZES; k++)
            one.lists[k].ops = one.ops[k];
        one.settings.outputs = one.outputs;
        one.settings.device.kind = PSTK_HOST;
        leave(&one, v);
        if (n <= 0 || copy_epoch(&one.settings, alone) != n)
            return 0;
        for (int i = 0; i < n; i++) {
            alone[i].size_index = v;
            if (all[i].size_index != v)
                continue;
            *seen |= 1u << v;
            if (memcmp(&all[i], &alone[i], sizeof *all) != 0) {
                printf("# batch %d of %d, size %u differs\n", i, n, v);
                return 0;
            }
        }
    }
    return 1;
}

TEST(batches_are_those_of_their_size_alone)
{
    static const uint32_t dtypes[] = {PSTK_U8, PSTK_F16, PSTK_F32};
    uint32_t seen = 0;
    for (uint32_t k = 0; k < 12; k++) {
        struct setup setup;
        setup_init(&setup, dtypes[k % 3], k / 3 % 2 ? PSTK_NHWC : PSTK_NCHW);
        setup.settings.n_threads = 1 + k % 4;
        setup.settings.memory.n_slots = k % 2 ? 0 : 2;
        setup.settings.reading.reader = k % 3 == 0 ? PSTK_READER_THREADS : PSTK_READER_AUTO;
        setup.settings.last_batch = (k % 3) == 0   ? PSTK_LAST_DROP
                                    : (k % 3) == 1 ? PSTK_LAST_PAD
                                                   : PSTK_LAST_SHORT;
        setup.settings.order.epoch = k;
        CHECK(is_right(&setup, &seen));
    }
    CHECK_EQ(seen, 7);
}

TEST(a_device_gives_them_their_shapes)
{
    uint32_t seen = 0;
    for (uint32_t k = 0; k < 6; k++) {
        struct setup setup;
        setup_init(&setup, k % 3 ? PSTK_F16 : PSTK_U8, k % 2 ? PSTK_NHWC : PSTK_NCHW);
        setup.settings.order.epoch = k;
        cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 100});
        setup.settings.device.kind = PSTK_CUDA;
        const int right = is_right(&setup, &seen);
        CHECK_EQ(cuda_fake_close(), 0);
        CHECK(right);
    }
    CHECK_EQ(seen, 7);
}

/* The traffic of an epoch on a device, including batches that were copied ahead. */
struct traffic {
    uint64_t images, bytes; /* delivered, as workers write them; copied */
    uint64_t n;             /* batches copied */
};

static struct traffic traffic_of(struct setup *setup, uint32_t element_size)
{
    struct traffic traffic = {0};
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_stats stats = {.size = sizeof stats};
    setup->settings.device.kind = PSTK_CUDA;
    setup->settings.device.measure = 1;
    setup->settings.last_batch = PSTK_LAST_DROP;
    cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 100});
    if (pstk_open(&loader, &setup->settings, NULL) < 0)
        return traffic;
    while (pstk_next(loader, &b, NULL, -1, NULL) == 1) {
        traffic.images += b->tensors[1].size / element_size;
        pstk_release(&b, NULL);
    }
    pstk_get_stats(loader, &stats);
    pstk_close(&loader);
    cuda_fake_close();
    traffic.bytes = stats.copy_bytes;
    traffic.n = stats.stage_uploader.n_items;
    return traffic;
}

TEST(a_device_gets_only_the_bytes_that_a_size_needs)
{
    for (uint32_t k = 0; k < 2; k++) { /* mirrored, and finished there */
        const uint32_t dtype = k ? PSTK_F16 : PSTK_U8;
        struct setup setup;
        setup_init(&setup, dtype, PSTK_NHWC);
        const struct traffic sized = traffic_of(&setup, pstk_dtype_size(dtype));
        leave(&setup, 1); /* the largest */
        const struct traffic largest = traffic_of(&setup, pstk_dtype_size(dtype));
        CHECK(largest.n >= 12 && sized.n >= 12);
        CHECK(sized.bytes >= sized.images);
        /* boxes and padding of a batch differ by less than 1024 bytes */
        const uint64_t saved = largest.images - sized.images;
        CHECK(saved > sized.n * 1024);
        CHECK(sized.bytes + saved < sized.n * (largest.bytes / largest.n + 1024));
    }
}

TEST(ranks_have_the_same_sizes_from_any_position)
{
    static struct copy first[MAX_BATCHES];
    for (uint32_t k = 0; k < 6; k++) {
        int n = 0;
        for (uint32_t rank = 0; rank < 2; rank++) {
            struct setup setup;
            setup_init(&setup, PSTK_U8, PSTK_NHWC);
            setup.settings.batch_size = 4;
            setup.settings.ranks.world = 2;
            setup.settings.ranks.rank = rank;
            setup.settings.order.epoch = 9;
            setup.settings.order.position = 2 * 4 * k;
            n = copy_epoch(&setup.settings, all);
            CHECK_EQ(n, 13 - (int)k);
            for (int i = 0; i < n; i++) {
                if (k == 0 && rank == 0)
                    first[i] = all[i];
                CHECK_EQ(all[i].size_index, first[i + (int)k].size_index);
                if (rank == 0)
                    CHECK(memcmp(&all[i], &first[i + (int)k], sizeof *all) == 0);
            }
        }
    }
}

TEST(a_seek_gives_the_sizes_of_its_place)
{
    struct setup setup;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    setup_init(&setup, PSTK_F16, PSTK_NCHW);
    const int n = copy_epoch(&setup.settings, all);
    CHECK_EQ(n, 13);
    CHECK_EQ(pstk_open(&loader, &setup.settings, NULL), 0);
    for (int k = 0; k < 40; k++) {
        const int at = k * 7 % n;
        CHECK_EQ(pstk_seek(loader, 0, (uint64_t)at * BATCH, NULL), 0);
        CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
        CHECK_EQ(copy_batch(&alone[0], b, NULL), 0);
        pstk_release(&b, NULL);
        CHECK(memcmp(&alone[0], &all[at], sizeof *all) == 0);
    }
    pstk_close(&loader);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(batches_are_those_of_their_size_alone),
        CASE(a_device_gives_them_their_shapes),
        CASE(a_device_gets_only_the_bytes_that_a_size_needs),
        CASE(ranks_have_the_same_sizes_from_any_position),
        CASE(a_seek_gives_the_sizes_of_its_place),
    };
    sample_set_path(path, sizeof path);
    sample_set_make(path, N_SAMPLES, 0, PSTK_CODEC_NONE);
    const int r = RUN_CASES(cases);
    sample_set_remove(path);
    return r;
}
